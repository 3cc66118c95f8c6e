/* stoker_manifest.c: see stoker_manifest.h. Several threads read the files, each file once and sequentially. */
#include "stoker_manifest.h"
#include "allocate.h"
#include "clock.h"
#include "container.h"
#include "error.h"
#include "format.h"
#include "live_line.h"
#include "path.h"
#include "prep_file.h"
#include "stoker_json.h"
#include "stoker_pool.h"
#include "stoker_shown.h"
#include "stoker_tool.h"
#include "text_build.h"
#include "text_json.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 20 };

bool st_is_manifest(const char *path)
{
    static const char ending[] = ".manifest.json";
    const size_t length = strlen(path);

    return length >= sizeof ending - 1 && strcmp(path + length - (sizeof ending - 1), ending) == 0;
}

/* ---- listed files ---- */

/* Relative paths are relative to the manifest's folder. */
static stk_status find_input(const char *manifest, const char *path, char **out, stk_error *err)
{
    *out = *path == '/' ? stki_strdup(path) : stki_beside(manifest, path);
    return *out ? STK_OK : stki_fail_memory(err, (int64_t)strlen(path), "a path");
}

/* Inputs are the files and folders that the job read, with sizes, and with checksums if the job was configured to
 * record them. */
static stk_status read_input(const stki_manifest *list, const json_t *item, struct st_listed *out, stk_error *err)
{
    const json_t *path = json_object_get(item, "path");
    const char *sum = json_string_value(json_object_get(item, "xxh3"));
    char *bytes;
    stk_status status;

    if (!json_is_string(path) || !json_is_integer(json_object_get(item, "bytes")))
        return stki_fail(err, STK_E_CORRUPT, "%s: an input has no path or no size", list->path);
    *out = (struct st_listed){.bytes = json_integer_value(json_object_get(item, "bytes")),
                              .rows = -1,
                              .has_sum = sum != NULL,
                              .xxh3 = sum ? strtoull(sum, NULL, 16) : 0,
                              .names = json_string_value(json_object_get(item, "names")),
                              .contents = json_string_value(json_object_get(item, "contents"))};
    bytes = stki_text_of_json(path);
    status = bytes ? find_input(list->path, bytes, &out->path, err) : stki_fail_memory(err, 256, "a path");
    stki_free(bytes);
    return status;
}

/* The digest covers everything except itself and `run`, which records time and place. */
static bool digest_is_right(const json_t *manifest)
{
    const char *said = json_string_value(json_object_get(manifest, "digest"));
    json_t *rest = json_copy((json_t *)(uintptr_t)manifest);
    char text[STKI_U128_TEXT], *dump;
    bool right;

    json_object_del(rest, "digest");
    json_object_del(rest, "run");
    dump = rest ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    right = dump && said && strcmp(said, stki_u128_text(stki_digest(dump, (int64_t)strlen(dump)), text)) == 0;
    free(dump);
    json_decref(rest);
    return right;
}

/* `inputs`: also checks the inputs. */
static stk_status begin_check(const stki_manifest *list, bool inputs, struct st_manifest_check *out, stk_error *err)
{
    const json_t *input_list = inputs ? json_object_get(list->manifest, "inputs") : NULL;
    const int64_t count = list->count + (int64_t)json_array_size(input_list);

    *out = (struct st_manifest_check){.list = list, .files = stki_zalloc_array(count, sizeof *out->files)};
    if (!out->files)
        return stki_fail_memory(err, count * (int64_t)sizeof *out->files, "files");
    for (int i = 0; i < list->count; i++) {
        const stki_manifest_file *part = &list->files[i];
        struct st_listed *file = &out->files[out->file_count++];

        *file = (struct st_listed){.path = stki_strdup(part->path),
                                   .bytes = part->bytes,
                                   .rows = part->rows,
                                   .xxh3 = part->xxh3,
                                   .has_sum = true};
        if (!file->path)
            return stki_fail_memory(err, (int64_t)strlen(part->path), "a path");
    }
    for (size_t i = 0; i < json_array_size(input_list); i++) {
        struct st_listed *file = &out->files[out->file_count++];
        const stk_status status = read_input(list, json_array_get(input_list, i), file, err);

        if (status != STK_OK)
            return status;
        out->unsummed += !file->has_sum && !file->contents;
    }
    if (!digest_is_right(list->manifest)) {
        out->fault = stki_format("%s: digest: does not match, because the manifest was changed", list->path);
        out->faults = 1;
    }
    for (int64_t i = 0; i < out->file_count; i++)
        out->bytes += out->files[i].has_sum ? out->files[i].bytes : 0;
    return STK_OK;
}

