/* prep_inputs.c: see prep_inputs.h. The sizes lie in the work folder as 64-bit numbers, in the order of the data set's
 * files. */
#include "prep_inputs.h"
#include "allocate.h"
#include "error.h"
#include "output.h"
#include "prep_file.h"
#include <inttypes.h>
#include <string.h>

/* One file of the data set: its path, perhaps in `buffer`; NULL: there are no more. *shard and *sample go on. */
static const char *next_file(const stki_prep_run *run, int *field, int *shard, int64_t *sample,
                             char buffer[STKI_RECORD_PATH])
{
    const stki_dataset *dataset = run->core->dataset;

    for (; *field < dataset->field_count; ++*field, *shard = 0) {
        if (run->core->config->fields[*field].synthetic)
            continue;
        for (; *shard < dataset->fields[*field].shard_count; ++*shard, *sample = 0) {
            const stki_reader *reader = dataset->fields[*field].shards[*shard];

            if (*sample < (reader->ops->path ? reader->count : 1))
                return stki_reader_path(reader, (*sample)++, buffer);
        }
    }
    return NULL;
}

static int64_t count_files(const stki_prep_run *run)
{
    char buffer[STKI_RECORD_PATH];
    int64_t count = 0, sample = 0;
    int field = 0, shard = 0;

    while (next_file(run, &field, &shard, &sample, buffer))
        count++;
    return count;
}

stk_status stki_prep_inputs_write(const stki_prep_run *run, stk_error *err)
{
    const int64_t count = count_files(run);
    char *path = stki_format("%s/inputs.sizes", run->work), buffer[STKI_RECORD_PATH];
    int64_t *sizes = stki_zalloc_array(count + 1, sizeof *sizes), sample = 0;
    const char *file;
    stki_output *output;
    int field = 0, shard = 0;
    stk_status status = path && sizes ? STK_OK : stki_fail_memory(err, count * 8, "sizes of files");

    for (int64_t i = 0; status == STK_OK && (file = next_file(run, &field, &shard, &sample, buffer)); i++)
        sizes[i] = stki_prep_file_size(file);
    if (status == STK_OK)
        status = stki_output_create(path, &output, err); /* tasks that begin together write the same */
    if (status == STK_OK) {
        status = stki_output_append(output, sizes, count * (int64_t)sizeof *sizes, err);
        if (status == STK_OK)
            status = stki_output_commit(output, err);
        else
            stki_output_abort(output);
    }
    stki_free(sizes);
    stki_free(path);
    return status;
}

static stk_status compare(const stki_prep_run *run, const char *sizes, int64_t count, stk_error *err)
{
    char buffer[STKI_RECORD_PATH];
    int64_t sample = 0, i = 0;
    const char *file;
    int field = 0, shard = 0;

    for (; (file = next_file(run, &field, &shard, &sample, buffer)) && i < count; i++) {
        const int64_t now = stki_prep_file_size(file);
        int64_t then;

        memcpy(&then, sizes + i * 8, 8);
        if (now != then)
            return stki_fail_at(
                err, STK_E_MISMATCH,
                (stki_place){file, -1, -1, now < 0 ? "no such file" : STKI_TEXT("%" PRId64 " bytes", now),
                             then < 0 ? "none" : STKI_TEXT("%" PRId64 " bytes", then)},
                "the input has changed since the job was begun in %s; begin again with --restart", run->work);
    }
    if (i == count && !file)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){run->work, -1, -1, STKI_TEXT("%" PRId64 " files", count_files(run)), STKI_TEXT("%" PRId64, count)},
        "the inputs have changed since the job was begun; begin again with --restart");
}

stk_status stki_prep_inputs_check(const stki_prep_run *run, stk_error *err)
{
    char *path = stki_format("%s/inputs.sizes", run->work), *sizes = NULL;
    int64_t bytes = 0;
    stk_status status = path ? STK_OK : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK && stki_prep_exists(path)) {
        status = stki_prep_read_file(path, &sizes, &bytes, err);
        if (status == STK_OK)
            status = compare(run, sizes, bytes / 8, err);
    }
    stki_free(sizes);
    stki_free(path);
    return status;
}
