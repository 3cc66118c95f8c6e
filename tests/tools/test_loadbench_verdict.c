/* Tests of the verdict, which names the side that waits and the stage that is the bottleneck, and of the progress line,
 * which shows it during the run. */
#include "loadbench_foresee.h"
#include "loadbench_live.h"
#include "loadbench_others.h"
#include "loadbench_shares.h"
#include "loadbench_verdict.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A run that is long enough for a verdict. */
#define LONG .repeats = 1, .batches = 1000, .samples = 64000, .elapsed_s = 1

static const struct lb_verdict *judge(const struct lb_shares *shares)
{
    static struct lb_verdict verdict;

    lb_verdict(shares, &verdict);
    return &verdict;
}

/* Two workers and a consumer that helps on two processors: one worker is always parked, two threads convert. */
static void a_parked_worker_does_not_wait(void **state)
{
    const int64_t s = 1000000000;
    const struct lb_run run = {
        .elapsed_ns = s,
        .batches = 1000,
        .samples = 64000,
        .stats = {.workers = 2, .slots = 4, .convert_ns = 2 * s, .helped_ns = s, .wait_slot_ns = s, .wait_next_ns = s}};
    const struct lb_shares shares = lb_shares_of(&run, 1, false, 0);

    (void)state;
    assert_true(fabs(shares.convert - 1) < 1e-9);
    assert_true(fabs(shares.wait_slot) < 1e-9);
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONVERT);
}

/* One stage is slow, as in facebookresearch/spdl#353, and must be named. */
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
        assert_string_equal(lb_bottleneck_words[verdict->bottleneck], names[slow]);
        assert_int_equal(verdict->confidence, LB_CONFIDENCE_HIGH);
        assert_non_null(strstr(verdict->text, names[slow]));
        assert_non_null(strstr(verdict->text, "The consumer waits 90 %"));
        assert_non_null(strstr(verdict->text, "spend 70 % of theirs"));
    }
}

/* The same when the caller's thread is the only one. */
static void slow_stage_is_named_inline(void **state)
{
    struct lb_shares shares = {LONG, .convert = 0.7, .storage = 0.2};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONVERT);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    shares.convert = 0.1;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONSUMER); /* the consumer's own work takes 0.7 */
    shares.decode = 0.6;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_DECODE);
    assert_non_null(strstr(judge(&shares)->text, " 60 % "));
    /* rounded stages can add up to more than the whole time: the consumer's own work is then 0 */
    shares.convert = 0.5;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_DECODE);
}

static void slow_consumer_is_named(void **state)
{
    const struct lb_shares shares = {LONG, .workers = 2, .convert = 0.3, .wait_slot = 0.65, .wait_next = 0.01};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONSUMER);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    assert_non_null(strstr(judge(&shares)->text, "65 %"));
    assert_non_null(strstr(judge(&shares)->text, "1.0 %"));
}

/* A consumer that does no work of its own is not the bottleneck. Its thread is busy taking and releasing batches. */
static void taking_is_not_the_consumers_work(void **state)
{
    struct lb_shares shares = {LONG, .workers = 64, .convert = 0.01, .wait_slot = 0.98, .wait_next = 0.2, .take = 0.7};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    assert_non_null(strstr(judge(&shares)->text, "takes 70 % of the consumer's time, and its own work 10 %"));
    shares.take = 0.41;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_LOW);
    shares.take = 0.35;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONSUMER);
    shares.take = 0.2, shares.wait_next = 0.6, shares.convert = 0.9; /* unless the workers are busy */
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONVERT);
}