/* Also accepts a zeroed struct. */
static void end_check(struct st_manifest_check *check)
{
    for (int64_t i = 0; i < check->file_count; i++) {
        stki_free(check->files[i].fault);
        stki_free(check->files[i].path);
    }
    stki_free(check->fault);
    stki_free(check->files);
    *check = (struct st_manifest_check){0};
}

/* ---- single files ---- */

static stk_status differs(const struct st_listed *file, const char *what, const char *found, const char *expected,
                          stk_error *err)
{
    return stki_fail_at(err, STK_E_MISMATCH, (stki_place){file->path, -1, -1, found, expected}, "%s", what);
}

static stk_status check_size(const struct st_listed *file, int fd, stk_error *err)
{
    struct stat facts;

    if (fstat(fd, &facts) != 0)
        return stki_fail_errno(err, errno, file->path, "cannot be examined");
    if (!S_ISREG(facts.st_mode))
        return differs(file, "type", "not a regular file", "a regular file", err);
    if (facts.st_size != file->bytes)
        return differs(file, "size", STKI_TEXT("%" PRId64 " bytes", (int64_t)facts.st_size),
                       STKI_TEXT("%" PRId64 " bytes", file->bytes), err);
    return STK_OK;
}

static stk_status read_sum(struct st_manifest_check *check, const char *path, int fd, uint64_t *out, stk_error *err)
{
    stki_digest_stream *stream = stki_digest_stream_create();
    char *buffer = stki_zalloc(READ_BYTES);
    stk_status status = stream && buffer ? STK_OK : stki_fail_memory(err, READ_BYTES, "reading");

    while (status == STK_OK) {
        const ssize_t n = read(fd, buffer, READ_BYTES);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = stki_fail_errno(err, errno, path, "reading");
        if (n <= 0)
            break;
        stki_digest_stream_add(stream, buffer, n);
        stki_count(&check->checked, n);
    }
    if (status == STK_OK)
        *out = stki_digest_stream_64(stream);
    stki_digest_stream_destroy(stream);
    stki_free(buffer);
    return status;
}

static stk_status check_sum(struct st_manifest_check *check, const struct st_listed *file, int fd, stk_error *err)
{
    uint64_t found = 0;
    stk_status status = read_sum(check, file->path, fd, &found, err);

    if (status == STK_OK && found != file->xxh3)
        return differs(file, "XXH3", STKI_TEXT("%016" PRIx64, found), STKI_TEXT("%016" PRIx64, file->xxh3), err);
    return status;
}

/* Whether the file has the offsets of rows of varying length: one more entry than there are rows. */
static bool are_offsets(const char *name)
{
    static const char ending[] = ".offsets";
    const size_t length = strlen(name);

    return length >= sizeof ending - 1 && strcmp(name + length - (sizeof ending - 1), ending) == 0;
}

/* Whether the format is not self-describing, so that a file may be mistaken for another format. */
static bool says_nothing(const stki_manifest *list)
{
    const char *format = json_string_value(json_object_get(list->manifest, "format"));

    return format && (strcmp(format, "raw") == 0 || strcmp(format, "tokens") == 0);
}

