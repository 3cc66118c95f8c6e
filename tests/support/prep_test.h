/* prep_test.h: preparation jobs in tests: inputs of known bytes, jobs from a printf-style text, and comparison of whole
 * files. */
#ifndef STKT_PREP_TEST_H
#define STKT_PREP_TEST_H

#include "io_files.h"
#include "stk_test.h"
#include <dirent.h>
#include <stoker/stoker.h>

/* Byte k of row r of the inputs. */
static inline uint8_t stkt_prep_byte(int64_t r, int64_t k)
{
    return (uint8_t)((r * 2654435761u + k * 40503u) >> 7);
}

/* Writes NAME.npy with rows x bytes of u8 and NAME.label.npy with i64 labels r % 7. */
static inline void stkt_prep_inputs(const char *name, int64_t rows, int64_t bytes)
{
    char path[512];
    stk_npy_writer *x, *y;
    uint8_t *row = malloc((size_t)bytes);
    stk_error err = {0};

    snprintf(path, sizeof path, "%s.npy", name);
    assert_ok(stk_npy_create(path, STK_U8, 1, &bytes, false, &x, &err));
    snprintf(path, sizeof path, "%s.label.npy", name);
    assert_ok(stk_npy_create(path, STK_I64, 0, NULL, false, &y, &err));
    for (int64_t r = 0; r < rows; r++) {
        int64_t label = r % 7;

        for (int64_t k = 0; k < bytes; k++)
            row[k] = stkt_prep_byte(r, k);
        assert_ok(stk_npy_append(x, row, 1, &err));
        assert_ok(stk_npy_append(y, &label, 1, &err));
    }
    assert_ok(stk_npy_commit(x, &err));
    assert_ok(stk_npy_commit(y, &err));
    free(row);
}

/* The contents of a file; the caller frees them. */
static inline char *stkt_read_all(const char *path, int64_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text;

    *bytes = -1;
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *bytes = ftell(file);
    rewind(file);
    text = malloc((size_t)*bytes + 1);
    if (fread(text, 1, (size_t)*bytes, file) != (size_t)*bytes)
        abort();
    text[*bytes] = '\0';
    fclose(file);
    return text;
}

static inline void stkt_same_file(const char *a, const char *b)
{
    int64_t na, nb, at = 0;
    char *ta = stkt_read_all(a, &na), *tb = stkt_read_all(b, &nb);

    if (!ta || !tb)
        fail_msg("%s is %s; %s is %s", a, ta ? "present" : "missing", b, tb ? "present" : "missing");
    while (at < na && at < nb && ta[at] == tb[at])
        at++;
    if (at < na || at < nb)
        fail_msg("%s and %s differ at byte %lld of %lld and %lld", a, b, (long long)at, (long long)na, (long long)nb);
    free(ta);
    free(tb);
}

static inline bool stkt_is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The number of entries of a folder whose names contain `part`, or -1 if there is no such folder. */
static inline int stkt_count_names(const char *folder, const char *part)
{
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    int count = 0;

    if (!listing)
        return -1;
    while ((entry = readdir(listing)) != NULL)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
    closedir(listing);
    return count;
}

/* Opens, runs and destroys a job. */
static inline stk_status stkt_prep_run(const stk_prep_opts *opts, stk_prep_result *result, stk_error *err,
                                       const char *text)
{
    stk_prep *job = NULL;
    stk_prep_result ignored = {.struct_size = sizeof ignored};
    stk_status status = stk_prep_open_text(text, NULL, NULL, 0, opts, &job, err);

    if (status == STK_OK)
        status = stk_prep_run(job, err);
    if (job)
        (void)stk_prep_get_result(job, result ? result : &ignored, NULL);
    stk_prep_destroy(job);
    return status;
}

/* A printf-style string in one of 8 buffers. */
static inline STK_PRINTF(1, 2) const char *stkt_text(const char *format, ...)
{
    static char texts[8][4096];
    static unsigned next;
    char *text = texts[next++ % 8];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof texts[0], format, args);
    va_end(args);
    return text;
}

#endif
