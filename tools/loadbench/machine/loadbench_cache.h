/* loadbench_cache.h: which part of the data lies in the page cache, and how to bring it all there, or none of it. The
 * most frequent mistake of such measurements is to take the memory for the disk.
 *
 * The system (mincore) tells the truth about files that belong to the caller or that the caller may write to; of
 * others it says that every page is there. Their residency is then unknown, and is said to be. File systems that
 * keep their data elsewhere (in a cache of their own, or nowhere but in memory) are named where it can be told. */
#ifndef LOADBENCH_CACHE_H
#define LOADBENCH_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum lb_cache { LB_CACHE_AS_IS, LB_CACHE_WARM, LB_CACHE_COLD };
extern const char *const lb_cache_words[]; /* "as-is", "warm", "cold", NULL */

/* The files of the data: those that the config names, and all that lie in the folders it names. */
struct lb_files {
    char **paths;
    int64_t count, room;
    int64_t bytes; /* of all of them together */
    bool others;   /* there are more, which only a file of them names (a list of images): nobody can speak for all */
};

/* Adds a file, or every file below a folder. What cannot be read is left out: the loader says what is missing. What is
 * not there by that name (NAME of NAME.bin and NAME.idx) makes `others` true. */
stk_status lb_files_add(struct lb_files *files, const char *path, stk_error *err);
void lb_files_fini(struct lb_files *files);

struct lb_residency {
    bool known;                    /* false: nobody can tell, `why` says why */
    int64_t bytes, resident_bytes; /* of the files that were asked about, whole pages */
    int64_t files, asked;          /* there are; were asked about (of very many files an even part) */
    char why[256];
};

/* 0 to 1; 1 of no bytes. */
double lb_residency_share(const struct lb_residency *residency);
/* Of very many or very large files it is unknown when a signal has asked to stop. */
stk_status lb_residency_read(const struct lb_files *files, struct lb_residency *out, stk_error *err);
/* The same of one open file and a range of it, which is whole pages. */
stk_status lb_residency_of(int descriptor, const char *path, int64_t offset, int64_t bytes, struct lb_residency *out,
                           stk_error *err);

/* Reads every file once. STK_E_LIMIT: they are more than the memory that is left. STK_END, here and below: a signal
 * asked to stop before all were. */
stk_status lb_cache_fill(const struct lb_files *files, stk_error *err);
/* Writes out what is unwritten and lets the pages of every file go. STK_E_UNSUPPORTED: more than LB_COLD_SHARE of them
 * are still there, or nobody can tell: a run would not be cold. */
stk_status lb_cache_drop(const struct lb_files *files, stk_error *err);
#define LB_COLD_SHARE 0.01

struct lb_file_pages {
    unsigned char *pages; /* a byte for each page; NULL: not known */
    int64_t count;        /* then; the file may have changed since */
};

/* Which pages of the files are in memory, so that what a measurement reads in can be let go again. */
struct lb_pages {
    const struct lb_files *files;
    struct lb_file_pages *resident; /* of each file */
};
/* Of more than LB_PAGES_FILES files or LB_PAGES_BYTES nothing is noted: it would take seconds. */
stk_status lb_pages_note(const struct lb_files *files, struct lb_pages *out, stk_error *err);
/* Lets go of the pages that were not in memory when they were noted, and frees `pages`. */
void lb_pages_put_back(struct lb_pages *pages);
enum { LB_PAGES_FILES = 4096 };
#define LB_PAGES_BYTES (INT64_C(256) << 30)

#endif