/* Workers and consumer wait for the thread between them. */
static void slow_copy_is_named(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .convert = 0.3, .wait_slot = 0.65, .copy = 0.95, .wait_next = 0.8};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_COPY);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    assert_non_null(strstr(judge(&shares)->text, "runs 95 % of the time, while the workers wait 65 %"));
    assert_non_null(strstr(judge(&shares)->text, "the consumer waits 80 %"));
    shares.copy = 0.75, shares.wait_next = 0.25; /* as busy as the consumer, which comes last */
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_COPY);
    shares.wait_next = 0.8;
    shares.copy = 0.2; /* not the copy: no thread is busy */
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
    assert_non_null(strstr(judge(&shares)->text, "the workers wait 65 % of their time for a free one"));
    assert_non_null(strstr(judge(&shares)->text, "still waits 80 %"));
}

/* A side that works for at least three quarters of the time is the bottleneck. If there is none, the bottleneck is
 * between them. */
static void busy_is_three_quarters(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .storage = 0.76, .wait_work = 0.24, .wait_next = 0.9};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_STORAGE);
    shares.storage = 0.74, shares.wait_work = 0.26;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
    shares = (struct lb_shares){LONG, .workers = 2, .convert = 0.3, .wait_slot = 0.65, .copy = 0.76, .wait_next = 0.8};
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_COPY);
    shares.copy = 0.74;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
    shares = (struct lb_shares){LONG, .workers = 2, .convert = 0.3, .wait_slot = 0.65, .wait_next = 0.24};
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONSUMER);
    shares.wait_next = 0.26;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
}

/* With one slot, worker and consumer alternate, and each waits half of the time for the other. */
static void too_few_slots_are_named(void **state)
{
    struct lb_shares shares = {LONG, .workers = 1, .slots = 1, .storage = 0.5, .wait_slot = 0.5, .wait_next = 0.5};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
    assert_non_null(strstr(judge(&shares)->text, "1 slot is too few"));
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_MEDIUM); /* a part works for half of the time */
    shares.storage = 0.9; /* they also alternate here, but more slots would gain only a tenth */
    shares.wait_slot = 0.1;
    shares.wait_next = 0.9;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_STORAGE);
}

static void memory_is_named_near_its_limit(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .convert = 0.95, .wait_next = 0.97, .limit = 0.93};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_MEMORY);
    assert_non_null(strstr(judge(&shares)->text, "limit of the machine's memory"));
    shares.limit = 0.5;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONVERT);
    assert_null(strstr(judge(&shares)->text, "memory"));
    shares = (struct lb_shares){LONG, .workers = 2, .storage = 0.95, .wait_next = 0.97, .limit = 0.93};
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_STORAGE); /* files are not read at the speed of memory */
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
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
    assert_non_null(strstr(judge(&shares)->text, "Handing over batches"));
    assert_non_null(strstr(judge(&shares)->text, "the consumer waits 90 % of its time, and the workers work only 7 %"));
}

/* Claiming slots and waking threads is also work. The workers are busy with it, and it can be the bottleneck. */
static void handing_over_is_one_of_the_stages(void **state)
{
    struct lb_shares shares = {LONG, .workers = 1, .inflate = 0.6, .hand_over = 0.39, .wait_next = 0.99};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_INFLATE);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    shares.inflate = 0.52, shares.hand_over = 0.47;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_INFLATE);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_LOW);
    shares.inflate = 0.4, shares.hand_over = 0.59;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
}

/* The closer the second slowest stage is, the lower the confidence. */
static void confidence_falls_as_the_second_comes_near(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .storage = 0.55, .convert = 0.35, .wait_next = 0.9};

    (void)state;
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    shares.storage = 0.50, shares.convert = 0.40;
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_MEDIUM);
    shares.storage = 0.3, shares.convert = 0.19, shares.decode = 0.18, shares.order = 0.1; /* 11 points apart */
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_STORAGE);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_MEDIUM);
    shares.decode = shares.order = 0;
    shares.storage = 0.46, shares.convert = 0.44;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_STORAGE);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_LOW);
    shares.storage = 0.85, shares.convert = 0.05, shares.wait_next = 0.3; /* the consumer is almost as busy */
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

