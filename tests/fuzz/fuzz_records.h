/* fuzz_records.h: shared by the fuzz targets of record files. The shape of each record is requested, and the record is
 * read. A damaged record must give an error that names it and must not affect the others. */
#ifndef STKT_FUZZ_RECORDS_H
#define STKT_FUZZ_RECORDS_H

#include "allocate.h"
#include "format.h"
#include "fuzz_file.h"

enum { FUZZ_RECORDS = 40 }; /* per member */

static inline void fuzz_check_record(const stki_reader *reader, int64_t index, stki_scratch *scratch)
{
    int64_t shape[STK_MAX_DIMS] = {0};
    stk_tensor sample;
    stk_error err;
    stk_status status = STK_OK, told = STK_OK;

    if (reader->variable)
        told = reader->ops->shape(reader, index, shape, &err);
    if (told && told != STK_E_NOT_FOUND)
        fuzz_check_failure(told, &err);
    status = reader->ops->read(reader, index, NULL, scratch, &sample, &err);
    if (status) {
        if (status != STK_E_NOT_FOUND) /* the sample has no such file */
            fuzz_check_failure(status, &err);
        DEMAND(err.record == index);
        return;
    }
    DEMAND(!told);
    DEMAND(sample.ndim == reader->ndim && sample.dtype == reader->dtype);
    for (int i = 0; i < sample.ndim; i++) {
        DEMAND(sample.shape[i] <= reader->shape[i]);
        DEMAND(sample.shape[i] == (reader->variable ? shape[i] : reader->shape[i]));
        DEMAND(reader->variable || sample.shape[i] <= 1 || sample.strides[i] == reader->strides[i]);
    }
    DEMAND(reader->variable || stk_tensor_nbytes(&sample) == 0 ||
           ((sample.flags & STK_TENSOR_SWAPPED) != 0) == reader->swapped);
    fuzz_read_tensor(&sample);
    stki_reader_done(reader, &sample);
}

static inline void fuzz_check_units(const stki_reader *reader)
{
    if (!reader->unit_first || reader->unit_count == 0)
        return;
    DEMAND(reader->unit_first[0] == 0 && reader->unit_first[reader->unit_count] == reader->count);
    for (int64_t i = 0; i < reader->unit_count; i++)
        DEMAND(reader->unit_first[i] < reader->unit_first[i + 1]);
}

static inline void fuzz_read_records(const stki_container *c, int64_t member, const stki_reader_opts *opts)
{
    stki_reader_opts taken = *opts;
    stki_reader *reader;
    stki_scratch scratch;
    stk_error err;
    stk_status status;

    if (stki_source_check_member(opts, c, member, NULL) != STK_OK) /* options for other members */
        taken.source = NULL;
    status = stki_container_reader(c, member, &taken, &reader, &err);

    if (status) {
        fuzz_check_failure(status, &err);
        return;
    }
    fuzz_check_units(reader);
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && i < FUZZ_RECORDS; i++)
        fuzz_check_record(reader, i, &scratch);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static inline void fuzz_record_file(const uint8_t *data, size_t size, const stki_reader_opts *opts,
                                    stk_status (*open)(stki_file *file, const stki_reader_opts *opts,
                                                       stki_container **out, stk_error *err))
{
    stki_memory_stats before, after;
    stki_container *c;
    stki_file file;
    stk_error err;
    stk_status status;

    stki_memory_read(STKI_MEM_HOST, &before);
    fuzz_file_init(&file, data, size);
    status = open(&file, opts, &c, &err);
    if (status) {
        fuzz_check_failure(status, &err);
    } else {
        stki_container_complete(c);
        for (int64_t i = 0; i < c->member_count && i < 32; i++)
            fuzz_read_records(c, i, opts);
        stki_container_release(c);
    }
    fuzz_file_fini(&file);
    stki_memory_read(STKI_MEM_HOST, &after);
    DEMAND(before.blocks == after.blocks);
}

#endif
