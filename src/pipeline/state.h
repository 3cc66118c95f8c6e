/* state.h: what a saved position is: a blob of at most STK_STATE_MAX bytes, or JSON that says the same and may be
 * written by hand. docs/reference/resume.md draws the blob.
 *
 * What the position depends on is compared by lines (option_print.h). The JSON holds the lines, the blob a hash of
 * those of each section. The version is raised when lines change that no config changed: another default of a printed
 * option, another text of a value that opening finds. */
#ifndef STKI_STATE_H
#define STKI_STATE_H

#include "digest.h"
#include "option_print.h"
#include <jansson.h>
#include <stoker/loader.h>

enum { STKI_STATE_VERSION = 2, STKI_STATE_BYTES = 208, STKI_STATE_SECTIONS = 16 };

/* Which parts a state says anything about; the blob says all, hand-written JSON what it likes. */
enum stki_state_part {
    STKI_STATE_SEED = 1 << 0,
    STKI_STATE_ORDER = 1 << 1,
    STKI_STATE_ORDER_VERSION = 1 << 2,
    STKI_STATE_POSITIONS = 1 << 3,
    STKI_STATE_GLOBAL_BATCH = 1 << 4,
    STKI_STATE_LAST_BATCH = 1 << 5,
    STKI_STATE_HASHES = 1 << 6,
    STKI_STATE_ALL = (1 << 7) - 1,
    STKI_STATE_LINES = 1 << 7,
    STKI_STATE_OWN = 1 << 8, /* what is this rank's own */
    STKI_STATE_OLD = 1 << 9  /* fingerprints of version 1, which nothing can be compared with any more */
};

typedef struct stki_state {
    int version;
    unsigned parts;
    int64_t epoch, step; /* the first step that is not over; step 0 of epoch e + 1 is the end of epoch e */
    int64_t seed;
    int order, order_version, last_batch;   /* as in stki_loader_config */
    int64_t positions, global_batch;        /* of an epoch, of a step */
    uint32_t sections[STKI_STATE_SECTIONS]; /* hashes of lines, in the order of the blob; 0: there are none */
    const stki_print *lines;                /* NULL: not known */
    stki_print *own_lines;                  /* the same where they were read */
    /* a rank's own part */
    int64_t rank, world_size;
    int digest_kind; /* as in stki_loader_config */
    stki_u128 digest;
    int64_t digest_from; /* the step over all epochs that the digest begins with */
    int64_t failed, epoch_failed, epoch_left_out;
} stki_state;

/* The bytes written, at most STKI_STATE_BYTES. All of STKI_STATE_ALL is there. */
int stki_state_write(const stki_state *state, uint8_t to[STKI_STATE_BYTES]);
json_t *stki_state_json(const stki_state *state); /* NULL: no memory */
/* Either form, `origin` standing in messages (NULL: "state"); the first byte that is no blank tells. STK_E_CORRUPT:
 * damaged or no state. STK_E_UNSUPPORTED: of another version. STK_E_CONFIG: JSON that says something unknown or
 * impossible. */
stk_status stki_state_read(const void *data, int64_t bytes, const char *origin, stki_state *out, stk_error *err);
void stki_state_fini(stki_state *state); /* what reading has allocated; also after a failure */

/* The sections of the blob, by number. */
extern const char *const stki_state_sections[STKI_STATE_SECTIONS];
enum { STKI_STATE_FAILURES = STKI_STATE_SECTIONS - 1 }; /* compared only where both states have lines there */
void stki_state_hash(const stki_print *print, uint32_t sections[STKI_STATE_SECTIONS]);
/* {"loader": "0123abcd"} of those that are not 0; new JSON. NULL: no memory. */
json_t *stki_state_sections_json(const uint32_t sections[STKI_STATE_SECTIONS]);

#endif