static void runs_that_cannot_be_judged_are_reported(void **state)
{
    const struct lb_shares good = {LONG, .workers = 2, .convert = 0.9, .wait_next = 0.9};
    struct lb_shares shares = good;

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONVERT);
    shares.batches = 19;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_UNKNOWN);
    assert_non_null(strstr(judge(&shares)->text, "Too short to judge: 19 batches"));
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_LOW);
    shares.batches = 59; /* over three repeats, 19.7 each */
    shares.repeats = 3;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_UNKNOWN);
    shares.batches = 60;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONVERT);
    shares = good;
    shares.elapsed_s = 0.049;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_UNKNOWN);
    assert_non_null(strstr(judge(&shares)->text, "0.049 s"));
    shares.workers = 0; /* the consumer's own thread is judged by the same rule */
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_UNKNOWN);
    shares = good;
    shares.samples = 0;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_UNKNOWN);
    assert_non_null(strstr(judge(&shares)->text, "no sample"));
    shares = good;
    shares.wait_next = shares.wait_slot = 0.009;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_UNKNOWN);
    assert_non_null(strstr(judge(&shares)->text, "neither"));
    assert_string_equal(lb_bottleneck_words[LB_BOTTLENECK_UNKNOWN], "unknown");
}

static void a_quota_is_named(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .convert = 0.9, .wait_next = 0.9, .throttled = 0.05};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONVERT);
    shares.throttled = 0.34;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_PROCESSORS);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_HIGH);
    assert_non_null(strstr(judge(&shares)->text, "34 %"));
    shares.throttled = 0.29;
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_MEDIUM);
    shares.throttled = 0.1;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_PROCESSORS);
    shares.throttled = 0.099;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_CONVERT);
    assert_string_equal(lb_bottleneck_words[LB_BOTTLENECK_PROCESSORS], "processors");
}

/* ---- the verdict and the predictions must agree ---- */

/* The clocks of a pipeline with one tile per batch. A worker needs work_s per batch, the consumer needs consumer_s, and
 * a batch is delivered every batch_s. Idle workers wait for slots for a share `for_slot` of their idle time; the rest
 * is handing over. */
static struct lb_shares clocks_of(int workers, int slots, double work_s, double consumer_s, double batch_s,
                                  double for_slot)
{
    const double busy = work_s / workers / batch_s;

    return (struct lb_shares){
        .repeats = 1,
        .workers = workers,
        .slots = slots,
        .batches = 1000,
        .tiles = 1000,
        .samples = 64000,
        .elapsed_s = 1000 * batch_s,
        .worker_s = 1000 * batch_s * workers,
        .storage = busy,
        .wait_slot = for_slot * (1 - busy),
        .hand_over = (1 - for_slot) * (1 - busy),
        .wait_next = fmax(0, 1 - consumer_s / batch_s),
    };
}

static void check_one_judgement(const struct lb_shares *shares, int *slots_named)
{
    const struct lb_verdict *verdict = judge(shares);
    const double deeper = lb_foresee_deeper(shares);
    const bool too_few = strstr(verdict->text, "too few") != NULL,
               promised = strstr(verdict->text, "loader.prefetch=") != NULL;
    char gain[64];

    if (verdict->bottleneck == LB_BOTTLENECK_UNKNOWN)
        return;
    *slots_named += too_few;
    assert_true(deeper > 0);
    assert_null(
        strstr(verdict->text, "a larger loader.prefetch may help")); /* no vague advice if the gain is predicted */
    assert_int_equal(promised, deeper >= 1.05);
    if (too_few) {
        assert_int_equal(verdict->bottleneck, LB_BOTTLENECK_RING);
        assert_false(verdict->by_handing_over);
        assert_true(promised);
    }
    if (deeper >= 1.15)
        assert_true(too_few);
    if (promised) {
        snprintf(gain, sizeof gain, "loader.prefetch=%d is predicted to give %.0f %% more", (int)(2 * shares->slots),
                 100 * (deeper - 1));
        assert_non_null(strstr(verdict->text, gain));
    }
}