/* Checks that one of the file's members has as many samples as the manifest has rows. */
static stk_status check_rows(const struct st_listed *file, stk_error *err)
{
    const stki_reader_opts opts = {0};
    stki_container *container;
    int64_t other = -1;
    bool found = false, opened = false;

    if (stki_container_open(file->path, &opts, &container, NULL) != STK_OK)
        return STK_OK;
    for (int64_t i = 0; i < container->member_count && !found; i++) {
        stki_reader *reader;

        if (container->members[i].status != STK_OK || container->members[i].kind == STKI_MEMBER_OTHER ||
            stki_container_reader(container, i, &opts, &reader, NULL) != STK_OK)
            continue;
        opened = true;
        other = reader->count - are_offsets(container->members[i].name);
        found = reader->count == file->rows || other == file->rows;
        stki_reader_destroy(reader);
    }
    stki_container_release(container);
    if (found || !opened)
        return STK_OK;
    return differs(file, "rows", STKI_TEXT("%" PRId64, other), STKI_TEXT("%" PRId64, file->rows), err);
}

/* Computes the checksum of the folder's files as the job did. */
static stk_status sum_folder(struct st_manifest_check *check, const struct st_listed *file, const stki_reader *reader,
                             stki_u128 *names, stki_u128 *contents, stk_error *err)
{
    char buffer[STKI_RECORD_PATH];

    for (int64_t i = 0; i < reader->count; i++) {
        const char *path = stki_reader_path(reader, i, buffer);
        struct stat facts;
        uint64_t sum;
        int fd;
        stk_status status;

        stki_fingerprint_text(names, stki_prep_name_within(reader->path, path));
        if (stat(path, &facts) != 0)
            return stki_fail_errno(err, errno, path, "cannot be examined");
        stki_fingerprint_number(names, facts.st_size);
        if (!file->contents)
            continue;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return stki_fail_errno(err, errno, path, "cannot be opened");
        status = read_sum(check, path, fd, &sum, err);
        (void)close(fd);
        if (status != STK_OK)
            return status;
        stki_fingerprint_number(contents, (int64_t)sum);
    }
    return STK_OK;
}

/* Tables can also list files, but the manifest does not record which column the job read. */
static bool is_folder_or_list(const char *format)
{
    return strcmp(format, "image_folder") == 0 || strcmp(format, "image_list") == 0;
}

/* Checks a folder or list of images. */
static stk_status check_folder(struct st_manifest_check *check, const struct st_listed *file, stk_error *err)
{
    const stki_reader_opts opts = {.prefer = "image"};
    stki_container *container;
    stki_reader *reader = NULL;
    stki_u128 names = {0}, contents = {0};
    char found[STKI_U128_TEXT];
    int64_t member = 0;
    stk_status status = stki_container_open(file->path, &opts, &container, err);

    if (status != STK_OK)
        return status;
    if (!is_folder_or_list(container->ops->format)) {
        stki_container_release(container);
        stki_count(&check->unchecked, 1);
        return STK_OK;
    }
    status = stki_container_find(container, &opts, &member, err);
    if (status == STK_OK)
        status = stki_container_reader(container, member, &opts, &reader, err);
    if (status == STK_OK)
        status = sum_folder(check, file, reader, &names, &contents, err);
    stki_reader_destroy(reader);
    stki_container_release(container);
    if (status == STK_OK && strcmp(stki_u128_text(names, found), file->names) != 0)
        return differs(file, "names and sizes of the files in it", found, file->names, err);
    if (status == STK_OK && file->contents && strcmp(stki_u128_text(contents, found), file->contents) != 0)
        return differs(file, "XXH3 of the files in it", found, file->contents, err);
    return status;
}

static stk_status check_file(struct st_manifest_check *check, const struct st_listed *file, stk_error *err)
{
    struct stat facts;
    stk_status status;
    int fd;

    if (file->names)
        return check_folder(check, file, err);
    if (!file->has_sum) {
        if (stat(file->path, &facts) != 0)
            return stki_fail_errno(err, errno, file->path, "cannot be examined");
        return facts.st_size == file->bytes
                   ? STK_OK
                   : differs(file, "size", STKI_TEXT("%" PRId64 " bytes", (int64_t)facts.st_size),
                             STKI_TEXT("%" PRId64 " bytes", file->bytes), err);
    }
    fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return stki_fail_errno(err, errno, file->path, "cannot be opened");
    status = check_size(file, fd, err);
    if (status == STK_OK)
        status = check_sum(check, file, fd, err);
    if (status == STK_OK && file->rows >= 0 && !says_nothing(check->list))
        status = check_rows(file, err);
    (void)close(fd);
    return status;
}

