/* text_build.c: see text_build.h. */
#include "text_build.h"
#include "allocate.h"
#include "error.h"
#include "text_check.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Makes room for `more` bytes and a NUL. */
static bool make_room(stki_text_build *build, int64_t more)
{
    int64_t room = build->room ? build->room : 256;
    char *text;

    if (build->failed || more > INT64_MAX / 4)
        return !(build->failed = true);
    while (room <= build->length + more)
        room *= 2;
    if (room == build->room)
        return true;
    text = stki_resize(build->text, room);
    if (!text)
        return !(build->failed = true);
    build->text = text;
    build->room = room;
    return true;
}

void stki_put_bytes(stki_text_build *build, const char *bytes, int64_t count)
{
    if (!make_room(build, count))
        return;
    if (count > 0)
        memcpy(build->text + build->length, bytes, (size_t)count);
    build->length += count;
    build->text[build->length] = '\0';
}

void stki_put(stki_text_build *build, const char *text)
{
    stki_put_bytes(build, text, (int64_t)strlen(text));
}

void stki_put_many(stki_text_build *build, char c, int64_t count)
{
    if (count <= 0 || !make_room(build, count))
        return;
    memset(build->text + build->length, c, (size_t)count);
    build->length += count;
    build->text[build->length] = '\0';
}

void stki_putf(stki_text_build *build, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !make_room(build, length)) {
        build->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(build->text + build->length, (size_t)length + 1, format, args);
    va_end(args);
    build->length += length;
}

void stki_put_json(stki_text_build *build, const char *text)
{
    const char *end = text + strlen(text);

    stki_put(build, "\"");
    while (text < end) {
        uint32_t code = 0;
        int length = stki_utf8_next(text, end - text, &code);

        if (length == 0)
            stki_put(build, "\xef\xbf\xbd");
        else if (code == '"' || code == '\\')
            stki_putf(build, "\\%c", *text);
        else if (code < 0x20)
            stki_putf(build, "\\u%04x", code);
        else
            stki_put_bytes(build, text, length);
        text += length ? length : 1;
    }
    stki_put(build, "\"");
}

void stki_put_size(stki_text_build *build, int64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double size = (double)bytes;
    int unit = -1;

    while ((size >= 1024 || size <= -1024) && unit < 5) {
        size /= 1024;
        unit++;
    }
    if (unit < 0)
        stki_putf(build, "%lld", (long long)bytes);
    else
        stki_putf(build, "%.2f %s", size, units[unit]);
}

char *stki_text_take(stki_text_build *build)
{
    char *text;

    stki_put_bytes(build, "", 0);
    text = build->failed ? NULL : build->text;
    if (build->failed)
        stki_free(build->text);
    *build = (stki_text_build){0};
    return text;
}

stk_status stki_text_finish(stki_text_build *build, const char *what, char **out, stk_error *err)
{
    int64_t room = build->room;

    *out = stki_text_take(build);
    return *out ? STK_OK : stki_fail_memory(err, room, what);
}
