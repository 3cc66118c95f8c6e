/* Tests of the values of scalars: integers, reals, bools, strings, sizes, times and words, and the suggestion of
 * similar words. */
#include "config_check.h"
#include "node_scalar.h"
#include "test_random.h"
#include <math.h>

static stki_node scalar(const char *text, bool quoted)
{
    return (stki_node){.kind = STKI_NODE_SCALAR, .file = "t", .line = 1, .column = 1, .text = text, .quoted = quoted};
}

static void whole_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"7", 7},
                {"+7", 7},
                {"-12", -12},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {"",
                                      "x",
                                      "-",
                                      "+",
                                      "007",
                                      "-07",
                                      "1_000",
                                      "0x10",
                                      "0o7",
                                      "1.0",
                                      "1e3",
                                      " 1",
                                      "1 ",
                                      "--1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "true",
                                      "1,5",
                                      "18446744073709551616",
                                      "99999999999999999999999999"};
    size_t i;
    int64_t value;

    (void)state;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        stki_node node = scalar(good[i].text, false);

        assert_int_equal(stki_node_int(&node, &value, NULL), STK_OK);
        assert_int_equal(value, good[i].value);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        stki_node node = scalar(bad[i], false);

        assert_int_equal(stki_node_int(&node, &value, NULL), STK_E_CONFIG);
    }
}

static void reals(void **state)
{
    static const char *const good[] = {"0",
                                       "1",
                                       "-1",
                                       "+1",
                                       "0.5",
                                       ".5",
                                       "5.",
                                       "1e3",
                                       "1E-3",
                                       "1.5e+3",
                                       "-2.5e-10",
                                       "007",
                                       "5e-324",
                                       "1.7976931348623157e308",
                                       "123456789012345678901234567890"};
    static const char *const bad[] = {"",      ".",     "-",   "e3",   "1e",    "1e+",      ".e3",
                                      "inf",   ".inf",  "nan", ".nan", "1e400", "0x1p3",    "1,5",
                                      "1_0.5", "1.2.3", "1f",  " 1",   "--1",   "infinity", "-1e999"};
    size_t i;
    double value;

    (void)state;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        stki_node node = scalar(good[i], false);

        assert_int_equal(stki_node_double(&node, &value, NULL), STK_OK);
        assert_true(value == strtod(good[i], NULL));
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        stki_node node = scalar(bad[i], false);

        assert_int_equal(stki_node_double(&node, &value, NULL), STK_E_CONFIG);
    }
}

static void bools_and_texts(void **state)
{
    static const char *const bad[] = {"yes", "no", "on", "off", "True", "TRUE", "1", "0", "", "y"};
    stki_node yes = scalar("true", false), no = scalar("false", false), quoted = scalar("true", true);
    stki_node number = scalar("12", false), none = scalar("", false), empty = scalar("", true);
    stki_node list = {.kind = STKI_NODE_LIST, .file = "t", .line = 1};
    const char *text;
    bool value;
    size_t i;

    (void)state;
    assert_true(stki_node_bool(&yes, &value, NULL) == STK_OK && value);
    assert_true(stki_node_bool(&no, &value, NULL) == STK_OK && !value);
    assert_int_equal(stki_node_bool(&quoted, &value, NULL), STK_E_CONFIG);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        stki_node node = scalar(bad[i], false);

        assert_int_equal(stki_node_bool(&node, &value, NULL), STK_E_CONFIG);
    }
    assert_true(stki_node_text(&number, &text, NULL) == STK_OK && strcmp(text, "12") == 0);
    assert_true(stki_node_text(&empty, &text, NULL) == STK_OK && strcmp(text, "") == 0);
    assert_int_equal(stki_node_text(&none, &text, NULL), STK_E_CONFIG);
    assert_int_equal(stki_node_text(&list, &text, NULL), STK_E_CONFIG);
}