/* ---- all files ---- */

static stk_status check_one(void *context, void *task, int64_t i, int worker, stk_error *err)
{
    struct st_manifest_check *check = context;
    stk_error fault;

    (void)task, (void)worker, (void)err;
    if (check_file(check, &check->files[i], &fault) != STK_OK) {
        check->files[i].fault = stki_strdup(fault.message);
        stki_count(&check->faults, 1);
    }
    stki_count(&check->ended, 1);
    return STK_OK;
}

static void look(void *context)
{
    const struct st_manifest_check *check = context;

    if (check->progress)
        check->progress(check);
}

/* Checks sizes, rows and checksums of all files. */
static stk_status run_check(struct st_manifest_check *check, int threads, stk_error *err)
{
    return st_pool_run(threads, check->file_count, check_one, look, check, err);
}

enum { SHOWN = 20 };

static int refuse(const char *command, bool json, const stk_error *err)
{
    if (json)
        st_json_print(json_pack("{s:o}", "error", st_error_json(err->status, err->message)));
    return stoker_finish_output(command, stoker_complain(command, err, STOKER_FAILED));
}

static int64_t rows_of(const stki_manifest *list)
{
    return json_integer_value(json_object_get(json_object_get(list->manifest, "totals"), "rows"));
}

/* ---- inspect ---- */

static void show_parts(const stki_manifest *list)
{
    for (int i = 0; i < list->count && i < SHOWN; i++)
        printf("  %s  %" PRId64 " row%s  %sB  xxh3 %016" PRIx64 "\n", st_shown(list->files[i].name),
               list->files[i].rows, list->files[i].rows == 1 ? "" : "s", LIVE_SHORT((double)list->files[i].bytes),
               list->files[i].xxh3);
    if (list->count > SHOWN)
        printf("  and %d more (--json has all)\n", list->count - SHOWN);
}

static void show_text(const stki_manifest *list)
{
    const json_t *inputs = json_object_get(list->manifest, "inputs"),
                 *totals = json_object_get(list->manifest, "totals");
    const json_int_t skipped = json_integer_value(json_object_get(totals, "skipped"));
    const char *version = json_string_value(json_object_get(json_object_get(list->manifest, "versions"), "stoker"));
    char print[STKI_U128_TEXT];
    double bytes = 0;

    for (int i = 0; i < list->count; i++)
        bytes += (double)list->files[i].bytes;
    printf("%s: a manifest, %" PRId64 " row%s in %d file%s, %sB\n", st_shown(list->path), rows_of(list),
           rows_of(list) == 1 ? "" : "s", list->count, list->count == 1 ? "" : "s", LIVE_SHORT(bytes));
    show_parts(list);
    if (skipped > 0)
        printf("skipped      %" JSON_INTEGER_FORMAT " samples\n", skipped);
    printf("inputs       %zu\n", json_array_size(inputs));
    if (version)
        printf("made by      stoker %s\n", st_shown(version));
    printf("fingerprint  %s\n", stki_u128_text(list->fingerprint, print));
}

int st_manifest_inspect(const char *path, bool json)
{
    stki_manifest list;
    stk_error err;

    if (stki_manifest_open(path, &list, &err) != STK_OK)
        return refuse("inspect", json, &err);
    if (json)
        st_json_print(json_pack("{s:o, s:s, s:O}", "file", stki_text_json(path), "format", "manifest", "manifest",
                                list.manifest));
    else
        show_text(&list);
    stki_manifest_fini(&list);
    return stoker_finish_output("inspect", STOKER_FINE);
}

/* ---- verify ---- */

static int64_t progress_from;
static bool progress_shown;

static void show_progress(const struct st_manifest_check *check)
{
    const double seconds = (double)(stki_now_ns() - progress_from) * 1e-9, done = (double)stki_counted(&check->checked),
                 all = (double)check->bytes;
    char line[160];

    snprintf(line, sizeof line, "%" PRId64 " of %" PRId64 " files, %sB of %sB, %sB/s, eta %s",
             stki_counted(&check->ended), check->file_count, LIVE_SHORT(done), LIVE_SHORT(all),
             LIVE_SHORT(done / seconds), LIVE_TIME(done > 0 ? (all - done) / (done / seconds) : -1));
    live_line_draw(line, live_columns(), false);
    progress_shown = true;
}

