/* text.c: a text file as a container of one member, "text"; see text.h. */
#include "text.h"
#include "allocate.h"
#include "error.h"
#include "foreign_file.h"
#include <inttypes.h>
#include <string.h>

enum { HEAD = STKI_KIND_BYTES };

const char *stki_text_refuse(const char *head, int64_t length, bool markup, int64_t *begins, const char **advice)
{
    const stki_file_kind *kind = stki_file_kind_of(head, length, true);

    *begins = length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (kind && (!kind->text || !markup)) {
        *advice = kind->advice;
        return kind->what;
    }
    if (length >= 2 && (!memcmp(head, "\xff\xfe", 2) || !memcmp(head, "\xfe\xff", 2))) {
        *advice = "convert it to UTF-8: iconv -f UTF-16 -t UTF-8";
        return "UTF-16 text";
    }
    return NULL;
}

static stk_status text_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                              stki_reader **out, stk_error *err)
{
    (void)member;
    return stki_text_reader((const stki_text_file *)(const void *)base, opts, out, err);
}

static void text_destroy(stki_container *base)
{
    stki_text_file *text = (stki_text_file *)(void *)base;

    if (!text->lender)
        stki_text_index_fini(&text->index);
    stki_container_release(text->lender);
    stki_jsonl_fini(text);
    stki_file_close(text->file);
    stki_container_free(base);
}

static const stki_container_ops text_ops = {.format = "text", .reader = text_reader, .destroy = text_destroy};
static const stki_container_ops jsonl_ops = {.format = "jsonl", .reader = text_reader, .destroy = text_destroy};

static stk_status check_head(stki_text_file *text, stk_error *err)
{
    const int64_t count = text->file->size < HEAD ? text->file->size : HEAD;
    char head[HEAD];
    const char *what, *advice;
    stk_status status = stki_file_read(text->file, 0, head, count, err);

    if (status != STK_OK)
        return status;
    what = stki_text_refuse(head, count, !text->json, &text->begins, &advice);
    return what ? stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){text->base.path, -1, -1, what, "a text file"}, "%s",
                               advice)
                : STK_OK;
}

typedef struct text_options {
    const char *separator;
    int unit;
} text_options;

static const char *const unit_words[] = {"line", "paragraph", "file", NULL}; /* same values as enum stki_text_unit */

static const stki_option text_rows[] = {
    STKI_ENUM(text_options, unit, line, unit_words,
              "What a sample is: a line, a paragraph (which ends at a blank line), or the whole file"),
    STKI_STRING(text_options, separator, NULL, "Samples are documents separated by this string: \"<|endoftext|>\"",
                .instead_of = "unit", .examples = STKI_EXAMPLES("--", "<|endoftext|>")),
};
static const stki_option_table text_table = STKI_SOURCE_TABLE("text", text_rows);

static stk_status check_text(const stki_node *map, void *values, stk_error *err)
{
    const text_options *text = values;

    if (text->separator && (!*text->separator || strlen(text->separator) > STKI_TEXT_SEPARATOR))
        return stki_fail_value(err, stki_node_get(map, "separator"), "a string of 1 to %d bytes", STKI_TEXT_SEPARATOR);
    return STK_OK;
}

const stki_source_group stki_text_source = {&text_table, sizeof(text_options), check_text, NULL};

bool stki_text_whole(const stki_reader_opts *opts)
{
    text_options text;

    stki_source_values(opts, &stki_text_source, &text);
    return text.unit == STKI_TEXT_WHOLE;
}

static void take_options(stki_text_file *text, const stki_reader_opts *opts)
{
    text_options values;

    stki_source_values(opts, &stki_text_source, &values);
    text->unit = values.separator ? STKI_TEXT_DOCUMENTS : (enum stki_text_unit)values.unit;
    text->separator_bytes = values.separator ? (int64_t)strlen(values.separator) : 0;
    if (values.separator)
        memcpy(text->separator, values.separator, (size_t)text->separator_bytes);
}

