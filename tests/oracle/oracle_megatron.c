/* oracle_megatron.c: Megatron's indexed token files: every sequence, every document, the list of documents, and the
 * modes. */
#include "format.h"
#include "oracle.h"
#include "sha256.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static stki_reader *open_member(struct outcome *o, const stki_container *container, stki_reader_opts opts,
                                const char *name)
{
    stki_reader *reader = NULL;
    int64_t member;

    opts.name = name;
    o->status = stki_container_find(container, &opts, &member, &o->err);
    if (!o->status)
        o->status = stki_container_reader(container, member, &opts, &reader, &o->err);
    return reader;
}

static void check_sequences(struct outcome *o, const stki_container *container, const stki_reader_opts *opts,
                            const json_t *items)
{
    stki_reader *reader = open_member(o, container, *opts, "sequences");
    stki_scratch scratch;
    char digest[65];
    int64_t bytes;

    if (!reader)
        return;
    stki_scratch_init(&scratch);
    if (reader->count != (int64_t)json_array_size(items))
        oracle_wrong(o, "found %" PRId64 " sequences", reader->count);
    for (int64_t i = 0; i < reader->count && !o->wrong[0]; i++) {
        const json_t *item = json_array_get(items, (size_t)i);
        int64_t size = stk_dtype_size(reader->dtype);

        if (!oracle_record(o, reader, i, &scratch, digest, &bytes))
            break;
        if (strcmp(digest, oracle_text(item, "sha256")) ||
            strcmp(stk_dtype_long_name(reader->dtype), oracle_text(item, "dtype")) ||
            bytes / size != json_integer_value(json_array_get(json_object_get(item, "shape"), 0)))
            oracle_wrong(o, "sequence %" PRId64 ": found %" PRId64 " bytes of %s, sha256 %s", i, bytes,
                         stk_dtype_long_name(reader->dtype), digest);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

/* The digest of the tokens of all records, concatenated. */
static void digest_all(struct outcome *o, const stki_reader *reader, char digest[65])
{
    stki_scratch scratch;
    int64_t used = 0;
    char *bytes = malloc(1 << 20);

    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && !o->status; i++) {
        stk_tensor sample;

        o->status = reader->ops->read(reader, i, NULL, &scratch, &sample, &o->err);
        if (o->status || used + stk_tensor_nbytes(&sample) > 1 << 20)
            break;
        oracle_copy_out(bytes + used, &sample);
        used += stk_tensor_nbytes(&sample);
        stki_reader_done(reader, &sample);
    }
    stkt_sha256_of(bytes, (size_t)used, digest);
    stki_scratch_fini(&scratch);
    free(bytes);
}

/* Documents consist of the sequences in order, so both have the same tokens overall. */
static void check_documents(struct outcome *o, const stki_container *container, const stki_reader_opts *opts,
                            const json_t *entry)
{
    stki_reader *documents = open_member(o, container, *opts, "documents");
    stki_reader *sequences = documents ? open_member(o, container, *opts, "sequences") : NULL;
    char by_document[65], by_sequence[65];

    if (sequences) {
        digest_all(o, documents, by_document);
        digest_all(o, sequences, by_sequence);
        if (strcmp(by_document, by_sequence))
            oracle_wrong(o, "the tokens of the documents differ from those of the sequences");
        if (documents->count != (int64_t)json_array_size(json_object_get(entry, "documents")) - 1)
            oracle_wrong(o, "found %" PRId64 " documents", documents->count);
    }
    stki_reader_destroy(documents);
    stki_reader_destroy(sequences);
}

static void check_numbers(struct outcome *o, const stki_container *container, const stki_reader_opts *opts,
                          const char *name, const json_t *expected)
{
    stki_reader *reader = expected ? open_member(o, container, *opts, name) : NULL;
    stki_scratch scratch;

    if (!reader)
        return;
    stki_scratch_init(&scratch);
    if (reader->count != (int64_t)json_array_size(expected))
        oracle_wrong(o, "%s: found %" PRId64, name, reader->count);
    for (int64_t i = 0; i < reader->count && !o->status && !o->wrong[0]; i++) {
        stk_tensor sample;
        int64_t value = 0;

        o->status = reader->ops->read(reader, i, NULL, &scratch, &sample, &o->err);
        if (o->status)
            break;
        memcpy(&value, sample.data, (size_t)stk_dtype_size(sample.dtype)); /* no value is negative */
        if (value != json_integer_value(json_array_get(expected, (size_t)i)))
            oracle_wrong(o, "%s %" PRId64 ": found %" PRId64, name, i, value);
        stki_reader_done(reader, &sample);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void check_whole(struct outcome *o, const char *path, const json_t *entry, const stki_reader_opts *opts)
{
    stki_container *container = NULL;

    o->status = stki_container_open(path, opts, &container, &o->err);
    if (!o->status)
        check_sequences(o, container, opts, json_object_get(entry, "items"));
    if (!o->status)
        check_documents(o, container, opts, entry);
    if (!o->status)
        check_numbers(o, container, opts, "document_index", json_object_get(entry, "documents"));
    if (!o->status)
        check_numbers(o, container, opts, "modes", json_object_get(entry, "modes"));
    stki_container_release(container);
}

void oracle_megatron(struct outcome *o, const char *path, const json_t *entry)
{
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !o->wrong[0]; i++) {
        stki_reader_opts opts = {.access = modes[i], .format = "megatron"};

        if (strcmp(oracle_text(entry, "expect"), "ok"))
            oracle_read_all(o, path, &opts);
        else
            check_whole(o, path, entry, &opts);
        oracle_judge(o, entry, path, modes[i] == STKI_ACCESS_MMAP ? "mapped" : "positionally");
    }
}
