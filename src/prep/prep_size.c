/* prep_size.c: estimates the sizes of a job's files in advance: for the dry run, the check of free space, and the
 * lengths of pieces and shards. Sinks compute the size of given rows (sink.h); this file supplies the rows. Rows of
 * fixed shape have a known size; for others the mean of some samples is used. Rows that will be encoded are counted at
 * their unencoded size until a dry run has encoded some. All results depend only on the job and its data, because they
 * determine how pieces and shards are divided. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "path.h"
#include "prep_file.h"
#include "prep_run.h"
#include "spool.h"
#include "stamp.h"
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    SAMPLED = 256,       /* number of samples from which a mean is computed */
    MANY = 1 << 20,      /* number of rows for which the fixed part of a file is negligible */
    SMALLEST_SHARE = 20, /* assumed maximum ratio of encoding and compression */
    MORE_ROWS = 4        /* maximum number of rows of a shard, relative to the estimate */
};

/* ---- rows ---- */

/* Returns the approximate mean size of a field's rows; if their size varies, it is estimated from samples spread over
 * the data set. */
static int64_t mean_bytes(const stki_field *field, const stki_field_plan *plan)
{
    const int64_t count = stki_field_count(field) - field->ahead, step = count > SAMPLED ? count / SAMPLED : 1;
    int64_t sum = 0, seen = 0;

    if (!plan->rows->measured || count == 0)
        return plan->row_bytes;
    for (int64_t i = 0; i < count && seen < SAMPLED; i += step) {
        int64_t shape[STK_MAX_DIMS], within, bytes;
        const stki_reader *shard = stki_field_locate(field, i, &within);
        stk_error ignored;

        if (stki_reader_shape(shard, within, shape, &ignored) != STK_OK)
            continue;
        bytes = shape[0] * plan->strides[0];
        for (int d = 1; plan->rows->has_shapes && d < shard->ndim; d++)
            bytes *= shape[d];
        sum += bytes < plan->row_bytes ? bytes : plan->row_bytes;
        seen++;
    }
    return seen > 0 ? sum / seen + 1 : plan->row_bytes;
}

static enum stki_encoding encoding_of(const stki_sink_field *field)
{
    return field->encodings & 1U << STKI_JPEG ? STKI_JPEG : field->encodings & 1U << STKI_PNG ? STKI_PNG : STKI_PLAIN;
}

/* Image files that are kept unchanged do not become smaller. */
static bool becomes_smaller(const stki_prep_field *field)
{
    return field->finisher && field->in.kind != STKI_SINK_BYTES;
}

bool stki_prep_is_packed(const stki_prep_run *run)
{
    const stki_sink_ops *format = run->job->format;
    const stki_sink_opts opts = stki_prep_sink_opts(run, 0);

    return format->packed && run->field_count > 0 && format->packed(&opts, 0, NULL, 0) >= 0;
}

bool stki_prep_is_exact(const stki_prep_run *run)
{
    bool exact = !stki_prep_is_packed(run);

    for (int i = 0; i < run->field_count; i++)
        exact = exact && !run->fields[i].finisher && run->fields[i].out.kind == STKI_SINK_ARRAY;
    return exact;
}

static void mean_row(const stki_prep_run *run, bool least, stki_sink_value *row)
{
    for (int i = 0; i < run->field_count; i++) {
        const stki_prep_field *field = &run->fields[i];
        const int64_t unit = field->plan->strides[0] > 0 ? field->plan->strides[0] : 1;
        int64_t bytes = mean_bytes(&run->core->dataset->fields[i], field->plan);

        bytes /= least && becomes_smaller(field) ? SMALLEST_SHARE : 1;
        row[i] = (stki_sink_value){.size = bytes,
                                   .length = bytes / unit,
                                   .height = bytes,
                                   .width = 1,
                                   .channels = 1,
                                   .encoding = encoding_of(&field->out)};
    }
}

static int64_t shard_files(const stki_prep_run *run, const stki_sink_size *like, int64_t rows);

