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

static const struct lb_verdict *judge(const struct lb_shares *shares)
{
    static struct lb_verdict verdict;

    lb_verdict(shares, &verdict);
    return &verdict;
}

/* Stages of which one is slow, as in facebookresearch/spdl#353: whichever it is, it is named. */
static void slow_stage_is_named(void **state)
{
    static const char *const names[] = {"order", "storage", "decode", "inflate", "call", "convert"};

    (void)state;
    for (int slow = 0; slow < 6; slow++) {
        const struct lb_shares shares = {
            LONG,
            .workers = 2,
            .order = slow == 0 ? 0.7 : 0.04,
            .storage = slow == 1 ? 0.7 : 0.04,
            .decode = slow == 2 ? 0.7 : 0.04,
            .inflate = slow == 3 ? 0.7 : 0.04,
            .call = slow == 4 ? 0.7 : 0.04,
            .convert = slow == 5 ? 0.7 : 0.04,
            .wait_work = 0.1,
            .wait_next = 0.9,
        };
        const struct lb_verdict *verdict = judge(&shares);
        assert_string_equal(lb_binding_name(verdict->binds), names[slow]);
        assert_int_equal(verdict->confidence, LB_CONFIDENCE_HIGH);
        assert_non_null(strstr(verdict->text, names[slow] + 1)); /* it begins with a capital letter */
        assert_non_null(strstr(verdict->text, "the consumer waits 90 %"));
        assert_non_null(strstr(verdict->text, "spend 70 % of theirs"));
    }
}

/* The same with the caller's own thread as the only one. */
static void slow_stage_is_named_inline(void **state)
{
    struct lb_shares shares = {LONG, .convert = 0.7, .storage = 0.2};

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_CONVERT);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    shares.convert = 0.1;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_CONSUMER); /* 0.7 are its own */
    shares.decode = 0.6;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_DECODE);
}

static void slow_consumer_is_named(void **state)
{
    const struct lb_shares shares = {LONG, .workers = 2, .convert = 0.3, .wait_slot = 0.65, .wait_next = 0.01};

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_CONSUMER);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    assert_non_null(strstr(judge(&shares)->text, "65 %"));
    assert_non_null(strstr(judge(&shares)->text, "1.0 %"));
}

/* A consumer that does nothing itself does not bind: what keeps its thread busy is taking and giving back. */
static void taking_is_not_the_consumers_work(void **state)
{
    struct lb_shares shares = {LONG, .workers = 64, .convert = 0.01, .wait_slot = 0.98, .wait_next = 0.2, .take = 0.7};

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_RING);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    assert_non_null(strstr(judge(&shares)->text, "consumer's thread 70 % of its time, its own work 10 %"));
    shares.take = 0.41;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_RING);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_LOW);
    shares.take = 0.35;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_CONSUMER);
    shares.take = 0.2, shares.wait_next = 0.6, shares.convert = 0.9; /* nobody asks that while the workers are busy */
    assert_int_equal(judge(&shares)->binds, LB_BINDS_CONVERT);
}

/* Workers and consumer wait, for the thread between them. */
static void slow_copy_is_named(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .convert = 0.3, .wait_slot = 0.65, .copy = 0.95, .wait_next = 0.8};

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_COPY);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    shares.copy = 0.2; /* not the copy: nobody is busy */
    assert_int_equal(judge(&shares)->binds, LB_BINDS_RING);
}

/* One slot: worker and consumer take turns, and each waits half of the time for the other. */
static void too_few_slots_are_named(void **state)
{
    struct lb_shares shares = {LONG, .workers = 1, .slots = 1, .storage = 0.5, .wait_slot = 0.5, .wait_next = 0.5};

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_RING);
    assert_non_null(strstr(judge(&shares)->text, "its 1 slots are too few"));
    shares.storage = 0.9; /* taking turns as well, but more slots would give a tenth */
    shares.wait_slot = 0.1;
    shares.wait_next = 0.9;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_STORAGE);
}

static void memory_is_named_near_its_limit(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .convert = 0.95, .wait_next = 0.97, .limit = 0.93};

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_MEMORY);
    assert_non_null(strstr(judge(&shares)->text, "limit of the machine's memory"));
    shares.limit = 0.5;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_CONVERT);
    assert_null(strstr(judge(&shares)->text, "memory"));
    shares = (struct lb_shares){LONG, .workers = 2, .storage = 0.95, .wait_next = 0.97, .limit = 0.93};
    assert_int_equal(judge(&shares)->binds, LB_BINDS_STORAGE); /* files are not read at the speed of memory */
}

static void pages_of_mapped_files_are_named(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .storage = 0.95, .page = 0.9, .wait_next = 0.97};

    (void)state;
    assert_non_null(strstr(judge(&shares)->text, "pages of mapped files"));
    shares.page = 0.1;
    assert_null(strstr(judge(&shares)->text, "pages"));
}

