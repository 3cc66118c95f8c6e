/* state.h: the format of a saved position: a blob of at most STK_STATE_MAX bytes, or equivalent JSON, which may be
 * hand-written. docs/reference/resume.md documents the blob.
 *
 * Everything that the position depends on is compared as lines of text (option_print.h). The JSON contains the lines;
 * the blob contains a hash of the lines of each section. The version must be incremented if lines change although the
 * config does not: if a printed option gets a new default, or a value determined at open is printed in another form. */
#ifndef STKI_STATE_H
#define STKI_STATE_H

#include "digest.h"
#include "option_print.h"
#include <jansson.h>
#include <stoker/loader.h>

enum { STKI_STATE_VERSION = 2, STKI_STATE_BYTES = 208, STKI_STATE_SECTIONS = 16 };

/* The parts of a state. The blob contains all parts; hand-written JSON may contain any subset. */
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
    STKI_STATE_OWN = 1 << 8, /* digest and failure counts of one rank */
    STKI_STATE_OLD = 1 << 9  /* fingerprints of version 1, which can no longer be compared */
};

typedef struct stki_state {
    int version;
    unsigned parts;
    int64_t epoch, step; /* the first unfinished step; step 0 of epoch e + 1 is the end of epoch e */
    int64_t seed;
    int order, order_version, last_batch;   /* as in stki_loader_config */
    int64_t positions, global_batch;        /* number of positions per epoch and per step */
    uint32_t sections[STKI_STATE_SECTIONS]; /* hashes of lines, in the blob's order; 0: no lines */
    const stki_print *lines;                /* NULL: unknown */
    stki_print *own_lines;                  /* the object `lines` points to if the state was read from JSON; owned */
    /* with STKI_STATE_OWN: */
    int64_t rank, world_size;
    int digest_kind; /* as in stki_loader_config */
    stki_u128 digest;
    int64_t digest_from; /* first step in the digest, counted over all epochs */
    int64_t failed, epoch_failed, epoch_left_out;
} stki_state;

/* Returns the number of bytes written, at most STKI_STATE_BYTES. All of STKI_STATE_ALL must be set. */
int stki_state_write(const stki_state *state, uint8_t to[STKI_STATE_BYTES]);
json_t *stki_state_json(const stki_state *state); /* NULL: out of memory */
/* Reads either form, which is recognized by the first byte that is not white space. `origin` is the state's name in
 * messages (NULL: "state"). STK_E_CORRUPT: damaged or not a state. STK_E_UNSUPPORTED: another version. STK_E_CONFIG:
 * JSON with an unknown key or an impossible value. */
stk_status stki_state_read(const void *data, int64_t bytes, const char *origin, stki_state *out, stk_error *err);
void stki_state_fini(stki_state *state); /* must also be called if stki_state_read fails */

/* Section names by their number in the blob. */
extern const char *const stki_state_sections[STKI_STATE_SECTIONS];
enum { STKI_STATE_FAILURES = STKI_STATE_SECTIONS - 1 }; /* compared only if both states have lines in this section */
void stki_state_hash(const stki_print *print, uint32_t sections[STKI_STATE_SECTIONS]);
/* Returns a new object, such as {"loader": "0123abcd"}, of the hashes that are not 0. NULL: out of memory. */
json_t *stki_state_sections_json(const uint32_t sections[STKI_STATE_SECTIONS]);

#endif
