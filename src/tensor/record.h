/* record.h: records storages and the tensors that hold them (stoker/profile.h). A storage created while recording is on
 * has a record; a tensor over it has a number in its `reserved` member, which identifies it as a holder. */
#ifndef STKI_RECORD_H
#define STKI_RECORD_H

#include "profile_scope.h"

typedef struct stki_record stki_record;
typedef struct stki_holder stki_holder;

struct stki_holder {
    stki_holder *next;
    uint32_t number;
    stk_holder about;
};

struct stki_record {
    stki_record *next, *before;
    stk_storage *storage;
    int64_t number, made_ns;
    bool outside; /* memory not owned by the library */
    const char *operation;
    char tag[64];
    stki_holder *holders;
};

/* Record the beginning and end of a storage. No effect unless recording is on; a record that cannot be allocated is
 * counted as lost. */
void stki_record_storage(stk_storage *storage, bool outside);
void stki_record_storage_end(stk_storage *storage);
/* Called when tensors are created and released. `tensor` becomes a holder with a new number. */
void stki_record_holder(stk_tensor *tensor);
void stki_record_retain(const stk_tensor *tensor);
void stki_record_release(const stk_tensor *tensor);

/* The tag of the calling thread's new storages; "" if none. Valid until the thread's tags change. */
const char *stki_record_tag(void);

/* Called when the tensor's shape, strides or address have changed since it became a holder. */
void stki_record_changed(const stk_tensor *tensor);
static inline void stki_record_geometry(const stk_tensor *tensor)
{
    if (tensor->reserved)
        stki_record_changed(tensor);
}

static inline bool stki_recording(void)
{
    return (stki_watched() & STKI_WATCH_RECORD) != 0;
}

/* Calls `visit` for every record, oldest first, while recording is blocked. Returns the number of lost records. */
int64_t stki_record_each(void (*visit)(void *context, const stki_record *record), void *context);

#endif
