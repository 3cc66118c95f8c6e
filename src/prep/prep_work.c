/* prep_work.c: the work folder of a job, OUTPUT.prep next to the output or the folder given by prep.temporary.
 *
 *     job.json          the identity of the job; other jobs are rejected
 *     lock              shared: held by all processes that work here; exclusive: to delete files that others left
 *     merge.lock        held while joining and committing
 *     unit-00000.journal, …   journals of the units
 *     pieces/000000.rows, …   spooled pieces
 *     seconds-XXXXXX, …       the working time of each process (job_clock.h)
 *     commit.json       the manifest and the planned renames; once it exists, no rows are produced again
 *
 * Processes may start while another one completes the output, and each creates files here. Therefore the folder is
 * removed by the last process of the job, which holds the lock of the name exclusively (prep_name.c).
 *
 * Unfinished output files are here too, or in OUTPUT.prep if prep.temporary is on another file system, because files
 * can only be renamed within one file system. The file `making` in it contains the path of the work folder. Progress is
 * read from the journals and pieces. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "path.h"
#include "prep_file.h"
#include "prep_inputs.h"
#include "prep_run.h"
#include "spool.h"
#include "stamp.h"
#include "text_json.h"
#include "thread.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NS (10 * STKI_SECOND)

char *stki_work_file(const stki_prep_run *run, const char *name)
{
    return stki_format("%s/%s", run->work, name);
}

char *stki_work_journal(const stki_prep_run *run, int64_t unit)
{
    return stki_format("%s/unit-%05" PRId64 ".journal", run->work, unit);
}

char *stki_work_piece(const stki_prep_run *run, int64_t piece)
{
    return stki_format("%s/pieces/%06" PRId64 ".rows", run->work, piece);
}

/* ---- identity ---- */

/* One process may resume a job of several tasks, and vice versa, if nothing but the number of tasks differs. */
static void adopt_mode(stki_prep_run *run, const json_t *found)
{
    const char *mode = json_string_value(json_object_get(found, "mode"));

    if (run->mode != STKI_PREP_WHOLE || !mode || strcmp(mode, "spooled") != 0)
        return;
    run->mode = STKI_PREP_SPOOLED;
    run->units = run->cuts.pieces;
    json_object_set_new(run->identity, "mode", json_string("spooled"));
}

/* A job that failed at an unreadable sample may be resumed with on_error: skip, because nothing has been skipped so
 * far. This does not apply to formats without marks, whose files may depend on the option. */
static void adopt_policy(stki_prep_run *run, json_t *found)
{
    static const char key[] = "prep.on_error", *const jobs[] = {"job", "requested"};
    json_t *mine = json_object_get(json_object_get(run->identity, "job"), key);

    if (run->job->prep.on_error != STKI_JOB_SKIP || json_object_get(json_object_get(found, "job"), key) ||
        (run->mode == STKI_PREP_SHARDS && !run->job->format->resumes))
        return;
    for (int i = 0; i < 2; i++)
        run->rewrites |=
            json_object_get(found, jobs[i]) && json_object_set(json_object_get(found, jobs[i]), key, mine) == 0;
}

static stk_status compare(stki_prep_run *run, const char *path, stk_error *err)
{
    char difference[256];
    /* Parameters determined by a pass follow from the data, so the job is compared as it was before the pass. */
    const char *asked = run->job->requested ? "requested" : "job";
    json_t *found;
    bool differs;
    stk_status status = stki_prep_read_json(path, &found, err);

    if (status == STK_E_CORRUPT)
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, -1, "a damaged file", NULL},
                            "the work folder is damaged; start again with the option restart");
    if (status != STK_OK)
        return status;
    if (json_integer_value(json_object_get(found, "version")) != STKI_PREP_IDENTITY) {
        json_decref(found);
        return stki_fail_at(
            err, STK_E_MISMATCH, (stki_place){run->work, -1, -1, NULL, NULL},
            "the work folder was created by another version of stoker; start again with the option restart");
    }
    adopt_mode(run, found);
    adopt_policy(run, found);
    /* Reports the option or file itself rather than values derived from it. */
    differs = stki_job_differs(json_object_get(found, asked), json_object_get(run->identity, asked), difference,
                               sizeof difference);
    if (!differs)
        status = stki_prep_inputs_check(run, err);
    if (status == STK_OK && (differs || stki_job_differs(found, run->identity, difference, sizeof difference)))
        status = stki_fail_at(err, STK_E_MISMATCH, (stki_place){run->work, -1, -1, NULL, NULL},
                              "the work folder belongs to another job, or to other data (%s); resume that one, or "
                              "start again with the option restart",
                              difference);
    json_decref(found);
    return status;
}

