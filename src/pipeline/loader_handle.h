/* loader_handle.h: the loader handle, shared by the files that implement the public calls: loader.c (open, next,
 * close), loader_queries.c (queries) and resume.c (save, restore, digest). */
#ifndef STKI_LOADER_HANDLE_H
#define STKI_LOADER_HANDLE_H

#include "core.h"
#include "error.h"
#include "thread.h"

struct stk_loader {
    stki_core *core;
    int64_t fork_generation;
    char *options_json;
    bool closed;
    int64_t close_deadline_ns; /* common deadline of close and destroy; set by whichever is called first */
    int stuck;                 /* number of workers that close abandoned */
    stk_status feed_status;    /* result of closing the feed to a device */
    stk_error feed_error;
    /* generation of the ring, incremented by every restart; used only by the thread that calls next */
    int64_t generation;
    bool failed; /* a data error was delivered; every call to next returns it until another position is restored */
    _Atomic bool cancelled; /* may be set by a signal handler */
    stk_error error;
    int64_t waits_since_ns;   /* start of the first call to next that timed out since the last batch; 0: none did */
    stki_counter digest_from; /* first step included in the stream's digest */
    /* consumer-side statistics, written by the thread that calls next */
    stki_counter batches, rows, batch_bytes, wait_next_ns, first_batch_ns;
};

/* Fails with STK_E_FORKED, because the loader was opened in the parent process. stki_loader_given fails with
 * STK_E_BAD_ARG for NULL, and stki_loader_check makes both checks. */
static inline stk_status stki_loader_fail_forked(stk_error *err)
{
    return stki_fail(err, STK_E_FORKED, "this loader was opened in the parent process: open one in the child");
}

static inline bool stki_loader_is_forked(const stk_loader *loader)
{
    return loader->fork_generation != stki_fork_generation();
}

static inline stk_status stki_loader_given(const stk_loader *loader, stk_error *err)
{
    return loader ? STK_OK : stki_fail(err, STK_E_BAD_ARG, "loader: found NULL, expected an open loader");
}

static inline stk_status stki_loader_check(const stk_loader *loader, stk_error *err)
{
    stk_status status = stki_loader_given(loader, err);

    return status == STK_OK && stki_loader_is_forked(loader) ? stki_loader_fail_forked(err) : status;
}

/* loader_echo.c: sets options_json. */
stk_status stki_loader_echo(stk_loader *loader, stk_error *err);

/* resume.c: moves to the position of loader.resume_from, if set. Call before the workers start. */
stk_status stki_loader_resume(stk_loader *loader, stk_error *err);

#endif
