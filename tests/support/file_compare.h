/* file_compare.h: reads, compares and counts whole files. */
#ifndef STKT_FILE_COMPARE_H
#define STKT_FILE_COMPARE_H

#include "io_files.h"
#include "stk_test.h"
#include <dirent.h>

/* The contents of a file, followed by a NUL. The caller frees them. */
static inline char *stkt_read_whole(const char *path, int64_t *count)
{
    FILE *file = fopen(path, "rb");
    char *bytes;

    if (!file)
        fail_msg("%s does not exist", path);
    fseek(file, 0, SEEK_END);
    *count = ftell(file);
    rewind(file);
    bytes = malloc((size_t)*count + 1);
    assert_int_equal(fread(bytes, 1, (size_t)*count, file), *count);
    bytes[*count] = '\0';
    fclose(file);
    return bytes;
}

static inline void stkt_same_files(const char *found, const char *expected)
{
    int64_t a_count, b_count;
    char *a = stkt_read_whole(found, &a_count), *b = stkt_read_whole(expected, &b_count);

    if (a_count != b_count)
        fail_msg("%s has %d bytes, but %s has %d", found, (int)a_count, expected, (int)b_count);
    for (int64_t i = 0; i < a_count; i++)
        if (a[i] != b[i])
            fail_msg("%s differs from %s at byte %d of %d", found, expected, (int)i, (int)a_count);
    free(a);
    free(b);
}

/* The number of files in the program's directory whose names begin with `name`. */
static inline int stkt_files_beginning(const char *name)
{
    DIR *dir = opendir(stkt_dir);
    struct dirent *entry;
    int count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        count += strncmp(entry->d_name, name, strlen(name)) == 0;
    closedir(dir);
    return count;
}

#endif