static void idle_workers_are_named(void **state)
{
    const struct lb_shares shares = {
        LONG, .workers = 8, .convert = 0.05, .order = 0.02, .wait_work = 0.1, .hand_over = 0.83, .wait_next = 0.9};

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_RING);
    assert_non_null(strstr(judge(&shares)->text, "handing batches over"));
    assert_non_null(strstr(judge(&shares)->text, "work only 7 %"));
}

/* Claiming and waking is work too: the workers are busy with it, and the stage behind which it stands is named. */
static void handing_over_is_one_of_the_stages(void **state)
{
    struct lb_shares shares = {LONG, .workers = 1, .inflate = 0.6, .hand_over = 0.39, .wait_next = 0.99};

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_INFLATE);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    shares.inflate = 0.52, shares.hand_over = 0.47;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_INFLATE);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_LOW);
    shares.inflate = 0.4, shares.hand_over = 0.59;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_RING);
}

/* The nearer the second comes, the less is claimed. */
static void confidence_falls_as_the_second_comes_near(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .storage = 0.55, .convert = 0.35, .wait_next = 0.9};

    (void)state;
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    shares.storage = 0.50, shares.convert = 0.40;
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_MEDIUM);
    shares.storage = 0.46, shares.convert = 0.44;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_STORAGE);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_LOW);
    shares.storage = 0.85, shares.convert = 0.05, shares.wait_next = 0.3; /* the consumer is nearly as busy */
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_MEDIUM);
}

static void repeats_that_disagree_lower_it(void **state)
{
    const struct lb_shares storage = {LONG, .workers = 2, .storage = 0.9, .wait_next = 0.9};
    const struct lb_shares decode = {LONG, .workers = 2, .decode = 0.9, .wait_next = 0.9};
    const struct lb_shares all[] = {storage, storage, storage}, one[] = {storage, storage, decode},
                           most[] = {storage, decode, decode};
    struct lb_verdict verdict;

    (void)state;
    lb_verdict(&storage, &verdict);
    lb_verdict_agree(all, 3, &verdict);
    assert_int_equal(verdict.confidence, LB_CONFIDENCE_HIGH);
    lb_verdict_agree(one, 3, &verdict);
    assert_int_equal(verdict.confidence, LB_CONFIDENCE_MEDIUM);
    lb_verdict_agree(most, 3, &verdict);
    assert_int_equal(verdict.confidence, LB_CONFIDENCE_LOW);
}

static void what_cannot_be_judged_is_said(void **state)
{
    const struct lb_shares good = {LONG, .workers = 2, .convert = 0.9, .wait_next = 0.9};
    struct lb_shares shares = good;

    (void)state;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_CONVERT);
    shares.batches = 19;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_UNKNOWN);
    assert_non_null(strstr(judge(&shares)->text, "Too short to judge: 19 batches"));
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_LOW);
    shares.batches = 59; /* of three repeats: 19.7 each */
    shares.repeats = 3;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_UNKNOWN);
    shares.batches = 60;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_CONVERT);
    shares = good;
    shares.elapsed_s = 0.049;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_UNKNOWN);
    assert_non_null(strstr(judge(&shares)->text, "0.049 s"));
    shares.workers = 0; /* the consumer's own thread is judged no sooner */
    assert_int_equal(judge(&shares)->binds, LB_BINDS_UNKNOWN);
    shares = good;
    shares.samples = 0;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_UNKNOWN);
    assert_non_null(strstr(judge(&shares)->text, "no sample"));
    shares = good;
    shares.wait_next = shares.wait_slot = 0.009;
    assert_int_equal(judge(&shares)->binds, LB_BINDS_UNKNOWN);
    assert_non_null(strstr(judge(&shares)->text, "neither"));
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
        cmocka_unit_test(slow_stage_is_named_inline),
        cmocka_unit_test(slow_consumer_is_named),
        cmocka_unit_test(taking_is_not_the_consumers_work),
        cmocka_unit_test(slow_copy_is_named),
        cmocka_unit_test(too_few_slots_are_named),
        cmocka_unit_test(memory_is_named_near_its_limit),
        cmocka_unit_test(pages_of_mapped_files_are_named),
        cmocka_unit_test(idle_workers_are_named),
        cmocka_unit_test(handing_over_is_one_of_the_stages),
        cmocka_unit_test(confidence_falls_as_the_second_comes_near),
        cmocka_unit_test(repeats_that_disagree_lower_it),
        cmocka_unit_test(what_cannot_be_judged_is_said),
        cmocka_unit_test(live_line),
        cmocka_unit_test(live_line_fits_any_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
