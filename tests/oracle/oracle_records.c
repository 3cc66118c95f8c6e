/* oracle_records.c: functions that the checks of record files share. */
#include "format.h"
#include "oracle.h"
#include "sha256.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *oracle_unpacked(const char *path, const json_t *entry, char *buffer, size_t size)
{
    char command[9000];
    int fd;

    if (strcmp(oracle_text(entry, "packed"), "gzip"))
        return path;
    snprintf(buffer, size, "%s", "/tmp/stoker-oracle-XXXXXX");
    fd = mkstemp(buffer);
    if (fd < 0)
        return path;
    close(fd);
    snprintf(command, sizeof command, "gzip -dc '%s' >'%s'", path, buffer);
    if (system(command) != 0)
        fprintf(stderr, "cannot unpack %s\n", path);
    return buffer;
}

void oracle_remove(const char *unpacked, const char *path)
{
    if (unpacked != path)
        unlink(unpacked);
}

static void read_records(struct outcome *o, const stki_reader *reader)
{
    stki_scratch scratch;

    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && !o->status; i++) {
        stk_tensor sample;

        o->status = reader->ops->read(reader, i, NULL, &scratch, &sample, &o->err);
        if (!o->status) {
            char *bytes = malloc((size_t)stk_tensor_nbytes(&sample) + 1);

            oracle_copy_out(bytes, &sample); /* touches every byte */
            free(bytes);
            stki_reader_done(reader, &sample);
        }
    }
    stki_scratch_fini(&scratch);
}

void oracle_read_all(struct outcome *o, const char *path, const stki_reader_opts *opts)
{
    stki_container *container = NULL;

    o->status = stki_container_open(path, opts, &container, &o->err);
    for (int64_t i = 0; !o->status && i < container->member_count; i++) {
        stki_reader *reader = NULL;

        o->status = stki_container_reader(container, i, opts, &reader, &o->err);
        if (!o->status)
            read_records(o, reader);
        stki_reader_destroy(reader);
    }
    stki_container_release(container);
}

bool oracle_record(struct outcome *o, const stki_reader *reader, int64_t index, stki_scratch *scratch, char digest[65],
                   int64_t *count)
{
    int64_t shape[STK_MAX_DIMS] = {0};
    stk_tensor sample;
    char *bytes;

    if (reader->variable)
        o->status = reader->ops->shape(reader, index, shape, &o->err);
    if (!o->status)
        o->status = reader->ops->read(reader, index, NULL, scratch, &sample, &o->err);
    if (o->status)
        return false;
    for (int i = 0; i < sample.ndim; i++)
        if (sample.shape[i] != (reader->variable ? shape[i] : reader->shape[i]) || sample.shape[i] > reader->shape[i])
            oracle_wrong(o, "record %" PRId64 ", axis %d: found %" PRId64 ", announced %" PRId64 ", largest %" PRId64,
                         index, i, sample.shape[i], shape[i], reader->shape[i]);
    for (int i = 0; i < sample.ndim && !reader->variable; i++)
        if (sample.shape[i] > 1 && sample.strides[i] != reader->strides[i])
            oracle_wrong(o, "record %" PRId64 ", axis %d: stride %" PRId64 ", the reader says %" PRId64, index, i,
                         sample.strides[i], reader->strides[i]);
    if (!reader->variable && ((sample.flags & STK_TENSOR_SWAPPED) != 0) != reader->swapped)
        oracle_wrong(o, "the byte order of record %" PRId64 " differs from that of the reader", index);
    if (sample.ndim != reader->ndim || sample.dtype != reader->dtype || !(sample.flags & STK_TENSOR_READONLY))
        oracle_wrong(o, "record %" PRId64 ": axes or dtype differ from those of the reader, or it is writable", index);
    *count = stk_tensor_nbytes(&sample);
    if (*count > reader->max_bytes)
        oracle_wrong(o, "record %" PRId64 " has %" PRId64 " bytes, the reader says at most %" PRId64, index, *count,
                     reader->max_bytes);
    bytes = malloc((size_t)*count + 1);
    oracle_copy_out(bytes, &sample);
    stkt_sha256_of(bytes, (size_t)*count, digest);
    free(bytes);
    stki_reader_done(reader, &sample);
    return true;
}
