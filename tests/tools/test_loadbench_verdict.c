/* The verdict names the side that waits and the stage that binds; the live line shows it while it goes on. */
#include "loadbench_live.h"
#include "loadbench_verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Of a run that is long enough to be judged. */
#define LONG .repeats = 1, .batches = 1000, .samples = 64000, .elapsed_s = 1

/* Three stages of which one is slow, as in facebookresearch/spdl#353: whichever it is, it is named. */
static void slow_stage_is_named(void **state)
{
    char text[400];

    (void)state;
    for (int slow = 0; slow < 3; slow++) {
        static const char *const names[] = {"order", "read", "convert"};
        const struct lb_shares shares = {
            LONG,
            .workers = 2,
            .order = slow == 0 ? 0.8 : 0.05,
            .read = slow == 1 ? 0.8 : 0.05,
            .convert = slow == 2 ? 0.8 : 0.05,
            .wait_work = 0.1,
            .wait_next = 0.9,
        };
        assert_string_equal(lb_binding_name(lb_verdict(&shares, text, sizeof text)), names[slow]);
        assert_non_null(strstr(text, names[slow]));
        assert_non_null(strstr(text, "waits for the loader, 90 %"));
        assert_non_null(strstr(text, "80 % of the workers' time"));
    }
}

static void slow_consumer_is_named(void **state)
{
    const struct lb_shares shares = {LONG, .workers = 2, .convert = 0.3, .wait_slot = 0.65, .wait_next = 0.01};
    char text[400];

    (void)state;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_CONSUMER);
    assert_non_null(strstr(text, "65 %"));
    assert_non_null(strstr(text, "1.0 %"));
}

static void memory_is_named_near_its_limit(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .convert = 0.95, .wait_next = 0.97, .limit = 0.93};
    char text[400];

    (void)state;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_MEMORY);
    assert_non_null(strstr(text, "memory is its limit"));
    shares.limit = 0.5;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_CONVERT);
    assert_null(strstr(text, "memory"));
}

static void idle_workers_are_named(void **state)
{
    const struct lb_shares shares = {
        LONG, .workers = 8, .convert = 0.05, .order = 0.02, .wait_work = 0.1, .hand_over = 0.83, .wait_next = 0.9};
    char text[400];

    (void)state;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_HANDOVER);
    assert_non_null(strstr(text, "work only 7 %"));
}

static void inline_work_is_named(void **state)
{
    struct lb_shares shares = {LONG, .workers = 0, .convert = 0.7, .read = 0.2};
    char text[400];

    (void)state;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_CONVERT);
    shares.convert = 0.1;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_CONSUMER);
}

static void what_cannot_be_judged_is_said(void **state)
{
    const struct lb_shares good = {LONG, .workers = 2, .convert = 0.9, .wait_next = 0.9};
    struct lb_shares shares = good;
    char text[400];

    (void)state;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_CONVERT);
    shares.batches = 19;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_UNKNOWN);
    assert_non_null(strstr(text, "Too short to judge: 19 batches"));
    shares.batches = 59; /* of three repeats: 19.7 each */
    shares.repeats = 3;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_UNKNOWN);
    shares.batches = 60;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_CONVERT);
    shares = good;
    shares.elapsed_s = 0.049;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_UNKNOWN);
    assert_non_null(strstr(text, "0.049 s"));
    shares.workers = 0; /* the consumer's own thread is judged no sooner */
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_UNKNOWN);
    shares = good;
    shares.samples = 0;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_UNKNOWN);
    assert_non_null(strstr(text, "no sample"));
    shares = good;
    shares.wait_next = shares.wait_slot = 0.009;
    assert_int_equal(lb_verdict(&shares, text, sizeof text), LB_BINDS_UNKNOWN);
    assert_non_null(strstr(text, "neither"));
    assert_string_equal(lb_binding_name(LB_BINDS_UNKNOWN), "unknown");
}

static void live_line(void **state)
{
    struct lb_live_figures figures = {
        .name = "digits",
        .repeat = 2,
        .repeats = 3,
        .workers = 2,
        .slots = 4,
        .slots_ready = 3,
        .done = 0.41,
        .samples_per_s = 9831,
        .bytes_per_s = 1.46e9,
        .wait_share = 0.003,
        .left_ns = INT64_C(18000000000),
    };
    char line[256];

    (void)state;
    lb_live_text(&figures, line, sizeof line);
    assert_string_equal(
        line, "digits: [run 2/3][W2][ring 3/4][41%][9.83k samples/s][1.46GB/s][consumer waits 0.3%][eta 18s]");
    figures.ramp = true;
    figures.repeats = 1;
    figures.left_ns = -1;
    lb_live_text(&figures, line, sizeof line);
    assert_string_equal(line, "digits: [W2][ring 3/4][ramp][9.83k samples/s][1.46GB/s][consumer waits 0.3%]");
}

static void live_line_fits_any_width(void **state)
{
    const struct lb_live_figures figures = {.name = "digits", .repeats = 3, .done = -1, .left_ns = 5};
    char line[256];

    (void)state;
    for (int width = 1; width < 120; width++) {
        memset(line, '#', sizeof line);
        lb_live_text(&figures, line, width);
        assert_true(strlen(line) < (size_t)width);
        assert_int_equal(line[width], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_stage_is_named),
        cmocka_unit_test(slow_consumer_is_named),
        cmocka_unit_test(memory_is_named_near_its_limit),
        cmocka_unit_test(idle_workers_are_named),
        cmocka_unit_test(inline_work_is_named),
        cmocka_unit_test(what_cannot_be_judged_is_said),
        cmocka_unit_test(live_line),
        cmocka_unit_test(live_line_fits_any_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