static void sizes(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"5B", 5},
                {"1k", 1000},
                {"1kB", 1000},
                {"1M", 1000000},
                {"2MB", 2000000},
                {"1.5G", 1500000000},
                {"1GB", 1000000000},
                {"1T", 1000000000000},
                {"3TB", 3000000000000},
                {"1Ki", 1024},
                {"64KiB", 65536},
                {"1Mi", 1 << 20},
                {"64MiB", 64 << 20},
                {"0.5GiB", 512 << 20},
                {"1Gi", 1 << 30},
                {"1Ti", INT64_C(1) << 40},
                {"2TiB", INT64_C(2) << 40},
                {"0.1GiB", 107374182},
                {"0.0005k", 1},
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",
                                      "MiB",
                                      "64mib",
                                      "64MIB",
                                      "64mb",
                                      "1K",
                                      "1KB",
                                      "1kiB",
                                      "1 MiB",
                                      "1.5",
                                      "1.5B",
                                      "-1",
                                      "-1MiB",
                                      "+1",
                                      "1.MiB",
                                      ".5MiB",
                                      "1e3",
                                      "1MiBx",
                                      "0x10",
                                      "1bit",
                                      "1Mb",
                                      "9223372036854775808",
                                      "8388608TiB",
                                      "1.0000000001GiB",
                                      "99999999999999999999"};
    size_t i;
    int64_t value;

    (void)state;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        stki_node node = scalar(good[i].text, false);
        stk_error err;

        if (stki_node_size(&node, &value, &err) != STK_OK)
            fail_msg("%s", err.message);
        assert_int_equal(value, good[i].value);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        stki_node node = scalar(bad[i], false);

        if (stki_node_size(&node, &value, NULL) != STK_E_CONFIG)
            fail_msg("%s was accepted", bad[i]);
    }
}

static void times(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"60", 60000000000},
                {"0.25", 250000000},
                {"1.5s", 1500000000},
                {"0.1s", 100000000},
                {"20ms", 20000000},
                {"0.001ms", 1000},
                {"3us", 3000},
                {"10ns", 10},
                {"2m", 120000000000},
                {"1.5h", 5400000000000}};
    static const char *const bad[] = {"",   "s",    "1.5ns", "-1s", "1 s",      "1sec",
                                      "1S", "1min", "1d",    "1e3", "2562048h", "inf"};
    size_t i;
    int64_t value;

    (void)state;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        stki_node node = scalar(good[i].text, false);

        assert_int_equal(stki_node_time(&node, &value, NULL), STK_OK);
        assert_int_equal(value, good[i].value);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        stki_node node = scalar(bad[i], false);

        if (stki_node_time(&node, &value, NULL) != STK_E_CONFIG)
            fail_msg("%s was accepted", bad[i]);
    }
}

/* Formatting any value and parsing the result gives the same value. */
static void formats_read_back(void **state)
{
    uint64_t random = 3;
    char buffer[40];
    int i;

    (void)state;
    for (i = 0; i < 20000; i++) {
        int64_t whole = (int64_t)(stkt_random(&random) >> (1 + i % 63)), back = -1;
        uint64_t bits = stkt_random(&random);
        double real, real_back = 0;

        if (i % 3 == 0)
            whole = (whole >> 40) << (i % 40);
        assert_true(stki_scalar_size(stki_format_size(whole, buffer), &back));
        assert_int_equal(back, whole);
        if (i % 3 == 1)
            whole = whole % 1000000 * 1000000;
        assert_true(stki_scalar_time(stki_format_time(whole, buffer), &back));
        assert_int_equal(back, whole);
        memcpy(&real, &bits, sizeof real);
        if (!isfinite(real))
            continue;
        assert_true(stki_scalar_double(stki_format_double(real, buffer), &real_back));
        assert_memory_equal(&real_back, &real, sizeof real);
    }
    assert_string_equal(stki_format_size(0, buffer), "0");
    assert_string_equal(stki_format_size(1536, buffer), "1536");
    assert_string_equal(stki_format_size(64 << 20, buffer), "64MiB");
    assert_string_equal(stki_format_size(INT64_C(1) << 50, buffer), "1024TiB");
    assert_string_equal(stki_format_time(0, buffer), "0s");
    assert_string_equal(stki_format_time(1500000000, buffer), "1500ms");
    assert_string_equal(stki_format_time(60000000000, buffer), "60s");
    assert_string_equal(stki_format_double(0.1, buffer), "0.1");
    assert_string_equal(stki_format_double(1.0 / 3, buffer), "0.3333333333333333");
}