stk_status stki_work_look(stki_prep_run *run, bool *found, stk_error *err)
{
    char *path = NULL;
    stk_status status = STK_OK;

    if (!run->work)
        run->work = stki_strdup(run->job->work);
    path = run->work ? stki_work_file(run, "job.json") : NULL;
    if (!path)
        return stki_fail_memory(err, 256, "a path");
    *found = stki_prep_exists(path);
    if (*found && !run->opts->restart)
        status = compare(run, path, err);
    stki_free(path);
    return status;
}

/* ---- opening ---- */

static dev_t device_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_dev : 0;
}

/* Checks the lengths of the names in the output's folder that contain no field name: those of the manifest while it is
 * written, the lock, and the work folder. */
static stk_status check_length(const stki_job *job, const char *folder, const char *key, stk_error *err)
{
    const char *slash = strrchr(job->path, '/'), *longest = job->format ? ".manifest.json.tmp" : ".prep.lock";
    const long most = pathconf(folder, _PC_NAME_MAX);
    const int64_t whole = (int64_t)strlen(slash ? slash + 1 : job->path), stem = whole - (int64_t)strlen(job->ending);
    int64_t bytes = stem + (int64_t)strlen(longest);

    if (whole + (int64_t)strlen(".prep") > bytes) {
        longest = ".prep";
        bytes = whole + (int64_t)strlen(longest);
    }

    if (most <= 0 || bytes <= most)
        return STK_OK;
    return stki_fail_at(err, STK_E_CONFIG,
                        (stki_place){job->path, -1, -1, STKI_TEXT("%" PRId64 " bytes with %s", bytes, longest),
                                     STKI_TEXT("at most %ld", most)},
                        "%s: the name is too long for the files next to it", key);
}

stk_status stki_work_check_target(const stki_job *job, stk_error *err)
{
    const char *key = job->format ? "output.path" : "stats.path";
    struct stat st;
    char *folder = stki_folder_of(job->path);
    stk_status status = STK_OK;

    if (!folder)
        return stki_fail_memory(err, 256, "a path");
    if (stat(folder, &st) != 0 && errno == ENOENT)
        status = stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){folder, -1, -1, "nothing", "a folder"},
                              "%s: the output's folder does not exist; create it", key);
    else if (stat(folder, &st) != 0)
        status = stki_fail_errno(err, errno, folder, "the output's folder cannot be used");
    else if (!S_ISDIR(st.st_mode))
        status =
            stki_fail_at(err, STK_E_IO, (stki_place){folder, -1, -1, "another kind of file", "a folder"}, "%s", key);
    else if (stat(job->path, &st) == 0 && S_ISDIR(st.st_mode))
        status = stki_fail_at(err, STK_E_IO, (stki_place){job->path, -1, -1, "a folder", "a file name"}, "%s", key);
    else if (lstat(job->path, &st) == 0 && S_ISLNK(st.st_mode) && stat(job->path, &st) != 0)
        status = stki_fail_at(err, STK_E_IO, (stki_place){job->path, -1, -1, "a dangling symbolic link", "a file name"},
                              "%s", key);
    else if (faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) != 0)
        status = stki_fail_errno(err, errno, folder, "the output's folder cannot be written to");
    else
        status = check_length(job, folder, key, err);
    stki_free(folder);
    return status;
}

/* Returns whether the folder contains the file that exists for the whole lifetime of a job's work folder. */
static bool has_mark(const char *folder)
{
    char *lock = stki_format("%s/lock", folder), *commit = stki_format("%s/commit.json", folder);
    const bool marked = !lock || !commit || stki_prep_exists(lock) || stki_prep_exists(commit);

    stki_free(lock);
    stki_free(commit);
    return marked;
}

