/* stoker_pool.h: work on several threads while the caller shows how far it is. */
#ifndef STOKER_POOL_H
#define STOKER_POOL_H

#include "thread_pool.h"

/* Runs parts 0 to `parts` - 1 of `run` on `threads` threads, or on the caller's if they cannot be started, and returns
 * when all have run. `progress` is called a few times a second on the caller's thread; it may be NULL. */
stk_status st_pool_run(int threads, int64_t parts, stki_thread_pool_part *run, void (*progress)(void *context),
                       void *context, stk_error *err);

#endif
