/* Fuzz target: arbitrary bytes as the beginning of an .npy file, both as the whole file and as part of a file of 2^62
 * bytes, with and without a dtype given by the user. A failure must return a status for damaged files and a one-line
 * message that names the file, and leave the result untouched. On success, the elements described must lie inside the
 * file without gaps or overlaps, and a header written from it must be equivalent. */
#include "allocate.h"
#include "fuzz.h"
#include "npy_header.h"
#include <inttypes.h>
#include <string.h>

#define PATH "some/file.npy"
#define HUGE_FILE (INT64_C(1) << 62)

static void check_failure(stk_status status, const stk_error *err, const stki_npy_header *header)
{
    stki_npy_header untouched;

    DEMAND(status == STK_E_CORRUPT || status == STK_E_UNSUPPORTED || status == STK_E_UNSAFE ||
           status == STK_E_TRUNCATED || status == STK_E_LIMIT || status == STK_E_MISMATCH);
    DEMAND(err->status == status);
    DEMAND(!strncmp(err->message, PATH ": ", sizeof PATH + 1));
    DEMAND(strlen(err->message) > sizeof PATH + 10);
    for (const char *c = err->message; *c; c++)
        DEMAND(*c >= ' ' && *c < 127);
    memset(&untouched, 0x5A, sizeof untouched);
    DEMAND(!header || !memcmp(header, &untouched, sizeof untouched));
}

/* The stride of each axis, fastest first, is the product of the sizes of all faster ones. */
static void check_strides(const stki_npy_header *h, int64_t size)
{
    __int128 dense = size;
    bool empty = false;

    for (int i = 0; i < h->ndim; i++) {
        int axis = h->fortran ? i : h->ndim - 1 - i;
        DEMAND(h->shape[axis] >= 0);
        DEMAND(h->strides[axis] == (int64_t)dense);
        dense *= h->shape[axis] ? h->shape[axis] : 1;
        DEMAND(dense <= INT64_MAX);
        empty = empty || h->shape[axis] == 0;
    }
    DEMAND(h->data_bytes == (empty ? 0 : (int64_t)dense));
}

static const char *descr_of(stk_dtype dtype, bool swapped, char *buffer)
{
    static const char kinds[STK_DTYPE_END] = {
        [STK_BOOL] = 'b', [STK_U8] = 'u',  [STK_I8] = 'i',  [STK_U16] = 'u', [STK_I16] = 'i',
        [STK_U32] = 'u',  [STK_I32] = 'i', [STK_U64] = 'u', [STK_I64] = 'i', [STK_F16] = 'f',
        [STK_F32] = 'f',  [STK_F64] = 'f', [STK_C64] = 'c', [STK_C128] = 'c'};

    if (kinds[dtype])
        snprintf(buffer, 8, "%c%c%d", swapped ? '>' : '<', kinds[dtype], (int)stk_dtype_size(dtype));
    else if (swapped) /* a big-endian alias has the bits of an unsigned integer */
        snprintf(buffer, 8, ">u%d", (int)stk_dtype_size(dtype));
    else
        snprintf(buffer, 8, "V%d", (int)stk_dtype_size(dtype));
    return buffer;
}

static void check_rewritten(const stki_npy_header *h, int64_t file_bytes, stk_dtype alias)
{
    char text[1024], descr[8];
    int used = snprintf(text, sizeof text, "{'shape': (");
    stki_npy_prefix prefix = {.major = 3, .text_offset = 12};
    stki_npy_header again;

    for (int i = 0; i < h->ndim; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%" PRId64 ",", h->shape[i]);
    used += snprintf(text + used, sizeof text - (size_t)used, "), 'descr': \"%s\", 'fortran_order': %s}",
                     descr_of(h->dtype, h->swapped, descr), h->fortran ? "True" : "False");
    prefix.text_bytes = used;
    if (file_bytes < HUGE_FILE)
        file_bytes += 12 + used; /* this header may be longer than the original one */
    if (stki_npy_read_header(&prefix, text, file_bytes, alias, PATH, &again, NULL) == STK_E_TRUNCATED)
        return; /* the data reaches the end of a file of 2^62 bytes */
    DEMAND(again.dtype == h->dtype && again.swapped == h->swapped && again.fortran == h->fortran);
    DEMAND(again.ndim == h->ndim && again.data_bytes == h->data_bytes);
    DEMAND(!memcmp(again.shape, h->shape, sizeof h->shape));
    DEMAND(!memcmp(again.strides, h->strides, sizeof h->strides));
}

static void check_success(const stki_npy_header *h, const stki_npy_prefix *prefix, int64_t file_bytes, stk_dtype alias)
{
    int64_t size = stk_dtype_size(h->dtype);

    DEMAND(size > 0);
    DEMAND(alias == STK_DTYPE_NONE || h->dtype == alias);
    DEMAND(!h->swapped || size > 1);
    DEMAND(h->ndim >= 0 && h->ndim <= STK_MAX_DIMS);
    DEMAND(h->data_offset == prefix->text_offset + prefix->text_bytes);
    DEMAND(h->data_bytes >= 0 && h->data_offset <= file_bytes && h->data_bytes <= file_bytes - h->data_offset);
    check_strides(h, size);
    check_rewritten(h, file_bytes, alias);
}

static void parse(const uint8_t *data, size_t size, int64_t file_bytes, stk_dtype alias)
{
    uint8_t *head = malloc(STKI_NPY_PREFIX), *text;
    size_t known = size < STKI_NPY_PREFIX ? size : STKI_NPY_PREFIX;
    stki_npy_prefix prefix;
    stki_npy_header header;
    stk_error err;
    stk_status status;

    memset(head, 0, STKI_NPY_PREFIX);
    memcpy(head, data, known);
    status = stki_npy_read_prefix(head, file_bytes, 0, PATH, &prefix, &err);
    free(head);
    if (status) {
        check_failure(status, &err, NULL);
        return;
    }
    DEMAND(prefix.text_offset == (prefix.major == 1 ? 10 : 12));
    DEMAND(prefix.text_bytes >= 0 && prefix.text_bytes <= STKI_NPY_HEADER_LIMIT);
    DEMAND(prefix.text_offset + prefix.text_bytes <= file_bytes);
    if ((size_t)(prefix.text_offset + prefix.text_bytes) > size)
        return; /* the rest of the header is missing */
    text =
        /* of exactly this size, so that sanitizers detect out-of-bounds accesses */
        malloc(prefix.text_bytes ? (size_t)prefix.text_bytes : 1);
    memcpy(text, data + prefix.text_offset, (size_t)prefix.text_bytes);
    memset(&header, 0x5A, sizeof header);
    status = stki_npy_read_header(&prefix, (const char *)text, file_bytes, alias, PATH, &header, &err);
    free(text);
    if (status)
        check_failure(status, &err, &header);
    else
        check_success(&header, &prefix, file_bytes, alias);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const stk_dtype aliases[] = {STK_DTYPE_NONE, STK_BF16, STK_F8_E5M2};
    stki_memory_stats before, after;

    stki_memory_read(STKI_MEM_HOST, &before);
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        parse(data, size, (int64_t)size, aliases[i]);
        if (size >= STKI_NPY_PREFIX)
            parse(data, size, HUGE_FILE, aliases[i]);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    DEMAND(before.total_allocations == after.total_allocations); /* parsing allocates nothing */
    return 0;
}