static stk_status add_member(stki_text_file *text, stk_error *err)
{
    static const char *const units[] = {"line", "paragraph", "file", "document"};
    const int64_t varying[1] = {-1};
    const stki_text_index *index = &text->index;
    stki_member *member;
    const stki_jsonl_column *column = &text->column;
    const bool numbers = column->kind != STKI_JSONL_TEXT;
    stk_status status =
        stki_container_add(&text->base, numbers ? column->key : "text", column->kind == STKI_JSONL_NUMBER ? 0 : 1,
                           numbers ? &column->width : varying, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_RECORDS;
    member->dtype = numbers ? column->dtype : STK_U8;
    member->count = index->count;
    member->layout = "records";
    member->details = json_pack("{s:s, s:I}", "unit", text->json ? "line of JSON" : units[text->unit],
                                text->json ? "longest_line" : "most_bytes", (json_int_t)index->longest);
    if (text->json && member->details)
        json_object_set_new(member->details, "key", json_string(column->key));
    if (text->json && member->details)
        json_object_set_new(member->details, "keys", stki_jsonl_keys(text)); /* has no effect if the keys are NULL */
    if (index->left_out > 0 && !text->lender)
        stki_container_warn(&text->base, "skipped: %" PRId64 " %s", index->left_out,
                            text->json ? (index->left_out == 1 ? "blank line" : "blank lines")
                                       : (index->left_out == 1 ? "empty document" : "empty documents"));
    return STK_OK;
}

static stk_status make_index(stki_text_file *text, stk_error *err)
{
    stk_status status = check_head(text, err);

    return status == STK_OK ? stki_text_index_build(text, &text->index, err) : status;
}

static void borrow(stki_text_file *text, const stki_text_file *lender)
{
    text->lender = stki_container_retain(lender->lender ? lender->lender : &lender->base);
    text->begins = lender->begins;
    text->index = lender->index;
    text->index.held_bytes = 0; /* already counted for the lender */
}

/* Opens a text file or, if `json` is set, a JSON Lines file. `lender`: another container of the same JSON Lines file,
 * or NULL. */
static stk_status open_text(stki_file *file, const stki_reader_opts *opts, bool json, const stki_text_file *lender,
                            stki_container **out, stk_error *err)
{
    stki_text_file *text;
    stk_status status = stki_container_create(sizeof *text, json ? &jsonl_ops : &text_ops, file->path, &text, err);

    if (status != STK_OK) {
        stki_file_close(file);
        return status;
    }
    text->file = file;
    text->json = json;
    if (!json)
        take_options(text, opts);
    if (lender)
        borrow(text, lender);
    else
        status = make_index(text, err);
    if (status == STK_OK && json) {
        text->base.partial = true; /* the key may be the name of this field, and the type depends on its dtype */
        status = stki_jsonl_look(text, opts, err);
    }
    if (status == STK_OK)
        status = stki_file_intact(file, -1, err);
    if (status == STK_OK)
        status = add_member(text, err);
    if (status != STK_OK)
        text_destroy(&text->base);
    else
        *out = &text->base;
    return status;
}

stk_status stki_text_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    return open_text(file, opts, false, NULL, out, err);
}

stk_status stki_jsonl_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    return open_text(file, opts, true, NULL, out, err);
}

stk_status stki_text_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    return status != STK_OK ? status : stki_text_of_file(file, opts, out, err);
}

stk_status stki_jsonl_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    const stki_text_file *lender =
        opts->like && opts->like->ops == &jsonl_ops ? (const stki_text_file *)(const void *)opts->like : NULL;
    stki_file *file;
    stk_status status;

    if (lender)
        return open_text(stki_file_retain(lender->file), opts, true, lender, out, err);
    status = stki_file_open(path, opts->access, opts->pattern, &file, err);
    return status != STK_OK ? status : stki_jsonl_of_file(file, opts, out, err);
}