static void show_result(const struct st_manifest_check *check, double seconds)
{
    int64_t shown = check->fault != NULL;

    if (check->fault)
        printf("bad: %s\n", check->fault);
    for (int64_t i = 0; i < check->file_count && shown < SHOWN; i++)
        if (check->files[i].fault) {
            printf("bad: %s\n", check->files[i].fault);
            shown++;
        }
    if (stki_counted(&check->faults) > shown)
        printf("and %" PRId64 " more (--json has all)\n", stki_counted(&check->faults) - shown);
    if (check->unsummed > 0)
        printf("note: %" PRId64 " input%s checked by size only (set prep.inputs: digests to record checksums)\n",
               check->unsummed, check->unsummed == 1 ? "" : "s");
    if (stki_counted(&check->unchecked) > 0)
        printf("note: %" PRId64 " input%s not checked: the manifest does not record which column lists the files\n",
               stki_counted(&check->unchecked), stki_counted(&check->unchecked) == 1 ? "" : "s");
    printf("%s: manifest: %" PRId64 " file%s, %" PRId64 " bad; %sB read in %.2f s\n", st_shown(check->list->path),
           check->file_count, check->file_count == 1 ? "" : "s", stki_counted(&check->faults),
           LIVE_SHORT((double)stki_counted(&check->checked)), seconds);
}

static void show_result_json(const struct st_manifest_check *check, double seconds)
{
    json_t *bad = json_array();

    if (check->fault)
        json_array_append_new(bad, json_pack("{s:o, s:o}", "file", stki_text_json(check->list->path), "message",
                                             stki_text_json(check->fault)));
    for (int64_t i = 0; i < check->file_count; i++)
        if (check->files[i].fault)
            json_array_append_new(bad, json_pack("{s:o, s:o}", "file", stki_text_json(check->files[i].path), "message",
                                                 stki_text_json(check->files[i].fault)));
    st_json_print(json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:f, s:o}", "file", stki_text_json(check->list->path),
                            "format", "manifest", "files", (json_int_t)check->file_count, "bad_files",
                            (json_int_t)stki_counted(&check->faults), "files_not_checked",
                            (json_int_t)stki_counted(&check->unchecked), "bytes_read",
                            (json_int_t)stki_counted(&check->checked), "seconds", seconds, "bad", bad));
}

static stk_status check_all(struct st_manifest_check *check, int threads, stk_error *err)
{
    stk_status status;

    check->progress = live_is_terminal(STDERR_FILENO) ? show_progress : NULL;
    progress_from = stki_now_ns();
    status = run_check(check, threads, err);
    if (progress_shown)
        live_line_clear();
    progress_shown = false;
    return status;
}

int st_manifest_verify(const char *path, bool inputs, int threads, bool json)
{
    struct st_manifest_check check = {0};
    stki_manifest list;
    stk_error err;
    stk_status status = stki_manifest_open(path, &list, &err);
    int code;

    if (status != STK_OK)
        return refuse("verify", json, &err);
    status = begin_check(&list, inputs, &check, &err);
    if (status == STK_OK)
        status = check_all(&check, threads, &err);
    if (status != STK_OK) {
        code = refuse("verify", json, &err);
    } else {
        const double seconds = (double)(stki_now_ns() - progress_from) * 1e-9;
        const int64_t faults = stki_counted(&check.faults);

        if (json)
            show_result_json(&check, seconds);
        else
            show_result(&check, seconds);
        if (faults > 0)
            stki_fail(&err, STK_E_CORRUPT, "%s: %" PRId64 " file%s not as listed", path, faults,
                      faults == 1 ? " is" : "s are");
        code =
            stoker_finish_output("verify", faults > 0 ? stoker_complain("verify", &err, STOKER_FAILED) : STOKER_FINE);
    }
    end_check(&check);
    stki_manifest_fini(&list);
    return code;
}