static void verdict_and_prediction_agree_about_slots(void **state)
{
    static const double slower[] = {1, 1.02, 1.3, 3};
    int slots_named = 0;

    (void)state;
    for (int workers = 1; workers <= 8; workers *= 2)
        for (int slots = 1; slots <= 8; slots++)
            for (int consumer = 0; consumer <= 20; consumer++)
                for (size_t k = 0; k < 4; k++)
                    for (int part = 0; part <= 2; part++) {
                        const struct lb_model model = {.workers = workers,
                                                       .slots = slots,
                                                       .tiles = 1,
                                                       .work_s = 0.01,
                                                       .consumer_s = 0.001 * consumer};
                        const struct lb_shares shares = clocks_of(workers, slots, 0.01, model.consumer_s,
                                                                  slower[k] * lb_model_batch_s(&model), part / 2.0);
                        check_one_judgement(&shares, &slots_named);
                    }
    assert_true(slots_named > 100);
}

/* Two slots for batches of 10 ms and four workers: two workers have nothing to fill. */
static void more_slots_by_hand(void **state)
{
    struct lb_shares shares = clocks_of(4, 2, 0.01, 0, 0.005, 1);

    (void)state;
    assert_float_equal(lb_foresee_deeper(&shares), 2, 0.01);
    assert_non_null(strstr(judge(&shares)->text, "2 slots are too few"));
    assert_non_null(strstr(judge(&shares)->text, "loader.prefetch=4 is predicted to give 100 % more"));
    /* both sides work for 10 ms, alternately, because there is no second slot */
    shares = clocks_of(1, 1, 0.01, 0.01, 0.02, 1);
    assert_float_equal(lb_foresee_deeper(&shares), 2, 0.01);
    assert_non_null(strstr(judge(&shares)->text, "1 slot is too few"));
    /* fluctuations: 12.5 ms instead of 10 ms; with twice as many slots, half of the loss remains */
    shares = clocks_of(1, 2, 0.01, 0.01, 0.0125, 1);
    assert_float_equal(lb_foresee_deeper(&shares), 1.111F, 0.01);
    /* a batch takes a thousand times as long as the work, and the workers wait for slots: more slots would not help */
    shares = clocks_of(2, 4, 0.0001, 0.0001, 0.1, 1);
    assert_true(lb_foresee_deeper(&shares) < 1.01);
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_RING);
    assert_true(judge(&shares)->by_handing_over);
    assert_int_equal(judge(&shares)->confidence, LB_CONFIDENCE_MEDIUM);
    assert_non_null(strstr(judge(&shares)->text, "more slots are predicted to gain nothing"));
}

/* Handing over takes 9 of 10 ms, which disappear without workers. */
static void without_workers_nothing_is_handed_over(void **state)
{
    struct lb_shares shares = clocks_of(1, 4, 0.001, 0.0005, 0.01, 0);

    (void)state;
    assert_float_equal(lb_foresee_inline(&shares), 6.667F, 0.01);
    assert_non_null(
        strstr(judge(&shares)->text, "loader.num_workers=0 is predicted to give 6.67 times as many samples/s"));
    shares.cores = 0.3; /* other processes use the rest */
    assert_float_equal(lb_foresee_inline(&shares), 2, 0.01);
    shares.cores = 0.24;
    assert_float_equal(lb_foresee_inline(&shares), 1.6, 0.001F);
    assert_non_null(strstr(judge(&shares)->text, "loader.num_workers=0 is predicted to give 60 % more samples/s"));
    shares.device_slots = 2;
    assert_float_equal(lb_foresee_inline(&shares), 0, 0);
}

