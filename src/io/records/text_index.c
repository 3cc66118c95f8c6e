/* text_index.c: one pass over a text file that finds the start of each sample; see text.h. */
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "piece.h"
#include "text.h"
#include <string.h>

enum { FIRST_ROOM = 16, BLOCK = 1 << 20, TAIL = STKI_TEXT_SEPARATOR };

/* The state of the pass over the file. */
typedef struct scan {
    const stki_text_file *text;
    stki_text_index *index;
    int64_t room;             /* capacity of index->line */
    int64_t line_start, line; /* start of the current line, and its number, from 1 */
    int64_t from;             /* start of the current paragraph or document */
    bool blank;               /* the current line contains only blanks so far */
    bool inside;              /* the current position is inside a paragraph */
    unsigned char last;       /* previous byte */
} scan;

/* ---- samples ---- */

static stk_status add(scan *s, int64_t start, stk_error *err)
{
    stki_text_index *index = s->index;
    const int64_t mark = index->count / STKI_TEXT_MARKS;
    stk_status status = STK_OK;

    if (index->count % STKI_TEXT_MARKS == 0) {
        status = stki_grow(&index->line, &s->room, mark + 1, sizeof *index->line, "the numbers of lines", err);
        if (status == STK_OK)
            index->line[mark] = s->line;
    }
    if (status == STK_OK)
        status = stki_places_add(&index->start, start, err);
    index->count += status == STK_OK;
    return status;
}

static void is_as_long(scan *s, int64_t bytes)
{
    s->index->longest = bytes > s->index->longest ? bytes : s->index->longest;
}

/* ---- lines ---- */

/* Handles a line that ends at `end`, without its terminator. */
static stk_status end_line(scan *s, int64_t end, stk_error *err)
{
    const int64_t start = s->line_start;
    stk_status status = STK_OK;

    if (s->text->unit == STKI_TEXT_PARAGRAPHS) {
        if (!s->blank && !s->inside) {
            s->from = start;
            status = add(s, start, err);
        }
        if (!s->blank)
            is_as_long(s, end - s->from);
        s->inside = !s->blank;
    } else if (s->text->json && s->blank) {
        s->index->left_out++;
    } else {
        status = add(s, start, err);
        is_as_long(s, end - start);
    }
    return status;
}

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Scans `count` bytes at offset `at`. */
static stk_status scan_lines(scan *s, const unsigned char *bytes, int64_t count, int64_t at, stk_error *err)
{
    const unsigned char *p = bytes, *end = bytes + count;

    while (p < end) {
        const unsigned char *stop = memchr(p, '\n', (size_t)(end - p)), *q = stop ? stop : end;
        int64_t here;
        bool carriage;
        stk_status status;

        for (; s->blank && p < q; p++)
            s->blank = is_blank(*p);
        if (!stop) {
            s->last = end[-1];
            return STK_OK;
        }
        here = at + (q - bytes);
        carriage = here > s->line_start && (q > bytes ? q[-1] : s->last) == '\r';
        s->index->carriage = s->index->carriage || carriage;
        status = end_line(s, here - carriage, err);
        if (status != STK_OK)
            return status;
        s->line_start = here + 1;
        s->line++;
        s->blank = true;
        p = q + 1;
        s->last = '\n';
    }
    return STK_OK;
}

static stk_status build_lines(scan *s, stk_error *err)
{
    const stki_file *file = s->text->file;
    int64_t at = s->text->begins, count;
    stki_pieces pieces;
    const void *bytes;
    stk_status status = stki_pieces_init(&pieces, file, at, 1, file->size - at, err);

    s->line_start = at;
    while (status == STK_OK && (status = stki_pieces_next(&pieces, &bytes, &count, err)) == STK_OK && count > 0) {
        status = scan_lines(s, bytes, count, at, err);
        at += count;
    }
    stki_pieces_fini(&pieces);
    if (status == STK_OK && s->line_start < file->size)
        status = end_line(s, file->size, err);
    return status;
}

/* ---- documents ---- */

/* Adds the document from s->from to `end`. */
static stk_status end_document(scan *s, int64_t end, stk_error *err)
{
    if (end == s->from) {
        s->index->left_out++;
        return STK_OK;
    }
    is_as_long(s, end - s->from);
    return add(s, s->from, err);
}

/* Finds the separators in `count` bytes at offset `at`. */
static stk_status scan_documents(scan *s, const char *bytes, int64_t count, int64_t at, stk_error *err)
{
    const stki_text_file *text = s->text;
    const char *p = s->from > at ? bytes + (s->from - at) : bytes, *end = bytes + count, *found;
    stk_status status = STK_OK;

    while (status == STK_OK && p < end &&
           (found = memmem(p, (size_t)(end - p), text->separator, (size_t)text->separator_bytes))) {
        status = end_document(s, at + (found - bytes), err);
        p = found + text->separator_bytes;
        s->from = at + (p - bytes);
    }
    return status;
}

/* Reads the file block by block. The end of the previous block precedes each block in the buffer, because a separator
 * may cross the boundary. */
