/* file.h: files opened for reading only, mapped or read at a position. Files must be regular; they are opened
 * O_NONBLOCK so that a FIFO or a device can't hang an open. Sizes are taken at open (fstat); files must not be cut
 * while they are open. Any thread after open. */
#ifndef STKI_FILE_H
#define STKI_FILE_H

#include "reader.h"

typedef struct stki_file {
    char *path;
    int fd;
    int64_t size, mtime_ns;
    uint64_t device, inode;
    const void
        *map; /* the whole file from offset 0, or NULL: use stki_file_read. No mapping is made of an empty file. */
    const char *access; /* "mmap" or "pread" */
    const char *note;   /* static text: why mmap was asked for and is not used; or NULL */
} stki_file;

stk_status stki_file_open(const char *path, enum stki_access access, enum stki_pattern pattern, stki_file **out,
                          stk_error *err);
void stki_file_close(stki_file *file); /* NULL is fine */
/* Exactly `bytes` from `offset`, retrying short reads and EINTR. STK_E_TRUNCATED: the file ends before. */
stk_status stki_file_read(const stki_file *file, int64_t offset, void *to, int64_t bytes, stk_error *err);
/* Advice ahead of use; cheap when the range is resident. */
void stki_file_will_need(const stki_file *file, int64_t offset, int64_t bytes);

/* Test hooks: let the next n mappings fail; make reads short (at most n bytes a call; 0 off); make the n-th read from
 * now fail with an errno. */
void stki_file_test_fail_maps(int64_t n);
void stki_file_test_short_reads(int64_t bytes);
void stki_file_test_fail_read(int64_t n, int error_number);

#endif
