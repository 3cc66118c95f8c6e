/* help.h: whether the thread that calls stk_loader_next makes rows itself while it waits (ring.h, stki_ring_help). It
 * does only what cannot block: rows converted from files of this machine that are mapped, or from memory, so that
 * time-outs, cancel and close keep their promises. */
#ifndef STKI_HELP_H
#define STKI_HELP_H

#include "core.h"

enum { STKI_HELP_SHARDS = 64 }; /* more are too many to look at in each call */

/* Why the consumer can never help, in `buffer` or static; NULL: it can. */
const char *stki_help_obstacle(const stki_core *core, char *buffer, int size);
/* Before the workers start. `leave`: the ring's. */
void stki_help_begin(stki_core *core, const _Atomic bool *leave);

#endif
