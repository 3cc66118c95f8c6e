/* loadbench_cache.h: measures how much of the data is in the page cache, and loads or evicts all of it. The most common
 * mistake in such benchmarks is to measure memory instead of the disk.
 *
 * mincore is only reliable for files that the caller owns or may write to; for others it reports that every page is
 * resident. The residency of such files is reported as unknown. */
#ifndef LOADBENCH_CACHE_H
#define LOADBENCH_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum lb_cache { LB_CACHE_AS_IS, LB_CACHE_WARM, LB_CACHE_COLD };
extern const char *const lb_cache_words[]; /* "as-is", "warm", "cold", NULL */

/* The data files: those named by the config, and all files in folders named by it. */
struct lb_files {
    char **paths;
    int64_t count, room;
    int64_t bytes; /* total size */
    bool others;   /* the list is incomplete: other files are named only inside a file, such as a list of images */
};

/* Adds a file, or every file below a folder. Unreadable files are skipped, because the loader reports them. A name that
 * does not exist, such as NAME for NAME.bin and NAME.idx, sets `others`. */
stk_status lb_files_add(struct lb_files *files, const char *path, stk_error *err);
void lb_files_fini(struct lb_files *files);

struct lb_residency {
    bool known;                    /* if false, `why` has the reason */
    int64_t bytes, resident_bytes; /* size of the checked files, in whole pages */
    int64_t files, asked;          /* number of files; number of files checked, evenly spaced if there are many */
    char why[256];
};

/* Returns the resident fraction, 0 to 1; 1 if there are no bytes. */
double lb_residency_share(const struct lb_residency *residency);
/* After a stop signal, very many or very large files are not checked and their residency is unknown. */
stk_status lb_residency_read(const struct lb_files *files, struct lb_residency *out, stk_error *err);
/* Adds the residency of a range of whole pages of one open file to `out`, in which the caller has set `known`. */
stk_status lb_residency_of(int descriptor, const char *path, int64_t offset, int64_t bytes, struct lb_residency *out,
                           stk_error *err);

/* Loads every file into the page cache by reading it once. STK_E_LIMIT: the files are larger than the available memory.
 * STK_END, here and below: interrupted by a stop signal. */
stk_status lb_cache_fill(const struct lb_files *files, stk_error *err);
/* Writes back dirty pages and evicts the pages of every file. STK_E_UNSUPPORTED: more than LB_COLD_SHARE of the pages
 * are still resident, or their residency is unknown, so a run might not be cold. */
stk_status lb_cache_drop(const struct lb_files *files, stk_error *err);
#define LB_COLD_SHARE 0.01

struct lb_file_pages {
    unsigned char *pages; /* one byte per page; NULL: unknown */
    int64_t count;        /* number of pages at that time; the file may have changed since */
};

/* The resident pages of the files, so that pages loaded by a measurement can be evicted again. */
struct lb_pages {
    const struct lb_files *files;
    struct lb_file_pages *resident; /* pages of each file */
};
/* Records the resident pages. Does nothing for more than LB_PAGES_FILES files or LB_PAGES_BYTES, which would take
 * seconds. */
stk_status lb_pages_note(const struct lb_files *files, struct lb_pages *out, stk_error *err);
/* Evicts pages that were not resident when recorded, and frees `pages`. */
void lb_pages_put_back(struct lb_pages *pages);
enum { LB_PAGES_FILES = 4096 };
#define LB_PAGES_BYTES (INT64_C(256) << 30)

#endif
