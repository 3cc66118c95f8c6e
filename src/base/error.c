/* error.c: composes error messages; the only place that decides their format. */
#include "error.h"
#include "text_check.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stoker/version.h>
#include <string.h>
#include <sys/resource.h>

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

/* Replaces control characters, which a terminal would interpret, and invalid UTF-8 (truncation can split a character).
 * Names and contents of files are untrusted, and so are messages that quote them. */
void stki_make_printable(char *text)
{
    int64_t left = (int64_t)strlen(text);

    while (left > 0) {
        uint32_t code = 0;
        int bytes = stki_utf8_next(text, left, &code), i;
        bool fine = bytes > 0 && stki_text_allows(code, STKI_TEXT_KEY);

        if (bytes == 0)
            bytes = 1;
        for (i = 0; i < bytes && !fine; i++)
            text[i] = '?';
        text += bytes;
        left -= bytes;
    }
}

/* Truncates at the front, since the end of a path identifies the file. */
const char *stki_text_end(char *buffer, int size, const char *text)
{
    size_t length = strlen(text), room = (size_t)size;

    if (length < room) {
        memcpy(buffer, text, length + 1);
    } else {
        memcpy(buffer, "...", 3);
        memcpy(buffer + 3, text + length - (room - 4), room - 3);
    }
    return buffer;
}

void stki_error_facts(stk_error *err, stki_place place)
{
    err->record = place.record;
    err->offset = place.offset;
    stki_text_end(err->file, sizeof err->file, place.file ? place.file : "");
    stki_text_end(err->found, sizeof err->found, place.found ? place.found : "");
    stki_text_end(err->expected, sizeof err->expected, place.expected ? place.expected : "");
    stki_make_printable(err->found);
    stki_make_printable(err->expected);
}

/* A message under construction. */
struct words {
    char text[sizeof((stk_error *)NULL)->message];
    size_t used;
};

static void STK_PRINTF(2, 0) vappend(struct words *words, const char *format, va_list args)
{
    size_t room = sizeof words->text - words->used;
    int n = vsnprintf(words->text + words->used, room, format, args);

    if (n >= 0 && (size_t)n < room) {
        words->used += (size_t)n;
    } else if (n >= 0) {
        words->used = sizeof words->text - 1;
        memcpy(words->text + words->used - 3, "...", 3);
    }
}

static void STK_PRINTF(2, 3) append(struct words *words, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vappend(words, format, args);
    va_end(args);
}

/* `err` is written last, because the arguments of the message may point into it (if the message quotes an earlier
 * error). */
static void fill(stk_error *err, stk_status status, const struct words *words)
{
    stki_error_clear(err);
    err->status = status;
    memcpy(err->message, words->text, words->used + 1);
    stki_make_printable(err->message);
}

stk_status stki_fail(stk_error *err, stk_status status, const char *format, ...)
{
    struct words words = {.used = 0};
    va_list args;

    if (!err)
        return status;
    va_start(args, format);
    vappend(&words, format, args);
    va_end(args);
    fill(err, status, &words);
    return status;
}

stk_status stki_fail_at(stk_error *err, stk_status status, stki_place place, const char *format, ...)
{
    struct words words = {.used = 0};
    stk_error facts;
    va_list args;

    if (!err)
        return status;
    stki_error_facts(&facts, place);
    if (place.file)
        append(&words, "%s: ", facts.file);
    if (facts.record >= 0)
        append(&words, "record %lld: ", (long long)facts.record);
    if (facts.offset >= 0)
        append(&words, "offset %lld: ", (long long)facts.offset);
    va_start(args, format);
    vappend(&words, format, args);
    va_end(args);
    if (place.found)
        append(&words, ": found %s", facts.found);
    if (place.expected)
        append(&words, "%s expected %s", place.found ? "," : ":", facts.expected);
    facts.status = status;
    memcpy(facts.message, words.text, words.used + 1);
    stki_make_printable(facts.message);
    *err = facts;
    return status;
}

bool stki_is_scarce(int error_number)
{
    return error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM || error_number == ENOBUFS ||
           error_number == ENOLCK;
}

stk_status stki_fail_errno(stk_error *err, int error_number, const char *file, const char *format, ...)
{
    stk_status status = error_number == ENOENT || error_number == ENOTDIR ? STK_E_NOT_FOUND
                        : error_number == ENOMEM                          ? STK_E_MEMORY
                        : stki_is_scarce(error_number)                    ? STK_E_RESOURCE
                                                                          : STK_E_IO;
    stki_place place = {.file = file, .record = -1, .offset = -1};
    char what[256], reason[128], in_use[48];
    struct rlimit limit;
    va_list args;

    if (!err)
        return status;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (error_number == EMFILE && !getrlimit(RLIMIT_NOFILE, &limit)) {
        place.found = stki_text(in_use, sizeof in_use, "all %llu in use", (unsigned long long)limit.rlim_cur);
        place.expected = "a free descriptor (ulimit -n)";
    }
    if (error_number == ENOSPC || error_number == EDQUOT)
        place.expected = STKI_FREE_SPACE;
    return stki_fail_at(err, status, place, "%s: %s", what, strerror_r(error_number, reason, sizeof reason));
}

stk_status stki_fail_memory(stk_error *err, int64_t bytes, const char *what)
{
    return stki_fail(err, STK_E_MEMORY, "out of memory: %lld bytes for %s", (long long)bytes, what);
}

/* The length of "FILE: " at the start of the message; 0: the message does not start with it. */
static int after_file(const stk_error *err)
{
    char file[sizeof err->file];
    size_t length;

    memcpy(file, err->file, sizeof file);
    stki_make_printable(file); /* as in the message */
    length = strlen(file);
    return length > 0 && !strncmp(err->message, file, length) && !strncmp(err->message + length, ": ", 2)
               ? (int)length + 2
               : 0;
}

stk_status stki_fail_record(stk_error *err, stk_status status, int64_t record)
{
    struct words words = {.used = 0};
    int place;

    if (status >= 0 || !err || err->record >= 0 || record < 0)
        return status;
    place = after_file(err);
    append(&words, "%.*srecord %lld: %s", place, err->message, (long long)record, err->message + place);
    memcpy(err->message, words.text, words.used + 1);
    stki_make_printable(err->message); /* truncation can split a character */
    err->record = record;
    return status;
}

stk_status stki_fail_place(stk_error *err, stk_status status, const char *file, int64_t record, const char *what)
{
    stk_error cause;

    if (status >= 0 || !err)
        return status;
    cause = *err;
    stki_fail_at(err, status, (stki_place){file, record, -1, NULL, NULL}, "%s%s%s", what ? what : "", what ? ": " : "",
                 cause.message);
    err->offset = cause.offset;
    memcpy(err->found, cause.found, sizeof err->found);
    memcpy(err->expected, cause.expected, sizeof err->expected);
    return status;
}

stk_status stki_check_given(const void *given, const char *argument, stk_error *err)
{
    if (given)
        return STK_OK;
    return stki_fail_at(err, STK_E_BAD_ARG, (stki_place){NULL, -1, -1, "NULL", NULL}, "%s", argument);
}

const char *stki_text(char *buffer, int size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(buffer, (size_t)size, format, args);
    va_end(args);
    return buffer;
}
