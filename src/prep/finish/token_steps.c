/* token_steps.c: see token_steps.h. Each step calls the next one for each of its pieces, so a text is traversed once,
 * and only steps that change it make a copy in their own memory. */
#include "token_steps.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "token_normalize.h"
#include "token_split.h"
#include <string.h>

enum {
    MOST_TEXT = 1024, /* longest text inserted by REPLACE or PREFIX */
    MOST_GROWTH = 1 << 24
};

struct stki_token_program {
    const stki_token_steps *steps;
    stki_token_split *splits[STKI_TOKEN_MOST_STEPS]; /* NULL if the step is not a SPLIT */
};

struct stki_token_run {
    stki_token_finder *finders[STKI_TOKEN_MOST_STEPS];
    struct step_memory {
        stki_normalized normalized;
        uint8_t *text;
        int64_t room;
    } memory[STKI_TOKEN_MOST_STEPS];
};

/* ---- the list ---- */

static bool copy_text(const char **text)
{
    const char *from = *text;

    *text = from ? stki_strdup(from) : NULL;
    return !from || *text;
}

stk_status stki_token_steps_add(stki_token_steps *steps, const stki_token_step *step, stk_error *err)
{
    stki_token_step *added = &steps->step[steps->count];

    if (steps->count == STKI_TOKEN_MOST_STEPS)
        return stki_fail(err, STK_E_UNSUPPORTED, "found more than %d steps before the model", STKI_TOKEN_MOST_STEPS);
    if ((step->kind == STKI_TOKEN_REPLACE || step->kind == STKI_TOKEN_PREFIX) && strlen(step->text) > MOST_TEXT)
        return stki_fail(err, STK_E_LIMIT, "found a step that inserts %zu bytes into a text, expected at most %d",
                         strlen(step->text), MOST_TEXT);
    *added = *step;
    added->from = NULL;
    steps->count++;
    if (!copy_text(&added->text))
        return stki_fail_memory(err, 0, "a step of a tokenizer");
    added->from = step->from;
    if (!copy_text(&added->from))
        return stki_fail_memory(err, 0, "a step of a tokenizer");
    return STK_OK;
}

static void free_text(const char *text)
{
    stki_free((void *)(uintptr_t)text);
}

void stki_token_steps_fini(stki_token_steps *steps)
{
    for (int i = 0; i < steps->count; i++) {
        free_text(steps->step[i].text);
        free_text(steps->step[i].from);
    }
    *steps = (stki_token_steps){0};
}

char *stki_token_literal(const char *text)
{
    char *to = stki_zalloc(4 * (int64_t)strlen(text) + 1), *end = to;

    for (; to && *text; text++) {
        if ((*text & 0x80) == 0 && !((*text | 32) >= 'a' && (*text | 32) <= 'z') && !(*text >= '0' && *text <= '9'))
            *end++ = '\\'; /* escapes characters with a special meaning; an escaped control character matches itself */
        *end++ = *text;
    }
    return to;
}

int64_t stki_token_steps_growth(const stki_token_steps *steps)
{
    int64_t growth = 1;

    for (int i = 0; i < steps->count; i++) {
        const stki_token_step *step = &steps->step[i];
        int64_t by = 1;

        if (step->kind == STKI_TOKEN_NORMALIZE) /* worst cases: U+FDFA grows from 3 to 33 bytes, U+1D160 from 4 to 12 */
            by = step->form >= STKI_TOKEN_NFKC ? 11 : 3;
        else if (step->kind == STKI_TOKEN_REPLACE)
            by = (int64_t)(strlen(step->text) / strlen(step->from)) + 1;
        if (!stki_mul(growth, by, &growth) || growth > MOST_GROWTH)
            growth = MOST_GROWTH;
    }
    return growth;
}

/* ---- compilation ---- */

