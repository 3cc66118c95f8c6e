/* profile_scope.h: profiling of operations. With STKI_PROFILE("clone"); at the start of a public function, its calls,
 * time and bytes are counted while profiling is on, and storages created inside it carry its name while recording is
 * on. The scope ends with the enclosing block. When profiling is off, the cost is a load and a branch. */
#ifndef STKI_PROFILE_SCOPE_H
#define STKI_PROFILE_SCOPE_H

#include "counter.h"
#include <stoker/profile.h>

enum { STKI_WATCH_PROFILE = 1, STKI_WATCH_RECORD = 2 };
extern _Atomic int stki_watching;

static inline int stki_watched(void)
{
    return atomic_load_explicit(&stki_watching, memory_order_relaxed);
}

/* One per use of STKI_PROFILE; added to a list at its first call and never removed. */
typedef struct stki_profile_row {
    const char *name;
    _Atomic bool listed;
    struct stki_profile_row *next;
    stki_counter calls, time_ns, own_ns, bytes;
} stki_profile_row;

typedef struct stki_profile_scope {
    stki_profile_row *row; /* NULL: profiling is off */
    struct stki_profile_scope *outer;
    int64_t start_ns, inner_ns, start_bytes;
} stki_profile_scope;

void stki_profile_begin(stki_profile_scope *scope, stki_profile_row *row);
void stki_profile_end(stki_profile_scope *scope);

static inline void stki_profile_leave(stki_profile_scope *scope)
{
    if (scope->row)
        stki_profile_end(scope);
}

#define STKI_PROFILE(text)                              \
    static stki_profile_row stki_row_ = {.name = text}; \
    STKI_PROFILE_ROW(&stki_row_)
/* Like STKI_PROFILE with an existing static row, for functions that implement several operations. */
#define STKI_PROFILE_ROW(which)                                                                  \
    stki_profile_scope stki_scope_ __attribute__((cleanup(stki_profile_leave))) = {.row = NULL}; \
    if (stki_watched())                                                                          \
    stki_profile_begin(&stki_scope_, which)

/* The outermost operation that this thread is executing; "" if none. */
const char *stki_profile_operation(void);
/* Counts memory allocated for a storage by this thread. */
void stki_profile_allocated(int64_t bytes);

#endif
