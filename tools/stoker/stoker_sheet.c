/* stoker_sheet.c: see stoker_sheet.h. */
#include "stoker_sheet.h"
#include "error.h"
#include "sheet.h"

static stk_status draw_sample(struct sheet *sheet, const stki_reader *reader, int64_t index, stki_scratch *scratch,
                              stk_error *err)
{
    stk_tensor sample;
    stk_status status = reader->ops->read(reader, index, NULL, scratch, &sample, err);

    if (status != STK_OK)
        return status;
    status = sheet_draw(sheet, &sample, reader->path, index, err);
    stki_reader_done(reader, &sample);
    return status;
}

stk_status st_sheet_write(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                          const char *path, int64_t *shown, stk_error *err)
{
    struct sheet *sheet = NULL;
    stki_scratch scratch;
    stki_reader *reader;
    stk_status status = stki_container_reader(container, member, opts, &reader, err);

    if (status != STK_OK)
        return status;
    *shown = reader->count < SHEET_MOST ? reader->count : SHEET_MOST;
    stki_scratch_init(&scratch);
    status = *shown > 0 ? sheet_create(*shown, &sheet, err)
                        : stki_fail_at(err, STK_E_EMPTY, (stki_place){container->path, -1, -1, NULL, NULL},
                                       "no images to show");
    for (int64_t i = 0; i < *shown && status == STK_OK; i++)
        status = draw_sample(sheet, reader, i, &scratch, err);
    if (status == STK_OK)
        status = sheet_save(sheet, path, err);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    sheet_destroy(sheet);
    return status;
}
