/* Tests of the progress of a job: the rate of the last seconds, the bottleneck and the remaining time, and the three
 * forms in which they are printed. */
#include "stk_test.h"
#include "stoker_prep_show.h"
#include <jansson.h>

#define SECOND INT64_C(1000000000)

static const stki_task alone = {.tasks = 1, .source = "alone"};
static const stki_task third = {.task = 3, .tasks = 4, .source = "torchrun", .why = "RANK=3, WORLD_SIZE=4"};

/* The progress of a job with 1000 rows, 1 kB in and 2 kB out, `rows` of which were made in `seconds`. */
static stk_prep_progress at(double seconds, int64_t rows)
{
    return (stk_prep_progress){.struct_size = sizeof(stk_prep_progress),
                               .phase = STK_PREP_MAKING,
                               .rows = rows,
                               .row_total = 1000,
                               .bytes_in = rows * 1000,
                               .bytes_out = rows * 2000,
                               .elapsed_ns = (int64_t)(seconds * 1e9)};
}

static struct st_prep_figures figures_at(struct st_prep_show *show, const stk_prep_progress *now)
{
    struct st_prep_figures figures;

    st_prep_show_figures(show, now, show->began_ns + now->elapsed_ns, &figures);
    return figures;
}

static void test_rates_follow_the_last_seconds(void **state)
{
    struct st_prep_show show;
    struct st_prep_figures f;
    stk_prep_progress now = at(0, 0);

    (void)state;
    st_prep_show_init(&show, &alone, true, false);
    f = figures_at(&show, &now);
    assert_float_equal(f.rows_per_s, 0, 0);
    assert_float_equal(f.left_s, -1, 0);
    assert_int_equal(f.bottleneck, -1);
    for (int i = 1; i <= 40; i++) { /* 10 s at 10 rows/s, four reports per second */
        now = at(i / 4.0, (int64_t)(i * 2.5));
        f = figures_at(&show, &now);
    }
    assert_float_equal(f.rows_per_s, 10, 0.4);
    assert_float_equal(f.in_per_s, 10000, 400);
    assert_float_equal(f.out_per_s, 20000, 800);
    assert_float_equal(f.left_s, 90, 3);
    for (int i = 1; i <= 40; i++) { /* then 10 s at 50 rows/s: the slow seconds are forgotten */
        now = at(10 + i / 4.0, 100 + (int64_t)(i * 12.5));
        f = figures_at(&show, &now);
    }
    assert_float_equal(f.rows_per_s, 50, 2);
    assert_float_equal(f.left_s, 400 / 40.0, 0.5); /* between 30, the average, and 50, the recent rate */
    now.phase = STK_PREP_JOINING;                  /* starts again */
    now.rows = 0;
    f = figures_at(&show, &now);
    assert_float_equal(f.rows_per_s, 0, 0);
    assert_string_equal(f.phase, "joining");
}

/* Rows of an earlier run do not count towards the rate. */
static void test_resumed(void **state)
{
    struct st_prep_show show;
    struct st_prep_figures f = {0};
    stk_prep_progress now;

    (void)state;
    st_prep_show_init(&show, &third, true, false);
    for (int i = 0; i <= 8; i++) {
        now = at(i / 4.0, 800 + i * 5);
        now.resumed_rows = 800;
        f = figures_at(&show, &now);
    }
    assert_float_equal(f.rows_per_s, 20, 1);
    assert_float_equal(f.left_s, 8, 0.5);
    assert_int_equal(f.task, 3);
    assert_int_equal(f.tasks, 4);
}

static void test_bottleneck_of(void **state)
{
    (void)state;
    for (int stage = -1; stage < ST_PREP_STAGES; stage++) {
        struct st_prep_show show;
        struct st_prep_figures f = {0};

        st_prep_show_init(&show, &alone, true, false);
        for (int i = 0; i <= 8; i++) {
            stk_prep_progress now = at(i / 4.0, i);
            const int64_t most = now.elapsed_ns / 2, little = now.elapsed_ns / 10;

            now.wait_rows_ns = stage == ST_PREP_READ ? most : little;
            now.wait_finish_ns = stage == ST_PREP_FINISH ? most : little;
            now.write_ns = stage == ST_PREP_WRITE ? most : little;
            now.wait_sync_ns = stage == ST_PREP_SYNC ? most : little;
            f = figures_at(&show, &now);
        }
        assert_int_equal(f.bottleneck, stage);
    }
}

static const struct st_prep_figures example = {.phase = "rows",
                                               .task = 1,
                                               .tasks = 4,
                                               .rows = 4249,
                                               .rows_total = 10000,
                                               .bytes_in = 12340000000,
                                               .bytes_out = 5678000,
                                               .failed = 2,
                                               .seconds = 12.5,
                                               .rows_per_s = 1234,
                                               .in_per_s = 120e6,
                                               .out_per_s = 1.5e9,
                                               .left_s = 190,
                                               .bottleneck = ST_PREP_FINISH};
static const struct st_prep_figures unknown = {
    .phase = "opening", .tasks = 1, .rows_total = -1, .left_s = -1, .bottleneck = -1};

static void test_words(void **state)
{
    char line[256], small[24];
    struct st_prep_figures nearly = example;

    (void)state;
    st_prep_live_text(&example, line, sizeof line);
    assert_string_equal(line, "[task 1/4][rows 42%][eta 3m10s][1.23k rows/s][in 12.3GB 120MB/s][out 5.68MB 1.50GB/s]"
                              "[2 bad][bottleneck finish]");
    st_prep_live_text(&unknown, line, sizeof line);
    assert_string_equal(line, "[opening]");
    st_prep_log_text(&example, line, sizeof line);
    assert_string_equal(line, "task 1/4: rows: 42 %, 4249 of 10000 rows, 1.23k rows/s, in 12.3GB at 120MB/s, "
                              "out 5.68MB at 1.50GB/s, 2 bad, bottleneck finish, 3m10s left");
    nearly.rows = 9999;
    nearly.rows_total = 10000;
    st_prep_live_text(&nearly, line, sizeof line);
    assert_non_null(strstr(line, "[rows 99%]"));
    nearly.rows = 10000;
    st_prep_live_text(&nearly, line, sizeof line);
    assert_non_null(strstr(line, "[rows 100%]"));
    memset(small, 'x', sizeof small);
    st_prep_live_text(&example, small, 20);
    assert_int_equal(strlen(small), 19);
    assert_int_equal(small[20], 'x');
    st_prep_log_text(&example, small, 20);
    assert_int_equal(strlen(small), 19);
}

static void test_json(void **state)
{
    json_t *line = st_prep_progress_json(&example);

    (void)state;
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "event")), "progress");
    assert_string_equal(json_string_value(json_object_get(line, "bottleneck")), "finish");
    assert_int_equal(json_integer_value(json_object_get(line, "rows_total")), 10000);
    assert_float_equal(json_number_value(json_object_get(line, "left_s")), 190, 0);
    assert_int_equal(json_object_size(line), 15);
    json_decref(line);
    line = st_prep_progress_json(&unknown);
    assert_true(json_is_null(json_object_get(line, "bottleneck")));
    assert_true(json_is_null(json_object_get(line, "left_s")));
    assert_true(json_is_null(json_object_get(line, "rows_total")));
    json_decref(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates_follow_the_last_seconds),
                                       cmocka_unit_test(test_resumed), cmocka_unit_test(test_bottleneck_of),
                                       cmocka_unit_test(test_words), cmocka_unit_test(test_json)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
