/* journal.c: see journal.h. */
#include "journal.h"
#include "allocate.h"
#include "digest.h"
#include "error.h"
#include "output.h"
#include "prep_file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUM = 17 }; /* 16 digits and a space */

struct stki_journal {
    char *path;
    int fd;
    int64_t end;
};

/* Parses a line of `length` bytes without its newline; NULL: invalid. */
static json_t *parse(const char *line, int64_t length)
{
    char sum[SUM + 1];
    json_t *json;

    if (length < SUM + 2)
        return NULL;
    snprintf(sum, sizeof sum, "%016" PRIx64 " ", stki_digest_64(line + SUM, length - SUM));
    if (memcmp(sum, line, SUM) != 0)
        return NULL;
    json = json_loadb(line + SUM, (size_t)(length - SUM), 0, NULL);
    if (json && !json_is_object(json)) {
        json_decref(json);
        json = NULL;
    }
    return json;
}

/* *whole: size of the valid lines; *bytes: size of the file. */
static stk_status walk(const char *path, FILE *file, stki_journal_take take, void *context, int64_t *whole,
                       int64_t *bytes, stk_error *err)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    int64_t torn = -1;
    stk_status status = STK_OK;

    *whole = *bytes = 0;
    while (status == STK_OK && (length = getline(&text, &room, file)) > 0) {
        json_t *line = text[length - 1] == '\n' ? parse(text, length - 1) : NULL;

        if (line && torn >= 0)
            status = stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, torn, "a damaged line", NULL},
                                  "the journal of the work folder is damaged; start again with the option restart");
        else if (line)
            status = take(context, line, err);
        else if (torn < 0)
            torn = *bytes;
        json_decref(line);
        *bytes += length;
        *whole = torn < 0 ? *bytes : torn;
    }
    if (status == STK_OK && !feof(file))
        status = stki_fail_errno(err, errno, path, "cannot read");
    free(text);
    return status;
}

/* STK_E_NOT_FOUND. */
static stk_status walk_file(const char *path, stki_journal_take take, void *context, int64_t *whole, int64_t *bytes,
                            stk_error *err)
{
    FILE *file = fopen(path, "rbe");
    stk_status status =
        file ? walk(path, file, take, context, whole, bytes, err) : stki_fail_errno(err, errno, path, "cannot open");

    if (file)
        (void)fclose(file);
    return status;
}

static stk_status keep(void *context, json_t *line, stk_error *err)
{
    (void)json_object_del(line, "seen");
    return json_array_append((json_t *)context, line) == 0 ? STK_OK : stki_fail_memory(err, 256, "a journal");
}

static stk_status read_lines(const char *path, json_t **lines, int64_t *whole, int64_t *bytes, stk_error *err)
{
    stk_status status;

    *lines = json_array();
    status = *lines ? walk_file(path, keep, *lines, whole, bytes, err) : stki_fail_memory(err, 64, path);
    if (status != STK_OK && status != STK_E_NOT_FOUND) {
        json_decref(*lines);
        *lines = NULL;
    }
    return status;
}

stk_status stki_journal_read(const char *path, json_t **lines, stk_error *err)
{
    int64_t whole, bytes;
    stk_status status = read_lines(path, lines, &whole, &bytes, err);

    if (status != STK_E_NOT_FOUND)
        return status;
    stki_error_clear(err);
    return STK_OK;
}

stk_status stki_journal_each(const char *path, stki_journal_take take, void *context, stk_error *err)
{
    int64_t whole, bytes;
    stk_status status = walk_file(path, take, context, &whole, &bytes, err);

    if (status != STK_E_NOT_FOUND)
        return status;
    stki_error_clear(err);
    return STK_OK;
}

static stk_status open_locked(stki_journal *journal, json_t **lines, stk_error *err)
{
    int64_t bytes;
    stk_status status = stki_prep_lock_file(journal->path, &journal->fd, err);

    *lines = NULL;
    if (status == STK_OK)
        status = read_lines(journal->path, lines, &journal->end, &bytes, err);
    if (status == STK_OK && bytes == 0) /* a line is useless if the file's name is lost in a crash */
        status = stki_sync_folder_of(journal->path, err);
    if (status == STK_OK && journal->end < bytes && ftruncate(journal->fd, journal->end) != 0)
        status = stki_fail_errno(err, errno, journal->path, "cannot remove an incomplete line");
    if (status != STK_OK)
        json_decref(*lines);
    return status;
}

stk_status stki_journal_open(const char *path, stki_journal **out, json_t **lines, stk_error *err)
{
    stki_journal *journal = stki_zalloc(sizeof *journal);
    stk_status status;

    if (!journal)
        return stki_fail_memory(err, sizeof *journal, path);
    journal->fd = -1;
    journal->path = stki_strdup(path);
    status = journal->path ? open_locked(journal, lines, err) : stki_fail_memory(err, (int64_t)strlen(path), path);
    if (status == STK_OK)
        *out = journal;
    else
        stki_journal_close(journal);
    return status;
}

static stk_status write_line(stki_journal *journal, const char *line, int64_t bytes, stk_error *err)
{
    int64_t at = 0;

    while (at < bytes) {
        ssize_t n = pwrite(journal->fd, line + at, (size_t)(bytes - at), journal->end + at);

        if (n < 0 && errno != EINTR)
            return stki_fail_errno(err, errno, journal->path, "cannot write %" PRId64 " bytes", bytes);
        at += n > 0 ? n : 0;
    }
    if (fdatasync(journal->fd) != 0)
        return stki_fail_errno(err, errno, journal->path, "cannot sync");
    journal->end += bytes;
    return STK_OK;
}

stk_status stki_journal_append(stki_journal *journal, const json_t *json, stk_error *err)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS), *line = NULL;
    stk_status status;

    if (text)
        line = stki_format("%016" PRIx64 " %s\n", stki_digest_64(text, (int64_t)strlen(text)), text);
    status = line ? write_line(journal, line, (int64_t)strlen(line), err) : stki_fail_memory(err, 256, journal->path);
    free(text);
    stki_free(line);
    return status;
}

stk_status stki_journal_clear(stki_journal *journal, stk_error *err)
{
    if (ftruncate(journal->fd, 0) != 0)
        return stki_fail_errno(err, errno, journal->path, "cannot truncate to 0 bytes");
    journal->end = 0;
    return STK_OK;
}

void stki_journal_close(stki_journal *journal)
{
    if (!journal)
        return;
    if (journal->fd >= 0)
        (void)close(journal->fd);
    stki_free(journal->path);
    stki_free(journal);
}
