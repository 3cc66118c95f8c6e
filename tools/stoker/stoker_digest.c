/* stoker_digest.c: see stoker_digest.h. */
#include "stoker_digest.h"
#include "error.h"
#include "packed.h"
#include "source_common.h"
#include <inttypes.h>
#include <openssl/evp.h>

struct digest {
    EVP_MD_CTX *context;
    bool failed;
};

static void add(void *context, const void *bytes, int64_t count)
{
    struct digest *d = context;

    if (EVP_DigestUpdate(d->context, bytes, (size_t)count) != 1)
        d->failed = true;
}

/* Limits the fill values: a small file can have any number of them, and all would be hashed. */
static stk_status check_filled(const stki_container *c, const stki_reader_opts *opts, int64_t count, int64_t each,
                               stk_error *err)
{
    const int64_t limit = stki_memory_limit(opts);

    if (each == 0 || count <= limit / each)
        return STK_OK;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){c->path, -1, -1, STKI_TEXT("%" PRId64 " times %" PRId64 " bytes", count, each),
                                     STKI_TEXT("at most %" PRId64 " (memory_limit)", limit)},
                        "too many fill values to hash");
}

static bool is_fill(const stk_tensor *t)
{
    for (int i = 0; i < t->ndim; i++)
        if (t->strides[i] != 0)
            return false;
    return t->ndim > 0 && stk_tensor_nbytes(t) != 0;
}

static stk_status add_array(struct digest *d, const stki_container *c, int64_t member, const stki_reader_opts *opts,
                            stk_error *err)
{
    stki_array array;
    stk_tensor tensor;
    stk_status status = stki_container_array(c, member, opts, &array, err);

    if (status != STK_OK)
        return status;
    status = stki_array_tensor(&array, c->path, &tensor, err);
    stki_array_release(&array);
    if (status != STK_OK)
        return status;
    if (is_fill(&tensor))
        status = check_filled(c, opts, stk_tensor_nbytes(&tensor), 1, err);
    if (status == STK_OK)
        stki_packed_each(&tensor, add, d);
    if (status == STK_OK && stki_array_file(&tensor))
        status = stki_file_intact(stki_array_file(&tensor), -1, err);
    stk_tensor_release(&tensor);
    return status;
}

static stk_status add_samples(struct digest *d, const stki_container *c, int64_t member, const stki_reader_opts *opts,
                              stk_error *err)
{
    stki_scratch scratch;
    stki_reader *reader;
    int64_t written = 0;
    stk_status status = stki_container_reader(c, member, opts, &reader, err);

    if (status != STK_OK)
        return status;
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && status == STK_OK; i++) {
        stk_tensor sample;

        if (reader->ops->filled_until && i >= written) { /* one query per run of fill values */
            written = reader->ops->filled_until(reader, i);
            status = check_filled(c, opts, written - i, reader->max_bytes, err);
            written += written == i;
            if (status != STK_OK)
                break;
        }
        status = reader->ops->read(reader, i, NULL, &scratch, &sample, err);
        if (status == STK_OK) {
            stki_packed_each(&sample, add, d);
            stki_reader_done(reader, &sample);
        }
    }
    stki_scratch_fini(&scratch);
    if (status == STK_OK && reader->file)
        status = stki_file_intact(reader->file, -1, err);
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
    struct digest d = {.context = EVP_MD_CTX_new()};
    stk_status status;

    if (!d.context || EVP_DigestInit_ex(d.context, EVP_sha256(), NULL) != 1)
        status = stki_fail_memory(err, 0, "a digest");
    else
        status = by_sample ? add_samples(&d, c, member, opts, err) : add_array(&d, c, member, opts, err);
    if (status == STK_OK && (d.failed || EVP_DigestFinal_ex(d.context, bytes, &count) != 1))
        status = stki_fail(err, STK_E_IO, "%s: %s: the digest could not be computed", c->path, m->name);
    if (status == STK_OK)
        write_hex(bytes, count, text);
    EVP_MD_CTX_free(d.context);
    return status;
}
