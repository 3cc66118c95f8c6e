/* stoker_pool.c: see stoker_pool.h. */
#include "stoker_pool.h"
#include "clock.h"

#define PROGRESS_NS (INT64_C(200) * 1000000)

stk_status st_pool_run(int threads, int64_t parts, stki_thread_pool_part *run, void (*progress)(void *context),
                       void *context, stk_error *err)
{
    stki_thread_pool_opts opts = {.name = "stoker-verify",
                                  .threads = threads < parts ? threads : (int)parts,
                                  .depth = 1,
                                  .caller_runs_none = true,
                                  .run = run,
                                  .context = context};
    stki_thread_pool *pool;
    void *task;
    stk_status status = stki_thread_pool_create(&opts, &pool, NULL);

    if (status != STK_OK) {
        opts.threads = 0;
        status = stki_thread_pool_create(&opts, &pool, err);
    }
    if (status != STK_OK)
        return status;
    status = stki_thread_pool_submit(pool, NULL, parts, err);
    while (status == STK_OK &&
           (status = stki_thread_pool_next(pool, stki_deadline_ns(PROGRESS_NS), &task, err)) == STK_AGAIN) {
        if (progress)
            progress(context);
        status = STK_OK;
    }
    stki_thread_pool_destroy(pool);
    return status;
}
