/* Fuzz target: arbitrary bytes as a table of text. If it opens, it must consist of whole records: written again with
 * every cell in quotes, it must be the same table. */
#include "csv.h"
#include "fuzz_records.h"
#include "source_opts.h"
#include "text_build.h"

/* Appends the cells of a record to `plain`, each with its length, and to `quoted` as CSV. */
static void put_record(const stki_csv *csv, int64_t record, const char *bytes, stki_text_build *plain,
                       stki_text_build *quoted)
{
    for (int i = 0; i < csv->column_count; i++) {
        stki_csv_cell cell;
        stk_error err;
        char *text;
        int64_t count, whole;
        double number;

        DEMAND(!stki_csv_cell_of(csv, i, record, bytes, &cell, &err));
        count = stki_csv_bytes(&cell);
        DEMAND(count >= 0 && count <= csv->columns[i].longest);
        DEMAND(csv->columns[i].kind != STKI_CSV_WHOLE || stki_csv_is_missing(&csv->missing, &cell) ||
               stki_csv_whole(&cell, &whole));
        DEMAND(csv->columns[i].kind != STKI_CSV_REAL || stki_csv_is_missing(&csv->missing, &cell) ||
               stki_csv_number(&cell, &number));
        text = malloc((size_t)count + 1);
        DEMAND(text);
        stki_csv_text(&cell, text);
        text[count] = '\0';
        stki_putf(plain, "%lld:", (long long)count);
        stki_put_bytes(plain, text, count);
        stki_put(quoted, i ? ",\"" : "\"");
        for (int64_t k = 0; k < count; k++) {
            stki_put_bytes(quoted, text + k, 1);
            if (text[k] == '"')
                stki_put(quoted, "\"");
        }
        stki_put(quoted, "\"");
        free(text);
    }
    stki_put(quoted, "\r\n");
}

static char *texts_of(const uint8_t *data, size_t size, const stki_reader_opts *opts, stki_text_build *quoted)
{
    stki_text_build plain = {0};
    stki_container *c;
    stki_file file;
    stk_error err;

    fuzz_file_init(&file, data, size);
    if (!stki_csv_of_file(&file, opts, &c, &err)) {
        const stki_csv *csv = (const stki_csv *)(const void *)c;

        for (int i = 0; i < csv->column_count; i++) {
            stki_putf(&plain, "%s;", csv->columns[i].name);
            stki_put(quoted, i ? ",\"" : "\"");
            for (const char *at = csv->columns[i].name; *at; at++) {
                stki_put_bytes(quoted, at, 1);
                if (*at == '"')
                    stki_put(quoted, "\"");
            }
            stki_put(quoted, "\"");
        }
        stki_put(quoted, "\n");
        for (int64_t i = 0; i < csv->count; i++) {
            DEMAND(stki_places_at(&csv->start, i) < stki_places_at(&csv->start, i + 1) &&
                   stki_places_at(&csv->start, i + 1) <= (int64_t)size);
            put_record(csv, i, (const char *)file.map + stki_places_at(&csv->start, i), &plain, quoted);
        }
        DEMAND(csv->count == 0 || stki_csv_line(csv, csv->count - 1) >= csv->count + 1);
        stki_container_release(c);
        stki_put(&plain, "!");
    }
    fuzz_file_fini(&file);
    return stki_text_take(&plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const delimiters[] = {"{delimiter: ','}", "{delimiter: ';'}", "{delimiter: \"\\t\"}"};

    for (int i = 0; i < 3; i++) {
        const stki_reader_opts opts = *stkt_source(delimiters[i]), commas = *stkt_source(delimiters[0]);
        stki_text_build quoted = {0}, again = {0};
        char *first, *second;

        fuzz_record_file(data, size, &opts, stki_csv_of_file);
        first = texts_of(data, size, &opts, &quoted);
        if (first) {
            second = texts_of((const uint8_t *)quoted.text, (size_t)quoted.length, &commas, &again);
            DEMAND(second && !strcmp(first, second));
            stki_free(second);
            stki_free(first);
        }
        stki_free(quoted.text);
        stki_free(again.text);
    }
    return 0;
}
