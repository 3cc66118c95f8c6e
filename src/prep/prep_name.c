/* prep_name.c: ensures that only one job at a time writes the outputs of a NAME. Extensions and work folders may
 * differ, but manifest, statistics and list of failed samples are shared, and a job that finishes replaces the files
 * listed in the existing manifest. The lock is the file NAME.prep.lock next to the output:
 *
 *     locked exclusively   briefly, by a process that finds no other user and writes the identity of its job
 *     locked shared        by every process (task) of that job, until it ends
 *     locked exclusively   by the last of them, which removes the work folder if it is no longer needed, and the file
 *
 * The file identifies the job that holds the lock, and states whether this job created the work folder. A file left by
 * a killed process is not locked and is taken over. Job and manifest are compared again before files are renamed,
 * because other programs may have removed files. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "path.h"
#include "prep_file.h"
#include "prep_run.h"
#include "text_json.h"
#include "thread.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 6 };
#define PAUSE_NS (STKI_SECOND / 100)
#define LOCK_NS (10 * STKI_SECOND)

char *stki_beside_output(const stki_job *job, const char *ending)
{
    return stki_format("%s.%s", job->stem, ending);
}

bool stki_prep_had_skipped(const json_t *manifest)
{
    return json_integer_value(json_object_get(json_object_get(manifest, "totals"), "skipped")) > 0;
}

bool stki_prep_had_stats(const json_t *manifest)
{
    return json_object_get(json_object_get(manifest, "job"), "stats") || json_object_get(manifest, "requested");
}

/* ---- owner ---- */

char *stki_name_of_work(const stki_job *job)
{
    char whole[PATH_MAX], *folder = stki_folder_of(job->work), *path = NULL;

    if (folder)
        path =
            realpath(folder, whole) ? stki_format("%s/%s", whole, stki_base_name(job->work)) : stki_strdup(job->work);
    stki_free(folder);
    return path;
}

/* Work folders next to the output are identified by the output's name, because the folder may have different paths on
 * different hosts. */
static json_t *owner_of(const stki_job *job)
{
    char host[256] = "?", *work = job->prep.temporary ? stki_name_of_work(job) : NULL;
    json_t *owner = NULL;

    (void)gethostname(host, sizeof host - 1);
    if (work || !job->prep.temporary)
        owner = json_pack("{s:o, s:o, s:I, s:o, s:b}", "output", stki_text_json(stki_base_name(job->path)), "work",
                          work ? stki_text_json(work) : json_null(), "process", (json_int_t)getpid(), "host",
                          stki_text_json(host), "fresh", !stki_prep_exists(job->work));
    stki_free(work);
    return owner;
}

static bool is_same_job(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "output"), json_object_get(b, "output")) &&
           json_equal(json_object_get(a, "work"), json_object_get(b, "work"));
}

static stk_status fail_busy(const char *path, const json_t *owner, stk_error *err)
{
    const char *output = json_string_value(json_object_get(owner, "output")),
               *work = json_string_value(json_object_get(owner, "work")),
               *host = json_string_value(json_object_get(owner, "host"));
    const long long process = (long long)json_integer_value(json_object_get(owner, "process"));

    return stki_fail_at(
        err, STK_E_BUSY,
        (stki_place){path, -1, -1, STKI_TEXT("process %lld of %.40s", process, host ? host : "another host"), NULL},
        "another job is writing %s%s%s, an output with the same NAME, which determines the names of the files next to "
        "it: wait until it ends, or give this output another name",
        output ? output : "an output", work ? " in the work folder " : "", work ? work : "");
}

/* ---- acquiring ---- */

static stk_status write_owner(int fd, const char *path, const json_t *owner, stk_error *err)
{
    char *text = json_dumps(owner, JSON_COMPACT | JSON_SORT_KEYS);
    const size_t length = text ? strlen(text) : 0;
    ssize_t written = 0;
    stk_status status = STK_OK;

    if (!text)
        return stki_fail_memory(err, 256, path);
    if (ftruncate(fd, 0) != 0)
        status = stki_fail_errno(err, errno, path, "cannot truncate to 0 bytes");
    for (size_t at = 0; at < length && status == STK_OK; at += (size_t)written)
        if ((written = pwrite(fd, text + at, length - at, (off_t)at)) < 0)
            status = stki_fail_errno(err, errno, path, "cannot write");
    free(text);
    return status;
}

