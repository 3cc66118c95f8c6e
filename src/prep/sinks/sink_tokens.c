/* sink_tokens.c: writes token files of llm.c, raw token files (nanoGPT) and Megatron's pairs (tokens_write.h). There is
 * one field; every row is a document or a piece of fixed length. */
#include "allocate.h"
#include "error.h"
#include "sink_common.h"
#include "sinks.h"
#include "tokens.h"
#include "tokens_write.h"
#include <string.h>

struct tokens_options {
    int token_format;
};

static const char *const format_words[] = {"llmc", "raw", "megatron", NULL};

static const stki_option option_rows[] = {
    STKI_ENUM(struct tokens_options, token_format, llmc, format_words,
              "llmc: a header of 1024 bytes, u16 or u32; raw: only tokens, as in nanoGPT; megatron: NAME.bin and "
              "NAME.idx, where each row is a sequence and a document"),
};
static const stki_option_table option_table = STKI_OPTION_TABLE("output (tokens)", option_rows);

struct tokens_sink {
    stki_sink_common common; /* first member */
    stk_tokens_format format;
    stk_tokens_writer *writer;     /* NULL: finished */
    char *final[2], *temporary[2]; /* paths of tokens and index */
    char *lengths;
    int64_t bytes[2];
};

static struct tokens_sink *tokens_of(const stki_sink *sink)
{
    return (struct tokens_sink *)(uintptr_t)sink;
}

static stk_tokens_format format_of(const stki_sink_opts *opts)
{
    const struct tokens_options *options = opts->options;

    return options ? (stk_tokens_format)options->token_format : STK_TOKENS_LLMC;
}

static stk_status tokens_check(const stki_sink_opts *opts, stk_error *err)
{
    const stki_sink_field *field = opts->fields;

    if (opts->field_count != 1)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){opts->path, -1, -1, STKI_TEXT("%d", opts->field_count), "1"},
                            "number of fields in a token file");
    if (field->kind == STKI_SINK_IMAGE || field->kind == STKI_SINK_BYTES || field->ndim > 1)
        return stki_sink_refuse(opts, field, NULL, "rows of tokens (encode: tokens produces them from text)", err);
    return stki_tokens_check(opts->path, format_of(opts), field->dtype, err);
}

/* For Megatron, each document has its length, offset and number in the index. */
static int64_t tokens_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                              stki_sink_size *size)
{
    const bool megatron = format_of(opts) == STK_TOKENS_MEGATRON;

    size->rows += count;
    if (count > 0)
        size->bytes = stki_sink_times(size->bytes, count, values->size + (megatron ? 4 + 8 + 8 : 0));
    return stki_sink_times(megatron                             ? STKI_MEGATRON_HEADER + 8
                           : format_of(opts) == STK_TOKENS_LLMC ? STKI_LLMC_HEADER
                                                                : 0,
                           1, size->bytes);
}

/* ---- opening ---- */

static char *tokens_name(const stki_sink_opts *opts, int index)
{
    char *names[2];

    if (format_of(opts) != STK_TOKENS_MEGATRON)
        return index == 0 ? stki_strdup(opts->path) : NULL;
    if (index > 1 || !stki_tokens_names(opts->path, &names[0], &names[1]))
        return NULL;
    stki_free(names[1 - index]);
    return names[index];
}

static stk_status name_files(struct tokens_sink *t, stk_error *err)
{
    const stki_sink_opts *opts = &t->common.opts;
    bool fine = true;

    for (int i = 0; i < 2; i++)
        t->final[i] = tokens_name(opts, i);
    if (t->format == STK_TOKENS_MEGATRON) {
        fine = t->final[0] && t->final[1];
        t->lengths = fine ? stki_sink_temporary(opts->folder, t->final[1], ".lengths") : NULL;
    }
    for (int i = 0; i < 2 && fine; i++) {
        t->temporary[i] = t->final[i] ? stki_sink_temporary(opts->folder, t->final[i], "") : NULL;
        fine = i == 0 ? t->temporary[0] != NULL : !t->final[1] || (t->temporary[1] && t->lengths);
    }
    return fine ? STK_OK : stki_fail_memory(err, (int64_t)strlen(opts->path) + 8, opts->path);
}

