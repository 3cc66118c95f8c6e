/* running_sums.c: see running_sums.h. After an interruption the first call reads the existing bytes. */
#include "running_sums.h"
#include "allocate.h"
#include "error.h"
#include "file.h"
#include "prep_file.h"
#include <string.h>
#include <xxhash.h>

enum { FILES = 64, AT_ONCE = 256 << 10 };

struct running {
    char *path;
    XXH3_state_t *state;
    int64_t at;
    int64_t known_end; /* at this offset, the checksum must be `known`; 0: unknown */
    uint64_t known;
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

json_t *stki_running_sums_ends(const stki_running_sums *sums)
{
    json_t *ends = json_array();

    for (int i = 0; ends && i < sums->count; i++)
        if (json_array_append_new(ends, json_integer(stki_prep_file_size(sums->files[i].path))) != 0) {
            json_decref(ends);
            ends = NULL;
        }
    return ends;
}

void stki_running_sums_expect(stki_running_sums *sums, const json_t *line)
{
    const json_t *ends = json_object_get(line, "ends"), *known = json_object_get(line, "sums");

    for (int i = 0; i < sums->count && (size_t)i < json_array_size(known); i++) {
        sums->files[i].known_end = json_integer_value(json_array_get(ends, (size_t)i));
        sums->files[i].known = (uint64_t)json_integer_value(json_array_get(known, (size_t)i));
    }
}

/* Adds the bytes up to the offset `end`. */
static stk_status take(stki_running_sums *sums, struct running *r, int64_t end, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(r->path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);

    if (status != STK_OK)
        return status;
    end = end < file->size ? end : file->size;
    while (r->at < end && status == STK_OK) {
        const int64_t stop = r->at < r->known_end && r->known_end < end ? r->known_end : end,
                      n = stop - r->at < AT_ONCE ? stop - r->at : AT_ONCE;

        status = stki_file_read(file, r->at, sums->buffer, n, err);
        if (status != STK_OK)
            break;
        XXH3_64bits_update(r->state, sums->buffer, (size_t)n);
        r->at += n;
        if (r->at == r->known_end && XXH3_64bits_digest(r->state) != r->known)
            status = stki_fail_at(err, STK_E_CORRUPT,
                                  (stki_place){r->path, -1, -1, "bytes that differ from those written", NULL},
                                  "the unfinished file is damaged; start again with the option restart");
    }
    stki_file_close(file);
    return status;
}

stk_status stki_running_sums_go_on(stki_running_sums *sums, json_t *line, stk_error *err)
{
    const json_t *ends = json_object_get(line, "ends");
    json_t *list = json_array();
    stk_status status = list ? STK_OK : stki_fail_memory(err, 64, "sums of files");

    for (int i = 0; i < sums->count && status == STK_OK; i++) {
        status = take(sums, &sums->files[i], json_integer_value(json_array_get(ends, (size_t)i)), err);
        if (status == STK_OK &&
            json_array_append_new(list, json_integer((json_int_t)XXH3_64bits_digest(sums->files[i].state))) != 0)
            status = stki_fail_memory(err, 64, "sums of files");
    }
    if (json_object_set_new(line, "sums", list) != 0 && status == STK_OK)
        status = stki_fail_memory(err, 64, "sums of files");
    return status;
}

stk_status stki_running_sums_finish(stki_running_sums *sums, int index, uint64_t *out, int64_t *bytes, stk_error *err)
{
    stk_status status = take(sums, &sums->files[index], INT64_MAX, err);

    *out = XXH3_64bits_digest(sums->files[index].state);
    *bytes = sums->files[index].at;
    return status;
}
