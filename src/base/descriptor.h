/* descriptor.h: file descriptors, which a process has few of and shares with whatever else it runs. Running out of them
 * is never the fault of the file that was to be opened: a thread with patience waits until one is free again, and files
 * that may be opened again for each read give theirs up before the process runs short. Any thread. */
#ifndef STKI_DESCRIPTOR_H
#define STKI_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

/* How long a thread waits for the process to have descriptors, or the kernel memory, again. */
typedef struct stki_patience {
    int64_t ns;
    bool (*given_up)(const void *context); /* asked now and then: nobody waits for the result any more; NULL: never */
    const void *context;
} stki_patience;

/* Of the calling thread from now on; the struct stays the caller's. NULL: it does not wait. */
void stki_patience_set(const stki_patience *patience);

/* open(2) for reading, with O_CLOEXEC and `flags`, interrupted or not; -1 and errno. Waits as patient as the thread is;
 * `try` never waits. */
int stki_descriptor_open(const char *path, int flags);
int stki_descriptor_try(const char *path, int flags);

/* May one more be held for good? The rest, a quarter of what the process may have and at least 64, is left to others
 * and to files that are opened for a moment. False: it is to be closed. `optional`: it serves a question that can be
 * left out, of which there are to be few. */
bool stki_descriptor_keep(bool optional);
void stki_descriptor_kept_no_more(bool optional);

#endif
