/* spool.c: see spool.h. */
#include "spool.h"
#include "allocate.h"
#include "checked.h"
#include "digest.h"
#include "error.h"
#include "file.h"
#include "output.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char begin_mark[] = "STKROWS1", end_mark[] = "STKROWSE";
enum { MARK = 8, TAIL = 32 };

/* The header before each value. */
struct head {
    int64_t size, length;
    int32_t height, width, channels, encoding;
};

struct stki_spool_writer {
    stki_output *output;
    XXH3_state_t *sum;
    int field_count;
    int64_t rows;
};

int64_t stki_spool_value_bytes(int64_t size)
{
    return (int64_t)sizeof(struct head) + stki_round_up(size, MARK);
}

int64_t stki_spool_written(const stki_spool_writer *spool)
{
    return stki_output_position(spool->output);
}

static stk_status put(stki_spool_writer *spool, const void *bytes, int64_t count, stk_error *err)
{
    XXH3_64bits_update(spool->sum, bytes, (size_t)count);
    return stki_output_append(spool->output, bytes, count, err);
}

static stk_status pad(stki_spool_writer *spool, stk_error *err)
{
    static const char zeros[MARK];
    int64_t over = stki_output_position(spool->output) % MARK;

    return over ? put(spool, zeros, MARK - over, err) : STK_OK;
}

stk_status stki_spool_create(const char *path, int field_count, stki_spool_writer **out, stk_error *err)
{
    stki_spool_writer *spool = stki_zalloc(sizeof *spool);
    stk_status status = STK_OK;

    if (!spool)
        return stki_fail_memory(err, sizeof *spool, path);
    spool->field_count = field_count;
    spool->sum = XXH3_createState();
    status = spool->sum ? stki_output_create(path, &spool->output, err) : stki_fail_memory(err, 576, path);
    if (status == STK_OK) {
        XXH3_64bits_reset(spool->sum);
        status = put(spool, begin_mark, MARK, err);
    }
    if (status == STK_OK)
        *out = spool;
    else
        stki_spool_abort(spool);
    return status;
}

stk_status stki_spool_append(stki_spool_writer *spool, const stki_sink_value *values, int64_t rows, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < rows * spool->field_count && status == STK_OK; i++) {
        const stki_sink_value *v = &values[i];
        const struct head head = {
            v->size, v->length, (int32_t)v->height, (int32_t)v->width, (int32_t)v->channels, (int32_t)v->encoding};

        status = put(spool, &head, sizeof head, err);
        if (status == STK_OK && v->size > 0)
            status = put(spool, v->bytes, v->size, err);
        if (status == STK_OK)
            status = pad(spool, err);
    }
    spool->rows += rows;
    return status;
}

stk_status stki_spool_commit(stki_spool_writer *spool, const json_t *known, stk_error *err)
{
    char *text = json_dumps(known, JSON_COMPACT | JSON_SORT_KEYS);
    int64_t numbers[2] = {stki_output_position(spool->output), spool->rows};
    uint64_t sum;
    stk_status status = text ? put(spool, text, (int64_t)strlen(text), err) : stki_fail_memory(err, 256, "a piece");

    free(text);
    if (status == STK_OK)
        status = pad(spool, err);
    if (status == STK_OK)
        status = put(spool, numbers, sizeof numbers, err);
    sum = XXH3_64bits_digest(spool->sum);
    if (status == STK_OK && (status = put(spool, &sum, sizeof sum, err)) == STK_OK)
        status = put(spool, end_mark, MARK, err);
    if (status == STK_OK) {
        status = stki_output_commit(spool->output, err);
        spool->output = NULL;
    }
    stki_spool_abort(spool);
    return status;
}

void stki_spool_abort(stki_spool_writer *spool)
{
    if (!spool)
        return;
    stki_output_abort(spool->output);
    XXH3_freeState(spool->sum);
    stki_free(spool);
}

/* ---- reading ---- */

struct stki_spool {
    stki_file *file;
    char *copy; /* a copy, if the file could not be mapped */
    const char *bytes;
    int field_count;
    int64_t at, rows_end, rows, left;
};

static stk_status damaged(const char *path, int64_t offset, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, offset, what, NULL},
                        "a piece of the job is damaged; remove it, and the next run will recreate it");
}

