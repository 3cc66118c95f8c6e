/* page_writer.c: see page_writer.h. There are two more buffers than threads: while the threads write, one page can be
 * filled and one can be queued. A buffer can be used again when the thread pool has returned its page. */
#include "page_writer.h"
#include "allocate.h"
#include "error.h"
#include "thread_pool.h"

enum { THREADS_MOST = 256, ALIGNMENT = 4096 };

struct page {
    void *bytes;
    int64_t offset;
    struct page *next; /* in the list of idle pages */
};

struct stki_page_writer {
    stki_output *output;
    int64_t page_bytes;
    int page_count;
    struct page *pages, *idle;
    stki_thread_pool *pool;
};

static stk_status write_page(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    const stki_page_writer *w = context;
    const struct page *page = task;

    (void)part, (void)worker;
    return stki_output_write_at(w->output, page->offset, page->bytes, w->page_bytes, err);
}

static stk_status start(stki_page_writer *w, int threads, stk_error *err)
{
    const stki_thread_pool_opts opts = {
        .name = "stoker-pages", .threads = threads, .depth = w->page_count, .run = write_page, .context = w};

    w->pages = stki_zalloc_array(w->page_count, sizeof *w->pages);
    if (!w->pages)
        return stki_fail_memory(err, w->page_count * (int64_t)sizeof *w->pages, "pages");
    for (int i = 0; i < w->page_count; i++) {
        w->pages[i].bytes = stki_block_alloc(&stki_heap, w->page_bytes, ALIGNMENT);
        if (!w->pages[i].bytes)
            return stki_fail_memory(err, w->page_bytes, "a page");
        w->pages[i].next = w->idle;
        w->idle = &w->pages[i];
    }
    return stki_thread_pool_create(&opts, &w->pool, err);
}

stk_status stki_page_writer_create(stki_output *output, int64_t page_bytes, int threads, stki_page_writer **out,
                                   stk_error *err)
{
    stki_page_writer *w = stki_zalloc(sizeof *w);
    stk_status status;

    if (!w)
        return stki_fail_memory(err, sizeof *w, "pages");
    threads = threads <= 1 ? 0 : threads > THREADS_MOST ? THREADS_MOST : threads;
    w->output = output;
    w->page_bytes = page_bytes;
    w->page_count = threads > 0 ? threads + 2 : 1;
    status = start(w, threads, err);
    if (status != STK_OK)
        stki_page_writer_destroy(w);
    else
        *out = w;
    return status;
}

/* Waits until the oldest page has been written. STK_END: none. */
static stk_status take_back(stki_page_writer *w, stk_error *err)
{
    void *task;
    struct page *page;
    stk_status status = stki_thread_pool_next(w->pool, INT64_MAX, &task, err);

    if (status != STK_OK)
        return status;
    page = task;
    page->next = w->idle;
    w->idle = page;
    return STK_OK;
}

stk_status stki_page_take(stki_page_writer *w, void **out, stk_error *err)
{
    stk_status status = w->idle ? STK_OK : take_back(w, err);

    if (status != STK_OK)
        return status;
    *out = w->idle->bytes;
    w->idle = w->idle->next;
    return STK_OK;
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
    /* The queue has room for all pages, so STK_E_BUSY means that an earlier page could not be written. */
    while ((status = stki_thread_pool_submit(w->pool, page, 1, err)) == STK_E_BUSY)
        if ((status = take_back(w, err)) != STK_OK)
            return status;
    return status;
}

stk_status stki_page_writer_finish(stki_page_writer *w, stk_error *err)
{
    stk_status status;

    while ((status = take_back(w, err)) == STK_OK)
        ;
    return status == STK_END ? STK_OK : status;
}

void stki_page_writer_destroy(stki_page_writer *w)
{
    if (!w)
        return;
    stki_thread_pool_destroy(w->pool);
    for (int i = 0; w->pages && i < w->page_count; i++)
        stki_block_free(&stki_heap, w->pages[i].bytes, w->page_bytes, ALIGNMENT);
    stki_free(w->pages);
    stki_free(w);
}
