/* page_writer.c: see page_writer.h. There is one buffer more than threads, so that one page is filled while the others
 * are written, and one more still, so that nobody waits for the last byte of another. */
#include "page_writer.h"
#include "allocate.h"
#include "error.h"
#include "thread.h"
#include <string.h>

enum { THREADS_MOST = 256, ALIGNMENT = 4096 };

struct page {
    void *bytes;
    int64_t offset;
    struct page *next;
};

struct stki_page_writer {
    /* fixed after create */
    stki_output *output;
    int64_t page_bytes;
    int page_count, thread_count;
    struct page *pages;
    stki_thread **threads;
    /* guarded by lock */
    stki_mutex lock;
    stki_cond changed;
    struct page *idle, *first, *last; /* first to last: full ones, in order */
    int writing;
    bool stop;
    stk_status failed;
    stk_error error;
};

static void note_failure(stki_page_writer *w, stk_status status, const stk_error *error)
{
    if (w->failed)
        return;
    w->failed = status;
    w->error = *error;
}

/* Takes the first full page and writes it; the lock is held before and after. */
static void write_one(stki_page_writer *w)
{
    struct page *page = w->first;
    stk_error error;
    stk_status status;

    w->first = page->next;
    w->writing++;
    stki_unlock(&w->lock);
    status = stki_output_write_at(w->output, page->offset, page->bytes, w->page_bytes, &error);
    stki_lock(&w->lock);
    if (status)
        note_failure(w, status, &error);
    w->writing--;
    page->next = w->idle;
    w->idle = page;
    stki_wake_all(&w->changed);
}

static void run(void *context)
{
    stki_page_writer *w = context;

    stki_lock(&w->lock);
    for (;;) {
        if (w->first)
            write_one(w);
        else if (w->stop)
            break;
        else
            (void)stki_wait(&w->changed, &w->lock, INT64_MAX);
    }
    stki_unlock(&w->lock);
}

static stk_status start(stki_page_writer *w, int threads, stk_error *err)
{
    stk_status status = STK_OK;

    w->page_count = threads > 1 ? threads + 2 : 1;
    w->pages = stki_zalloc_array(w->page_count, sizeof *w->pages);
    w->threads = stki_zalloc_array(threads, sizeof(stki_thread *));
    if (!w->pages || !w->threads)
        return stki_fail_memory(err, w->page_count * (int64_t)sizeof *w->pages, "pages");
    for (int i = 0; i < w->page_count; i++) {
        w->pages[i].bytes = stki_block_alloc(&stki_heap, w->page_bytes, ALIGNMENT);
        if (!w->pages[i].bytes)
            return stki_fail_memory(err, w->page_bytes, "a page");
        w->pages[i].next = w->idle;
        w->idle = &w->pages[i];
    }
    for (; threads > 1 && w->thread_count < threads && !status; w->thread_count += !status)
        status = stki_thread_start(&w->threads[w->thread_count], "stoker-pages", run, w, err);
    return status;
}

stk_status stki_page_writer_create(stki_output *output, int64_t page_bytes, int threads, stki_page_writer **out,
                                   stk_error *err)
{
    stki_page_writer *w = stki_zalloc(sizeof *w);
    stk_status status;

    if (!w)
        return stki_fail_memory(err, sizeof *w, "pages");
    w->output = output;
    w->page_bytes = page_bytes;
    stki_mutex_init(&w->lock);
    stki_cond_init(&w->changed);
    status = start(w, threads < 1 ? 1 : threads > THREADS_MOST ? THREADS_MOST : threads, err);
    if (status)
        stki_page_writer_destroy(w);
    else
        *out = w;
    return status;
}

static stk_status report(stki_page_writer *w, stk_error *err)
{
    if (w->failed && err)
        *err = w->error;
    return w->failed;
}

stk_status stki_page_take(stki_page_writer *w, void **out, stk_error *err)
{
    stk_status status;

    stki_lock(&w->lock);
    while (!w->idle && !w->failed)
        (void)stki_wait(&w->changed, &w->lock, INT64_MAX);
    status = report(w, err);
    if (!status) {
        *out = w->idle->bytes;
        w->idle = w->idle->next;
    }
    stki_unlock(&w->lock);
    return status;
}

static struct page *page_of(stki_page_writer *w, const void *bytes)
{
    for (int i = 0; i < w->page_count; i++)
        if (w->pages[i].bytes == bytes)
            return &w->pages[i];
    return NULL;
}

stk_status stki_page_put(stki_page_writer *w, void *bytes, int64_t offset, stk_error *err)
{
    struct page *page = page_of(w, bytes);
    stk_status status;

    page->offset = offset;
    page->next = NULL;
    stki_lock(&w->lock);
    if (w->first)
        w->last->next = page;
    else
        w->first = page;
    w->last = page;
    if (w->thread_count == 0)
        write_one(w);
    else
        stki_wake_all(&w->changed);
    status = report(w, err);
    stki_unlock(&w->lock);
    return status;
}

stk_status stki_page_writer_finish(stki_page_writer *w, stk_error *err)
{
    stk_status status;

    stki_lock(&w->lock);
    while ((w->first || w->writing > 0) && !w->failed)
        (void)stki_wait(&w->changed, &w->lock, INT64_MAX);
    status = report(w, err);
    stki_unlock(&w->lock);
    return status;
}

void stki_page_writer_destroy(stki_page_writer *w)
{
    if (!w)
        return;
    stki_lock(&w->lock);
    w->stop = true;
    w->first = NULL;
    stki_wake_all(&w->changed);
    stki_unlock(&w->lock);
    for (int i = 0; i < w->thread_count; i++)
        (void)stki_thread_join(w->threads[i], INT64_MAX);
    for (int i = 0; w->pages && i < w->page_count; i++)
        stki_block_free(&stki_heap, w->pages[i].bytes, w->page_bytes, ALIGNMENT);
    stki_cond_fini(&w->changed);
    stki_mutex_fini(&w->lock);
    stki_free(w->pages);
    stki_free(w->threads);
    stki_free(w);
}