static const char making_mark[] = "making";

/* Returns the work folder that owns the unfinished files in a folder next to an output; NULL: it is not such a folder.
 * Free with stki_free. */
static char *work_of_making(const char *folder)
{
    char *path = stki_format("%s/%s", folder, making_mark), *work = NULL;
    json_t *mark = NULL;

    if (path && stki_prep_read_json(path, &mark, NULL) == STK_OK)
        work = json_is_string(json_object_get(mark, "work")) ? stki_text_of_json(json_object_get(mark, "work"))
                                                             : stki_strdup("an unknown folder");
    json_decref(mark);
    stki_free(path);
    return work;
}

/* Returns whether the file may exist before the mark does: counts (count-KEY-…), working times of processes,
 * merge.lock, an empty pieces/, and the mark while it is written. */
static bool is_early(const char *folder, const char *name)
{
    static const char
        count[] = "count-",
        times[] = STKI_JOB_CLOCK_FILES,
        letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"; /* random part, by mkostemp */
    bool empty;
    char *pieces;

    if (strncmp(name, making_mark, sizeof making_mark - 1) == 0) /* being written */
        return strncmp(name + sizeof making_mark - 1, ".tmp.", 5) == 0;
    if (strncmp(name, count, sizeof count - 1) == 0)
        return strspn(name + sizeof count - 1, "0123456789abcdef") == 16;
    if (strncmp(name, times, sizeof times - 1) == 0)
        return strlen(name) == sizeof times - 1 + 6 && strspn(name + sizeof times - 1, letters) == 6;
    if (strcmp(name, "pieces") != 0)
        return strcmp(name, "merge.lock") == 0;
    pieces = stki_format("%s/pieces", folder);
    empty = !pieces || stki_prep_folder_is_empty(pieces);
    stki_free(pieces);
    return empty;
}

/* Checks for the mark again after listing, because other tasks may start at the same time. */
static bool is_of_others(const char *path)
{
    DIR *folder = has_mark(path) ? NULL : opendir(path);
    const struct dirent *entry;
    bool foreign = false;

    while (folder && !foreign && (entry = readdir(folder)) != NULL)
        foreign = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && !is_early(path, entry->d_name);
    if (folder)
        (void)closedir(folder);
    return foreign && !has_mark(path);
}

/* Checks that the output is not inside the work folder, which is removed at the end. */
static stk_status check_apart(const stki_job *job, stk_error *err)
{
    char *folder = stki_folder_of(job->path);
    stk_status status = folder ? STK_OK : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK && stki_is_one_file(folder, job->work))
        status = stki_fail_at(err, STK_E_CONFIG,
                              (stki_place){job->work, -1, -1, "a folder that contains the output", "a separate folder"},
                              "the work folder, which is removed at the end with all its contents: set prep.temporary "
                              "to another folder, or remove it");
    stki_free(folder);
    return status;
}

static stk_status check_own(const char *folder, stk_error *err)
{
    char *work;
    stk_status status;

    if (!is_of_others(folder))
        return STK_OK;
    work = work_of_making(folder);
    if (work)
        status = stki_fail_at(
            err, STK_E_CONFIG,
            (stki_place){folder, -1, -1, STKI_TEXT("files of a job whose work folder is %s", work),
                         "a separate folder"},
            "the work folder: resume that job (prep.temporary: %s), or start again with the option restart", work);
    else
        status = stki_fail_at(err, STK_E_CONFIG,
                              (stki_place){folder, -1, -1, "files that belong to no job", "a separate folder"},
                              "the work folder, which is removed at the end with all its contents: set prep.temporary "
                              "to an empty or new folder");
    stki_free(work);
    return status;
}

stk_status stki_work_claim(const stki_job *job, stk_error *err)
{
    stk_status status = check_apart(job, err);

    if (status == STK_OK)
        status = check_own(job->work, err);
    return status == STK_OK ? stki_prep_make_folder(job->work, err) : status;
}

stk_status stki_work_remove(const char *folder, stk_error *err)
{
    stk_status status = check_own(folder, err);

    return status == STK_OK ? stki_prep_remove_folder(folder, "lock", err) : status;
}

/* Claims the folder next to the output for a job whose work folder is elsewhere. It must not contain unrelated
 * files. */
