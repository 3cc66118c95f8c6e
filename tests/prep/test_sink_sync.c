/* stki-threads */
/* One thread syncs what was marked while another thread appends and marks. Tests every format that can resume, and
 * HDF5, whose chunks are compressed by other threads. */
#include "output.h"
#include "sink_rows.h"
#include "thread.h"

enum { ROUNDS = 30 };

static stk_error err;

static void make_fields(struct stkt_rows *r, const char *format)
{
    if (!strcmp(format, "tokens")) {
        stkt_add_field(r, "text", STKI_SINK_RAGGED, STK_U16, 1, 0, 0);
        return;
    }
    stkt_add_field(r, "x", STKI_SINK_ARRAY, STK_U8, 1, 20000, 0); /* long enough not to be copied */
    stkt_add_field(r, "label", STKI_SINK_ARRAY, STK_I32, 0, 0, 0);
    stkt_add_field(r, "note", STKI_SINK_BYTES, STK_U8, 1, 0, 0);
}

struct syncing {
    stki_sink *sink;
    stki_mutex lock;
    stki_cond changed;
    int wanted, done; /* numbers of syncs */
    bool stop;
    stk_status status;
};

static void sync_on(void *context)
{
    struct syncing *s = context;
    stk_error error;

    stki_lock(&s->lock);
    while (!s->stop || s->done < s->wanted) {
        if (s->done == s->wanted) {
            (void)stki_wait(&s->changed, &s->lock, INT64_MAX);
            continue;
        }
        s->done++;
        stki_unlock(&s->lock);
        stk_status status = s->sink->ops->sync(s->sink, &error);
        stki_lock(&s->lock);
        s->status = s->status ? s->status : status;
    }
    stki_unlock(&s->lock);
}

static void ask(struct syncing *s, bool stop)
{
    stki_lock(&s->lock);
    s->wanted += !stop;
    s->stop = stop;
    stki_wake_all(&s->changed);
    stki_unlock(&s->lock);
}

static void write_beside(const stki_sink_ops *ops, const stki_sink_opts *opts, const struct stkt_rows *r)
{
    struct syncing s = {0};
    stki_thread *thread = NULL;

    assert_ok(ops->open(opts, NULL, &s.sink, &err));
    stki_mutex_init(&s.lock);
    stki_cond_init(&s.changed);
    if (ops->resumes)
        assert_ok(stki_thread_start(&thread, "syncs", sync_on, &s, &err));
    for (int64_t row = 0; row < r->rows; row++) {
        json_t *mark = NULL;

        assert_ok(ops->append(s.sink, r->values + row * r->field_count, 1, &err));
        if (!ops->resumes)
            continue;
        assert_ok(ops->mark(s.sink, &mark, &err));
        json_decref(mark);
        ask(&s, false);
    }
    if (thread) {
        ask(&s, true);
        assert_true(stki_thread_join(thread, INT64_MAX));
    }
    assert_ok(s.status);
    assert_ok(ops->finish(s.sink, &err));
    ops->destroy(s.sink);
    stki_cond_fini(&s.changed);
    stki_mutex_fini(&s.lock);
}

static void test_sync_during_append(void **state)
{
    struct {
        int64_t a, b;
    } numbers = {4, 3}, pages = {2 << 20, 0};

    (void)state;
    for (int i = 0; stki_sinks[i]; i++) {
        const stki_sink_ops *ops = stki_sinks[i];
        stki_sink_opts opts;
        struct stkt_rows r;

        stkt_rows_init(&r, ROUNDS, 21000);
        make_fields(&r, ops->format);
        stkt_fill_rows(&r);
        stkt_sink_opts(&r, ops, stkt_path("out.x"), stkt_path(""), NULL, &opts);
        opts.threads = 2;
        if (!strcmp(ops->format, "hdf5"))
            opts.options = &numbers;
        else if (!strcmp(ops->format, "beton"))
            opts.options = &pages;
        write_beside(ops, &opts, &r);
        stkt_rows_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sync_during_append)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