stk_status stki_token_program_create(const stki_token_steps *steps, stki_token_program **out, stk_error *err)
{
    stki_token_program *program = stki_zalloc(sizeof *program);
    stk_status status = STK_OK;

    if (!program)
        return stki_fail_memory(err, (int64_t)sizeof *program, "a tokenizer");
    program->steps = steps;
    for (int i = 0; i < steps->count && status == STK_OK; i++)
        if (steps->step[i].kind == STKI_TOKEN_SPLIT)
            status = stki_token_split_create(steps->step[i].text, steps->step[i].multiline, &program->splits[i], err);
    if (status == STK_OK)
        *out = program;
    else
        stki_token_program_destroy(program);
    return status;
}

void stki_token_program_destroy(stki_token_program *program)
{
    if (!program)
        return;
    for (int i = 0; i < STKI_TOKEN_MOST_STEPS; i++)
        stki_token_split_destroy(program->splits[i]);
    stki_free(program);
}

stk_status stki_token_run_create(const stki_token_program *program, stki_token_run **out, stk_error *err)
{
    stki_token_run *run = stki_zalloc(sizeof *run);
    stk_status status = run ? STK_OK : stki_fail_memory(err, (int64_t)sizeof *run, "a tokenizer");

    for (int i = 0; i < program->steps->count && status == STK_OK; i++)
        if (program->splits[i])
            status = stki_token_finder_create(program->splits[i], &run->finders[i], err);
    if (status == STK_OK)
        *out = run;
    else
        stki_token_run_destroy(run);
    return status;
}

void stki_token_run_destroy(stki_token_run *run)
{
    if (!run)
        return;
    for (int i = 0; i < STKI_TOKEN_MOST_STEPS; i++) {
        stki_token_finder_destroy(run->finders[i]);
        stki_normalized_fini(&run->memory[i].normalized);
        stki_free(run->memory[i].text);
    }
    stki_free(run);
}

/* ---- processing a text ---- */

typedef struct walk {
    const stki_token_program *program;
    stki_token_run *run;
    stki_token_piece_fn *each;
    void *context;
    stk_error *err;
} walk;

static stk_status run_from(walk *w, int i, const uint8_t *text, int64_t length, bool starts);

static stk_status reserve(struct step_memory *memory, int64_t bytes, stk_error *err)
{
    uint8_t *grown;

    if (bytes <= memory->room)
        return STK_OK;
    bytes += bytes / 4;
    grown = stki_resize(memory->text, bytes);
    if (!grown)
        return stki_fail_memory(err, bytes, "a step of a text");
    memory->text = grown;
    memory->room = bytes;
    return STK_OK;
}

static stk_status replace(walk *w, int i, const uint8_t *text, int64_t length, bool starts)
{
    const stki_token_step *step = &w->program->steps->step[i];
    const int64_t from = (int64_t)strlen(step->from), by = (int64_t)strlen(step->text);
    struct step_memory *memory = &w->run->memory[i];
    int64_t count = 0, kept = 0;
    uint8_t *to;
    stk_status status;

    for (int64_t at = 0; at + from <= length; at++)
        if (text[at] == (uint8_t)*step->from && memcmp(text + at, step->from, (size_t)from) == 0) {
            count++;
            at += from - 1;
        }
    if (count == 0)
        return run_from(w, i + 1, text, length, starts);
    if ((status = reserve(memory, length + count * by, w->err)) != STK_OK)
        return status;
    to = memory->text;
    for (int64_t at = 0; count > 0 && at + from <= length; at++) {
        if (text[at] != (uint8_t)*step->from || memcmp(text + at, step->from, (size_t)from) != 0)
            continue;
        memcpy(to, text + kept, (size_t)(at - kept));
        to += at - kept;
        memcpy(to, step->text, (size_t)by);
        to += by;
        kept = at + from;
        at += from - 1;
    }
    memcpy(to, text + kept, (size_t)(length - kept));
    to += length - kept;
    return run_from(w, i + 1, memory->text, to - memory->text, starts);
}

