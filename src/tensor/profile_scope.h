/* profile_scope.h: what an operation says of itself. One line at the start of a public function,
 *
 *     STKI_PROFILE("clone");
 *
 * and its calls, time and bytes are counted while the profile is on, and storages made inside it bear its name while
 * recording. The scope ends with the block that the line stands in. Otherwise it costs a load and a branch.
 */
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

/* One for each place that says STKI_PROFILE; in a list from its first call on, for good. */
typedef struct stki_profile_row {
    const char *name;
    _Atomic bool listed;
    struct stki_profile_row *next;
    stki_counter calls, time_ns, own_ns, bytes;
} stki_profile_row;

typedef struct stki_profile_scope {
    stki_profile_row *row; /* NULL: nobody watches */
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
/* For functions that are several operations: a row that is there for good. */
#define STKI_PROFILE_ROW(which)                                                                  \
    stki_profile_scope stki_scope_ __attribute__((cleanup(stki_profile_leave))) = {.row = NULL}; \
    if (stki_watched())                                                                          \
    stki_profile_begin(&stki_scope_, which)

/* The outermost operation that this thread is in; "" outside of any. */
const char *stki_profile_operation(void);
/* A storage of this thread got memory. */
void stki_profile_allocated(int64_t bytes);

#endif
