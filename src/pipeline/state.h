/* state.h: what a saved position is: a blob of at most STK_STATE_MAX bytes, or JSON that says the same and may be
 * written by hand. docs/resume.md draws the blob. */
#ifndef STKI_STATE_H
#define STKI_STATE_H

#include "digest.h"
#include <jansson.h>
#include <stoker/loader.h>

enum { STKI_STATE_VERSION = 1, STKI_STATE_BYTES = 192 };

/* Which parts a state says anything about; the blob says all, hand-written JSON what it likes. */
enum stki_state_part {
    STKI_STATE_SEED = 1 << 0,
    STKI_STATE_ORDER = 1 << 1,
    STKI_STATE_ORDER_VERSION = 1 << 2,
    STKI_STATE_POSITIONS = 1 << 3,
    STKI_STATE_GLOBAL_BATCH = 1 << 4,
    STKI_STATE_LAST_BATCH = 1 << 5,
    STKI_STATE_DATASET = 1 << 6,
    STKI_STATE_ORDER_PRINT = 1 << 7,
    STKI_STATE_TRANSFORMS = 1 << 8,
    STKI_STATE_ALL = (1 << 9) - 1,
    STKI_STATE_OWN = 1 << 9 /* what is this rank's own */
};

typedef struct stki_state {
    unsigned parts;
    int64_t epoch, step; /* the first step that is not over; step 0 of epoch e + 1 is the end of epoch e */
    int64_t seed;
    int order, order_version, last_batch; /* as in stki_loader_config */
    int64_t positions, global_batch;      /* of an epoch, of a step */
    stki_u128 dataset, order_print, transforms;
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

/* fingerprint.c: what a state is compared by. */
struct stki_core;
void stki_state_prints(const struct stki_core *core, stki_state *out);

#endif
