/* resume.c: saves and restores the position of a loader. A position is an epoch and a step. The order can be evaluated
 * at any position, so resuming does not read and discard samples, and costs no more than opening. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "file.h"
#include "loader_handle.h"
#include "log.h"
#include "output.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_FILE_BYTES = 4 << 20 };

/* ---- save ---- */

/* Whether any part of the state differs between ranks. */
static bool has_own_part(const stki_core *core)
{
    return core->config->digest != STK_DIGEST_NONE || core->settles;
}

static stki_state state_of(const stk_loader *loader)
{
    const stki_core *core = loader->core;
    const stki_loader_config *config = core->config;
    stki_totals totals;
    int64_t step;
    stki_state state = {.version = STKI_STATE_VERSION, .lines = &core->print};

    stki_state_hash(&core->print, state.sections);
    stki_progress_position(core->progress, &step, &totals);
    state.parts = STKI_STATE_ALL | (has_own_part(core) ? STKI_STATE_OWN : 0u);
    state.epoch = core->steps ? step / core->steps : 0;
    state.step = core->steps ? step % core->steps : 0;
    state.seed = config->seed;
    state.order = config->order;
    state.order_version = STKI_ORDER_VERSION;
    state.last_batch = config->last_batch;
    state.positions = core->batching.length;
    state.global_batch = core->batching.global_batch;
    state.rank = core->batching.rank;
    state.world_size = core->batching.world_size;
    state.digest_kind = config->digest;
    state.digest = totals.digest;
    state.digest_from = stki_counted(&loader->digest_from);
    state.failed = totals.failed;
    state.epoch_failed = totals.epoch_failed;
    state.epoch_left_out = totals.epoch_left_out;
    return state;
}

stk_status stk_loader_save(const stk_loader *loader, void *state, int64_t capacity, int64_t *bytes, stk_error *err)
{
    uint8_t blob[STKI_STATE_BYTES];
    stki_state now;
    int length;
    stk_status status = stki_loader_check(loader, err);

    if (status != STK_OK)
        return status;
    if (!state || !bytes)
        return stki_fail(err, STK_E_BAD_ARG, "%s: found NULL", state ? "bytes" : "state");
    now = state_of(loader);
    length = stki_state_write(&now, blob);
    if (capacity < length)
        return stki_fail(err, STK_E_BAD_ARG, "capacity: found %lld bytes, expected STK_STATE_MAX (%d)",
                         (long long)capacity, STK_STATE_MAX);
    memcpy(state, blob, (size_t)length);
    *bytes = length;
    return STK_OK;
}

static stk_status text_of(const stki_state *state, char **out, stk_error *err)
{
    json_t *json = stki_state_json(state);
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;

    json_decref(json);
    *out = text ? stki_strdup(text) : NULL;
    free(text);
    return *out ? STK_OK : stki_fail_memory(err, STATE_FILE_BYTES, "a saved state");
}

char *stk_state_json(const void *state, int64_t bytes, stk_error *err)
{
    stki_state read;
    char *text = NULL;

    if (!state) {
        stki_fail(err, STK_E_BAD_ARG, "state: found NULL");
        return NULL;
    }
    if (stki_state_read(state, bytes, NULL, &read, err) == STK_OK)
        (void)text_of(&read, &text, err);
    stki_state_fini(&read);
    return text;
}

stk_status stk_loader_save_file(const stk_loader *loader, const char *path, stk_error *err)
{
    stki_state now;
    char *text = NULL;
    stk_status status = stki_loader_check(loader, err);

    if (status != STK_OK)
        return status;
    if (!path)
        return stki_fail(err, STK_E_BAD_ARG, "path: found NULL");
    now = state_of(loader);
    status = text_of(&now, &text, err);
    if (status == STK_OK)
        status = stki_output_text(path, text, err);
    stki_free(text);
    return status;
}

/* ---- restore ---- */

static const char *word_of(const char *key, int word)
{
    const char *const *words = stki_config_words(key);

    for (int i = 0; words[i]; i++)
        if (i == word)
            return words[i];
    return "unknown";
}

/* Fails with "the saved state has a different WHAT: found F, expected E"; with `force`, only adds a note. */
static stk_status differs(const stk_loader *loader, const char *what, const char *found, const char *expected,
                          stk_error *err)
{
    if (loader->core->config->resume == STK_RESUME_FORCE) {
        stki_config_note(loader->core->config, "resumed from a saved state with a different %s: %s instead of %s", what,
                         found, expected);
        return STK_OK;
    }
    return stki_fail_at(err, STK_E_MISMATCH, (stki_place){NULL, -1, -1, found, expected},
                        "the saved state has a different %s; set loader.resume: force to resume at its step", what);
}

