/* loadbench_write_arrays.c: files of arrays, one field after another, in chunks of a few megabytes. */
#include "allocate.h"
#include "error.h"
#include "loadbench_stop.h"
#include "loadbench_write.h"
#include <stoker/dataset.h>
#include <string.h>

enum { CHUNK_BYTES = 4 << 20 };

stk_status lb_write_goes_on(const struct lb_made_file *file, stk_error *err)
{
    if (!lb_stop_asked)
        return STK_OK;
    return stki_fail(err, STK_E_CLOSED, "%s: stopped by a signal, not made", file->full_path);
}

static stk_status write_field(const struct lb_made_file *file, const struct lb_made_field *field, stk_writer *writer,
                              stk_error *err)
{
    const int64_t chunk = field->row_bytes > 0 && field->row_bytes < CHUNK_BYTES ? CHUNK_BYTES / field->row_bytes : 1;
    void *scratch = stki_zalloc_array(chunk * field->row_elements + 1, 8),
         *rows = stki_zalloc(chunk * field->row_bytes + 1);
    stk_status status;

    if (!scratch || !rows)
        status = stki_fail_memory(err, chunk * (field->row_bytes + 8 * field->row_elements), file->full_path);
    else
        status = stk_writer_begin(writer, field->name, field->ask.dtype, field->ndim, field->lengths, file->count, err);
    for (int64_t first = 0; first < file->count && status == STK_OK; first += chunk) {
        const int64_t count = file->count - first < chunk ? file->count - first : chunk;
        status = lb_values_fill(&field->ask, first, count, field->row_elements, scratch, rows, err);
        if (status == STK_OK)
            status = stk_writer_append(writer, rows, count, err);
        if (status == STK_OK)
            status = lb_write_goes_on(file, err);
    }
    stki_free(scratch);
    stki_free(rows);
    return status == STK_OK ? stk_writer_end(writer, err) : status;
}

stk_status lb_write_arrays(const struct lb_made_file *file, stk_error *err)
{
    stk_writer_opts opts = STK_WRITER_OPTS_INIT;
    stk_writer *writer;
    stk_status status;

    opts.level = (int32_t)file->level;
    opts.chunk_rows = file->chunk_rows;
    opts.alias = file->format == LB_FORMAT_NPY || file->format == LB_FORMAT_NPZ;
    status = stk_writer_create(file->full_path, lb_format_words[file->format], &opts, &writer, err);
    if (status != STK_OK)
        return status;
    for (int i = 0; i < file->field_count && status == STK_OK; i++)
        status = write_field(file, &file->made[i], writer, err);
    if (status == STK_OK)
        return stk_writer_commit(writer, err);
    stk_writer_abort(writer);
    return status;
}