/* Rejects a shard_bytes that is smaller than a file without rows, or that has room for one row but not also for the
 * fixed part of a file, because each row would become a separate shard. */
static stk_status check_shard_bytes(const stki_prep_run *run, stk_error *err)
{
    const int64_t bytes = run->job->output.shard_bytes, least = shard_files(run, &run->least, 1),
                  row = shard_files(run, &run->least, MANY) / MANY, empty = shard_files(run, &run->least, 0);

    if (bytes == 0 || bytes >= least || (bytes >= empty && bytes < row)) /* a single row may exceed it */
        return STK_OK;
    return stki_fail_at(
        err, STK_E_CONFIG,
        (stki_place){run->job->path, -1, -1, STKI_TEXT("%" PRId64, bytes), STKI_TEXT("at least %" PRId64, least)},
        "output.shard_bytes: less than the size of the %s files of one row", run->job->format->format);
}

stk_status stki_prep_find_sizes(stki_prep_run *run, stk_error *err)
{
    const stki_sink_opts opts = stki_prep_sink_opts(run, MANY);
    stki_sink_value *row = stki_zalloc_array(run->field_count + 1, sizeof *row);

    if (!row)
        return stki_fail_memory(err, run->field_count * (int64_t)sizeof *row, "fields");
    run->typical = run->least = (stki_sink_size){0};
    mean_row(run, true, row);
    (void)run->job->format->measure(&opts, row, MANY, &run->least);
    mean_row(run, false, row);
    (void)run->job->format->measure(&opts, row, MANY, &run->typical);
    run->spooled_row = 0;
    for (int i = 0; i < run->field_count; i++)
        run->spooled_row = stki_spool_value_bytes(row[i].size) + run->spooled_row;
    stki_free(row);
    return check_shard_bytes(run, err);
}

/* ---- files ---- */

stki_sink_opts stki_prep_sink_opts(const stki_prep_run *run, int64_t rows)
{
    return (stki_sink_opts){.path = run->job->path,
                            .fields = run->sink_fields,
                            .field_count = run->field_count,
                            .most_rows = rows,
                            .may_skip = run->job->prep.on_error == STKI_JOB_SKIP || run->job->output.shard_bytes > 0,
                            .options = run->job->format_options};
}

/* Returns the size of `rows` rows like those of `like`. */
static stki_sink_size scaled(const stki_sink_size *like, int64_t rows)
{
    return (stki_sink_size){
        .rows = rows, .bytes = stki_prep_scale(like->bytes, like->rows, rows), .fixed = like->fixed};
}

static int64_t shard_files(const stki_prep_run *run, const stki_sink_size *like, int64_t rows)
{
    const stki_sink_opts opts = stki_prep_sink_opts(run, rows);
    stki_sink_size size = scaled(like, rows);

    return run->job->format->measure(&opts, NULL, 0, &size);
}

/* Returns the largest number of rows whose files have at most `most` bytes; at least 1. */
static int64_t rows_within(const stki_prep_run *run, const stki_sink_size *like, int64_t most)
{
    int64_t low = 1, high = run->cuts.positions > 1 ? run->cuts.positions : 1;

    while (low < high) {
        const int64_t rows = low + (high - low + 1) / 2;

        if (shard_files(run, like, rows) <= most)
            low = rows;
        else
            high = rows - 1;
    }
    return low;
}

int64_t stki_prep_shard_most(const stki_prep_run *run)
{
    const int64_t bytes = run->job->output.shard_bytes, times = stki_prep_is_exact(run) ? 1 : MORE_ROWS;

    return bytes == 0 ? INT64_MAX : rows_within(run, &run->least, bytes < INT64_MAX / times ? bytes * times : bytes);
}

int64_t stki_prep_scale(int64_t sum, int64_t of, int64_t to)
{
    const double value = of > 0 ? (double)sum / (double)of * (double)to : 0;

    return value < 4e18 ? (int64_t)(value + 0.5) : INT64_MAX / 2;
}

