/* text_build.c: see text_build.h. */
#include "text_build.h"
#include "allocate.h"
#include "error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for `more` bytes and a NUL. */
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

/* Bytes of the well-formed UTF-8 character that `at` begins with; 0: it is none. */
static int character_length(const unsigned char *at)
{
    int length = *at < 0x80                  ? 1
                 : *at >= 0xc2 && *at < 0xe0 ? 2
                 : *at >= 0xe0 && *at < 0xf0 ? 3
                 : *at >= 0xf0 && *at < 0xf5 ? 4
                                             : 0;

    for (int i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
        (*at == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

void stki_put_json(stki_text_build *build, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    stki_put(build, "\"");
    while (*at) {
        int length = character_length(at);
        if (length == 0)
            stki_put(build, "\xef\xbf\xbd");
        else if (*at == '"' || *at == '\\')
            stki_putf(build, "\\%c", *at);
        else if (*at < 0x20)
            stki_putf(build, "\\u%04x", *at);
        else
            stki_put_bytes(build, (const char *)at, length);
        at += length ? length : 1;
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
