/* stoker_digest.c: see stoker_digest.h. */
#include "stoker_digest.h"
#include "allocate.h"
#include "error.h"
#include "tensor_internal.h"
#include <openssl/evp.h>
#include <string.h>

enum { PIECE = 1 << 20 }; /* bytes that are put in order at a time */

struct digest {
    EVP_MD_CTX *context;
    bool failed;
    char *piece;
};

static void add(struct digest *d, const void *bytes, int64_t count)
{
    if (count > 0 && EVP_DigestUpdate(d->context, bytes, (size_t)count) != 1)
        d->failed = true;
}

static void add_packed(struct digest *d, const stk_tensor *t)
{
    int64_t strides[STK_MAX_DIMS], bytes = stk_dtype_size(t->dtype);

    for (int i = t->ndim - 1; i >= 0; i--) {
        strides[i] = bytes;
        bytes *= t->shape[i];
    }
    stki_copy_strided(d->piece, t->dtype, strides, t->data, t->dtype, t->strides, t->flags & STK_TENSOR_SWAPPED,
                      t->ndim, t->shape);
    add(d, d->piece, bytes);
}

/* Piece by piece along the outermost axes; no axis is larger than a piece at the bottom. */
static void add_tensor(struct digest *d, const stk_tensor *t)
{
    int64_t size = stk_dtype_size(t->dtype), left;
    stk_tensor part = *t;

    if (stk_tensor_numel(t) == 0)
        return;
    if (!(t->flags & STK_TENSOR_SWAPPED) && t->dtype != STK_BOOL && stk_tensor_is_contiguous(t)) {
        add(d, t->data, stk_tensor_nbytes(t));
        return;
    }
    if (stk_tensor_nbytes(t) <= PIECE) {
        add_packed(d, t);
        return;
    }
    if (t->ndim == 1) {
        for (left = t->shape[0]; left > 0; left -= part.shape[0]) {
            part.shape[0] = left < PIECE / size ? left : PIECE / size;
            add_packed(d, &part);
            part.data = (char *)part.data + part.shape[0] * part.strides[0];
        }
        return;
    }
    part.ndim--;
    memmove(part.shape, part.shape + 1, (size_t)part.ndim * sizeof *part.shape);
    memmove(part.strides, part.strides + 1, (size_t)part.ndim * sizeof *part.strides);
    for (int64_t i = 0; i < t->shape[0]; i++) { /* at most as deep as there are axes */
        part.data = (char *)t->data + i * t->strides[0];
        add_tensor(d, &part);
    }
}

static stk_status add_array(struct digest *d, const stki_container *c, int64_t member, const stki_reader_opts *opts,
                            stk_error *err)
{
    stki_array array;
    stk_tensor tensor;
    stk_status status = stki_container_array(c, member, opts, &array, err);

    if (status)
        return status;
    status = stki_array_tensor(&array, c->path, &tensor, err);
    stki_array_release(&array);
    if (status)
        return status;
    add_tensor(d, &tensor);
    stk_tensor_release(&tensor);
    return STK_OK;
}

static stk_status add_samples(struct digest *d, const stki_container *c, int64_t member, const stki_reader_opts *opts,
                              stk_error *err)
{
    stki_scratch scratch;
    stki_reader *reader;
    stk_status status = stki_container_reader(c, member, opts, &reader, err);

    if (status)
        return status;
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && !status; i++) {
        stk_tensor sample;

        status = reader->ops->read(reader, i, NULL, &scratch, &sample, err);
        if (!status) {
            add_tensor(d, &sample);
            stki_reader_done(reader, &sample);
        }
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    return status;
}

static void write_hex(const unsigned char *bytes, unsigned count, char *text)
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * count] = '\0';
}

stk_status st_digest_member(const stki_container *c, int64_t member, const stki_reader_opts *opts,
                            char text[ST_DIGEST_TEXT], stk_error *err)
{
    const stki_member *m = &c->members[member];
    bool by_sample = m->kind == STKI_MEMBER_RECORDS || (c->ops->reader && m->ndim > 0 && !m->strides);
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    struct digest d = {.context = EVP_MD_CTX_new(), .piece = stki_zalloc(PIECE)};
    stk_status status;

    if (!d.context || !d.piece || EVP_DigestInit_ex(d.context, EVP_sha256(), NULL) != 1)
        status = stki_fail_memory(err, PIECE, "a digest");
    else
        status = by_sample ? add_samples(&d, c, member, opts, err) : add_array(&d, c, member, opts, err);
    if (!status && (d.failed || EVP_DigestFinal_ex(d.context, bytes, &count) != 1))
        status = stki_fail(err, STK_E_IO, "%s: %s: the digest could not be worked out", c->path, m->name);
    if (!status)
        write_hex(bytes, count, text);
    EVP_MD_CTX_free(d.context);
    stki_free(d.piece);
    return status;
}
