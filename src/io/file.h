/* file.h: files opened for reading only, mapped or read at a position. Files must be regular; they are opened
 * O_NONBLOCK so that a FIFO or a device can't hang an open. Sizes are taken at open (fstat). A file should not be cut
 * or written to while it is open; where it is, stki_file_read fails, and code that reads `map` itself calls
 * stki_file_intact afterwards. Any thread after open. */
#ifndef STKI_FILE_H
#define STKI_FILE_H

#include "counter.h"
#include "guard.h"
#include "reader.h"

typedef struct stki_file {
    stki_counter refs;
    char *path;
    int fd; /* -1: none is held, so that the number of files is not bound by descriptors: a mapped file needs none, and
               others are opened again for each read where the process has few */
    bool optional; /* fd serves only stki_file_resident of a mapped file */
    bool blind;    /* mapped, and nobody can tell whether a page is in memory */
    enum stki_pattern pattern;
    int64_t size, mtime_ns;
    uint64_t device, inode;
    const void
        *map; /* the whole file from offset 0, or NULL: use stki_file_read. No mapping is made of an empty file. */
    stki_guard *guard; /* of the mapping; NULL: none */
    char *from_root;   /* the path from the root, since the working directory may change; NULL: nobody knows it */
    bool watched;      /* it is asked whether it has changed */
    const struct stki_file
        *beside;          /* a file that is asked together with this one, and lives as long: an index; or NULL */
    _Atomic bool changed; /* somebody saw that it is not what was opened; stays */
    const char *access;   /* "mmap" or "pread" */
    const char *note;     /* static text: why mmap was asked for and is not used; or NULL */
    /* Written while the file is used; apart from the rest, which is read for every row. */
    char apart[128];
    stki_counter asked_ns;      /* when it was last looked at and found unchanged */
    stki_counter warm_until_ns; /* look-ahead found pages in memory and looks again after this; 0: it did not */
} stki_file;

/* STK_E_NOT_FOUND: no such file. STK_E_UNSUPPORTED: not a regular file. STK_E_RESOURCE: no descriptor is left, although
 * the thread has waited for one (descriptor.h). A mapping that fails, or would be one too many for the process, is no
 * error: the file is then read, and `note` says why. */
stk_status stki_file_open(const char *path, enum stki_access access, enum stki_pattern pattern, stki_file **out,
                          stk_error *err);
/* Counted: code that keeps the file beyond its opener's use of it retains it, and closes it too. */
stki_file *stki_file_retain(const stki_file *file);
void stki_file_close(stki_file *file); /* NULL is fine */
/* Exactly `bytes` from `offset`, retrying short reads and EINTR. STK_E_TRUNCATED: the file ends before. */
stk_status stki_file_read(const stki_file *file, int64_t offset, void *to, int64_t bytes, stk_error *err);
/* Is the file still what was opened? To be asked after its bytes were used and before they are relied on, since a page
 * of the mapping that is gone reads as zeros, and a positional read gives what the file has become. The mark of the
 * guard costs nothing; size, time of writing and inode are asked of the system (microseconds), as a cut inside the last
 * page raises no signal. A file that was deleted is still what it was. STK_E_TRUNCATED: it is shorter. STK_E_CORRUPT:
 * written to, or replaced by another file. STK_E_IO: a page could not be read. Always fine: a file that is neither
 * watched nor guarded. */
stk_status stki_file_intact(const stki_file *file, int64_t record, stk_error *err);
/* The same where only these bytes were used: a page that could not be read elsewhere is beside the point. */
stk_status stki_file_intact_in(const stki_file *file, const stki_range *ranges, int count, int64_t record,
                               stk_error *err);
/* The same of a sample of reader->file, which must not be NULL: it is named as the record. */
stk_status stki_reader_intact(const stki_reader *reader, int64_t index, stk_error *err);
/* The same without asking the system: known to be changed, or marked by the guard. */
bool stki_file_known_changed(const stki_file *file);
/* Is the range in the page cache, as far as its first pages (mapped) or its ends (read) tell? One cheap call; true
 * also where the system can't say. */
bool stki_file_resident(const stki_file *file, int64_t offset, int64_t bytes);
/* At the last look-ahead, what was looked at was resident. False where there was none. */
static inline bool stki_file_was_resident(const stki_file *file)
{
    return stki_counted(&file->warm_until_ns) > 0;
}
/* On a disk or in the memory of this machine, as far as the kind of its file system tells. */
bool stki_file_is_local(const stki_file *file);
/* Asks the system to read the range soon, resident or not. Does not wait for it. */
void stki_file_advise(const stki_file *file, int64_t offset, int64_t bytes);
/* Advice ahead of use; cheap when the range is resident. */
void stki_file_will_need(const stki_file *file, int64_t offset, int64_t bytes);

/* Where the samples of an array in a file lie: sample i is `bytes` from offset + i * stride. */
typedef struct stki_file_rows {
    int64_t offset, stride, bytes;
} stki_file_rows;

/* The same for samples in their order of use: a part of one of them is asked for; if it is resident, so are most and
 * nothing is done, otherwise all are advised, neighbours merged into one range. Nothing is done for a mapped file that
 * was opened with STKI_PATTERN_SEQUENTIAL. Indices must be valid. */
void stki_file_will_need_rows(const stki_file *file, const stki_file_rows *rows, const int64_t *indices, int64_t count);

/* The same for samples that lie anywhere. Finding out where costs its own time, so ask first whether it is due. */
bool stki_file_advice_due(const stki_file *file);
void stki_file_will_need_ranges(const stki_file *file, const stki_range *ranges, int64_t count);

#endif
