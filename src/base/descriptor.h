/* descriptor.h: file descriptors, a limited resource shared with the rest of the process. If the process has run out of
 * them, stki_descriptor_open waits for one as long as stki_patience_set allows, because the file being opened is not at
 * fault. Files that can be reopened for each read close theirs before the process runs out. Thread-safe. */
#ifndef STKI_DESCRIPTOR_H
#define STKI_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

/* How long a thread waits if the process is out of descriptors or the kernel is out of memory. */
typedef struct stki_patience {
    int64_t ns;
    bool (*given_up)(
        const void *context); /* polled while waiting: true if the result is no longer needed; NULL: never */
    const void *context;
} stki_patience;

/* Sets the patience of the calling thread. The caller owns the struct, which must stay valid while it is set. NULL: do
 * not wait. */
void stki_patience_set(const stki_patience *patience);

/* open(2) for reading, with O_CLOEXEC and `flags`, retried after EINTR. Returns -1 and sets errno on failure.
 * stki_descriptor_open waits as long as the thread's patience allows; stki_descriptor_try never waits. */
int stki_descriptor_open(const char *path, int flags);
int stki_descriptor_try(const char *path, int flags);

/* Whether one more descriptor may be kept open permanently. 25 % of the limit, but at least 64, is reserved for other
 * code and for files that are opened briefly. False: the caller must close it. `optional`: the descriptor is for an
 * optional check; fewer of those may be kept open. */
bool stki_descriptor_keep(bool optional);
void stki_descriptor_kept_no_more(bool optional);

#endif