static stk_status build_documents(scan *s, stk_error *err)
{
    const stki_file *file = s->text->file;
    const int64_t before = s->text->separator_bytes - 1;
    char *buffer = file->map ? NULL : stki_zalloc(BLOCK + before);
    stk_status status = STK_OK;

    if (!file->map && !buffer)
        return stki_fail_memory(err, BLOCK + before, "a piece of a file");
    s->from = s->text->begins;
    for (int64_t at = s->text->begins; at < file->size && status == STK_OK; at += BLOCK) {
        const int64_t first = at - before > s->from ? at - before : s->from < at ? s->from : at;
        const int64_t left = file->size - first, count = at + BLOCK - first < left ? at + BLOCK - first : left;

        if (!file->map)
            status = stki_file_read(file, first, buffer, count, err);
        if (status == STK_OK)
            status = scan_documents(s, file->map ? (const char *)file->map + first : buffer, count, first, err);
    }
    stki_free(buffer);
    if (status == STK_OK && s->from < file->size)
        status = end_document(s, file->size, err);
    return status;
}

/* ---- building the index ---- */

static stk_status build_whole(scan *s, stk_error *err)
{
    is_as_long(s, s->text->file->size - s->text->begins);
    return add(s, s->text->begins, err);
}

stk_status stki_text_index_build(const stki_text_file *text, stki_text_index *out, stk_error *err)
{
    scan s = {.text = text, .index = out, .line = 1, .blank = true};
    stk_status status = text->unit == STKI_TEXT_WHOLE       ? build_whole(&s, err)
                        : text->unit == STKI_TEXT_DOCUMENTS ? build_documents(&s, err)
                                                            : build_lines(&s, err);

    if (status == STK_OK)
        status = stki_places_add(&out->start, text->file->size, err);
    if (status == STK_OK)
        status = stki_places_end(&out->start, err);
    if (status == STK_OK)
        out->held_bytes = stki_places_bytes(&out->start) + s.room * (int64_t)sizeof *out->line;
    else
        stki_text_index_fini(out);
    return status;
}

void stki_text_index_fini(stki_text_index *index)
{
    stki_places_fini(&index->start);
    stki_free(index->line);
    *index = (stki_text_index){0};
}

/* ---- locating a sample ---- */

/* Reads the last bytes of [from, to), at most `most`. */
static stk_status tail_of(const stki_text_file *text, int64_t from, int64_t to, int64_t most, char *out, int64_t *count,
                          stk_error *err)
{
    *count = to - from < most ? to - from : most;
    return stki_file_read(text->file, to - *count, out, *count, err);
}

static stk_status cut_line_end(const stki_text_file *text, int64_t from, int64_t *to, stk_error *err)
{
    char tail[2];
    int64_t count;
    stk_status status = tail_of(text, from, *to, 2, tail, &count, err);

    if (status != STK_OK || count == 0 || tail[count - 1] != '\n')
        return status;
    *to -= 1 + (count == 2 && tail[0] == '\r');
    return STK_OK;
}

static stk_status cut_blanks(const stki_text_file *text, int64_t from, int64_t *to, stk_error *err)
{
    char tail[TAIL];
    int64_t count, left;
    stk_status status;

    do {
        status = tail_of(text, from, *to, TAIL, tail, &count, err);
        if (status != STK_OK)
            return status;
        for (left = count; left > 0 && (is_blank((unsigned char)tail[left - 1]) || tail[left - 1] == '\n'); left--)
            continue;
        *to -= count - left;
    } while (left == 0 && *to > from);
    return STK_OK;
}

static stk_status cut_separators(const stki_text_file *text, int64_t from, int64_t *to, stk_error *err)
{
    char tail[TAIL];
    int64_t count;
    stk_status status;

    while ((status = tail_of(text, from, *to, text->separator_bytes, tail, &count, err)) == STK_OK &&
           count == text->separator_bytes && memcmp(tail, text->separator, (size_t)count) == 0)
        *to -= count;
    return status;
}

stk_status stki_text_sample(const stki_text_file *text, int64_t index, int64_t *at, int64_t *bytes, stk_error *err)
{
    int64_t from, to;
    stk_status status = STK_OK;

    stki_places_pair(&text->index.start, index, &from, &to);
    if (text->unit == STKI_TEXT_PARAGRAPHS || text->json)
        status = cut_blanks(text, from, &to, err);
    else if (text->unit == STKI_TEXT_LINES)
        status = cut_line_end(text, from, &to, err);
    else if (text->unit == STKI_TEXT_DOCUMENTS)
        status = cut_separators(text, from, &to, err);
    *at = from;
    *bytes = to - from;
    return status;
}

int64_t stki_text_line(const stki_text_file *text, int64_t index)
{
    const stki_text_index *i = &text->index;
    const int64_t mark = index / STKI_TEXT_MARKS, end = stki_places_at(&i->start, index);
    int64_t line = i->line[mark];
    char block[4096];

    if (text->unit != STKI_TEXT_LINES && text->unit != STKI_TEXT_PARAGRAPHS)
        return 0;
    for (int64_t at = stki_places_at(&i->start, mark * STKI_TEXT_MARKS); at < end;) {
        const int64_t left = end - at, count = left < (int64_t)sizeof block ? left : (int64_t)sizeof block;

        if (stki_file_read(text->file, at, block, count, NULL) != STK_OK)
            return 0;
        for (int64_t k = 0; k < count; k++)
            line += block[k] == '\n';
        at += count;
    }
    return line;
}
