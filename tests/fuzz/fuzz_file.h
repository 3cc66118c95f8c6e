/* fuzz_file.h: shared by the fuzz targets of containers: an open file of arbitrary bytes, and a function that reads
 * everything in a container. */
#ifndef STKT_FUZZ_FILE_H
#define STKT_FUZZ_FILE_H

#include "container.h"
#include "format.h"
#include "fuzz.h"
#include "tensor_internal.h"
#include <string.h>

#define FUZZ_PATH "some/file"

/* A file with exactly these bytes in a block of their size, so that sanitizers detect every out-of-bounds access. It
 * has two references, so that closing it does not free it. */
static inline void fuzz_file_init(stki_file *file, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    DEMAND(copy);
    if (size)
        memcpy(copy, data, size);
    *file = (stki_file){.path = (char *)(uintptr_t)FUZZ_PATH,
                        .fd = -1,
                        .pattern = STKI_PATTERN_SEQUENTIAL,
                        .size = (int64_t)size,
                        .map = copy,
                        .access = "mmap"};
    stki_count_set(&file->refs, 2);
}

static inline void fuzz_file_fini(stki_file *file)
{
    DEMAND(stki_counted(&file->refs) == 1); /* all other references were released */
    free((void *)(uintptr_t)file->map);
}

/* The status must be one of those for damaged files, and the message one line that names the file. */
static inline void fuzz_check_failure(stk_status status, const stk_error *err)
{
    DEMAND(status == STK_E_CORRUPT || status == STK_E_UNSUPPORTED || status == STK_E_UNSAFE ||
           status == STK_E_TRUNCATED || status == STK_E_LIMIT || status == STK_E_MISMATCH);
    DEMAND(err->status == status);
    DEMAND(!strncmp(err->message, FUZZ_PATH ": ", sizeof FUZZ_PATH + 1));
    for (const char *c = err->message; *c; c++)
        DEMAND((unsigned char)*c >= ' ' && *c != 127);
}

/* Reads every element, so that sanitizers check the addresses. Large tensors of repeated elements are skipped. */
static inline void fuzz_read_tensor(const stk_tensor *t)
{
    int64_t strides[STK_MAX_DIMS], bytes;
    char *copy;

    DEMAND(t->flags & STK_TENSOR_READONLY);
    if (stki_row_major(t->dtype, t->ndim, t->shape, strides, &bytes, NULL) || bytes > 1 << 20)
        return;
    bytes = stk_tensor_nbytes(t);
    copy = malloc((size_t)bytes + 1);
    DEMAND(copy);
    if (bytes)
        stki_copy_strided(copy, t->dtype, strides, t->data, t->dtype, t->strides, t->flags & STK_TENSOR_SWAPPED,
                          t->ndim, t->shape);
    free(copy);
}

static inline void fuzz_read_samples(const stki_reader *reader)
{
    stki_scratch scratch;
    stk_tensor sample;
    stk_error err;

    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && i < 3; i++) {
        int64_t index = i == 2 ? reader->count - 1 : i;

        DEMAND(!reader->ops->read(reader, index, NULL, &scratch, &sample, &err));
        fuzz_read_tensor(&sample);
        stki_reader_done(reader, &sample);
    }
    stki_scratch_fini(&scratch);
}

static inline void fuzz_read_member(const stki_container *c, int64_t member, const stki_reader_opts *opts)
{
    const stki_member *m = &c->members[member];
    stki_array array;
    stki_reader *reader;
    stk_tensor tensor;
    stk_error err;
    stk_status status = stki_container_array(c, member, opts, &array, &err);

    DEMAND(m->name && m->ndim >= 0 && m->ndim <= STK_MAX_DIMS);
    DEMAND(!m->status || status == m->status);
    if (m->kind == STKI_MEMBER_OTHER)
        return;
    if (status) {
        fuzz_check_failure(status, &err);
        return;
    }
    DEMAND(array.dtype == m->dtype && array.ndim == m->ndim);
    DEMAND(!memcmp(array.shape, m->shape, sizeof *m->shape * (size_t)m->ndim));
    DEMAND(!stki_array_tensor(&array, c->path, &tensor, &err)); /* arrays that are listed must be readable */
    stki_array_release(&array);
    fuzz_read_tensor(&tensor);
    stk_tensor_release(&tensor);
    status = stki_container_reader(c, member, opts, &reader, &err);
    DEMAND(m->ndim == 0 ? status == STK_E_UNSUPPORTED : !status);
    if (status)
        return;
    fuzz_read_samples(reader);
    stki_reader_destroy(reader);
}

/* Opens a container, reads everything and closes it. `memory` limits the bytes allocated at any time. */
static inline void fuzz_container(const uint8_t *data, size_t size, const stki_reader_opts *opts,
                                  stk_status (*open)(stki_file *file, const stki_reader_opts *opts,
                                                     stki_container **out, stk_error *err))
{
    stki_container *c;
    stki_file file;
    stk_error err;
    stk_status status;

    fuzz_file_init(&file, data, size);
    status = open(&file, opts, &c, &err);
    if (status) {
        fuzz_check_failure(status, &err);
    } else {
        stki_container_complete(c);
        for (int64_t i = 0; i < c->member_count && i < 64; i++)
            fuzz_read_member(c, i, opts);
        stki_container_release(c);
    }
    fuzz_file_fini(&file);
}

#endif