static stk_status compare_numbers(const stk_loader *loader, const stki_state *state, const stki_state *mine,
                                  stk_error *err)
{
    const struct {
        unsigned part;
        const char *what;
        int64_t found, expected;
    } numbers[] = {
        {STKI_STATE_SEED, "seed (loader.seed)", state->seed, mine->seed},
        {STKI_STATE_ORDER_VERSION, "version of the order algorithm", state->order_version, mine->order_version},
        {STKI_STATE_POSITIONS, "number of samples per epoch", state->positions, mine->positions},
        {STKI_STATE_GLOBAL_BATCH, "global batch (loader.global_batch_size)", state->global_batch, mine->global_batch},
    };
    stk_status status = STK_OK;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && status == STK_OK; i++)
        if ((state->parts & numbers[i].part) && numbers[i].found != numbers[i].expected)
            status = differs(loader, numbers[i].what, STKI_TEXT("%" PRId64, numbers[i].found),
                             STKI_TEXT("%" PRId64, numbers[i].expected), err);
    return status;
}

static stk_status compare_words(const stk_loader *loader, const stki_state *state, const stki_state *mine,
                                stk_error *err)
{
    stk_status status = STK_OK;

    if ((state->parts & STKI_STATE_ORDER) && state->order != mine->order)
        status =
            differs(loader, "order (loader.order)", word_of("order", state->order), word_of("order", mine->order), err);
    if (status == STK_OK && (state->parts & STKI_STATE_LAST_BATCH) && state->last_batch != mine->last_batch)
        status = differs(loader, "rule for the last batch (loader.last_batch)",
                         word_of("last_batch", state->last_batch), word_of("last_batch", mine->last_batch), err);
    return status;
}

static const char *value_or_default(const char *value)
{
    return value ? value : "nothing, or the default";
}

/* Compares the lines that have this value of `failure` in two lists, both sorted by path. */
static stk_status compare_lines(const stk_loader *loader, const stki_print *saved, const stki_print *mine, bool failure,
                                stk_error *err)
{
    stk_status status = STK_OK;
    int i = 0, k = 0;

    while (status == STK_OK) {
        const stki_printed *a, *b;
        int order;

        while (i < saved->count && saved->lines[i].failure != failure)
            i++;
        while (k < mine->count && mine->lines[k].failure != failure)
            k++;
        if (i == saved->count && k == mine->count)
            break;
        a = i < saved->count ? &saved->lines[i] : NULL;
        b = k < mine->count ? &mine->lines[k] : NULL;
        order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);
        if (order != 0 || strcmp(a->value, b->value) != 0)
            status = differs(loader, order > 0 ? b->path : a->path, value_or_default(order > 0 ? NULL : a->value),
                             value_or_default(order < 0 ? NULL : b->value), err);
        i += order <= 0;
        k += order >= 0;
    }
    return status;
}

static bool has_failure_lines(const stki_print *print)
{
    for (int i = 0; i < print->count; i++)
        if (print->lines[i].failure)
            return true;
    return false;
}

/* Options that determine which samples fail are compared only if failed samples are skipped or replaced both in the
 * saved run and in this one: a run that ended at a bad sample may be resumed with a different on_error. */
static stk_status compare_options(const stk_loader *loader, const stki_state *state, const stki_state *mine,
                                  stk_error *err)
{
    stk_status status = STK_OK;

    if (state->parts & STKI_STATE_LINES) {
        status = compare_lines(loader, state->lines, mine->lines, false, err);
        if (status == STK_OK && has_failure_lines(state->lines) && has_failure_lines(mine->lines))
            status = compare_lines(loader, state->lines, mine->lines, true, err);
        if (loader->core->config->resume == STK_RESUME_FORCE)
            return status; /* differences have already been reported */
    }
    for (int i = 0; i < STKI_STATE_SECTIONS && status == STK_OK && (state->parts & STKI_STATE_HASHES); i++) {
        const uint32_t found = state->sections[i], expected = mine->sections[i];

        if (found != expected && (i != STKI_STATE_FAILURES || (found && expected)))
            status = differs(loader, STKI_TEXT("section %s", stki_state_sections[i]), STKI_TEXT("%08" PRIx32, found),
                             STKI_TEXT("%08" PRIx32, expected), err);
    }
    return status;
}

