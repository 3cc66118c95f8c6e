/* stki-threads */
/* Tests of threads: starting, joining with a timeout, abandoning, condition variables, forks and the number of
 * processors. */
#include "allocate.h"
#include "cgroup.h"
#include "clock.h"
#include "cmocka_all.h"
#include "counter.h"
#include "faults.h"
#include "thread.h"
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS (STKI_SECOND / 1000)

/* A gate that blocks a thread until the test opens it. */
struct gate {
    stki_mutex lock;
    stki_cond changed;
    bool open, passed;
    char name[16];
    sigset_t blocked;
};

static void gate_init(struct gate *gate)
{
    memset(gate, 0, sizeof *gate);
    stki_mutex_init(&gate->lock);
    stki_cond_init(&gate->changed);
}

static void gate_fini(struct gate *gate)
{
    stki_cond_fini(&gate->changed);
    stki_mutex_fini(&gate->lock);
}

static void gate_open(struct gate *gate)
{
    stki_lock(&gate->lock);
    gate->open = true;
    stki_wake_all(&gate->changed);
    stki_unlock(&gate->lock);
}

static void pass_gate(void *context)
{
    struct gate *gate = context;

    stki_lock(&gate->lock);
    prctl(PR_GET_NAME, gate->name);
    pthread_sigmask(SIG_SETMASK, NULL, &gate->blocked);
    while (!gate->open)
        stki_wait(&gate->changed, &gate->lock, INT64_MAX);
    gate->passed = true;
    stki_wake_all(&gate->changed);
    stki_unlock(&gate->lock);
}

static int64_t blocks(void)
{
    stki_memory_stats stats;

    stki_memory_read(STKI_MEM_HOST, &stats);
    return stats.blocks;
}

static void a_join_times_out_and_can_be_repeated(void **state)
{
    int64_t before = blocks();
    struct gate gate;
    stki_thread *thread;

    (void)state;
    gate_init(&gate);
    assert_int_equal(stki_thread_start(&thread, "a name that is too long", pass_gate, &gate, NULL), STK_OK);
    assert_false(stki_thread_join(thread, stki_deadline_ns(5 * MS)));
    assert_false(stki_thread_join(thread, 0));
    assert_false(stki_thread_join(thread, -5));
    gate_open(&gate);
    assert_true(stki_thread_join(thread, INT64_MAX));
    assert_true(gate.passed);
    assert_string_equal(gate.name, "a name that is ");
    assert_int_equal(blocks(), before);
    gate_fini(&gate);
}

/* If SIGBUS were blocked, a mapped file that gets truncated would end the process before a handler could run. */
static void threads_block_all_signals_but_their_own_faults(void **state)
{
    struct gate gate;
    stki_thread *thread;
    sigset_t mine;

    (void)state;
    gate_init(&gate);
    gate_open(&gate);
    assert_int_equal(stki_thread_start(&thread, "signals", pass_gate, &gate, NULL), STK_OK);
    assert_true(stki_thread_join(thread, INT64_MAX));
    assert_true(sigismember(&gate.blocked, SIGINT) && sigismember(&gate.blocked, SIGTERM));
    assert_true(sigismember(&gate.blocked, SIGUSR1) && sigismember(&gate.blocked, SIGALRM));
    assert_false(sigismember(&gate.blocked, SIGBUS));
    assert_false(sigismember(&gate.blocked, SIGSEGV));
    assert_false(sigismember(&gate.blocked, SIGFPE));
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_false(sigismember(&mine, SIGINT));
    gate_fini(&gate);
}

static void wait_passed(struct gate *gate)
{
    stki_lock(&gate->lock);
    while (!gate->passed)
        assert_true(stki_wait(&gate->changed, &gate->lock, stki_deadline_ns(60 * STKI_SECOND)));
    stki_unlock(&gate->lock);
}

/* The handle frees itself when the thread ends, possibly a moment after its function returned. */
static void wait_for_blocks(int64_t expected)
{
    int64_t deadline = stki_deadline_ns(60 * STKI_SECOND);

    while (blocks() != expected && stki_now_ns() < deadline)
        stki_sleep_ns(MS);
    assert_int_equal(blocks(), expected);
}

static void an_abandoned_thread_ends_by_itself(void **state)
{
    int64_t before = blocks();
    struct gate gate;
    stki_thread *thread;
    int round;

    (void)state;
    for (round = 0; round < 50; round++) {
        gate_init(&gate);
        if (round % 2) /* the thread ends before, while or after it is abandoned */
            gate_open(&gate);
        assert_int_equal(stki_thread_start(&thread, "abandoned", pass_gate, &gate, NULL), STK_OK);
        if (round % 4 == 1)
            wait_passed(&gate);
        stki_thread_abandon(thread);
        gate_open(&gate);
        wait_passed(&gate);
        wait_for_blocks(before);
        gate_fini(&gate);
    }
}

static void starting_can_fail(void **state)
{
    int64_t before = blocks();
    stki_thread *thread = NULL;
    struct gate gate;
    stk_error err;

    (void)state;
    stki_memory_fail_at(1);
    assert_int_equal(stki_thread_start(&thread, "x", pass_gate, &gate, &err), STK_E_MEMORY);
    assert_non_null(strstr(err.message, "out of memory"));
    assert_null(thread);
    assert_int_equal(blocks(), before);
}

