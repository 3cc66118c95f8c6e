/* profile_scope.c: counts operations. Rows are static, one per call site; a row is added to a list by the first call
 * while profiling or recording is on. Scopes of one thread nest, so each thread keeps its innermost scope, and only the
 * counters are shared. */
#include "profile_scope.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>

_Atomic int stki_watching;

static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER};
static stki_profile_row *rows; /* guarded by lock; rows are never removed */

static _Thread_local stki_profile_scope *innermost;
static _Thread_local int64_t thread_bytes; /* allocated by this thread for storages while profiling or recording */

static void list_row(stki_profile_row *row)
{
    stki_lock(&lock);
    if (!atomic_load_explicit(&row->listed, memory_order_relaxed)) {
        row->next = rows;
        rows = row;
        atomic_store_explicit(&row->listed, true, memory_order_relaxed);
    }
    stki_unlock(&lock);
}

void stki_profile_begin(stki_profile_scope *scope, stki_profile_row *row)
{
    if (!atomic_load_explicit(&row->listed, memory_order_relaxed))
        list_row(row);
    *scope =
        (stki_profile_scope){.row = row, .outer = innermost, .start_ns = stki_now_ns(), .start_bytes = thread_bytes};
    innermost = scope;
}

void stki_profile_end(stki_profile_scope *scope)
{
    int64_t time_ns = stki_now_ns() - scope->start_ns;

    innermost = scope->outer;
    if (scope->outer)
        scope->outer->inner_ns += time_ns;
    if (!(stki_watched() & STKI_WATCH_PROFILE))
        return;
    stki_count(&scope->row->calls, 1);
    stki_count(&scope->row->time_ns, time_ns);
    stki_count(&scope->row->own_ns, time_ns - scope->inner_ns);
    stki_count(&scope->row->bytes, thread_bytes - scope->start_bytes);
}

const char *stki_profile_operation(void)
{
    const stki_profile_scope *scope = innermost;

    if (!scope)
        return "";
    while (scope->outer)
        scope = scope->outer;
    return scope->row->name;
}

void stki_profile_allocated(int64_t bytes)
{
    thread_bytes += bytes;
}

/* ---- the public side ---- */

void stk_profile_start(void)
{
    atomic_fetch_or_explicit(&stki_watching, STKI_WATCH_PROFILE, memory_order_relaxed);
}

void stk_profile_stop(void)
{
    atomic_fetch_and_explicit(&stki_watching, ~STKI_WATCH_PROFILE, memory_order_relaxed);
}

void stk_profile_reset(void)
{
    stki_lock(&lock);
    for (stki_profile_row *row = rows; row; row = row->next) {
        stki_count_set(&row->calls, 0);
        stki_count_set(&row->time_ns, 0);
        stki_count_set(&row->own_ns, 0);
        stki_count_set(&row->bytes, 0);
    }
    stki_unlock(&lock);
}

static int by_name(const stk_profile_row *a, const stk_profile_row *b)
{
    return strcmp(a->name, b->name);
}

static int more_first(int64_t a, int64_t b, const stk_profile_row *left, const stk_profile_row *right)
{
    return a != b ? (a < b) - (a > b) : by_name(left, right);
}

static int compare_time(const void *a, const void *b)
{
    const stk_profile_row *left = a, *right = b;
    return more_first(left->own_ns, right->own_ns, left, right);
}

static int compare_calls(const void *a, const void *b)
{
    const stk_profile_row *left = a, *right = b;
    return more_first(left->calls, right->calls, left, right);
}

static int compare_bytes(const void *a, const void *b)
{
    const stk_profile_row *left = a, *right = b;
    return more_first(left->allocated_bytes, right->allocated_bytes, left, right);
}

static int compare_names(const void *a, const void *b)
{
    return by_name(a, b);
}

/* Call sites with the same name share one row of the result. */
static int add_row(stk_profile_row *out, int count, int max, const stki_profile_row *row)
{
    stk_profile_row *at = out;

    while (at < out + count && strcmp(at->name, row->name) != 0)
        at++;
    if (at == out + count) {
        if (count == max)
            return count;
        *at = (stk_profile_row){.name = row->name};
        count++;
    }
    at->calls += stki_counted(&row->calls);
    at->time_ns += stki_counted(&row->time_ns);
    at->own_ns += stki_counted(&row->own_ns);
    at->allocated_bytes += stki_counted(&row->bytes);
    return count;
}

int stk_profile_read(stk_profile_order order, stk_profile_row *out, int max)
{
    static int (*const compare[])(const void *, const void *) = {compare_time, compare_calls, compare_bytes,
                                                                 compare_names};
    enum { MOST = 512 };
    stk_profile_row all[MOST];
    int count = 0;

    stki_lock(&lock);
    for (const stki_profile_row *row = rows; row; row = row->next)
        if (stki_counted(&row->calls) > 0)
            count = add_row(all, count, MOST, row);
    stki_unlock(&lock);
    qsort(all, (size_t)count, sizeof all[0], compare[(int)order >= 0 && (int)order < 4 ? (int)order : 0]);
    for (int i = 0; i < count && i < max; i++)
        out[i] = all[i];
    return count;
}
