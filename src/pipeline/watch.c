/* watch.c: see watch.h. */
#include "array.h"
#include "clock.h"
#include "core.h"

/* What a worker may always ask; an answer may take long on a busy machine, which is not the asking's fault. */
#define ALLOWED_NS (INT64_C(10) * 1000000)
enum { ALLOWED_TIMES = 1000 };

void stki_watch_begin(stki_worker *worker, stk_batch *batch, int64_t first, int64_t last)
{
    worker->watch.batch = batch;
    worker->watch.first = first;
    worker->watch.last = last;
    worker->watch.count = 0;
}

static void fail_row(stki_worker *worker, const struct stki_use *use, int64_t row, int64_t within)
{
    stk_error error;

    if (stki_file_intact(use->file, within, &error) != STK_OK)
        stki_row_fails(worker->core, worker->watch.batch, row, &error);
}

/* Is the row's sample of the reader that was used, or the one that it is mixed with? */
static bool is_of(const stk_batch *batch, const struct stki_use *use, int64_t row, int64_t *within)
{
    const stki_field_plan *plan = use->plan;

    if (stki_field_locate(plan->field, batch->indices[row], within) == use->reader)
        return true;
    return (plan->is_unrounded || plan->has_partners) &&
           stki_field_locate(plan->field, batch->partners[row].sample, within) == use->reader;
}

/* Every row of the tile that is of this file. */
static void fail_rows(stki_worker *worker, const struct stki_use *use)
{
    const stki_watch *watch = &worker->watch;
    int64_t within;

    for (int64_t row = watch->first; row < watch->last; row++)
        if ((use->reader->file || row == use->row) && is_of(watch->batch, use, row, &within))
            fail_row(worker, use, row, within);
}

/* tile_end: when the last byte had been taken. Whoever asked later asked for this tile too. */
static bool is_intact(stki_worker *worker, stki_file *file, int64_t tile_end)
{
    stki_watch *watch = &worker->watch;
    int64_t now;
    bool intact;

    if (stki_file_known_changed(file))
        return false;
    if (stki_counted(&file->asked_ns) >= tile_end)
        return true;
    now = stki_now_ns();
    if (watch->asked >= ALLOWED_TIMES && watch->spent_ns > ALLOWED_NS &&
        watch->spent_ns > (now - worker->core->opened_ns) / 100)
        return true;
    watch->asked++;
    intact = stki_file_intact(file, -1, NULL) == STK_OK;
    stki_count_set(&file->asked_ns, now);
    now = stki_now_ns() - now;
    watch->spent_ns += now;
    stki_count(&worker->read_ns, now);
    return intact;
}

static void ask(stki_worker *worker)
{
    stki_watch *watch = &worker->watch;
    int64_t tile_end = watch->count > 0 ? stki_now_ns() : 0;

    for (int i = 0; i < watch->count; i++) {
        const struct stki_use *use = &watch->used[i];

        if (!is_intact(worker, use->file, tile_end))
            fail_rows(worker, use);
        if (!use->reader->file)
            stki_file_close(use->file);
    }
    watch->count = 0;
}

static int seen_place(const stki_file *file)
{
    return (int)(((uintptr_t)file >> 6) % STKI_WATCH_SEEN);
}

/* Files that are one sample's own are noted by row. */
static bool is_noted(const stki_watch *watch, const stki_field_plan *plan, const stki_file *file)
{
    const int place = watch->seen[seen_place(file)];
    const struct stki_use *use = &watch->used[place];

    return place < watch->count && use->file == file && use->plan == plan && use->reader->file == file;
}

bool stki_watch_is_full(const stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader)
{
    return worker->watch.count == STKI_WATCH_FILES && !(reader->file && is_noted(&worker->watch, plan, reader->file));
}

void stki_watch_use(stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader, int64_t row,
                    const stk_tensor *sample)
{
    stki_watch *watch = &worker->watch;
    const stki_file *file = reader->file ? reader->file : sample ? stki_array_file(sample) : NULL;

    if (!file || !file->guard || is_noted(watch, plan, file))
        return;
    if (watch->count == STKI_WATCH_FILES)
        ask(worker);
    watch->seen[seen_place(file)] = (uint8_t)watch->count;
    watch->used[watch->count++] =
        (struct stki_use){plan, reader, reader->file ? (stki_file *)(uintptr_t)file : stki_file_retain(file), row};
}

void stki_watch_end(stki_worker *worker)
{
    ask(worker);
}
