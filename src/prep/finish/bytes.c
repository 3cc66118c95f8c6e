/* bytes.c: memory that grows for finished rows; see finish.h. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "finish.h"

enum { LEAST = 64 << 10 };

stk_status stki_bytes_reserve(stki_bytes *bytes, int64_t more, stk_error *err)
{
    int64_t need, room = bytes->room > LEAST ? bytes->room : LEAST;
    char *grown;

    if (more < 0 || !stki_add(bytes->used, more, &need) || need > INT64_MAX / 4)
        return stki_fail_memory(err, more, "finished rows");
    if (need <= bytes->room)
        return STK_OK;
    while (room < need)
        room += room / 2;
    grown = stki_resize(bytes->bytes, room);
    if (!grown)
        return stki_fail_memory(err, room, "finished rows");
    bytes->bytes = grown;
    bytes->room = room;
    return STK_OK;
}

void stki_bytes_fini(stki_bytes *bytes)
{
    stki_free(bytes->bytes);
    *bytes = (stki_bytes){0};
}