static stk_status compare_version(const stk_loader *loader, const stki_state *state, stk_error *err)
{
    if (!(state->parts & STKI_STATE_OLD))
        return STK_OK;
    if (loader->core->config->resume == STK_RESUME_FORCE) {
        stki_config_note(loader->core->config,
                         "resumed from a state saved by an older version: data set and options were not compared");
        return STK_OK;
    }
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){NULL, -1, -1, STKI_TEXT("version %d", state->version),
                                     STKI_TEXT("version %d", STKI_STATE_VERSION)},
                        "the state was saved by an older version of stoker, whose fingerprints cannot be compared; "
                        "set loader.resume: force to resume at its step");
}

/* Converts the position of a state to a step counted over all epochs of this loader. `what` names the state in
 * messages. If the state has a different global batch size, which only `force` allows, its position must be at a batch
 * boundary of this loader. */
static stk_status find_step(const stk_loader *loader, const stki_state *state, const char *what, int64_t *out,
                            stk_error *err)
{
    const stki_core *core = loader->core;
    int64_t epochs = core->config->num_epochs, epoch = state->epoch, step = state->step, rows, global;

    if ((state->parts & STKI_STATE_GLOBAL_BATCH) && state->global_batch != core->batching.global_batch) {
        if (!stki_mul(step, state->global_batch, &rows) || rows % core->batching.global_batch != 0)
            return stki_fail(err, STK_E_MISMATCH,
                             "the saved state is %" PRId64 " steps of %" PRId64
                             " rows into its epoch, expected a multiple of the global batch size, %" PRId64,
                             step, state->global_batch, core->batching.global_batch);
        step = rows / core->batching.global_batch;
    }
    if (step > core->steps)
        return stki_fail_at(
            err, STK_E_RANGE,
            (stki_place){NULL, -1, -1, STKI_TEXT("%" PRId64, step), STKI_TEXT("0 to %" PRId64, core->steps)},
            "%s: step of the epoch", what);
    if (!stki_mul(epoch, core->steps, &global) || !stki_add(global, step, &global) || global == INT64_MAX ||
        (epochs > 0 && (epoch > epochs || (epoch == epochs && step > 0))))
        return stki_fail_at(err, STK_E_RANGE,
                            (stki_place){NULL, -1, -1, STKI_TEXT("%" PRId64 ", step %" PRId64, epoch, step),
                                         STKI_TEXT("at most %" PRId64 ", step 0", epochs)},
                            "%s: epoch (loader.num_epochs)", what);
    *out = global;
    return STK_OK;
}

static void go_to(stk_loader *loader, int64_t step, const stki_totals *before, int64_t digest_from)
{
    loader->failed = false;
    stki_count_set(&loader->digest_from, digest_from);
    loader->generation = stki_ring_restart(loader->core->ring, step);
    stki_progress_restart(loader->core->progress, step, before);
}

/* Returns the totals in the state, or zeros if it contains none for this rank. */
static stki_totals totals_of(const stki_core *core, const stki_state *state, int64_t step, int64_t *digest_from)
{
    stki_totals totals = {0};

    *digest_from = step;
    if (!(state->parts & STKI_STATE_OWN))
        return totals;
    if (state->rank != core->batching.rank || state->world_size != core->batching.world_size) {
        stki_log(STKI_LOG_order, "the saved digest belongs to rank %lld of %lld, so this rank begins a new one",
                 (long long)state->rank, (long long)state->world_size);
        return totals;
    }
    totals.failed = state->failed;
    totals.epoch_failed = state->epoch_failed;
    totals.epoch_left_out = state->epoch_left_out;
    if (state->digest_kind == core->config->digest) {
        totals.digest = state->digest;
        *digest_from = state->digest_from;
    }
    return totals;
}

static stk_status check_open(const stk_loader *loader, stk_error *err)
{
    stk_status status = stki_loader_check(loader, err);

    if (status == STK_OK && (loader->closed || atomic_load_explicit(&loader->cancelled, memory_order_relaxed)))
        status = stki_fail(err, STK_E_CLOSED, "the loader is closed");
    return status;
}