static void words(void **state)
{
    static const char *const known[] = {"cached", "streaming", "auto", NULL};
    stki_node good = scalar("streaming", false), quoted = scalar("auto", true), near_one = scalar("steaming", false);
    stki_node far = scalar("xyz", false), none = scalar("", false);
    static const char *const with_null[] = {"touch", "null", NULL};
    stki_node map = {.kind = STKI_NODE_MAP, .file = "t", .line = 1}, null_text = scalar("null", true);
    stk_error err;
    int index;

    (void)state;
    assert_true(stki_node_word(&good, known, &index, NULL) == STK_OK && index == 1);
    assert_true(stki_node_word(&quoted, known, &index, NULL) == STK_OK && index == 2);
    assert_int_equal(stki_node_word(&near_one, known, &index, &err), STK_E_CONFIG);
    assert_string_equal(err.message,
                        "t:1: found steaming, expected cached, streaming or auto; did you mean streaming?");
    assert_int_equal(stki_node_word(&far, known, &index, &err), STK_E_CONFIG);
    assert_string_equal(err.message, "t:1: found xyz, expected cached, streaming or auto");
    assert_int_equal(stki_node_word(&none, known, &index, &err), STK_E_CONFIG);
    assert_string_equal(err.message, "t:1: found nothing, expected cached, streaming or auto");
    assert_true(stki_node_word(&none, with_null, &index, NULL) == STK_OK && index == 1);
    assert_true(stki_node_word(&null_text, with_null, &index, NULL) == STK_OK && index == 1);
    assert_int_equal(stki_node_word(&map, known, &index, &err), STK_E_CONFIG);
    assert_string_equal(err.message, "t:1: found a map, expected cached, streaming or auto");
}

static void long_texts_are_shown_in_part(void **state)
{
    stki_node node = scalar("0123456789012345678901234567890123456789-never shown", true);
    stk_error err;
    int64_t value;

    (void)state;
    assert_int_equal(stki_node_int(&node, &value, &err), STK_E_CONFIG);
    assert_string_equal(err.message, "t:1: found \"0123456789012345678901234567890123456789...\", expected a decimal "
                                     "integer");
}

static void nearest_words(void **state)
{
    static const char *const known[] = {"batch_size", "order", "seed", "num_workers", "prefetch", "rank", "x"};
    static const struct {
        const char *word, *nearest;
    } cases[] = {{"batchsize", "batch_size"},
                 {"batch-size", "batch_size"},
                 {"BATCH_SIZE", "batch_size"},
                 {"btach_size", "batch_size"},
                 {"bach_sise", "batch_size"},
                 {"batchs", NULL},
                 {"batch", "batch_size"},
                 {"oder", "order"},
                 {"roder", "order"},
                 {"sed", "seed"},
                 {"sede", "seed"},
                 {"workers", "num_workers"},
                 {"number_of_num_workers", "num_workers"},
                 {"prefetch_factor", "prefetch"},
                 {"rnk", "rank"},
                 {"ab", NULL},
                 {"y", NULL},
                 {"", NULL},
                 {"dropout_rate_of_the_model", NULL},
                 {"0123456789012345678901234567890123456789012345678901234567890123456789", NULL}};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *nearest = stki_nearest_word(cases[i].word, known, 7);

        if (nearest != cases[i].nearest && (!nearest || !cases[i].nearest || strcmp(nearest, cases[i].nearest) != 0))
            fail_msg("%s: found %s, expected %s", cases[i].word, nearest ? nearest : "none",
                     cases[i].nearest ? cases[i].nearest : "none");
    }
    assert_null(stki_nearest_word("seed", known, 0));
}

static char lower(char c)
{
    return c == 'Z' ? 'z' : c == 'A' ? 'a' : c;
}

/* Edit distance (changes, insertions, deletions, swaps of neighbors) by exhaustive recursion. */
static int slow_distance(const char *a, const char *b)
{
    int best, other;

    if (!*a || !*b)
        return (int)(strlen(a) + strlen(b));
    best = slow_distance(a + 1, b + 1) + (lower(*a) != lower(*b));
    other = 1 + slow_distance(a + 1, b);
    best = other < best ? other : best;
    other = 1 + slow_distance(a, b + 1);
    best = other < best ? other : best;
    if (a[1] && b[1] && lower(a[0]) == lower(b[1]) && lower(a[1]) == lower(b[0])) {
        other = 1 + slow_distance(a + 2, b + 2);
        best = other < best ? other : best;
    }
    return best;
}

static void random_word(uint64_t *random, char *word, int64_t longest)
{
    int64_t i, length = stkt_random_in(random, 1, longest);

    for (i = 0; i < length; i++)
        word[i] = "abzAZ"[stkt_random(random) % 5];
    word[length] = '\0';
}