/* Acquires the name for this job; called if there is no other user. */
static stk_status own(stki_name_lock *name, int fd, const json_t *owner, stk_error *err)
{
    stk_status status = write_owner(fd, name->path, owner, err);

    if (status == STK_OK)
        status = stki_prep_lock_again(fd, false, name->path, err);
    if (status == STK_OK) {
        name->fd = fd;
        name->fresh = json_is_true(json_object_get(owner, "fresh"));
    } else {
        (void)close(fd);
    }
    return status;
}

/* Shares the lock with other processes of this job. *found: the owner if it is another job. STK_E_BUSY is also returned
 * while another process is acquiring the lock. */
static stk_status join(stki_name_lock *name, const json_t *owner, json_t **found, stk_error *err)
{
    stk_error ignored;
    int fd;
    stk_status status = stki_prep_share_file(name->path, &fd, err);

    if (status != STK_OK)
        return status;
    json_decref(*found);
    *found = NULL;
    if (stki_prep_read_json(name->path, found, &ignored) == STK_OK && is_same_job(*found, owner)) {
        name->fd = fd;
        name->fresh = json_is_true(json_object_get(*found, "fresh"));
        return STK_OK;
    }
    if (stki_prep_lock_again(fd, true, name->path, err) == STK_OK) /* the other users have released it */
        return own(name, fd, owner, err);
    (void)close(fd);
    return fail_busy(name->path, *found, err);
}

static stk_status take(stki_name_lock *name, const json_t *owner, stk_error *err)
{
    const int64_t deadline = stki_now_ns() + LOCK_NS;
    json_t *found = NULL;
    stk_status status = STK_E_BUSY;

    for (int met = 0; status == STK_E_BUSY && met < TRIES && stki_now_ns() < deadline; met += found != NULL) {
        int fd;

        if ((status = stki_prep_lock_file(name->path, &fd, err)) == STK_OK)
            status = own(name, fd, owner, err);
        else if (status == STK_E_BUSY)
            status = join(name, owner, &found, err);
        if (status == STK_E_BUSY)
            stki_sleep_ns(PAUSE_NS);
    }
    json_decref(found);
    return status;
}

stk_status stki_name_manifest(const stki_job *job, json_t **out, stk_error *err)
{
    char *path = stki_beside_output(job, "manifest.json");
    stk_error cause;
    stk_status status = path ? STK_OK : stki_fail_memory(&cause, 256, "a path");

    *out = NULL;
    if (status == STK_OK && stki_prep_exists(path))
        status = stki_prep_read_json(path, out, &cause);
    stki_free(path);
    if (status == STK_E_MEMORY) {
        if (err)
            *err = cause;
        return status;
    }
    if (!*out)
        *out = json_null();
    return STK_OK;
}

stk_status stki_name_take(const stki_job *job, stki_name_lock *out, stk_error *err)
{
    json_t *owner = owner_of(job);
    stk_status status;

    *out = (stki_name_lock){.path = stki_beside_output(job, "prep.lock"), .fd = -1};
    status = owner && out->path ? take(out, owner, err) : stki_fail_memory(err, 256, "a lock");
    if (status == STK_OK)
        status = stki_name_manifest(job, &out->old, err);
    json_decref(owner);
    return status;
}

stk_status stki_name_check(const stki_name_lock *name, const stki_job *job, stk_error *err)
{
    json_t *now;
    stk_status status;

    if (!stki_prep_lock_stands(name->fd, name->path))
        return stki_fail_at(err, STK_E_BUSY, (stki_place){name->path, -1, -1, "another file or none", NULL},
                            "the lock was removed while the job ran, so another job may have started; make sure that "
                            "none is running, and run this one again: its pieces are kept");
    status = stki_name_manifest(job, &now, err);
    if (status == STK_OK && !json_equal(now, name->old))
        status = stki_fail_at(err, STK_E_BUSY, (stki_place){job->stem, -1, -1, NULL, NULL},
                              "an output of this name was completed or removed while the job ran and is not replaced; "
                              "run this job again (the option force replaces the output)");
    json_decref(now);
    return status;
}

/* The shared lock is released before the exclusive one is requested: if two processes converted their shared locks at
 * the same time, both would fail. */
bool stki_name_leave(stki_name_lock *name)
{
    stk_error ignored;

    if (name->fd < 0)
        return false;
    (void)close(name->fd);
    if (stki_prep_lock_file(name->path, &name->fd, &ignored) != STK_OK)
        name->fd = -1;
    return name->fd >= 0;
}

void stki_name_release(stki_name_lock *name)
{
    if (name->fd >= 0) {
        (void)unlink(name->path);
        (void)close(name->fd);
    }
    stki_free(name->path);
    json_decref(name->old);
    *name = (stki_name_lock){.fd = -1};
}
