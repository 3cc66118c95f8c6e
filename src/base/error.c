/* error.c: composes error messages; the only place where their shape is decided. */
#include "error.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stoker/version.h>
#include <string.h>

const char *stk_status_name(stk_status status)
{
    switch (status) {
#define STK_X(value, identifier, name, text) \
    case identifier:                         \
        return name;
        STK_STATUS_LIST(STK_X)
#undef STK_X
    }
    return "unknown";
}

const char *stk_status_text(stk_status status)
{
    switch (status) {
#define STK_X(value, identifier, name, text) \
    case identifier:                         \
        return text;
        STK_STATUS_LIST(STK_X)
#undef STK_X
    }
    return "unknown status";
}

const char *stk_version(void)
{
    return STK_VERSION_STRING;
}

void stki_error_clear(stk_error *err)
{
    if (!err)
        return;
    memset(err, 0, sizeof *err);
    err->record = err->offset = -1;
}

/* Keeps the end of a long text, since the end of a path says more than its beginning. */
static void copy_end(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);

    if (length < size) {
        memcpy(to, from, length + 1);
    } else {
        memcpy(to, "...", 3);
        memcpy(to + 3, from + length - (size - 4), size - 3);
    }
}

static void STK_PRINTF(3, 4) append(stk_error *err, size_t *used, const char *format, ...)
{
    va_list args;
    int n;

    if (*used >= sizeof err->message)
        return;
    va_start(args, format);
    n = vsnprintf(err->message + *used, sizeof err->message - *used, format, args);
    va_end(args);
    if (n > 0)
        *used += (size_t)n;
}

static void STK_PRINTF(3, 0) vappend(stk_error *err, size_t *used, const char *format, va_list args)
{
    int n;

    if (*used >= sizeof err->message)
        return;
    n = vsnprintf(err->message + *used, sizeof err->message - *used, format, args);
    if (n > 0)
        *used += (size_t)n;
}

stk_status stki_fail(stk_error *err, stk_status status, const char *format, ...)
{
    size_t used = 0;
    va_list args;

    if (!err)
        return status;
    stki_error_clear(err);
    err->status = status;
    va_start(args, format);
    vappend(err, &used, format, args);
    va_end(args);
    return status;
}

stk_status stki_fail_at(stk_error *err, stk_status status, stki_place place, const char *format, ...)
{
    size_t used = 0;
    va_list args;

    if (!err)
        return status;
    stki_error_clear(err);
    err->status = status;
    err->record = place.record;
    err->offset = place.offset;
    if (place.file) {
        copy_end(err->file, sizeof err->file, place.file);
        append(err, &used, "%s: ", err->file);
    }
    if (place.record >= 0)
        append(err, &used, "record %lld: ", (long long)place.record);
    if (place.offset >= 0)
        append(err, &used, "offset %lld: ", (long long)place.offset);
    va_start(args, format);
    vappend(err, &used, format, args);
    va_end(args);
    if (place.found) {
        copy_end(err->found, sizeof err->found, place.found);
        append(err, &used, ": found %s", err->found);
    }
    if (place.expected) {
        copy_end(err->expected, sizeof err->expected, place.expected);
        append(err, &used, "%s expected %s", place.found ? "," : ":", err->expected);
    }
    return status;
}

stk_status stki_fail_errno(stk_error *err, int error_number, const char *file, const char *format, ...)
{
    stk_status status = error_number == ENOENT || error_number == ENOTDIR ? STK_E_NOT_FOUND
                        : error_number == ENOMEM                          ? STK_E_MEMORY
                                                                          : STK_E_IO;
    char what[256], reason[128];
    va_list args;

    if (!err)
        return status;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return stki_fail_at(err, status, (stki_place){.file = file, .record = -1, .offset = -1}, "%s: %s", what,
                        strerror_r(error_number, reason, sizeof reason));
}

stk_status stki_fail_memory(stk_error *err, int64_t bytes, const char *what)
{
    return stki_fail(err, STK_E_MEMORY, "out of memory: %lld bytes for %s", (long long)bytes, what);
}

const char *stki_text(char *buffer, int size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(buffer, (size_t)size, format, args);
    va_end(args);
    return buffer;
}
