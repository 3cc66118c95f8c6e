/* record.c: see record.h. One list of records, guarded by one lock. A record is reached only through its storage's
 * pointer, so a storage that is destroyed while recording stops finds either its record or NULL. */
#include "record.h"
#include "allocate.h"
#include "clock.h"
#include "storage.h"
#include "thread.h"
#include <stdio.h>
#include <string.h>

enum { MOST_TAGS = 16 };

static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER};
/* guarded by lock */
static stki_record *oldest, *newest;
static int64_t last_record, lost;
static uint32_t last_holder;

static _Thread_local char tags[MOST_TAGS][64];
static _Thread_local int tag_count;

void stk_tag_push(const char *tag)
{
    if (tag_count < MOST_TAGS)
        snprintf(tags[tag_count], sizeof tags[0], "%s", tag ? tag : "");
    tag_count++;
}

void stk_tag_pop(void)
{
    tag_count -= tag_count > 0;
}

const char *stki_record_tag(void)
{
    return tag_count == 0 ? "" : tags[(tag_count < MOST_TAGS ? tag_count : MOST_TAGS) - 1];
}

/* ---- records ---- */

/* Lock held. */

static void forget(stki_record *record)
{
    *(record->before ? &record->before->next : &oldest) = record->next;
    *(record->next ? &record->next->before : &newest) = record->before;
    /* Pairs with the acquire in stki_record_storage_end: a thread that reads NULL may free the storage. */
    atomic_store_explicit(&record->storage->record, NULL, memory_order_release);
    while (record->holders) {
        stki_holder *next = record->holders->next;
        stki_free(record->holders);
        record->holders = next;
    }
    stki_free(record);
}

static void forget_all(void)
{
    while (oldest)
        forget(oldest);
    lost = 0;
}

void stk_memory_record_start(void)
{
    stki_lock(&lock);
    forget_all();
    atomic_fetch_or_explicit(&stki_watching, STKI_WATCH_RECORD, memory_order_relaxed);
    stki_unlock(&lock);
}

void stk_memory_record_stop(void)
{
    stki_lock(&lock);
    atomic_fetch_and_explicit(&stki_watching, ~STKI_WATCH_RECORD, memory_order_relaxed);
    forget_all();
    stki_unlock(&lock);
}

void stki_record_storage(stk_storage *storage, bool outside)
{
    stki_record *record;

    if (!stki_recording())
        return;
    record = stki_zalloc(sizeof *record);
    stki_lock(&lock);
    if (!record || !stki_recording()) {
        lost += !record;
        stki_unlock(&lock);
        stki_free(record);
        return;
    }
    record->storage = storage;
    record->number = ++last_record;
    record->made_ns = stki_now_ns();
    record->outside = outside;
    record->operation = stki_profile_operation();
    memcpy(record->tag, stki_record_tag(), strlen(stki_record_tag()) + 1);
    record->before = newest;
    *(newest ? &newest->next : &oldest) = record;
    newest = record;
    atomic_store_explicit(&storage->record, record, memory_order_relaxed);
    stki_unlock(&lock);
}

void stki_record_storage_end(stk_storage *storage)
{
    stki_record *record;

    if (!atomic_load_explicit(&storage->record, memory_order_acquire))
        return;
    stki_lock(&lock);
    record = atomic_load_explicit(&storage->record, memory_order_relaxed); /* NULL: removed in the meantime */
    if (record)
        forget(record);
    stki_unlock(&lock);
}

/* ---- holders ---- */

static stki_record *record_of(const stk_tensor *tensor)
{
    return tensor->storage ? atomic_load_explicit(&tensor->storage->record, memory_order_relaxed) : NULL;
}

static void set_geometry(stk_holder *about, const stk_tensor *tensor)
{
    about->dtype = tensor->dtype;
    about->ndim = tensor->ndim;
    about->offset_bytes = stki_tensor_offset_bytes(tensor);
    memcpy(about->shape, tensor->shape, sizeof tensor->shape);
    memcpy(about->strides, tensor->strides, sizeof tensor->strides);
}

void stki_record_holder(stk_tensor *tensor)
{
    stki_holder *holder;
    stki_record *record;

    tensor->reserved = 0;
    if (!record_of(tensor))
        return;
    holder = stki_zalloc(sizeof *holder);
    stki_lock(&lock);
    record = record_of(tensor);
    if (!record || !holder) {
        lost += record && !holder;
        stki_unlock(&lock);
        stki_free(holder);
        return;
    }
    last_holder += last_holder == UINT32_MAX ? 2 : 1; /* 0 means none */
    holder->number = tensor->reserved = last_holder;
    holder->about = (stk_holder){.operation = stki_profile_operation(), .references = 1};
    memcpy(holder->about.tag, stki_record_tag(), strlen(stki_record_tag()) + 1);
    set_geometry(&holder->about, tensor);
    holder->next = record->holders;
    record->holders = holder;
    stki_unlock(&lock);
}

/* Returns the link that points to the holder with this number; the link is NULL if there is none. */
static stki_holder **find(stki_record *record, uint32_t number)
{
    stki_holder **at = &record->holders;

    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

void stki_record_changed(const stk_tensor *tensor)
{
    stki_holder **at;
    stki_record *record;

    stki_lock(&lock);
    record = record_of(tensor);
    at = record ? find(record, tensor->reserved) : NULL;
    if (at && *at)
        set_geometry(&(*at)->about, tensor);
    stki_unlock(&lock);
}

static void count_reference(const stk_tensor *tensor, int by)
{
    stki_holder **at, *gone = NULL;
    stki_record *record;

    if (tensor->reserved == 0 || !record_of(tensor))
        return;
    stki_lock(&lock);
    record = record_of(tensor);
    at = record ? find(record, tensor->reserved) : NULL;
    if (at && *at && ((*at)->about.references += by) == 0) {
        gone = *at;
        *at = gone->next;
    }
    stki_unlock(&lock);
    stki_free(gone);
}

void stki_record_retain(const stk_tensor *tensor)
{
    count_reference(tensor, 1);
}

void stki_record_release(const stk_tensor *tensor)
{
    count_reference(tensor, -1);
}

/* ---- queries ---- */

int64_t stki_record_each(void (*visit)(void *context, const stki_record *record), void *context)
{
    int64_t missing;

    stki_lock(&lock);
    for (const stki_record *record = oldest; record; record = record->next)
        visit(context, record);
    missing = lost;
    stki_unlock(&lock);
    return missing;
}

int stk_storage_holders(const stk_storage *storage, stk_holder *holders, int max)
{
    const stki_record *record;
    int count = 0;

    stki_lock(&lock);
    record = atomic_load_explicit(&storage->record, memory_order_relaxed);
    for (const stki_holder *holder = record ? record->holders : NULL; holder; holder = holder->next, count++)
        if (count < max)
            holders[count] = holder->about;
    stki_unlock(&lock);
    return count;
}
