/* stoker_shown.c: see stoker_shown.h. */
#include "stoker_shown.h"
#include "error.h"

const char *st_shown(const char *text)
{
    static char buffers[8][4096];
    static unsigned next;
    char *buffer = buffers[next++ % 8];

    stki_text_end(buffer, sizeof buffers[0], text);
    stki_make_printable(buffer);
    return buffer;
}
