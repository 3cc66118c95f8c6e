/* token_source.c: see token_source.h. */
#include "token_source.h"
#include "documents.h"
#include "error.h"
#include "order_print.h"

stk_status stki_token_source_pack(const stki_field_config *field, stki_reader *reader, stki_reader **out,
                                  stk_error *err)
{
    if (field->tokens.packed)
        return stki_packed_open(reader, &field->tokens.pack, out, err);
    *out = reader;
    return STK_OK;
}

stk_status stki_token_source_open(const stki_field_config *field, const stki_container *container, int64_t member,
                                  const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    stki_reader *reader;
    stk_status status;

    if (field->tokens.documents) {
        stki_array array;

        status = stki_container_array(container, member, opts, &array, err);
        if (status != STK_OK)
            return status;
        status = stki_documents_open(&array, container->ops->format, container->path, field->tokens.token,
                                     field->tokens.ends, opts, &reader, err);
        stki_array_release(&array);
    } else {
        status = stki_container_reader(container, member, opts, &reader, err);
    }
    return status == STK_OK ? stki_token_source_pack(field, reader, out, err) : status;
}

double stki_token_source_filled(const stki_field *field)
{
    double used = 0, room = 0;

    for (int k = 0; k < field->shard_count; k++) {
        const stki_packing *plan = stki_packed_plan(field->shards[k]);

        used += plan ? (double)plan->used : 0;
        room += plan ? (double)plan->windows * (double)plan->length : 0;
    }
    return room > 0 ? used / room : -1;
}

uint64_t stki_token_source_digest(const stki_dataset *dataset)
{
    uint64_t hash = 0;

    for (int i = 0; i < dataset->field_count; i++)
        for (int k = 0; k < dataset->fields[i].shard_count; k++) {
            const stki_packing *plan = stki_packed_plan(dataset->fields[i].shards[k]);

            if (!plan)
                continue;
            hash = stki_order_hash(hash + 1, plan->first, (plan->windows + 1) * (int64_t)sizeof *plan->first);
            hash = stki_order_hash(hash, plan->pieces, plan->piece_count * (int64_t)sizeof *plan->pieces);
        }
    return hash;
}