static stk_status compare(const stk_loader *loader, const stki_state *state, stk_error *err)
{
    stki_state mine = state_of(loader);
    stk_status status;

    if ((status = compare_version(loader, state, err)) != STK_OK ||
        (status = compare_numbers(loader, state, &mine, err)) != STK_OK ||
        (status = compare_words(loader, state, &mine, err)) != STK_OK)
        return status;
    return compare_options(loader, state, &mine, err);
}

static stk_status restore(stk_loader *loader, const void *data, int64_t bytes, const char *origin, stk_error *err)
{
    stki_state state;
    int64_t step, digest_from;
    stki_totals totals;
    stk_status status = stki_state_read(data, bytes, origin, &state, err);

    if (status == STK_OK && (status = compare(loader, &state, err)) == STK_OK &&
        (status = find_step(loader, &state, "the saved state", &step, err)) == STK_OK) {
        totals = totals_of(loader->core, &state, step, &digest_from);
        go_to(loader, step, &totals, digest_from);
    }
    stki_state_fini(&state);
    return status;
}

stk_status stk_loader_restore(stk_loader *loader, const void *state, int64_t bytes, stk_error *err)
{
    stk_status status = check_open(loader, err);

    if (status != STK_OK)
        return status;
    if (!state || bytes < 0)
        return stki_fail(err, STK_E_BAD_ARG, "state: found %s and %lld bytes", state ? "an address" : "NULL",
                         (long long)bytes);
    return restore(loader, state, bytes, NULL, err);
}

static stk_status restore_file(stk_loader *loader, const char *path, stk_error *err)
{
    char *text = NULL;
    stki_file *file;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);

    if (status != STK_OK)
        return status;
    if (file->size > STATE_FILE_BYTES)
        status = stki_fail_at(err, STK_E_CORRUPT,
                              (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", file->size),
                                           STKI_TEXT("at most %d", STATE_FILE_BYTES)},
                              "too large for a saved state");
    else if (!(text = stki_zalloc(file->size + 1)))
        status = stki_fail_memory(err, file->size, "a saved state");
    else
        status = stki_file_read(file, 0, text, file->size, err);
    if (status == STK_OK) {
        status = restore(loader, text, file->size, path, err);
        if (status != STK_OK && err && !err->file[0])
            status = stki_fail_place(err, status, path, -1, NULL);
    }
    stki_free(text);
    stki_file_close(file);
    return status;
}

stk_status stk_loader_restore_file(stk_loader *loader, const char *path, stk_error *err)
{
    stk_status status = check_open(loader, err);

    if (status != STK_OK)
        return status;
    return path ? restore_file(loader, path, err) : stki_fail(err, STK_E_BAD_ARG, "path: found NULL");
}

stk_status stki_loader_resume(stk_loader *loader, stk_error *err)
{
    const char *path = loader->core->config->resume_from;

    return path ? restore_file(loader, path, err) : STK_OK;
}

stk_status stk_loader_seek(stk_loader *loader, int64_t epoch, int64_t step, stk_error *err)
{
    stki_state state = {.epoch = epoch, .step = step};
    stki_totals totals = {0};
    int64_t global, delivered;
    stk_status status = check_open(loader, err);

    if (status != STK_OK)
        return status;
    if (epoch < 0 || step < 0)
        return stki_fail(err, STK_E_BAD_ARG, "epoch and step: found %" PRId64 " and %" PRId64 ", expected 0 or more",
                         epoch, step);
    if ((status = find_step(loader, &state, "seek", &global, err)) != STK_OK)
        return status;
    stki_progress_delivered(loader->core->progress, &delivered, &totals);
    totals = (stki_totals){.failed = totals.failed};
    go_to(loader, global, &totals, global);
    return STK_OK;
}

/* ---- digest ---- */

stk_status stk_loader_digest(const stk_loader *loader, stk_digest_info *out, stk_error *err)
{
    stki_totals totals;
    int64_t step;
    stk_status status = stki_loader_check(loader, err);

    if (status != STK_OK)
        return status;
    if (!out)
        return stki_fail(err, STK_E_BAD_ARG, "out: found NULL");
    if (loader->core->config->digest == STK_DIGEST_NONE)
        return stki_fail(err, STK_E_CONFIG, "loader.digest: found none, expected order or bytes");
    stki_progress_position(loader->core->progress, &step, &totals);
    *out = (stk_digest_info){.first_step = stki_counted(&loader->digest_from), .end_step = step};
    out->word[0] = totals.digest.low;
    out->word[1] = totals.digest.high;
    (void)stki_u128_text(totals.digest, out->text);
    return STK_OK;
}
