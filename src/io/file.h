/* file.h: read-only files, mapped or read with pread. Files must be regular; they are opened with O_NONBLOCK, so that
 * opening a FIFO or device does not block. The size is taken at open (fstat). Files should not be truncated or written
 * to while they are open. If they are, stki_file_read fails, and code that reads `map` must detect it by calling
 * stki_file_intact afterwards. Thread-safe after open. */
#ifndef STKI_FILE_H
#define STKI_FILE_H

#include "counter.h"
#include "guard.h"
#include "reader.h"
#include "residency.h"

typedef struct stki_file {
    stki_counter refs;
    char *path;
    int fd;        /* -1: no descriptor is held. Mapped files need none, and other files are reopened for each read if
                      descriptors are scarce, so the number of files is not limited by descriptors. */
    bool optional; /* the file is mapped, and only stki_file_resident uses fd */
    bool blind;    /* the file is mapped, and the residency of its pages cannot be determined */
    enum stki_pattern pattern;
    int64_t size, mtime_ns;
    uint64_t device, inode;
    const void *map;   /* the whole file from offset 0; NULL: use stki_file_read. Empty files are not mapped. */
    stki_guard *guard; /* guard of the mapping; NULL: none */
    char *from_root;   /* absolute path, since the working directory may change; NULL: unknown */
    bool watched;      /* the file is checked for changes */
    /* A file, such as an index, that is checked for changes together with this one; owned; set before this file is used
     * by other threads. NULL: none. */
    struct stki_file *beside;
    _Atomic bool changed; /* a change was detected; never reset */
    const char *access;   /* "mmap" or "pread" */
    const char *note;     /* static text that explains why a requested mmap is not used; or NULL */
    /* The members below are written during use. They are on separate cache lines, because the members above are read
     * for every row. */
    char apart[128];
    stki_counter asked_ns; /* time of the last check that found the file unchanged */
    stki_residency residency;
} stki_file;

/* Opens a file. STK_E_NOT_FOUND: there is no such file. STK_E_UNSUPPORTED: it is not a regular file. STK_E_RESOURCE:
 * there is no free descriptor, even after waiting (descriptor.h). If mapping fails or would exceed the limit on
 * mappings, the file is read with pread instead and `note` states the reason. */
stk_status stki_file_open(const char *path, enum stki_access access, enum stki_pattern pattern, stki_file **out,
                          stk_error *err);
/* Reference-counted: code that uses the file after its opener may have closed it must retain it, and close it when
 * done. */
stki_file *stki_file_retain(const stki_file *file);
void stki_file_close(stki_file *file); /* NULL is allowed */
/* Reads exactly `bytes` at `offset`, retrying short reads and EINTR. STK_E_TRUNCATED: the file is too short. */
stk_status stki_file_read(const stki_file *file, int64_t offset, void *to, int64_t bytes, stk_error *err);
/* Checks that the file has not changed since it was opened. Call it after using its bytes and before relying on them,
 * because missing pages of a mapping read as zeros, and pread returns the current contents. Checking the guard's mark
 * costs nothing. Checking size, modification time and inode takes a system call (microseconds), which is needed because
 * truncation inside the last page raises no signal. A deleted file counts as unchanged. STK_E_TRUNCATED: the file is
 * shorter. STK_E_CORRUPT: it was modified or replaced. STK_E_IO: a page could not be read. Always returns STK_OK for a
 * file that is neither watched nor guarded. */
stk_status stki_file_intact(const stki_file *file, int64_t record, stk_error *err);
/* Like stki_file_intact, for a caller that used only these ranges: unreadable pages elsewhere are ignored. */
stk_status stki_file_intact_in(const stki_file *file, const stki_range *ranges, int count, int64_t record,
                               stk_error *err);
/* Like stki_file_intact_in, for a sample of reader->file, which must not be NULL. The error names the sample as the
 * record. */
stk_status stki_reader_intact(const stki_reader *reader, int64_t index, stk_error *err);
/* Whether the file is already known to have changed, or is marked by the guard. Makes no system call. */
bool stki_file_known_changed(const stki_file *file);
/* Whether the range is in the page cache. Checks only its first pages, or its first and last byte if there is a
 * descriptor, which is cheap. False if it cannot be determined for this file; true if the range is not inside the file
 * or the query fails. */
bool stki_file_resident(const stki_file *file, int64_t offset, int64_t bytes);
/* Whether the last residency check, and all checks in the STKI_COLD_FOR_NS before it, found resident pages. False if
 * there has been no check. */
static inline bool stki_file_was_resident(const stki_file *file)
{
    return stki_counted(&file->residency.warm_until_ns) > 0;
}
/* Whether the file is on a local disk or in memory, according to the type of its file system. */
bool stki_file_is_local(const stki_file *file);
/* Advises the kernel to read the range ahead, whether it is resident or not. Does not block. */
void stki_file_advise(const stki_file *file, int64_t offset, int64_t bytes);
/* Gives that advice only if the range is not resident. */
void stki_file_will_need(const stki_file *file, int64_t offset, int64_t bytes);

/* Locations of an array's samples in a file: sample i has `bytes` bytes at offset + i * stride. */
typedef struct stki_file_rows {
    int64_t offset, stride, bytes;
} stki_file_rows;

/* Like stki_file_will_need, for samples in the order in which they will be used. Checks whether part of one sample is
 * resident. If it is, and every check in the last STKI_COLD_FOR_NS found resident pages, does nothing. Otherwise
 * advises the kernel to read all samples, merging adjacent ranges. Does nothing for a mapped file opened with
 * STKI_PATTERN_SEQUENTIAL. Indexes must be valid. */
void stki_file_will_need_rows(const stki_file *file, const stki_file_rows *rows, const int64_t *indices, int64_t count);

/* For samples at arbitrary locations: stki_file_will_need_ranges advises the kernel to read them. Because locating
 * samples takes time, call stki_file_advice_due first, which checks whether advice is needed. */
bool stki_file_advice_due(const stki_file *file);
void stki_file_will_need_ranges(const stki_file *file, const stki_range *ranges, int64_t count);

#endif