static stk_status claim_making(const stki_prep_run *run, stk_error *err)
{
    char *work = stki_name_of_work(run->job), *other = work_of_making(run->making),
         *path = stki_format("%s/%s", run->making, making_mark);
    json_t *mark = work ? json_pack("{s:o}", "work", stki_text_json(work)) : NULL;
    stk_status status = STK_OK;

    if (!path || !mark)
        status = stki_fail_memory(err, 256, "a path");
    else if (other ? strcmp(work, other) != 0 : has_mark(run->making))
        status = stki_fail_at(
            err, STK_E_MISMATCH,
            (stki_place){run->making, -1, -1,
                         STKI_TEXT("leftover files of a job whose work folder is %s", other ? other : run->making),
                         STKI_TEXT("files of a job whose work folder is %s", work)},
            "an unfinished job of this output: resume that one, or start again with the option restart");
    else if (!other && (status = check_own(run->making, err)) == STK_OK &&
             (status = stki_prep_make_folder(run->making, err)) == STK_OK)
        status = stki_prep_write_json(path, mark, err);
    json_decref(mark);
    stki_free(path);
    stki_free(other);
    stki_free(work);
    return status;
}

static stk_status make_folders(stki_prep_run *run, stk_error *err)
{
    char *folder = stki_folder_of(run->job->path), *pieces = NULL;
    stk_status status = folder ? stki_work_claim(run->job, err) : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK) {
        run->making =
            device_of(run->work) == device_of(folder) ? stki_strdup(run->work) : stki_format("%s.prep", run->job->path);
        pieces = stki_format("%s/pieces", run->work);
        if (!run->making || !pieces)
            status = stki_fail_memory(err, 256, "a path");
    }
    if (status == STK_OK && strcmp(run->making, run->work) != 0)
        status = claim_making(run, err);
    if (status == STK_OK && run->mode == STKI_PREP_SPOOLED)
        status = stki_prep_make_folder(pieces, err);
    stki_free(folder);
    stki_free(pieces);
    return status;
}

/* Empties a folder of this output, which no other process may be using. STK_E_BUSY: one is, or another run of the job
 * has completed the output since this one started. The last process of the job then needs commit.json to remove the
 * folder. */
static stk_status empty(const stki_prep_run *run, const char *folder, stk_error *err)
{
    char *lock = stki_format("%s/lock", folder), *making = work_of_making(folder);
    int fd = -1;
    stk_status status = lock ? STK_OK : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK && stki_prep_exists(lock))
        status = stki_prep_lock_file(lock, &fd, err);
    if (status == STK_OK)
        status = stki_name_check(run->name, run->job, err);
    if (status == STK_OK && !making)
        status = check_own(folder, err);
    if (status == STK_OK)
        status = stki_prep_remove_folder(folder, making ? making_mark : "lock", err);
    if (fd >= 0)
        (void)close(fd);
    stki_free(making);
    stki_free(lock);
    return status;
}

static stk_status restart(const stki_prep_run *run, stk_error *err)
{
    char *beside = stki_format("%s.prep", run->job->path);
    stk_status status = beside ? check_apart(run->job, err) : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK)
        status = empty(run, run->work, err);
    if (status == STK_OK && strcmp(beside, run->work) != 0)
        status = empty(run, beside, err);
    stki_free(beside);
    return status;
}

/* Removes partly written files that a killed process left in pieces/; there must be no other user. */
static void sweep(const stki_prep_run *run)
{
    char *folder = stki_work_file(run, "pieces");
    DIR *listing = folder ? opendir(folder) : NULL;
    const struct dirent *entry;

    while (listing && (entry = readdir(listing)) != NULL)
        if (strstr(entry->d_name, ".rows.tmp."))
            (void)unlinkat(dirfd(listing), entry->d_name, 0);
    if (listing)
        (void)closedir(listing);
    stki_free(folder);
}

/* Acquires the shared lock; exclusive holders release it soon. */
static stk_status share_lock(const char *path, int *fd, stk_error *err)
{
    const int64_t deadline = stki_now_ns() + LOCK_NS;
    stk_status status;

    while ((status = stki_prep_share_file(path, fd, err)) == STK_E_BUSY && stki_now_ns() < deadline)
        stki_sleep_ns(STKI_SECOND / 100);
    return status;
}

