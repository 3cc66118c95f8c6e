/* Fuzz target: arbitrary bytes as saved statistics; the first two select the form. The checksum is corrected, because
 * otherwise no input would get past it. Accepted statistics must survive saving and loading unchanged, and merging and
 * reporting them must succeed. */
#include "allocate.h"
#include "digest.h"
#include "fuzz.h"
#include "stats_options.h"
#include <string.h>

static stki_tally_form form_of(uint8_t dtype, uint8_t flags)
{
    static const stk_dtype dtypes[] = {STK_U8, STK_I16, STK_F16, STK_F32, STK_F64, STK_I64};
    stki_tally_form form = {.dtype = dtypes[dtype % 6],
                            .outer = 1,
                            .channels = 1 + flags / 8 % 3,
                            .inner = 1,
                            .counts = flags & 1,
                            .classes = flags & 2,
                            .ragged = flags & 4,
                            .most_bytes = 1 << 22};

    form.classes = form.classes && (form.dtype == STK_U8 || form.dtype == STK_I16 || form.dtype == STK_I64);
    stki_tally_form_blocks(&form, 0);
    return form;
}

static void check_accepted(stki_tally *tally, const stki_tally_form *form)
{
    const stki_stats_opts opts = {.histogram = 3};
    char *bytes, *again;
    int64_t size, same;
    stki_tally *back;
    json_t *json;
    stk_error err;
    stk_status status;

    DEMAND(stki_tally_save(tally, form, &bytes, &size, &err) == STK_OK);
    DEMAND(stki_tally_load(form, bytes, size, &back, &err) == STK_OK);
    DEMAND(stki_tally_save(back, form, &again, &same, &err) == STK_OK);
    DEMAND(same == size && memcmp(bytes, again, (size_t)size) == 0);
    status = stki_tally_merge(tally, form, back, &err);
    DEMAND(status == STK_OK || status == STK_E_LIMIT);
    if (stki_stats_report(back, form, &opts, &json, &err) == STK_OK)
        json_decref(json);
    stki_free(bytes);
    stki_free(again);
    stki_tally_destroy(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_tally_form form;
    stki_tally *tally;
    char *bytes;
    uint64_t sum;
    stk_error err;

    if (size < 2 + 8)
        return 0;
    form = form_of(data[0], data[1]);
    bytes = malloc(size - 2);
    memcpy(bytes, data + 2, size - 2);
    sum = stki_digest_64(bytes, (int64_t)size - 10);
    memcpy(bytes + size - 10, &sum, sizeof sum);
    if (stki_tally_load(&form, bytes, (int64_t)size - 2, &tally, &err) == STK_OK) {
        check_accepted(tally, &form);
        stki_tally_destroy(tally);
    }
    free(bytes);
    return 0;
}