int64_t stki_prep_files_bytes(const stki_prep_run *run, const stki_sink_size *like)
{
    const int64_t bytes = run->job->output.shard_bytes, positions = run->cuts.positions,
                  each = bytes > 0 ? rows_within(run, like, bytes) : run->cuts.shard_rows, full = positions / each,
                  rest = positions % each;
    const int64_t all = full > 0 ? stki_prep_scale(shard_files(run, like, each), 1, full) : 0;

    return all + (rest > 0 || full == 0 ? shard_files(run, like, rest) : 0);
}

int64_t stki_prep_spool_bytes(const stki_prep_run *run)
{
    return run->mode == STKI_PREP_SPOOLED ? stki_prep_scale(run->spooled_row, 1, run->cuts.positions) : 0;
}

int64_t stki_prep_row_bytes(const stki_prep_run *run)
{
    const int64_t bytes = run->job->format->resumes ? shard_files(run, &run->typical, MANY) / MANY : run->spooled_row;

    return bytes > 0 ? bytes : 1;
}

/* ---- space ---- */

/* Returns the number of bytes used by unfinished files, which are resumed, truncated or overwritten and therefore need
 * no additional space. */
static int64_t used_bytes(int at, const char *name)
{
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int64_t bytes = 0;

    if (fd >= 0 && !folder)
        (void)close(fd);
    while (folder && (entry = readdir(folder)) != NULL) {
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        bytes += S_ISDIR(st.st_mode) ? used_bytes(dirfd(folder), entry->d_name) : (int64_t)st.st_blocks * 512;
    }
    if (folder)
        (void)closedir(folder);
    return bytes;
}

/* `disk`: an existing folder on the file system of `folder`. */
static stk_status check_space(const char *folder, const char *disk, int64_t bytes, stk_error *err)
{
    const int64_t needed = bytes - used_bytes(AT_FDCWD, folder);
    struct statvfs fs;
    int64_t left;

    if (needed <= 0 || statvfs(disk, &fs) != 0)
        return STK_OK;
    left = (int64_t)(fs.f_bavail * fs.f_frsize);
    if (needed <= left)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_LIMIT,
        (stki_place){folder, -1, -1, STKI_TEXT("%" PRId64 " free bytes", left), STKI_TEXT("about %" PRId64, needed)},
        "the disk is too small for the remaining output; free space, or use the option no_space_check");
}

/* Returns the folder if it exists, otherwise its parent. Free with stki_free. */
static char *existing(const char *folder)
{
    return stki_prep_exists(folder) ? stki_strdup(folder) : stki_folder_of(folder);
}

/* Uses a lower bound, because the compression ratio is unknown. Before the work folder is opened, the locations of
 * files are known only from the job. */
stk_status stki_prep_space(const stki_prep_run *run, stk_error *err)
{
    const int64_t files = stki_prep_files_bytes(run, &run->least) / (stki_prep_is_packed(run) ? SMALLEST_SHARE : 1),
                  spool = stki_prep_spool_bytes(run) / (stki_prep_is_exact(run) ? 1 : SMALLEST_SHARE);
    char *work = existing(run->job->work), *making = stki_folder_of(run->job->path),
         *beside = stki_format("%s.prep", run->job->path);
    stki_stamp a, b;
    bool apart;
    int64_t both = INT64_MAX;
    stk_status status = work && making && beside ? STK_OK : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK && !run->opts->no_space_check && stki_stamp_take(work, &a, NULL) == STK_OK &&
        stki_stamp_take(making, &b, NULL) == STK_OK) {
        apart = a.device != b.device;
        (void)stki_add(spool, files, &both);
        status = check_space(run->job->work, work, apart ? spool : both, err);
        if (status == STK_OK && apart)
            status = check_space(beside, making, files, err);
    }
    stki_free(work);
    stki_free(making);
    stki_free(beside);
    return status;
}
