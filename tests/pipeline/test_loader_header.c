/* The comments in the public header about members of option structs must match the option tables: the default that 0
 * stands for, the range, and the name of the constant for a real zero or for no limit. */
#include "config.h"
#include "option_row.h"
#include "stk_test.h"
#include <ctype.h>

static char header[1 << 17];

static void read_header(void)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/../include/stoker/loader.h", STKT_TESTS_DIR);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(header, 1, sizeof header - 1, file) > 0);
    fclose(file);
}

/* The comment of a member without spaces; fails the test if there is none. */
static void comment_of(const char *opts_type, const char *member, char *out, size_t size)
{
    char begin[80], end[80];
    const char *at, *limit, *from, *to;
    const size_t length = strlen(member);

    snprintf(begin, sizeof begin, "typedef struct %s {", opts_type);
    snprintf(end, sizeof end, "} %s;", opts_type);
    at = strstr(header, begin);
    limit = strstr(header, end);
    assert_true(at && limit);
    do
        at = strstr(at + 1, member);
    while (at && (at[length] != ';' || isalnum((unsigned char)at[-1]) || at[-1] == '_'));
    if (!at || at > limit)
        fail_msg("%s has no member %s", opts_type, member);
    from = strstr(at, "/*");
    to = from ? strstr(from, "*/") : NULL;
    if (!to || strchr(at + length + 1, ';') < from)
        fail_msg("%s.%s has no comment", opts_type, member);
    for (; from < to && size > 1; from++)
        if (!isspace((unsigned char)*from)) {
            *out++ = *from;
            size--;
        }
    *out = '\0';
}

static void STK_PRINTF(3, 4) must_say(const char *member, const char *comment, const char *format, ...)
{
    char what[128], dense[128], *to = dense;
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    for (const char *from = what; *from; from++)
        if (*from != ' ')
            *to++ = *from;
    *to = '\0';
    if (!strstr(comment, dense))
        fail_msg("loader.h: %s: its comment does not say \"%s\": %s", member, what, comment);
}

static void check_row(const char *opts_type, const stki_option *row)
{
    char comment[1024];
    const bool number = row->type == STKI_OPT_INT || row->type == STKI_OPT_DOUBLE || row->type == STKI_OPT_SIZE ||
                        row->type == STKI_OPT_TIME;

    if (!number || row->c_type == STKI_C_UINT64 || strcmp(row->name, "weight") == 0 || strcmp(row->name, "rank") == 0)
        return; /* for these, 0 is a value */
    comment_of(opts_type, row->c_name, comment, sizeof comment);
    if (isdigit((unsigned char)row->fallback[0]) && strcmp(row->fallback, "0") != 0)
        must_say(row->c_name, comment, "0: %s", row->fallback);
    else
        must_say(row->c_name, comment, "0: ");
    if (row->high <= 4096)
        must_say(row->c_name, comment, "%g to %g", row->type != STKI_OPT_DOUBLE && row->low < 1 ? 1 : row->low,
                 row->high);
    if (row->type == STKI_OPT_TIME)
        must_say(row->c_name, comment, "STK_TIMEOUT_INFINITE");
    if (row->c_zero)
        must_say(row->c_name, comment, "%s", row->c_zero_name);
}

static int check_table(const char *opts_type, const stki_option_table *table)
{
    int count = 0;

    for (int i = 0; i < table->count; i++)
        if (table->rows[i].c_type) {
            check_row(opts_type, &table->rows[i]);
            count++;
        }
    return count;
}

static void the_header_matches_the_rows(void **state)
{
    (void)state;
    read_header();
    assert_true(check_table("stk_loader_opts", stki_config_sections[0]) > 35);
    assert_true(check_table("stk_field_opts", &stki_field_table) > 5);
    assert_true(check_table("stk_dataset_opts", &stki_datasets_table) > 1);
}

/* The struct as seen by a program that was compiled when the struct ended before `pad`. */
typedef struct old_field_opts {
    uint32_t struct_size, path_count;
    const char *name;
    const char *const *paths;
    const char *synthetic;
    stk_dtype source_dtype, dtype;
    const char *source_layout, *layout, *transforms, *source;
} old_field_opts;
_Static_assert(sizeof(old_field_opts) == offsetof(stk_field_opts, pad), "the members of then");