/* A third worker has no processor if other processes use it. */
static void others_leave_no_processor(void **state)
{
    struct lb_shares shares = clocks_of(2, 8, 0.01, 0, 0.005, 0);
    struct lb_model changed;

    (void)state;
    shares.cpu_s = 1000 * 0.01;
    shares.cores = 4;
    changed = lb_foresee_model(&shares);
    changed.workers = 3;
    assert_float_equal(lb_foresee(&shares, &changed), 1.5, 0.01);
    shares.cores = 2;
    changed.cores = 2;
    assert_float_equal(lb_foresee(&shares, &changed), 1, 0.01);
    shares.tiles = 0; /* the number of tiles is unknown */
    assert_float_equal(lb_foresee(&shares, &changed), 0, 0);
    assert_float_equal(lb_foresee_deeper(&shares), 0, 0);
}

/* Three workers would permit 1.5 times the rate, and more slots twice the rate, but memory and disk do not. */
static void limits_bound_predictions(void **state)
{
    struct lb_shares shares = clocks_of(2, 8, 0.01, 0, 0.005, 0);
    struct lb_model changed = lb_foresee_model(&shares);

    (void)state;
    changed.workers = 3;
    assert_float_equal(lb_foresee(&shares, &changed), 1.5, 0.01);
    shares.disk = 0.8;
    assert_float_equal(lb_foresee(&shares, &changed), 1.25, 0.01);
    shares.limit = 0.9;
    assert_float_equal(lb_foresee(&shares, &changed), 1.111F, 0.01);
    shares.disk = 1.3; /* measured while another process used the disk: more than 100 % must not predict a slowdown */
    assert_float_equal(lb_foresee(&shares, &changed), 1, 0.01);
    shares = clocks_of(4, 2, 0.01, 0, 0.005, 1);
    assert_float_equal(lb_foresee_deeper(&shares), 2, 0.01);
    shares.disk = 1;
    assert_float_equal(lb_foresee_deeper(&shares), 1, 0.01);
    /* faster than the available CPU time permits, according to the clocks of other processes: more slots must not
     * be predicted to cost anything */
    shares = clocks_of(2, 4, 0.01, 0, 0.005, 0);
    shares.cpu_s = 1000 * 0.01, shares.cores = 1;
    assert_float_equal(lb_foresee_deeper(&shares), 1, 0.01);
}

static void a_loud_machine_lowers_confidence(void **state)
{
    const struct lb_shares storage = {LONG, .workers = 2, .storage = 0.9, .wait_next = 0.9};
    struct lb_quiet quiet = {.known = true, .repeats = 3, .processors = 2, .used = 0.1, .most = 0.15};
    struct lb_verdict verdict;

    (void)state;
    lb_verdict(&storage, &verdict);
    lb_verdict_quiet(&quiet, &verdict);
    assert_int_equal(verdict.confidence, LB_CONFIDENCE_HIGH);
    assert_string_equal(verdict.doubt, "");
    quiet.loud = 1, quiet.most = 0.2;
    lb_verdict_quiet(&quiet, &verdict);
    assert_int_equal(verdict.confidence, LB_CONFIDENCE_MEDIUM);
    assert_string_equal(verdict.doubt, "other programs used 0.10 of 2 processors");
    lb_verdict(&storage, &verdict);
    quiet.loud = 3, quiet.used = 1.3, quiet.most = 1.4;
    lb_verdict_quiet(&quiet, &verdict);
    assert_int_equal(verdict.confidence, LB_CONFIDENCE_LOW);
    quiet.processors = 1, quiet.used = 0.5;
    lb_verdict(&storage, &verdict);
    lb_verdict_quiet(&quiet, &verdict);
    assert_string_equal(verdict.doubt, "other programs used 0.50 of 1 processor");
    lb_verdict(&(struct lb_shares){0}, &verdict); /* nothing that could be doubted */
    lb_verdict_quiet(&quiet, &verdict);
    assert_int_equal(verdict.bottleneck, LB_BOTTLENECK_UNKNOWN);
    assert_string_equal(verdict.doubt, "");
}