/* Words that do not fit are omitted entirely. */
static void lists_of_words_end_with_whole_words(void **state)
{
    static const char *const words[] = {"one", "three", "seven"};
    char buffer[64];

    (void)state;
    assert_string_equal(stki_word_list(words, 3, buffer, sizeof buffer), "one, three or seven");
    assert_string_equal(stki_word_list(words, 3, buffer, 20), "one, three or seven"); /* 19 bytes and the NUL */
    assert_string_equal(stki_word_list(words, 3, buffer, 19), "one, three, …");
    assert_string_equal(stki_word_list(words, 3, buffer, 15), "one, …"); /* "…" has 3 bytes */
    assert_string_equal(stki_word_list(words, 3, buffer, 4), "");
    assert_string_equal(stki_word_list(words, 1, buffer, 4), "one");
}

static void nearest_words_against_all_edits(void **state)
{
    uint64_t random = 9;
    int i;

    (void)state;
    for (i = 0; i < 4000; i++) {
        char word[8], known[8];
        const char *words[1] = {known};
        int length, allowed;
        bool near, part;

        random_word(&random, word, 7);
        random_word(&random, known, 6);
        length = (int)strlen(word);
        allowed = length / 3 < 2 ? 2 : length / 3;
        near = slow_distance(word, known) <= (allowed < length - 1 ? allowed : length - 1);
        part = (length >= 4 && strstr(known, word)) || (strlen(known) >= 4 && strstr(word, known));
        if ((stki_nearest_word(word, words, 1) != NULL) != (near || part))
            fail_msg("%s for %s: distance %d", known, word, slow_distance(word, known));
    }
}

static void lengths_of_near_words(void **state)
{
    char word[80], known[80];
    const char *words[1] = {known};

    (void)state;
    memset(word, 'w', 79);
    memset(known, 'w', 79);
    known[30] = 'x'; /* so that neither contains the other */
    word[64] = known[64] = '\0';
    assert_non_null(stki_nearest_word(word, words, 1));
    word[64] = 'w';
    word[65] = '\0';
    assert_null(stki_nearest_word(word, words, 1));
    word[64] = '\0';
    known[64] = 'w';
    known[65] = '\0';
    assert_null(stki_nearest_word(word, words, 1));
    assert_null(stki_nearest_word("123456789", (const char *const[]){"123456xyz"}, 0));
    assert_non_null(stki_nearest_word("123456789", (const char *const[]){"123456xyz"}, 1)); /* 3 of 9 differ */
    assert_null(stki_nearest_word("12345678", (const char *const[]){"12345xyz"}, 1));       /* 3 of 8 differ */
}

static void units(void **state)
{
    static const struct {
        const char *name;
        enum stki_unit kind;
        double factor;
    } cases[] = {{"", STKI_UNIT_NONE, 1},      {"k", STKI_UNIT_SIZE, 1e3}, {"TiB", STKI_UNIT_SIZE, 0x1p40},
                 {"ms", STKI_UNIT_TIME, 1e-3}, {"m", STKI_UNIT_TIME, 60},  {"M", STKI_UNIT_SIZE, 1e6}};
    enum stki_unit kind;
    double factor;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(stki_scalar_unit(cases[i].name, strlen(cases[i].name), &kind, &factor));
        assert_int_equal(kind, cases[i].kind);
        assert_true(fabs(factor - cases[i].factor) <= 1e-15 * cases[i].factor);
    }
    assert_true(stki_scalar_unit("MiBs", 3, &kind, &factor)); /* only the first 3 characters count */
    assert_false(stki_scalar_unit("MiBs", 4, &kind, &factor));
    assert_false(stki_scalar_unit("parsec", 6, &kind, &factor));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(reals),
        cmocka_unit_test(bools_and_texts),
        cmocka_unit_test(sizes),
        cmocka_unit_test(times),
        cmocka_unit_test(units),
        cmocka_unit_test(formats_read_back),
        cmocka_unit_test(words),
        cmocka_unit_test(long_texts_are_shown_in_part),
        cmocka_unit_test(nearest_words),
        cmocka_unit_test(nearest_words_against_all_edits),
        cmocka_unit_test(lists_of_words_end_with_whole_words),
        cmocka_unit_test(lengths_of_near_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
