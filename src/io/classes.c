/* classes.c: see classes.h. There can be as many names as samples, so each name must be cheap: a few bytes in addition
 * to its text, one hash computation per occurrence, and its share of a single sort. */
#include "classes.h"
#include "allocate.h"
#include "digest.h"
#include "error.h"
#include "file.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 /* must be a power of two */ };

void stki_classes_fini(stki_classes *classes)
{
    stki_free(classes->names.text);
    stki_free(classes->name_at);
    stki_free(classes->table);
    *classes = (stki_classes){0};
}

int64_t stki_classes_bytes(const stki_classes *classes)
{
    return classes->names.room + 3 * classes->room * (int64_t)sizeof(int64_t);
}

/* ---- finding ---- */

/* Returns the name's slot in the hash table, or the free slot in which it belongs. The table is never full. */
static int64_t *place_of(const stki_classes *classes, const char *name)
{
    const uint64_t mask = (uint64_t)(2 * classes->room - 1);
    uint64_t at = stki_digest_64(name, (int64_t)strlen(name)) & mask;

    while (classes->table[at] > 0 && strcmp(stki_classes_name(classes, classes->table[at] - 1), name) != 0)
        at = (at + 1) & mask;
    return &classes->table[at];
}

int64_t stki_classes_find(const stki_classes *classes, const char *name)
{
    return classes->count > 0 ? *place_of(classes, name) - 1 : -1;
}

static void fill_table(stki_classes *classes)
{
    memset(classes->table, 0, (size_t)(2 * classes->room) * sizeof *classes->table);
    for (int64_t i = 0; i < classes->count; i++)
        *place_of(classes, stki_classes_name(classes, i)) = i + 1;
}

/* ---- adding ---- */

static stk_status grow(stki_classes *classes, stk_error *err)
{
    const int64_t room = classes->room ? 2 * classes->room : FIRST_ROOM, bytes = room * (int64_t)sizeof(int64_t);
    int64_t *name_at = stki_resize(classes->name_at, bytes), *table;

    classes->name_at = name_at ? name_at : classes->name_at;
    table = name_at ? stki_resize(classes->table, 2 * bytes) : NULL;
    if (!table)
        return stki_fail_memory(err, 2 * bytes, "the class names");
    classes->table = table;
    classes->room = room;
    fill_table(classes);
    return STK_OK;
}

stk_status stki_classes_add(stki_classes *classes, const char *name, int64_t *number, stk_error *err)
{
    const int64_t at = classes->names.length;
    int64_t found = stki_classes_find(classes, name);

    if (found < 0) {
        if (classes->count == classes->room && grow(classes, err) != STK_OK)
            return STK_E_MEMORY;
        stki_put_bytes(&classes->names, name, (int64_t)strlen(name) + 1);
        if (classes->names.failed)
            return stki_fail_memory(err, at + (int64_t)strlen(name) + 1, "the class names");
        found = classes->count;
        *place_of(classes, name) = found + 1;
        classes->name_at[found] = at;
        classes->count++;
    }
    if (number)
        *number = found;
    return STK_OK;
}

stk_status stki_classes_add_all(stki_classes *classes, const stki_classes *more, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < more->count && status == STK_OK; i++)
        status = stki_classes_add(classes, stki_classes_name(more, i), NULL, err);
    return status;
}

/* ---- sorting ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

stk_status stki_classes_sort(stki_classes *classes, stk_error *err)
{
    const char **names;

    if (classes->count < 2)
        return STK_OK;
    names = stki_zalloc_array(classes->count, sizeof *names);
    if (!names)
        return stki_fail_memory(err, classes->count * (int64_t)sizeof *names, "sorting the class names");
    for (int64_t i = 0; i < classes->count; i++)
        names[i] = stki_classes_name(classes, i);
    qsort(names, (size_t)classes->count, sizeof *names, by_name);
    for (int64_t i = 0; i < classes->count; i++)
        classes->name_at[i] = names[i] - classes->names.text;
    stki_free(names);
    fill_table(classes);
    return STK_OK;
}

/* ---- texts ---- */

bool stki_classes_are_texts(const stki_reader *reader)
{
    return reader->variable && reader->dtype == STK_U8 && reader->ndim == 1 && !reader->image;
}