static void unpacking_again_is_named(void **state)
{
    struct lb_shares shares = {LONG, .workers = 2, .inflate = 0.9, .wait_next = 0.99, .unpacked = 57.3, .random = true};

    (void)state;
    assert_int_equal(judge(&shares)->bottleneck, LB_BOTTLENECK_INFLATE);
    assert_non_null(strstr(judge(&shares)->text, "Each chunk is decompressed 57.3 times on average"));
    assert_non_null(
        strstr(judge(&shares)->text, "With order: block or a larger loader.cache_bytes, it is decompressed once."));
    shares.random = false;
    assert_null(strstr(judge(&shares)->text, "order: block"));
    assert_non_null(strstr(judge(&shares)->text, "With a larger loader.cache_bytes"));
    shares.workers = 0;
    assert_non_null(strstr(judge(&shares)->text, "57.3 times"));
    shares.unpacked = 1.1;
    assert_null(strstr(judge(&shares)->text, "times"));
    shares.unpacked = 57, shares.inflate = 0, shares.storage = 0.9;
    assert_null(strstr(judge(&shares)->text, "times"));
}

/* 20 ms of decompression per batch, 40 times more than necessary, and 5 ms of converting: 25 ms become 5.5 ms. */
static void unpacking_once_by_hand(void **state)
{
    struct lb_shares shares = clocks_of(1, 4, 0.005, 0, 0.025, 0);

    (void)state;
    shares.convert = shares.storage, shares.storage = 0;
    shares.inflate = 0.8, shares.hand_over = 0;
    assert_float_equal(lb_foresee_unpacked_once(&shares), 0, 0);
    shares.unpacked = 40;
    assert_float_equal(lb_foresee_unpacked_once(&shares), 4.545F, 0.01);
    shares.disk = 0.5; /* data that is decompressed once is also read only once: a fortieth */
    assert_float_equal(lb_foresee_unpacked_once(&shares), 4.545F, 0.01);
    shares.limit = 0.5; /* the memory limit permits twice the rate */
    assert_float_equal(lb_foresee_unpacked_once(&shares), 2, 0.01);
    shares.tiles = 0;
    assert_float_equal(lb_foresee_unpacked_once(&shares), 0, 0);
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
        cmocka_unit_test(a_parked_worker_does_not_wait),
        cmocka_unit_test(slow_stage_is_named),
        cmocka_unit_test(slow_stage_is_named_inline),
        cmocka_unit_test(slow_consumer_is_named),
        cmocka_unit_test(taking_is_not_the_consumers_work),
        cmocka_unit_test(slow_copy_is_named),
        cmocka_unit_test(busy_is_three_quarters),
        cmocka_unit_test(too_few_slots_are_named),
        cmocka_unit_test(memory_is_named_near_its_limit),
        cmocka_unit_test(pages_of_mapped_files_are_named),
        cmocka_unit_test(idle_workers_are_named),
        cmocka_unit_test(handing_over_is_one_of_the_stages),
        cmocka_unit_test(confidence_falls_as_the_second_comes_near),
        cmocka_unit_test(repeats_that_disagree_lower_it),
        cmocka_unit_test(runs_that_cannot_be_judged_are_reported),
        cmocka_unit_test(a_quota_is_named),
        cmocka_unit_test(verdict_and_prediction_agree_about_slots),
        cmocka_unit_test(more_slots_by_hand),
        cmocka_unit_test(without_workers_nothing_is_handed_over),
        cmocka_unit_test(others_leave_no_processor),
        cmocka_unit_test(limits_bound_predictions),
        cmocka_unit_test(a_loud_machine_lowers_confidence),
        cmocka_unit_test(unpacking_again_is_named),
        cmocka_unit_test(unpacking_once_by_hand),
        cmocka_unit_test(live_line),
        cmocka_unit_test(live_line_fits_any_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
