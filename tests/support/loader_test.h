/* loader_test.h: opens loaders in tests, with or without a faulty reader, and hashes what they deliver. */
#ifndef STKT_LOADER_TEST_H
#define STKT_LOADER_TEST_H

#include "clock.h"
#include "core.h"
#include "error.h"
#include "faulty.h"
#include "stk_test.h"
#include "thread.h"
#include <stoker/stoker.h>

/* Opens a loader from a printf-style config. The default close_timeout is 60 s, longer than any delay of a worker on a
 * busy machine. */
static inline STK_PRINTF(2, 3) stk_status stkt_open(stk_loader **out, const char *format, ...)
{
    static const char *const patient[] = {"loader.close_timeout=60s"};
    char text[4096];
    stk_error err = {0};
    stk_status status;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    status = stk_loader_open_text(text, NULL, patient, strstr(text, "close_timeout") ? 0 : 1, out, &err);
    if (status != STK_OK)
        print_message("open: %s: %s\n", stk_status_name(status), err.message);
    return status;
}

typedef struct stkt_fault {
    const char *field; /* NULL: all fields */
    stki_faulty_opts opts;
    stki_reader *made; /* the reader that was wrapped last */
} stkt_fault;

static inline stk_status stkt_wrap(void *context, const char *field, stki_reader **reader, stk_error *err)
{
    stkt_fault *fault = context;
    stki_reader *wrapped = NULL;
    stk_status status;

    if (fault->field && strcmp(fault->field, field) != 0)
        return STK_OK;
    status = stki_faulty_open(*reader, &fault->opts, &wrapped, err);
    *reader = fault->made = wrapped;
    return status;
}

/* Like stkt_open, with `fault` applied to the readers; `skip` skips failed rows. */
static inline STK_PRINTF(5, 6) stk_status
    stkt_open_faulty(stk_loader **out, stkt_fault *fault, bool skip, stk_error *err, const char *format, ...)
{
    char text[4096];
    stki_document *document;
    stki_loader_config *config;
    stk_status status;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if ((status = stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, err)) != STK_OK ||
        (status = stki_config_read(document, NULL, &config, err)) != STK_OK)
        return status;
    if (!strstr(text, "close_timeout"))
        config->close_timeout = 60 * STKI_SECOND;
    if (skip) {
        config->on_error = STK_ON_ERROR_SKIP;
        config->max_error_fraction = 1;
    }
    if (fault) {
        config->wrap_reader = stkt_wrap;
        config->wrap_context = fault;
    }
    return stki_loader_open_config(config, out, err);
}

/* Waits until abandoned threads, released in the meantime, have freed their memory. There may be fewer blocks than
 * before, if streams of a device were destroyed earlier. */
static inline void stkt_wait_for_blocks(int64_t blocks)
{
    const int64_t deadline = stki_deadline_ns(60 * STKI_SECOND);
    stki_memory_stats now;

    for (;;) {
        stki_memory_read(STKI_MEM_HOST, &now);
        if (now.blocks <= blocks)
            return;
        assert_true(stki_now_ns() < deadline);
        stki_sleep_ns(1000000);
    }
}

/* FNV-1a, used to compare whole runs. */
static inline uint64_t stkt_hash(uint64_t h, const void *data, int64_t bytes)
{
    const uint8_t *p = data;

    for (int64_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

/* Hashes everything that a batch contains, including its tensors. */
static inline uint64_t stkt_hash_batch(uint64_t h, const stk_loader *loader, const stk_batch *batch)
{
    int64_t facts[] = {stk_batch_rows(batch), stk_batch_valid_rows(batch),  stk_batch_epoch(batch),
                       stk_batch_step(batch), stk_batch_global_step(batch), stk_batch_last_of_epoch(batch)};

    h = stkt_hash(h, facts, sizeof facts);
    h = stkt_hash(h, stk_batch_indices(batch), facts[0] * 8);
    h = stkt_hash(h, stk_batch_mask(batch), facts[0]);
    for (int i = 0; i < stk_loader_field_count(loader); i++) {
        stk_field_info info;
        stk_tensor tensor;
        char name[64];

        assert_int_equal(stk_loader_field(loader, i, &info, NULL), STK_OK);
        snprintf(name, sizeof name, "%s", info.name);
        if (stk_batch_tensor(batch, name, &tensor, NULL) != STK_OK) {
            snprintf(name, sizeof name, "%s.offsets", info.name);
            assert_int_equal(stk_batch_tensor(batch, name, &tensor, NULL), STK_OK);
            h = stkt_hash(h, tensor.data, stk_tensor_nbytes(&tensor));
            snprintf(name, sizeof name, "%s.values", info.name);
            assert_int_equal(stk_batch_tensor(batch, name, &tensor, NULL), STK_OK);
        }
        h = stkt_hash(h, tensor.data, stk_tensor_nbytes(&tensor));
    }
    return h;
}

#endif
