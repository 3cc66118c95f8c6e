/* record.h: the recording of storages and of the tensors that hold them (stoker/profile.h). A storage made while
 * recording has a record; a tensor over it bears a number in its `reserved` member, which names it as a holder. */
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
    bool outside; /* memory of somebody else */
    const char *operation;
    char tag[64];
    stki_holder *holders;
};

/* Called by the storage. Nothing happens unless recording is on; a record that finds no memory is counted as lost. */
void stki_record_storage(stk_storage *storage, bool outside);
void stki_record_storage_end(stk_storage *storage);
/* Called where tensors come and go. `tensor` becomes a holder under a number of its own. */
void stki_record_holder(stk_tensor *tensor);
void stki_record_retain(const stk_tensor *tensor);
void stki_record_release(const stk_tensor *tensor);

/* What the calling thread's new storages are tagged with; "" without a tag. Valid until its tags change. */
const char *stki_record_tag(void);

/* The tensor's shape, strides or address are others now than when it became a holder. */
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

/* Calls `visit` for every record, oldest first, with the recording at rest. Returns how many records were lost. */
int64_t stki_record_each(void (*visit)(void *context, const stki_record *record), void *context);

#endif
