/* ids_test.h: data sets whose samples are their own ids: sample i of a file is first + i. Include it before all other
 * test headers. */
#ifndef STKT_IDS_TEST_H
#define STKT_IDS_TEST_H

#include "io_files.h"
#include "stk_test.h"
#include <stoker/dataset.h>
#include <stoker/loader.h>

/* Sample i of the file is first + i. */
static inline const char *write_ids(const char *name, int64_t first, int64_t count)
{
    const char *path = stkt_path(name);
    stk_npy_writer *writer;
    stk_error err;

    assert_ok(stk_npy_create(path, STK_I64, 0, NULL, false, &writer, &err));
    for (int64_t i = 0; i < count; i++) {
        int64_t id = first + i;

        assert_ok(stk_npy_append(writer, &id, 1, &err));
    }
    assert_ok(stk_npy_commit(writer, &err));
    return path;
}

static inline STK_PRINTF(1, 2) stk_loader *open_text(const char *format, ...)
{
    char text[4096];
    stk_loader *loader = NULL;
    stk_error err;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_ok(stk_loader_open_text(text, stkt_dir, NULL, 0, &loader, &err));
    return loader;
}

static inline STK_PRINTF(3, 4) void refuse_text(stk_status expected, const char *words, const char *format, ...)
{
    char text[4096];
    stk_loader *loader = NULL;
    stk_error err;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_status(stk_loader_open_text(text, stkt_dir, NULL, 0, &loader, &err), expected);
    assert_says(words);
    assert_null(loader);
}

/* Reads the ids of field `x` in the order in which the loader delivers them, without padding, and destroys the
 * loader. */
static inline int64_t read_ids(stk_loader *loader, int64_t *ids, int64_t room)
{
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t n = 0;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor x;

        assert_ok(stk_batch_tensor(batch, "x", &x, &err));
        assert_int_equal(x.dtype, STK_I64);
        for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
            if (!stk_batch_mask(batch)[r])
                continue;
            assert_true(n < room);
            ids[n++] = ((const int64_t *)x.data)[r];
        }
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s", err.message);
    stk_loader_destroy(loader);
    return n;
}

/* The same for rows of several ids: the first of each. */
static inline int64_t read_ids_of_rows(stk_loader *loader, int64_t *ids, int64_t room)
{
    stk_batch *batch;
    stk_error err;
    int64_t n = 0;

    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        stk_tensor x;

        assert_ok(stk_batch_tensor(batch, "x", &x, &err));
        for (int64_t r = 0; r < stk_batch_rows(batch) && n < room; r++)
            ids[n++] = *(const int64_t *)(const void *)((const char *)x.data + r * x.strides[0]);
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
    return n;
}

static inline int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static inline bool has(const int64_t *ids, int64_t n, int64_t id)
{
    for (int64_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

#define MIXED                                                                                                    \
    "datasets: [{name: web, weight: 0.7, fields: {x: {path: web.npy}}}, {name: books, weight: 0.2, fields: {x: " \
    "{path: "                                                                                                    \
    "books*.npy}}}, {name: code, weight: 0.1, fields: {x: {path: code.npy}}}]"

static inline void write_mixture(void)
{
    write_ids("web.npy", 1000, 700);
    write_ids("books0.npy", 2000, 30);
    write_ids("books1.npy", 2030, 20);
    write_ids("code.npy", 3000, 40);
}

#endif