/* Locates the JSON at the end of the file. */
static stk_status read_tail(const stki_file *file, int64_t *json_at, int64_t *rows, uint64_t *sum, stk_error *err)
{
    char tail[TAIL];
    stk_status status;

    if (file->size < MARK + TAIL)
        return damaged(file->path, file->size, "its end", err);
    status = stki_file_read(file, file->size - TAIL, tail, TAIL, err);
    if (status != STK_OK)
        return status;
    memcpy(json_at, tail, 8);
    memcpy(rows, tail + 8, 8);
    memcpy(sum, tail + 16, 8);
    if (memcmp(tail + 24, end_mark, MARK) != 0 || *json_at < MARK || *json_at > file->size - TAIL || *rows < 0)
        return damaged(file->path, file->size - TAIL, "no end mark", err);
    return STK_OK;
}

stk_status stki_spool_known(const char *path, json_t **out, stk_error *err)
{
    stki_file *file;
    int64_t at, rows, bytes;
    uint64_t sum;
    char *text = NULL;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &file, err);

    if (status != STK_OK)
        return status;
    status = read_tail(file, &at, &rows, &sum, err);
    bytes = status == STK_OK ? file->size - TAIL - at : 0;
    if (status == STK_OK && !(text = stki_zalloc(bytes + 1)))
        status = stki_fail_memory(err, bytes, path);
    if (status == STK_OK)
        status = stki_file_read(file, at, text, bytes, err);
    if (status == STK_OK) {
        *out = json_loads(text, 0, NULL);
        if (!json_is_object(*out)) {
            json_decref(*out);
            status = damaged(path, at, "invalid JSON", err);
        }
    }
    stki_free(text);
    stki_file_close(file);
    return status;
}

static stk_status check_sum(const stki_spool *spool, uint64_t sum, stk_error *err)
{
    const int64_t bytes = spool->file->size - 2 * MARK;

    if (memcmp(spool->bytes, begin_mark, MARK) != 0 || stki_digest_64(spool->bytes, bytes) != sum)
        return damaged(spool->file->path, -1, "bytes that differ from those written", err);
    return STK_OK;
}

static stk_status load(stki_spool *spool, stk_error *err)
{
    uint64_t sum;
    stk_status status = read_tail(spool->file, &spool->rows_end, &spool->rows, &sum, err);

    if (status != STK_OK)
        return status;
    spool->bytes = spool->file->map;
    if (!spool->bytes) {
        spool->copy = stki_zalloc(spool->file->size);
        if (!spool->copy)
            return stki_fail_memory(err, spool->file->size, spool->file->path);
        status = stki_file_read(spool->file, 0, spool->copy, spool->file->size, err);
        spool->bytes = spool->copy;
    }
    spool->at = MARK;
    spool->left = spool->rows;
    return status == STK_OK ? check_sum(spool, sum, err) : status;
}

stk_status stki_spool_open(const char *path, int field_count, stki_spool **out, stk_error *err)
{
    stki_spool *spool = stki_zalloc(sizeof *spool);
    stk_status status;

    if (!spool)
        return stki_fail_memory(err, sizeof *spool, path);
    spool->field_count = field_count;
    status = stki_file_open(path, STKI_ACCESS_AUTO, STKI_PATTERN_SEQUENTIAL, &spool->file, err);
    if (status == STK_OK)
        status = load(spool, err);
    if (status == STK_OK)
        *out = spool;
    else
        stki_spool_close(spool);
    return status;
}

int64_t stki_spool_rows(const stki_spool *spool)
{
    return spool->rows;
}

stk_status stki_spool_next(stki_spool *spool, stki_sink_value *values, int64_t rows, stk_error *err)
{
    if (rows > spool->left)
        return damaged(spool->file->path, spool->at, "fewer rows", err);
    for (int64_t i = 0; i < rows * spool->field_count; i++) {
        struct head head;

        if (!stki_inside(spool->at, sizeof head, spool->rows_end))
            return damaged(spool->file->path, spool->at, "the end of its rows", err);
        memcpy(&head, spool->bytes + spool->at, sizeof head);
        spool->at += (int64_t)sizeof head;
        if (!stki_inside(spool->at, head.size, spool->rows_end))
            return damaged(spool->file->path, spool->at, "the end of its rows", err);
        values[i] = (stki_sink_value){.bytes = spool->bytes + spool->at,
                                      .size = head.size,
                                      .length = head.length,
                                      .height = head.height,
                                      .width = head.width,
                                      .channels = head.channels,
                                      .encoding = (enum stki_encoding)head.encoding};
        spool->at += stki_round_up(head.size, MARK);
    }
    spool->left -= rows;
    return stki_file_intact(spool->file, -1, err);
}

void stki_spool_close(stki_spool *spool)
{
    if (!spool)
        return;
    stki_file_close(spool->file);
    stki_free(spool->copy);
    stki_free(spool);
}
