/* dataset_units.c: groups the samples of a data set into units that are best read together; see dataset_internal.h. */
#include "allocate.h"
#include "checked.h"
#include "dataset_internal.h"
#include "error.h"

#define RUN_BYTES (INT64_C(1) << 20)

static bool has_units(const stki_field *field)
{
    for (int i = 0; i < field->shard_count; i++)
        if (field->shards[i]->unit_count > 0 || field->shards[i]->unit_length > 0)
            return true;
    return false;
}

static const stki_field *field_that_decides(const stki_dataset *dataset)
{
    const stki_field *best = &dataset->fields[0];

    for (int i = 1; i < dataset->field_count; i++) {
        const stki_field *field = &dataset->fields[i];
        bool its = has_units(field), of_best = has_units(best);

        if (its != of_best ? its : field->max_bytes > best->max_bytes)
            best = field;
    }
    return best;
}

/* Returns the number of samples per unit, for a shard with units of equal length or without units of its own. */
static int64_t length_of(const stki_reader *shard)
{
    if (shard->unit_length > 0)
        return shard->unit_length;
    return shard->max_bytes > 0 && shard->max_bytes < RUN_BYTES ? RUN_BYTES / shard->max_bytes
           : shard->max_bytes > 0                               ? 1
                                                                : RUN_BYTES;
}

static int64_t units_of(const stki_reader *shard)
{
    int64_t length = length_of(shard);

    return shard->unit_first ? shard->unit_count : shard->count / length + (shard->count % length > 0);
}

stk_status stki_dataset_units(const stki_dataset *dataset, stki_units *out, stk_error *err)
{
    const stki_field *field = field_that_decides(dataset);
    int64_t count = 0, largest = 0, at = 0;

    for (int i = 0; i < field->shard_count; i++)
        count += units_of(field->shards[i]);
    out->field = field->name;
    out->first = stki_zalloc_array(count + 1, sizeof *out->first);
    if (!out->first)
        return stki_fail_memory(err, (count + 1) * (int64_t)sizeof *out->first, "the blocks of a data set");
    for (int i = 0; i < field->shard_count; i++) {
        const stki_reader *shard = field->shards[i];
        int64_t units = units_of(shard), length = length_of(shard);

        for (int64_t u = 0; u < units; u++)
            out->first[at++] = field->first[i] + (shard->unit_first ? shard->unit_first[u] : u * length);
    }
    out->first[at] = field->first[field->shard_count];
    for (int64_t u = 0; u < count; u++)
        largest = out->first[u + 1] - out->first[u] > largest ? out->first[u + 1] - out->first[u] : largest;
    out->count = count;
    if (!stki_mul(largest, field->max_bytes, &out->largest_bytes))
        out->largest_bytes = INT64_MAX;
    return STK_OK;
}