static void waits_end_at_their_deadline(void **state)
{
    stki_mutex lock;
    stki_cond cond;
    int64_t start = stki_now_ns(), deadline = stki_deadline_ns(20 * MS);

    (void)state;
    stki_mutex_init(&lock);
    stki_cond_init(&cond);
    stki_lock(&lock);
    while (stki_wait(&cond, &lock, deadline))
        ;
    assert_true(stki_now_ns() >= deadline);
    assert_false(stki_wait(&cond, &lock, 0));
    assert_false(stki_wait(&cond, &lock, -1));
    assert_false(stki_wait(&cond, &lock, INT64_MIN));
    assert_false(stki_wait(&cond, &lock, start));
    stki_unlock(&lock);
    stki_cond_fini(&cond);
    stki_mutex_fini(&lock);
    start = stki_now_ns();
    stki_sleep_ns(3 * MS);
    assert_true(stki_now_ns() - start >= 3 * MS);
    stki_sleep_ns(0);
    stki_sleep_ns(-1);
}

static void deadlines(void **state)
{
    int64_t now = stki_now_ns(), deadline = stki_deadline_ns(STKI_SECOND);

    (void)state;
    assert_true(deadline >= now + STKI_SECOND && deadline <= stki_now_ns() + STKI_SECOND);
    assert_true(stki_deadline_ns(-1) == INT64_MAX);
    assert_true(stki_deadline_ns(INT64_MAX) == INT64_MAX);
    assert_true(stki_deadline_ns(0) <= stki_now_ns());
}

/* Threads that take turns incrementing a counter under one lock. */
struct relay {
    stki_mutex lock;
    stki_cond turn;
    int next, rounds;
    stki_counter entered;
};

struct runner {
    struct relay *relay;
    int number;
};

enum { RUNNERS = 8 };

static void run_relay(void *context)
{
    struct runner *runner = context;
    struct relay *relay = runner->relay;
    int round;

    for (round = 0; round < 100; round++) {
        stki_lock(&relay->lock);
        while (relay->next != runner->number)
            stki_wait(&relay->turn, &relay->lock, stki_deadline_ns(60 * STKI_SECOND));
        relay->next = (relay->next + 1) % RUNNERS;
        relay->rounds++;
        stki_wake_all(&relay->turn);
        stki_unlock(&relay->lock);
        stki_count(&relay->entered, 1);
        stki_count_max(&relay->entered, 1);
    }
}

static void threads_take_turns(void **state)
{
    struct relay relay = {.next = 0};
    struct runner runners[RUNNERS];
    stki_thread *threads[RUNNERS];
    int i;

    (void)state;
    stki_mutex_init(&relay.lock);
    stki_cond_init(&relay.turn);
    for (i = 0; i < RUNNERS; i++) {
        runners[i] = (struct runner){&relay, i};
        assert_int_equal(stki_thread_start(&threads[i], "relay", run_relay, &runners[i], NULL), STK_OK);
    }
    for (i = 0; i < RUNNERS; i++)
        assert_true(stki_thread_join(threads[i], INT64_MAX));
    assert_int_equal(relay.rounds, 100 * RUNNERS);
    assert_int_equal(stki_counted(&relay.entered), 100 * RUNNERS);
    stki_cond_fini(&relay.turn);
    stki_mutex_fini(&relay.lock);
}

static void references(void **state)
{
    stki_counter refs = 1;

    (void)state;
    stki_ref(&refs);
    assert_false(stki_unref(&refs));
    assert_true(stki_unref(&refs));
}

static void forks_are_counted(void **state)
{
    int64_t generation = stki_fork_generation();
    int status = -1;
    pid_t child;

    (void)state;
    child = fork();
    if (child == 0) {
        int64_t mine = stki_fork_generation();
        pid_t grandchild = fork();

        if (grandchild == 0)
            _exit(stki_fork_generation() == generation + 2 ? 0 : 1);
        if (waitpid(grandchild, &status, 0) != grandchild || !WIFEXITED(status) || WEXITSTATUS(status))
            _exit(2);
        _exit(mine == generation + 1 && stki_fork_generation() == mine ? 0 : 3);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(stki_fork_generation(), generation);
}

static void affinity_limits_the_processors(void **state)
{
    cpu_set_t before, one;
    double quota = stki_cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    int count = stki_cpu_count();
    size_t i;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(count, quota > 0 && quota < CPU_COUNT(&before) ? (int)ceil(quota) : CPU_COUNT(&before));
    for (i = 0; !CPU_ISSET(i, &before); i++)
        ;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(stki_cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(stki_cpu_count(), count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_times_out_and_can_be_repeated),
        cmocka_unit_test(threads_block_all_signals_but_their_own_faults),
        cmocka_unit_test(an_abandoned_thread_ends_by_itself),
        cmocka_unit_test(starting_can_fail),
        cmocka_unit_test(waits_end_at_their_deadline),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(threads_take_turns),
        cmocka_unit_test(references),
        cmocka_unit_test(forks_are_counted),
        cmocka_unit_test(affinity_limits_the_processors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
