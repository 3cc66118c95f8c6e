/* storage.c: reference-counted blocks of memory, allocated here or wrapped. */
#include "storage.h"
#include "allocate.h"
#include "device_memory.h"
#include "error.h"
#include "record.h"
#include <inttypes.h>

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

enum { ALIGNMENT = 64 }; /* bytes */
/* With AddressSanitizer every tensor has a heap block of its own, so that accesses beyond its end are detected. */
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
enum { SMALL = -1 };
#else
enum { SMALL = 2048 };
#endif

static stk_status storage_new(stk_device *device, void *data, int64_t bytes, stk_storage **out, stk_error *err)
{
    stk_storage *storage = stki_zalloc(sizeof *storage);

    if (!storage)
        return stki_fail_memory(err, sizeof *storage, "a storage");
    stki_count_set(&storage->refs, 1);
    storage->device = device;
    storage->data = data;
    storage->bytes = bytes;
    *out = storage;
    return STK_OK;
}

/* Small storages are created often, so struct and data share one heap block. Both are aligned to 64 bytes. */
static stk_status small_storage(int64_t bytes, stk_storage **out, stk_error *err)
{
    int64_t total = 2 * ALIGNMENT + bytes;
    char *block = stki_resize(NULL, total);
    stk_storage *storage;

    _Static_assert(sizeof *storage <= ALIGNMENT, "the data follows the struct after ALIGNMENT bytes");
    if (!block)
        return stki_fail_memory(err, total, "a tensor");
    storage = (stk_storage *)(void *)(block + (-(uintptr_t)block & (ALIGNMENT - 1)));
    *storage = (stk_storage){.device = stk_device_cpu(),
                             .data = (char *)storage + ALIGNMENT,
                             .bytes = bytes,
                             .context = block,
                             .small = true};
    stki_count_set(&storage->refs, 1);
    *out = storage;
    return STK_OK;
}

static stk_status large_storage(stk_device *device, int64_t bytes, stk_storage **out, stk_error *err)
{
    stk_storage *storage = NULL;
    stk_status status = storage_new(device, NULL, bytes, &storage, err);

    if (status != STK_OK)
        return status;
    status = stki_device_alloc(device, STK_MEMORY_DEVICE, bytes, &storage->data, err);
    if (status != STK_OK) {
        stki_free(storage);
        return status;
    }
    *out = storage;
    return STK_OK;
}

static void note_made(stk_storage *storage)
{
    if (stki_watched()) {
        stki_profile_allocated(storage->bytes);
        stki_record_storage(storage, false);
    }
}

stk_status stk_storage_create(stk_device *device, int64_t bytes, stk_storage **out, stk_error *err)
{
    stk_storage *storage = NULL;
    stk_status status;

    if (bytes < 0)
        return stki_fail(err, STK_E_BAD_ARG, "invalid storage size: %" PRId64 " bytes", bytes);
    device = device ? device : stk_device_cpu();
    if (device == stk_device_cpu() && bytes <= SMALL)
        status = small_storage(bytes, &storage, err);
    else
        status = large_storage(device, bytes, &storage, err);
    if (status != STK_OK)
        return status;
    note_made(storage);
    *out = storage;
    return STK_OK;
}

stk_status stki_storage_create_pinned(stk_device *device, int64_t bytes, stk_storage **out, stk_error *err)
{
    stk_storage *storage = NULL;
    stk_status status = storage_new(stk_device_cpu(), NULL, bytes, &storage, err);

    if (status != STK_OK)
        return status;
    status = stki_device_alloc(device, STK_MEMORY_PINNED, bytes, &storage->data, err);
    if (status != STK_OK) {
        stki_free(storage);
        return status;
    }
    storage->context = device;
    storage->pinned = true;
    note_made(storage);
    *out = storage;
    return STK_OK;
}

stk_status stk_storage_wrap(stk_device *device, void *data, int64_t bytes, void (*free_fn)(void *context),
                            void *context, stk_storage **out, stk_error *err)
{
    stk_storage *storage = NULL;
    stk_status status;

    if (bytes < 0 || !free_fn || (!data && bytes > 0))
        return stki_fail(err, STK_E_BAD_ARG,
                         "cannot wrap %" PRId64
                         " bytes: the size must not be negative, and memory and a free function are required",
                         bytes);
    status = storage_new(device ? device : stk_device_cpu(), data, bytes, &storage, err);
    if (status != STK_OK)
        return status;
    storage->free_fn = free_fn;
    storage->context = context;
    stki_record_storage(storage, true);
    *out = storage;
    return STK_OK;
}

void stk_storage_retain(stk_storage *storage)
{
    if (storage)
        stki_ref(&storage->refs);
}

void stk_storage_release(stk_storage *storage)
{
    if (!storage || !stki_unref(&storage->refs))
        return;
    stki_record_storage_end(storage);
    if (storage->small) {
        stki_free(storage->context);
        return;
    }
    if (storage->free_fn)
        storage->free_fn(storage->context);
    else if (storage->pinned)
        stki_device_free(storage->context, STK_MEMORY_PINNED, storage->data, storage->bytes);
    else
        stki_device_free(storage->device, STK_MEMORY_DEVICE, storage->data, storage->bytes);
    stki_free(storage);
}

void *stk_storage_data(const stk_storage *storage)
{
    return storage->data;
}

int64_t stk_storage_bytes(const stk_storage *storage)
{
    return storage->bytes;
}

int64_t stk_storage_refs(const stk_storage *storage)
{
    return stki_counted(&storage->refs);
}

stk_device *stk_storage_device(const stk_storage *storage)
{
    return storage->device;
}
