/* help.h: decides whether the thread that calls stk_loader_next makes rows while it waits (ring.h, stki_ring_let_help).
 * It only does work that cannot block, which is converting rows from memory or from mapped local files, so that
 * timeouts, cancellation and close are not delayed. */
#ifndef STKI_HELP_H
#define STKI_HELP_H

#include "core.h"

enum { STKI_HELP_SHARDS = 64 }; /* with more shards, checking them in each call would cost too much */

/* Returns the reason why the consumer never helps, in `buffer` or as a static string; NULL: it may help. */
const char *stki_help_obstacle(const stki_core *core, char *buffer, int size);
/* Call before the workers start. `leave`: passed on to the ring. */
void stki_help_begin(stki_core *core, const _Atomic bool *leave);

#endif
