/* running_sums.c: see running_sums.h. After an interruption the first call reads the existing bytes. */
#include "running_sums.h"
#include "allocate.h"
#include "error.h"
#include "file.h"
#include <string.h>
#include <xxhash.h>

enum { FILES = 64, AT_ONCE = 256 << 10 };

struct running {
    char *path;
    XXH3_state_t *state;
    int64_t at;
};

struct stki_running_sums {
    int count;
    struct running files[FILES];
    char buffer[AT_ONCE];
};

static stk_status fill(stki_running_sums *sums, const stki_sink *sink, stk_error *err)
{
    stki_sink_file files[FILES];
    const int count = sink->ops->files(sink, files, FILES);

    for (; sums->count < count; sums->count++) {
        struct running *r = &sums->files[sums->count];

        r->path = stki_strdup(files[sums->count].temporary);
        r->state = XXH3_createState();
        if (!r->path || !r->state) {
            sums->count++;
            return stki_fail_memory(err, 1024, "sums of files");
        }
        XXH3_64bits_reset(r->state);
    }
    return STK_OK;
}

stk_status stki_running_sums_create(const stki_sink *sink, stki_running_sums **out, stk_error *err)
{
    stki_running_sums *sums;
    stk_status status;

    *out = NULL;
    if (!sink->ops->settled || !sink->ops->settled(sink) || sink->ops->files(sink, NULL, 0) > FILES)
        return STK_OK;
    sums = stki_zalloc(sizeof *sums);
    if (!sums)
        return stki_fail_memory(err, sizeof *sums, "sums of files");
    status = fill(sums, sink, err);
    if (status == STK_OK)
        *out = sums;
    else
        stki_running_sums_destroy(sums);
    return status;
}

void stki_running_sums_destroy(stki_running_sums *sums)
{
    if (!sums)
        return;
    for (int i = 0; i < sums->count; i++) {
        XXH3_freeState(sums->files[i].state);
        stki_free(sums->files[i].path);
    }
    stki_free(sums);
}

static stk_status take(stki_running_sums *sums, struct running *r, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(r->path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);

    if (status != STK_OK)
        return status;
    while (r->at < file->size && status == STK_OK) {
        const int64_t n = file->size - r->at < AT_ONCE ? file->size - r->at : AT_ONCE;

        status = stki_file_read(file, r->at, sums->buffer, n, err);
        if (status == STK_OK)
            XXH3_64bits_update(r->state, sums->buffer, (size_t)n);
        r->at += status == STK_OK ? n : 0;
    }
    stki_file_close(file);
    return status;
}

stk_status stki_running_sums_go_on(stki_running_sums *sums, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < sums->count && status == STK_OK; i++)
        status = take(sums, &sums->files[i], err);
    return status;
}

stk_status stki_running_sums_finish(stki_running_sums *sums, int index, uint64_t *out, int64_t *bytes, stk_error *err)
{
    stk_status status = take(sums, &sums->files[index], err);

    *out = XXH3_64bits_digest(sums->files[index].state);
    *bytes = sums->files[index].at;
    return status;
}