static stk_status take_lock(stki_prep_run *run, stk_error *err)
{
    char *path = stki_work_file(run, "lock");
    stk_error ignored;
    int fd;
    stk_status status = path ? STK_OK : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK && stki_prep_lock_file(path, &fd, &ignored) == STK_OK) {
        sweep(run);
        (void)close(fd);
    }
    if (status == STK_OK)
        status = share_lock(path, &run->lock, err);
    stki_free(path);
    return status;
}

stk_status stki_work_open(stki_prep_run *run, stk_error *err)
{
    bool found = false;
    char *path = NULL;
    stk_status status = stki_work_check_target(run->job, err);

    if (status == STK_OK)
        status = stki_prep_check_targets(run, NULL, err);
    if (status == STK_OK && run->seen->count > 0)
        status = stki_prep_inputs_see(run, true, NULL, err);
    if (status == STK_OK && !run->work && !(run->work = stki_strdup(run->job->work)))
        status = stki_fail_memory(err, 256, "a path");
    if (status == STK_OK && run->opts->restart)
        status = restart(run, err);
    if (status == STK_OK && (status = stki_work_look(run, &found, err)) == STK_OK &&
        (status = make_folders(run, err)) == STK_OK && (status = take_lock(run, err)) == STK_OK &&
        (status = stki_job_clock_open(run->clock, run->work, err)) == STK_OK && (!found || run->rewrites)) {
        path = stki_work_file(run, "job.json");
        status = found ? STK_OK : stki_prep_inputs_write(run, err);
        if (status == STK_OK)
            status = path ? stki_prep_write_json(path, run->identity, err) : stki_fail_memory(err, 256, "a path");
        stki_free(path);
    }
    return status;
}

void stki_work_drop(stki_prep_run *run)
{
    stki_prep_missing missing;
    int64_t rows = 0;
    stk_error ignored;

    if (run->lock < 0 || stki_prep_lock_again(run->lock, true, run->work, &ignored) != STK_OK ||
        stki_prep_count_missing(run, 0, run->units, &missing, &rows, &ignored) != STK_OK || rows != 0)
        return;
    if (strcmp(run->making, run->work) != 0)
        (void)stki_prep_remove_folder(run->making, making_mark, &ignored);
    (void)stki_prep_remove_folder(run->work, "lock", &ignored);
}

void stki_work_close(stki_prep_run *run)
{
    if (run->lock >= 0)
        (void)close(run->lock);
    run->lock = -1;
    stki_free(run->work);
    stki_free(run->making);
    run->work = run->making = NULL;
}

/* ---- progress ---- */

static stk_status read_journal(const stki_prep_run *run, int64_t unit, json_t **lines, stk_error *err)
{
    char *path = stki_work_journal(run, unit);
    stk_status status = path ? stki_journal_read(path, lines, err) : stki_fail_memory(err, 256, "a path");

    stki_free(path);
    return status;
}

static int64_t end_of(const json_t *lines)
{
    int64_t end = -1;

    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *at = json_object_get(json_array_get(lines, i), "end");

        if (at)
            end = json_integer_value(at);
    }
    return end;
}

static stk_status known_piece(const stki_prep_run *run, int64_t piece, json_t **out, stk_error *err)
{
    char *path = stki_work_piece(run, piece);
    stk_status status = path ? stki_spool_known(path, out, err) : stki_fail_memory(err, 256, "a path");

    stki_free(path);
    if (status != STK_E_NOT_FOUND)
        return status;
    *out = NULL; /* not written yet */
    stki_error_clear(err);
    return STK_OK;
}

