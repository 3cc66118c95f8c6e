/* watch.c: see watch.h. */
#include "array.h"
#include "core.h"
#include "partners.h"
#include "row_maker.h"

/* This many checks, and this much time for them, are always allowed, because a cheap call may take long on a busy
 * machine. */
#define ALLOWED_NS (INT64_C(10) * 1000000)
enum { ALLOWED_TIMES = 1000 };

void stki_watch_begin(stki_worker *worker, int64_t first, int64_t last)
{
    worker->watch.first = first;
    worker->watch.last = last;
    worker->watch.count = 0;
}

/* Whether the sample is in the changed file. */
static bool is_lost(const struct stki_use *use, int64_t sample, stk_error *error)
{
    int64_t within;

    return (use->reader->file || sample == use->sample) &&
           stki_field_locate(use->plan->field, sample, &within) == use->reader &&
           (use->reader->file ? stki_reader_intact(use->reader, within, error)
                              : stki_file_intact(use->file, within, error)) != STK_OK;
}

/* Like is_lost, for the row's sample or any sample of its window. */
static bool row_is_lost(const struct stki_use *use, int64_t first, stk_error *error)
{
    const stki_field_config *config = use->plan->config;

    if (config->row_samples == 0)
        return is_lost(use, first, error);
    for (int64_t k = 0; k < config->row_samples; k++)
        if (is_lost(use, first + k * config->window.dilation, error))
            return true;
    return false;
}

/* Fails every row of the tile whose own sample, or whose mixing partner's sample, is in the changed file. */
static void fail_rows(stki_worker *worker, const struct stki_use *use)
{
    const stki_watch *watch = &worker->watch;
    const stk_batch *batch = worker->batch;
    stk_error error;

    for (int64_t row = watch->first; row < watch->last; row++)
        if (row_is_lost(use, batch->samples[row], &error))
            stki_row_fails(worker, row, &error);
        else if (stki_row_is_mixed(worker, use->plan, row) && is_lost(use, batch->partners[row].sample, &error))
            stki_row_fails_with_partner(worker, row, &error);
}

static bool may_ask(const stki_worker *worker)
{
    const stki_watch *watch = &worker->watch;

    return watch->asked < ALLOWED_TIMES || watch->spent_ns <= ALLOWED_NS ||
           watch->spent_ns <= (worker->read_at - worker->core->opened_ns) / 100;
}

/* Returns whether the file is unchanged, or true if the worker may make no more checks at present. *tile_end is a time
 * after the tile read its last byte; 0: not set yet. If any thread has checked the file after that time, the file need
 * not be checked again. */
static bool is_intact(stki_worker *worker, stki_file *file, int64_t *tile_end)
{
    stki_watch *watch = &worker->watch;
    int64_t before;
    bool intact;

    if (stki_file_known_changed(file))
        return false;
    if (!may_ask(worker))
        return true;
    if (*tile_end == 0) {
        stki_worker_spent(worker, &worker->read_ns); /* the time since the last interval counts as reading */
        *tile_end = worker->read_at;
    }
    if (stki_counted(&file->asked_ns) >= *tile_end)
        return true;
    before = worker->read_at;
    watch->asked++;
    intact = stki_file_intact(file, -1, NULL) == STK_OK;
    if (intact) /* not set otherwise, so that threads past stki_file_known_changed check the file themselves */
        stki_count_set(&file->asked_ns, before);
    stki_worker_spent(worker, &worker->read_ns);
    watch->spent_ns += worker->read_at - before;
    return intact;
}

static void ask(stki_worker *worker)
{
    stki_watch *watch = &worker->watch;
    int64_t tile_end = 0;

    for (int i = 0; i < watch->count; i++) {
        const struct stki_use *use = &watch->used[i];

        if (!is_intact(worker, use->file, &tile_end)) {
            fail_rows(worker, use);
            stki_worker_time(worker);
        }
    }
    /* after the checks, so that closing files does not count against their time limit */
    for (int i = 0; i < watch->count; i++)
        if (!watch->used[i].reader->file)
            stki_file_close(watch->used[i].file);
    watch->count = 0;
}

static int seen_place(const stki_file *file)
{
    return (int)(((uintptr_t)file >> 6) % STKI_WATCH_SEEN);
}

/* Whether the file is already recorded. False for files that hold a single sample, which are recorded per sample. */
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

void stki_watch_use(stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader, int64_t index,
                    const stk_tensor *sample)
{
    stki_watch *watch = &worker->watch;
    const stki_file *file = reader->file ? reader->file : sample ? stki_array_file(sample) : NULL;

    if (!file || !(file->watched || file->guard) || is_noted(watch, plan, file))
        return;
    if (watch->count == STKI_WATCH_FILES)
        ask(worker);
    watch->seen[seen_place(file)] = (uint8_t)watch->count;
    watch->used[watch->count++] =
        (struct stki_use){plan, reader, reader->file ? (stki_file *)(uintptr_t)file : stki_file_retain(file), index};
}

void stki_watch_end(stki_worker *worker)
{
    ask(worker);
}
