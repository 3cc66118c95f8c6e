/* stoker_pool.h: parallel work with progress on the caller's thread. */
#ifndef STOKER_POOL_H
#define STOKER_POOL_H

#include "thread_pool.h"

/* Runs parts 0 to `parts` - 1 of `run` on `threads` threads, or on the caller's if they cannot be started, and returns
 * when all are done. `progress` (may be NULL) is called a few times per second on the caller's thread. */
stk_status st_pool_run(int threads, int64_t parts, stki_thread_pool_part *run, void (*progress)(void *context),
                       void *context, stk_error *err);

#endif