static stk_status fail_text(const stki_reader *reader, int64_t index, const char *bytes, int64_t count,
                            const char *expected, stk_error *err)
{
    char where[STKI_READER_WHERE];

    return stki_fail_at(
        err, STK_E_BAD_VALUE,
        (stki_place){reader->path, index, -1,
                     count == 0 ? "an empty string" : STKI_TEXT("%.*s", count < 32 ? (int)count : 32, bytes), expected},
        "%sinvalid class name", stki_reader_where(reader, index, where));
}

static stk_status take_text(const stki_reader *reader, int64_t index, const stk_tensor *text, char *name,
                            stki_classes *out, int64_t *number, stk_error *err)
{
    const int64_t count = text->shape[0];

    if (count == 0 || count > STKI_CLASS_NAME)
        return fail_text(reader, index, text->data, count, "a name of 1 to 4096 bytes", err);
    if (memchr(text->data, '\0', (size_t)count))
        return fail_text(reader, index, text->data, count, "a name without NUL bytes", err);
    memcpy(name, text->data, (size_t)count);
    name[count] = '\0';
    return stki_classes_add(out, name, number, err);
}

stk_status stki_classes_of_texts(const stki_reader *reader, stki_classes *out, int64_t *numbers, stk_error *err)
{
    char *name = stki_zalloc(STKI_CLASS_NAME + 1);
    stki_scratch scratch;
    stk_status status = name ? STK_OK : stki_fail_memory(err, STKI_CLASS_NAME + 1, "the name of a class");

    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && status == STK_OK; i++) {
        stk_tensor text;

        status = reader->ops->read(reader, i, NULL, &scratch, &text, err);
        if (status != STK_OK)
            break;
        status = take_text(reader, i, &text, name, out, numbers ? &numbers[i] : NULL, err);
        stki_reader_done(reader, &text);
    }
    stki_scratch_fini(&scratch);
    stki_free(name);
    return status;
}

/* ---- a file of names ---- */

static stk_status fail_line(const char *path, int64_t line, const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, -1, found, expected}, "line %" PRId64, line);
}

/* Parses [at, end), which is modified and must have room for a NUL at its end. */
static stk_status take_lines(const char *path, char *at, char *end, stki_classes *out, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t line = 1; at < end && status == STK_OK; line++) {
        char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
        const int64_t before = out->count;

        stop = stop ? stop : end;
        if (memchr(at, '\0', (size_t)(stop - at)))
            return fail_line(path, line, "a NUL byte", "text: one class name per line", err);
        if (stop > at && stop[-1] == '\r')
            stop--;
        *stop = '\0';
        if (stop == at)
            return fail_line(path, line, "an empty line", "the name of a class", err);
        if (stop - at > STKI_CLASS_NAME)
            return fail_line(path, line, STKI_TEXT("%td bytes", stop - at), "a name of at most 4096 bytes", err);
        status = stki_classes_add(out, at, NULL, err);
        if (status == STK_OK && out->count == before)
            return fail_line(path, line, STKI_TEXT("%s a second time", at), "unique names", err);
        at = next;
    }
    return status;
}

/* Reads the names from the file, ignoring a byte order mark and trailing empty lines. */
static stk_status take_file(const stki_file *file, stki_classes *out, stk_error *err)
{
    char *text = stki_zalloc(file->size + 1), *at = text, *end;
    stk_status status = text ? stki_file_read(file, 0, text, file->size, err)
                             : stki_fail_memory(err, file->size + 1, "the class names");

    if (status == STK_OK) {
        end = text + file->size;
        if (file->size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
            at += 3;
        while (end > at && (end[-1] == '\n' || end[-1] == '\r'))
            end--;
        status = take_lines(file->path, at, end, out, err);
    }
    stki_free(text);
    return status;
}

stk_status stki_classes_read_lines(const char *path, stki_classes *out, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);

    if (status != STK_OK)
        return status;
    status = file->size > INT64_C(1) << 30
                 ? stki_fail_at(err, STK_E_LIMIT,
                                (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", file->size), "at most 1 GiB"},
                                "the file of class names is too large")
                 : take_file(file, out, err);
    stki_file_close(file);
    if (status == STK_OK && out->count == 0)
        status = stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, -1, "no lines", "one class name per line"},
                              "no class names");
    return status;
}