static void fields_of_an_older_program(void **state)
{
    old_field_opts fields[2] = {
        {.struct_size = sizeof *fields, .name = "a", .synthetic = "{count: 6, shape: [2], dtype: u8}"},
        {.struct_size = sizeof *fields, .name = "b", .synthetic = "{count: 6, shape: [3], dtype: f32}"}};
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_field_info info;
    stk_error err;

    (void)state;
    opts.fields = (const stk_field_opts *)(const void *)fields;
    opts.field_count = 2;
    assert_ok(stk_loader_open(&opts, &loader, &err));
    assert_int_equal(stk_loader_field_count(loader), 2);
    assert_ok(stk_loader_field(loader, 1, &info, &err));
    assert_string_equal(info.name, "b");
    assert_int_equal(info.dtype, STK_F32);
    assert_int_equal(info.shape[1], 3);
    stk_loader_destroy(loader);
    fields[1].struct_size = sizeof(stk_field_opts);
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "fields[1].struct_size"));
}

static void two_fields_of_one_name(void **state)
{
    stk_field_opts fields[2] = {STK_FIELD_OPTS_INIT, STK_FIELD_OPTS_INIT};
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        fields[i].name = "twin";
        fields[i].synthetic = "{count: 6, shape: [2], dtype: u8}";
    }
    opts.fields = fields;
    opts.field_count = 2;
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "fields[1].name: found \"twin\""));
    assert_non_null(strstr(err.message, "fields[0]"));
}

/* Members are checked in the same way as keys of a config file. */
static void members_are_checked_by_their_rows(void **state)
{
    static const struct {
        size_t offset;
        int64_t value;
        const char *says;
    } wrong[] = {
        {offsetof(stk_loader_opts, prefetch), 5000,
         "options: loader.prefetch: found 5000, expected auto or 1 to 1024 slots"},
        {offsetof(stk_loader_opts, num_workers), -2,
         "options: loader.num_workers: found -2, expected STK_WORKERS_INLINE (-1), 0 or more"},
        {offsetof(stk_loader_opts, num_epochs), -2, "expected STK_EPOCHS_ENDLESS (-1)"},
        {offsetof(stk_loader_opts, max_errors), -2, "expected STK_NO_ERRORS (-1)"},
        {offsetof(stk_loader_opts, timeout_ns), -2, "options: loader.timeout: found -2ns"},
        {offsetof(stk_loader_opts, max_errors), 4, "options: loader.max_errors: has no effect without on_error"},
        {offsetof(stk_loader_opts, bucket_window), 4, "options: loader.bucket_window: has no effect without bucket_by"},
        {offsetof(stk_loader_opts, seed), -1, "options: loader.seed: found 18446744073709551615"},
    };
    static const struct {
        const char *name, *value;
    } taken[] = {{"loader.num_workers", "0"},           {"loader.num_epochs", "0"},
                 {"loader.timeout", "\"infinite\""},    {"loader.max_errors", "0"},
                 {"loader.max_error_fraction", "0"},    {"loader.sigbus_guard", "false"},
                 {"loader.order", "\"random\""},        {"loader.rank", "0"},
                 {"loader.seed", "9223372036854775807"}};
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_error err;

    (void)state;
    field.name = "a";
    field.synthetic = "{count: 6, shape: [2], dtype: u8}";
    opts.fields = &field;
    opts.field_count = 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        stk_loader_opts bad = opts;

        memcpy((char *)&bad + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        assert_status(stk_loader_open(&bad, &loader, &err), STK_E_CONFIG);
        if (!strstr(err.message, wrong[i].says))
            fail_msg("found %s, expected %s", err.message, wrong[i].says);
    }
    opts.num_workers = STK_WORKERS_INLINE;
    opts.num_epochs = STK_EPOCHS_ENDLESS;
    opts.timeout_ns = STK_TIMEOUT_INFINITE;
    opts.on_error = STK_ON_ERROR_SKIP;
    opts.max_errors = STK_NO_ERRORS;
    opts.max_error_fraction = STK_NO_ERRORS;
    opts.sigbus_guard = STK_GUARD_OFF;
    opts.order = STK_ORDER_RANDOM;
    opts.seed = INT64_MAX;
    opts.world_size = 2;
    assert_ok(stk_loader_open(&opts, &loader, &err));
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        char *value = stk_loader_option(loader, taken[i].name, &err);

        if (!value || strtod(value, NULL) != strtod(taken[i].value, NULL) ||
            (taken[i].value[0] > '9' && strcmp(value, taken[i].value) != 0) ||
            (taken[i].value[0] == '"' && strcmp(value, taken[i].value) != 0))
            fail_msg("%s: found %s, expected %s", taken[i].name, value, taken[i].value);
        stk_text_free(value);
    }
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_matches_the_rows),
        cmocka_unit_test(fields_of_an_older_program),
        cmocka_unit_test(two_fields_of_one_name),
        cmocka_unit_test(members_are_checked_by_their_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
