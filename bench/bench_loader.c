/* bench_loader.c: the loader with a consumer that does nothing, without loadbench: rows/s and bytes (read and written)
 * per second, from the second epoch on.
 *
 *     bench_loader SECONDS CONFIG.yaml [key=value …]
 */
#include "clock.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>

int main(int argc, char **argv)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_loader_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    double seconds = argc > 2 ? atof(argv[1]) : 0;
    int64_t start, end;

    if (argc < 3) {
        fprintf(stderr, "usage: bench_loader SECONDS CONFIG.yaml [key=value …]\n");
        return 2;
    }
    if (stk_loader_open_file(argv[2], (const char *const *)&argv[3], argc - 3, &loader, &err) != STK_OK) {
        fprintf(stderr, "bench_loader: %s\n", err.message);
        return 1;
    }
    for (;;) { /* the first epoch, which maps every page, is not measured */
        bool last;

        if (stk_loader_next(loader, &batch, &err) != STK_OK) {
            fprintf(stderr, "bench_loader: %s\n", err.message);
            return 1;
        }
        last = stk_batch_last_of_epoch(batch);
        stk_batch_release(batch);
        if (last)
            break;
    }
    if (stk_loader_get_stats(loader, &before, &err) != STK_OK)
        return 1;
    start = stki_now_ns();
    while (stki_now_ns() - start < (int64_t)(seconds * 1e9)) {
        if (stk_loader_next(loader, &batch, &err) != STK_OK) {
            fprintf(stderr, "bench_loader: %s\n", err.message);
            return 1;
        }
        stk_batch_release(batch);
    }
    end = stki_now_ns();
    if (stk_loader_get_stats(loader, &after, &err) != STK_OK)
        return 1;
    {
        stk_field_info info;
        double t = (double)(end - start) * 1e-9, rows = (double)(after.rows - before.rows),
               b = (double)(after.batches - before.batches),
               bytes = (double)(after.bytes_read + after.bytes_written - before.bytes_read - before.bytes_written);

        (void)stk_loader_field(loader, 0, &info, NULL);
        printf("%s: %.0f rows/s, %.2f GB/s read + written, %.2f us/batch, worker us/batch: order %.2f read %.2f "
               "convert %.2f wait slot %.2f "
               "wait work %.2f; next waits %.2f us/batch; %s\n",
               argv[2], rows / t, bytes / t * 1e-9, t / b * 1e6, (double)(after.order_ns - before.order_ns) / b * 1e-3,
               (double)(after.read_ns - before.read_ns) / b * 1e-3,
               (double)(after.convert_ns - before.convert_ns) / b * 1e-3,
               (double)(after.wait_slot_ns - before.wait_slot_ns) / b * 1e-3,
               (double)(after.wait_work_ns - before.wait_work_ns) / b * 1e-3,
               (double)(after.wait_next_ns - before.wait_next_ns) / b * 1e-3, info.kernel);
    }
    stk_loader_destroy(loader);
    return 0;
}