static stk_status open_writer(struct tokens_sink *t, const json_t *mark, stk_error *err)
{
    const stki_sink_opts *opts = &t->common.opts;
    stki_tokens_mark at = {0};
    stki_tokens_making making = {t->temporary[0], t->temporary[1], t->lengths, mark ? &at : NULL};
    stk_status status = STK_OK;

    if (mark)
        status = stki_mark_rows(&t->common, mark, err);
    if (mark && status == STK_OK)
        status = stki_mark_int(mark, "tokens", opts->path, &at.tokens, err);
    at.documents = t->common.rows;
    return status != STK_OK ? status
                            : stki_tokens_open(opts->path, t->format, opts->fields->dtype, &making, &t->writer, err);
}

static void tokens_destroy(stki_sink *sink)
{
    struct tokens_sink *t = tokens_of(sink);

    if (!sink)
        return;
    stk_tokens_abort(t->writer);
    for (int i = 0; i < 2; i++) {
        stki_free(t->final[i]);
        stki_free(t->temporary[i]);
    }
    stki_free(t->lengths);
    stki_sink_common_fini(&t->common);
    stki_free(t);
}

static stk_status tokens_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    struct tokens_sink *t;
    stk_status status = tokens_check(opts, err);

    if (status != STK_OK)
        return status;
    t = stki_zalloc(sizeof *t);
    if (!t)
        return stki_fail_memory(err, sizeof *t, opts->path);
    t->format = format_of(opts);
    status = stki_sink_common_init(&t->common, &stki_sink_tokens, opts, err);
    if (status == STK_OK)
        status = name_files(t, err);
    if (status == STK_OK)
        status = open_writer(t, mark, err);
    if (status != STK_OK)
        tokens_destroy(&t->common.base);
    else
        *out = &t->common.base;
    return status;
}

/* ---- rows ---- */

static stk_status tokens_append(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err)
{
    struct tokens_sink *t = tokens_of(sink);
    int64_t size = stk_dtype_size(t->common.opts.fields->dtype);
    stk_status status = stki_sink_check_rows(&t->common, values, rows, err);

    if (status != STK_OK)
        return status;
    for (int64_t row = 0; row < rows && status == STK_OK; row++)
        status = stki_tokens_lend(t->writer, values[row].bytes, values[row].size / size, err);
    if (status == STK_OK)
        status = stki_tokens_settle(t->writer, err);
    return stki_sink_took(&t->common, rows, status);
}

static stk_status tokens_mark(stki_sink *sink, json_t **out, stk_error *err)
{
    struct tokens_sink *t = tokens_of(sink);
    stki_tokens_mark at;
    stk_status status = stki_sink_check_usable(&t->common, err);

    if (status == STK_OK)
        status = t->common.failed = stki_tokens_mark_here(t->writer, &at, err);
    if (status != STK_OK)
        return status;
    return stki_mark_new(json_pack("{s:I, s:I}", "rows", (json_int_t)at.documents, "tokens", (json_int_t)at.tokens),
                         out, err);
}

static stk_status tokens_sync(stki_sink *sink, stk_error *err)
{
    return stki_tokens_sync(tokens_of(sink)->writer, err);
}

static stk_status tokens_finish(stki_sink *sink, stk_error *err)
{
    struct tokens_sink *t = tokens_of(sink);
    stk_status status = stki_sink_check_finish(&t->common, err);

    if (status != STK_OK)
        return status;
    status = stki_tokens_finish(t->writer, &t->bytes[0], &t->bytes[1], err);
    t->writer = NULL;
    return t->common.failed = status;
}

static int tokens_files(const stki_sink *sink, stki_sink_file *out, int room)
{
    const struct tokens_sink *t = tokens_of(sink);
    int count = t->final[1] ? 2 : 1;

    for (int i = 0; i < count && i < room; i++)
        out[i] = (stki_sink_file){t->temporary[i], t->final[i], t->common.rows, t->bytes[i]};
    return count;
}

/* The format raw has the same extension and is the default for it. */
static const char *const endings[] = {".bin", NULL};

const stki_sink_ops stki_sink_tokens = {
    .format = "tokens",
    .endings = endings,
    .resumes = true,
    .table = &option_table,
    .options_bytes = sizeof(struct tokens_options),
    .check = tokens_check,
    .measure = tokens_measure,
    .name = tokens_name,
    .open = tokens_open,
    .append = tokens_append,
    .mark = tokens_mark,
    .sync = tokens_sync,
    .finish = tokens_finish,
    .files = tokens_files,
    .destroy = tokens_destroy,
};
