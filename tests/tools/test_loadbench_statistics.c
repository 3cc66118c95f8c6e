/* Tests of medians, spread, tables and formatted numbers. */
#include "loadbench_statistics.h"
#include "loadbench_table.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void medians(void **state)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};
    struct lb_summary summary = lb_summarize(odd, 3);

    (void)state;
    assert_float_equal(summary.median, 2, 0);
    assert_float_equal(summary.low, 1, 0);
    assert_float_equal(summary.high, 3, 0);
    assert_float_equal(summary.spread_percent, 100, 1e-9);
    summary = lb_summarize(even, 4);
    assert_float_equal(summary.median, 2.5, 0);
    assert_float_equal(summary.spread_percent, 120, 1e-9);
    summary = lb_summarize(one, 1);
    assert_float_equal(summary.median, 7, 0);
    assert_float_equal(summary.spread_percent, 0, 0);
}

static void nothing_is_zero(void **state)
{
    double zeros[] = {0, 0};
    struct lb_summary summary = lb_summarize(NULL, 0);

    (void)state;
    assert_float_equal(summary.median, 0, 0);
    assert_float_equal(lb_summarize(zeros, 2).spread_percent, 0, 0);
    assert_float_equal(lb_ratio(1, 0), 0, 0);
    assert_float_equal(lb_ratio(1, 4), 0.25, 0);
}

static void numbers_are_readable(void **state)
{
    static const struct {
        double value;
        const char *text, *brief;
    } cases[] = {
        {0, "0", "0"},
        {1234567.4, "1234567", "1.23M"},
        {999.4, "999.4", "999"},
        {999.96, "1000", "1.00k"},
        {99.951, "100.0", "100"},
        {12.345, "12.35", "12.3"},
        {9.9949, "9.995", "9.99"},
        {0.12345, "0.123", "0.12"},
        {0.01234, "0.0123", "0.01"},
        {1000, "1000", "1.00k"},
        {9831, "9831", "9.83k"},
        {1.46e9, "1460000000", "1.46G"},
        {7, "7.000", "7"},
        {2e-6, "0.0000020", "0.00"}, /* no exponents */
        {0.00051234, "0.00051", "0.00"},
        {-0.00051234, "-0.00051", "-0.00"},
        {1e-15, "0", "0.00"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(LB_NUMBER(cases[i].value), cases[i].text);
        assert_string_equal(LB_SHORT(cases[i].value), cases[i].brief);
    }
}

/* A measured share is never printed as "0 %". */
static void percentages_are_readable(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0 %"},      {0.004, "< 0.01 %"}, {0.04, "0.04 %"}, {0.9, "0.90 %"},   {1.26, "1.3 %"},
        {9.94, "9.9 %"}, {9.96, "10 %"},      {104.4, "104 %"}, {-2.26, "-2.3 %"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(LB_PERCENT(cases[i].value), cases[i].text);
}

static void table_is_aligned(void **state)
{
    static const char *const head[] = {"", "median", "low"};
    struct lb_table *table = malloc(sizeof *table);
    const char *name = "samples/s", *other = "x";
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);

    (void)state;
    assert_non_null(table);
    assert_non_null(memory);
    lb_table_init(table, 3);
    lb_table_row(table, head, 3);
    lb_table_row(table, &name, 1);
    lb_table_cell(table, 1, "%d", 1234567);
    lb_table_cell(table, 2, "%d", 5);
    lb_table_row(table, &other, 1);
    lb_table_cell(table, 2, "%s", "7");
    table->left[2] = true;
    lb_table_print(table, memory);
    fclose(memory);
    assert_string_equal(text, "            median  low\n"
                              "samples/s  1234567  5\n"
                              "x                   7\n");
    free(text);
    free(table);
}

static void long_cells_are_truncated(void **state)
{
    static const char *const row[] = {"0123456789012345678901234567890123456789012345678901234567890123456789"};
    struct lb_table *table = malloc(sizeof *table);

    (void)state;
    assert_non_null(table);
    lb_table_init(table, 1);
    lb_table_row(table, row, 1);
    assert_int_equal(strlen(table->cells[0][0]), LB_TABLE_TEXT - 1);
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians),
        cmocka_unit_test(nothing_is_zero),
        cmocka_unit_test(numbers_are_readable),
        cmocka_unit_test(percentages_are_readable),
        cmocka_unit_test(table_is_aligned),
        cmocka_unit_test(long_cells_are_truncated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