static stk_status prefix(walk *w, int i, const uint8_t *text, int64_t length, bool starts)
{
    const stki_token_step *step = &w->program->steps->step[i];
    const int64_t by = (int64_t)strlen(step->text);
    struct step_memory *memory = &w->run->memory[i];
    stk_status status;

    if ((step->prefix != STKI_PREFIX_ALWAYS && length >= by && memcmp(text, step->text, (size_t)by) == 0) ||
        (step->prefix == STKI_PREFIX_UNLESS_THERE_AT_START && !starts))
        return run_from(w, i + 1, text, length, starts);
    if ((status = reserve(memory, length + by, w->err)) != STK_OK)
        return status;
    memcpy(memory->text, step->text, (size_t)by);
    memcpy(memory->text + by, text, (size_t)length);
    return run_from(w, i + 1, memory->text, length + by, starts);
}

/* A piece that has not been passed to the next step yet, because the following piece may be merged into it. */
typedef struct held {
    int64_t begin, end; /* equal: none */
    bool matched;
} held;

static stk_status let_go(walk *w, int i, const uint8_t *text, held *piece, bool starts)
{
    const int64_t begin = piece->begin, end = piece->end;

    piece->begin = piece->end;
    return end > begin ? run_from(w, i + 1, text + begin, end - begin, starts && begin == 0) : STK_OK;
}

static bool joins(enum stki_token_behavior behavior, const held *piece, bool matched)
{
    switch (behavior) {
    case STKI_SPLIT_CONTIGUOUS:
        return piece->matched == matched;
    case STKI_SPLIT_WITH_PREVIOUS:
        return matched && !piece->matched;
    case STKI_SPLIT_WITH_NEXT:
        return piece->matched && !matched;
    default:
        return false;
    }
}

static stk_status split(walk *w, int i, const uint8_t *text, int64_t length, bool starts)
{
    const stki_token_step *step = &w->program->steps->step[i];
    held piece = {0};
    stk_status status = STK_OK;

    for (int64_t at = 0, end; at < length && status == STK_OK; at = end) {
        bool matched;

        status =
            stki_token_split_next(w->program->splits[i], w->run->finders[i], text, length, at, &end, &matched, w->err);
        if (status != STK_OK)
            return status;
        matched = matched != step->inverted;
        if (step->behavior == STKI_SPLIT_REMOVED && matched)
            continue;
        if (piece.end == piece.begin || !joins(step->behavior, &piece, matched)) {
            status = let_go(w, i, text, &piece, starts);
            piece.begin = at;
        }
        piece.end = end;
        piece.matched = matched;
    }
    return status == STK_OK ? let_go(w, i, text, &piece, starts) : status;
}

static stk_status run_from(walk *w, int i, const uint8_t *text, int64_t length, bool starts)
{
    const stki_token_steps *steps = w->program->steps;
    stk_status status;

    if (length == 0)
        return STK_OK;
    if (i == steps->count)
        return w->each(w->context, text, length, starts, w->err);
    switch (steps->step[i].kind) {
    case STKI_TOKEN_NORMALIZE:
        status = stki_token_normalize(steps->step[i].form, &w->run->memory[i].normalized, text, length, &text, &length,
                                      w->err);
        return status == STK_OK ? run_from(w, i + 1, text, length, starts) : status;
    case STKI_TOKEN_REPLACE:
        return replace(w, i, text, length, starts);
    case STKI_TOKEN_PREFIX:
        return prefix(w, i, text, length, starts);
    case STKI_TOKEN_SPLIT:
        break;
    }
    return split(w, i, text, length, starts);
}

stk_status stki_token_program_run(const stki_token_program *program, stki_token_run *run, const uint8_t *text,
                                  int64_t length, bool starts, stki_token_piece_fn *each, void *context, stk_error *err)
{
    walk w = {program, run, each, context, err};

    return run_from(&w, 0, text, length, starts);
}
