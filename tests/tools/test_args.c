/* Tests of parsing command lines: every kind of option in any order, and errors that name the option. */
#include "args.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { OPTIONS = 7, WORDS = 3 };

struct line {
    bool json;
    const char *source, *sets[8], *words[WORDS];
    int set_count, word_count, action, taken;
};

static stk_status take(void *owner, const char *value, stk_error *err)
{
    long long n = 0;
    const stk_status status = arg_number("--number", value, 1, 10, &n, err);

    ((struct line *)owner)->taken = (int)n;
    return status;
}

static stk_status read_line(struct line *line, char *text, stk_error *err)
{
    const struct arg_option options[OPTIONS] = {
        {"--json", NULL, "", .flag = &line->json},
        {"--source", "TEXT", "", .text = &line->source},
        {"--set", "KEY", "", .text = line->sets, .count = &line->set_count},
        {"--number", "N", "", .take = take, .repeats = true},
        {"--look", NULL, "", .action = &line->action, .as = 1},
        {"--make", NULL, "", .action = &line->action, .as = 2},
        {"--help", NULL, "", .action = &line->action, .as = 3},
    };
    char *argv[16] = {(char[]){"program"}};
    int argc = 1;

    memset(line, 0, sizeof *line);
    for (char *word = strtok(text, "|"); word; word = strtok(NULL, "|"))
        argv[argc++] = word;
    return arg_read(argc, argv, options, OPTIONS, line, line->words, WORDS, &line->word_count, err);
}

static void options_and_words_in_any_order(void **state)
{
    char text[] = "a|--set=x=1|--json|--set|y=2|-1|--number=3|--number|4|--source=s|--source=s|--look|--|--json";
    struct line line;
    stk_error err;

    (void)state;
    assert_int_equal(read_line(&line, text, &err), STK_OK);
    assert_true(line.json);
    assert_string_equal(line.source, "s");
    assert_int_equal(line.set_count, 2);
    assert_string_equal(line.sets[0], "x=1");
    assert_string_equal(line.sets[1], "y=2");
    assert_int_equal(line.taken, 4);
    assert_int_equal(line.action, 1);
    assert_int_equal(line.word_count, 3);
    assert_string_equal(line.words[0], "a");
    assert_string_equal(line.words[1], "-1");
    assert_string_equal(line.words[2], "--json");
    char help[] = "-h";
    assert_int_equal(read_line(&line, help, &err), STK_OK);
    assert_int_equal(line.action, 3);
}

static void errors_name_the_option(void **state)
{
    static const char *const cases[][2] = {
        {"--jsno", "--json"},
        {"--json=1", "--json takes no value"},
        {"--source", "--source needs a value: --source=TEXT"},
        {"--source=", "--source needs a value"},
        {"--source=a|--source=b", "--source is given twice: a, then b"},
        {"--look|--make", "--make"},
        {"a|b|c|d", "d"},
        {"--number=11", "found \"11\", expected 1 to 10"},
        {"--number=4x", "found \"4x\""},
        {"--number=99999999999999999999", "--number"},
        {"-x", "-x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        struct line line;
        stk_error err;
        snprintf(text, sizeof text, "%s", cases[i][0]);
        if (read_line(&line, text, &err) != STK_E_CONFIG)
            fail_msg("%s: was accepted", cases[i][0]);
        if (!strstr(err.message, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err.message);
    }
}

static void endings_are_checked(void **state)
{
    stk_error err;

    (void)state;
    assert_int_equal(arg_check_ending("--report", "a.HTML", ".html", &err), STK_OK);
    assert_int_equal(arg_check_ending("--report", ".html", ".html", &err), STK_E_CONFIG);
    assert_int_equal(arg_check_ending("--report", "a.htm", ".html", &err), STK_E_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(options_and_words_in_any_order),
                                       cmocka_unit_test(errors_name_the_option), cmocka_unit_test(endings_are_checked)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
