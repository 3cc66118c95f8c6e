/* Fuzz target: arbitrary bytes as a text file: lines, paragraphs, documents, one sample, and lines of JSON. Samples
 * must not overlap and must lie in the file. Whether a line is JSON, and the string of its key, is compared with
 * jansson. */
#include "fuzz_records.h"
#include "json_text.h"
#include "source_opts.h"
#include "text.h"
#include <jansson.h>

/* Valid numbers that jansson rejects: integers beyond 64 bits and reals beyond the range of double. */
static bool has_large_number(const char *line, int64_t length)
{
    int digits = 0;

    for (int64_t i = 0; i < length; i++) {
        digits = line[i] >= '0' && line[i] <= '9' ? digits + 1 : 0;
        if (digits > 2 && (line[i] != '0' || digits > 15))
            return true;
    }
    return false;
}

static void check_line(const char *line, int64_t length)
{
    stki_json_want some[] = {{.key = "a"}, {.key = "text.a"}, {.key = "text"}, {.key = "a.text"}, {.key = "a.text.a"}};
    stki_json_want want = {.key = "text", .problem = {-1, NULL}};
    stki_json_span span;
    stki_json_problem problem;
    enum stki_json_found found;
    json_error_t error;
    json_t *root = json_loadb(line, (size_t)length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error), *value;

    stki_json_find_all(line, length, &want, 1);
    found = want.found;
    span = want.value;
    problem = want.problem;
    stki_json_find_all(line, length, some, 5);
    for (int k = 0; k < 5; k++) { /* each key must give the same result together with others as alone */
        stki_json_want one = {.key = some[k].key};

        stki_json_find_all(line, length, &one, 1);
        DEMAND(one.found == some[k].found && one.problem.at == some[k].problem.at);
        DEMAND(one.found > STKI_JSON_LIST ||
               (one.value.at == some[k].value.at && one.value.length == some[k].value.length));
    }
    if (found == STKI_JSON_BROKEN) {
        DEMAND(problem.at >= 0 && problem.at <= length && problem.what);
        DEMAND(!root || strstr(problem.what, "128") || memchr(line, 0, (size_t)length)); /* jansson accepts these */
        json_decref(root);
        return;
    }
    DEMAND(root || has_large_number(line, length) || json_error_code(&error) == json_error_null_byte_in_key);
    if (!root)
        return;
    value = json_object_get(root, "text");
    DEMAND((found == STKI_JSON_MISSING) == !value);
    DEMAND((found == STKI_JSON_TEXT) == json_is_string(value));
    if (found == STKI_JSON_TEXT) {
        char *text = malloc((size_t)span.bytes + 1);

        DEMAND(text && span.at >= line && span.at + span.length < line + length && span.bytes <= span.length);
        stki_json_unescape(&span, text);
        DEMAND((size_t)span.bytes == json_string_length(value));
        DEMAND(!memcmp(text, json_string_value(value), (size_t)span.bytes));
        free(text);
    }
    json_decref(root);
}

static void check_index(const uint8_t *data, size_t size, const stki_reader_opts *opts)
{
    stki_container *c;
    stki_file file;
    stk_error err;
    int64_t end = 0;

    fuzz_file_init(&file, data, size);
    if (!stki_text_of_file(&file, opts, &c, &err)) {
        const stki_text_file *text = (const stki_text_file *)(const void *)c;

        for (int64_t i = 0; i < text->index.count; i++) {
            int64_t at, bytes;

            DEMAND(!stki_text_sample(text, i, &at, &bytes, &err));
            DEMAND(at >= end && bytes >= 0 && bytes <= text->index.longest);
            end = at + bytes;
            DEMAND(end <= (int64_t)size);
            DEMAND(stki_text_line(text, i) >= (text->unit < STKI_TEXT_WHOLE));
        }
        stki_container_release(c);
    }
    fuzz_file_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const units[] = {"{unit: line}", "{unit: paragraph}", "{unit: file}", "{separator: \"\\n\\n\"}"};
    stki_reader_opts json = {0};

    for (int unit = 0; unit <= STKI_TEXT_DOCUMENTS; unit++) {
        const stki_reader_opts *opts = stkt_source(units[unit]);

        fuzz_record_file(data, size, opts, stki_text_of_file);
        check_index(data, size, opts);
    }
    fuzz_record_file(data, size, &json, stki_jsonl_of_file);
    for (size_t at = 0; at < size;) {
        const uint8_t *stop = memchr(data + at, '\n', size - at);
        const size_t length = (stop ? (size_t)(stop - data) : size) - at;
        char *line = malloc(length ? length : 1); /* sanitizers detect out-of-bounds accesses */

        DEMAND(line);
        memcpy(line, data + at, length);
        check_line(line, (int64_t)length);
        free(line);
        at += length + 1;
    }
    return 0;
}