stk_status stki_prep_unit_done(const stki_prep_run *run, int64_t unit, bool *done, int64_t *rows, stk_error *err)
{
    int64_t first, end, first_piece, end_piece;
    json_t *lines;
    stk_status status;

    *done = false;
    *rows = 0;
    if (run->mode == STKI_PREP_SPOOLED) {
        status = known_piece(run, unit, &lines, err);
        *done = status == STK_OK && lines;
        stki_cut(&run->cuts, unit, &first, &end);
        *rows = *done ? end - first : 0;
        if (status == STK_OK)
            json_decref(lines);
        return status;
    }
    status = read_journal(run, unit, &lines, err);
    if (status != STK_OK)
        return status;
    stki_cut_of_shard(&run->cuts, run->mode == STKI_PREP_SHARDS ? unit : 0, &first, &end, &first_piece, &end_piece);
    *done = stki_outlet_done(lines);
    if (*done)
        *rows = end - first;
    else if (run->job->format->resumes && end_of(lines) > first) /* otherwise the shard is started again */
        *rows = end_of(lines) - first;
    json_decref(lines);
    return STK_OK;
}

stk_status stki_prep_unit_pieces(const stki_prep_run *run, int64_t unit, json_t *pieces, stk_error *err)
{
    json_t *lines = NULL;
    stk_status status;

    if (run->mode == STKI_PREP_SPOOLED) {
        status = known_piece(run, unit, &lines, err);
        if (status == STK_OK && (!lines || json_array_append_new(pieces, lines) != 0))
            status = stki_fail(err, STK_E_NOT_FOUND, "piece %" PRId64 " has not been written yet", unit);
        return status;
    }
    status = read_journal(run, unit, &lines, err);
    for (size_t i = 0; status == STK_OK && i < json_array_size(lines); i++)
        if (json_object_get(json_array_get(lines, i), "piece") &&
            json_array_append(pieces, json_array_get(lines, i)) != 0)
            status = stki_fail_memory(err, 256, "the list of pieces");
    if (status == STK_OK || lines)
        json_decref(lines);
    return status;
}

static void end_run(stki_prep_missing *m, int64_t end)
{
    const size_t used = strlen(m->text);
    char *to = m->text + used;
    const size_t room = sizeof m->text - used;
    const char *comma = used > 0 ? ", " : "";

    if (m->from < 0)
        return;
    if (room < 60)
        (void)(room > 8 && to[-1] != '.' && snprintf(to, room, ", ..."));
    else if (end - m->from > 1)
        (void)snprintf(to, room, "%s%lld to %lld", comma, (long long)m->from, (long long)end - 1);
    else
        (void)snprintf(to, room, "%s%lld", comma, (long long)m->from);
    m->from = -1;
}

stk_status stki_prep_count_missing(const stki_prep_run *run, int64_t first, int64_t end, stki_prep_missing *m,
                                   int64_t *rows, stk_error *err)
{
    stk_status status = STK_OK;

    *m = (stki_prep_missing){.from = -1};
    for (int64_t unit = first; unit < end && status == STK_OK; unit++) {
        int64_t made;
        bool done;

        status = stki_prep_unit_done(run, unit, &done, &made, err);
        m->count += !done;
        *rows -= made;
        if (done)
            end_run(m, unit);
        else if (m->from < 0)
            m->from = unit;
    }
    end_run(m, end);
    return status;
}

static int64_t failed_in(const json_t *lines)
{
    int64_t failed = 0;

    for (size_t i = 0; i < json_array_size(lines); i++)
        failed += (int64_t)json_array_size(json_object_get(json_array_get(lines, i), "skipped"));
    return failed;
}

stk_status stki_prep_count_failed(const stki_prep_run *run, int64_t first, int64_t end, int64_t *failed, stk_error *err)
{
    stk_status status = STK_OK;

    *failed = 0;
    for (int64_t unit = first; unit < end && status == STK_OK; unit++) {
        json_t *pieces = json_array();
        bool done;
        int64_t rows;

        status = run->mode == STKI_PREP_SPOOLED ? stki_prep_unit_done(run, unit, &done, &rows, err) : STK_OK;
        if (status == STK_OK && (run->mode != STKI_PREP_SPOOLED || done))
            status = stki_prep_unit_pieces(run, unit, pieces, err);
        *failed += failed_in(pieces);
        json_decref(pieces);
    }
    return status;
}

void stki_prep_share(const stki_prep_run *run, int64_t *first, int64_t *end)
{
    const int64_t n = run->opts->tasks > 0 ? run->opts->tasks : 1, r = run->opts->task;

    *first = (int64_t)((__int128)run->units * r / n);
    *end = (int64_t)((__int128)run->units * (r + 1) / n);
}
