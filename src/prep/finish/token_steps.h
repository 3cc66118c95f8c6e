/* token_steps.h: what happens to a text before byte-pair encoding, as a list of steps: a tokenizer.json's normalizer
 * and pre-tokenizer. A step changes a piece of text, or cuts it into pieces, and the next step sees each piece alone.
 * Immutable once compiled; any thread, each with its own scratch. */
#ifndef STKI_TOKEN_STEPS_H
#define STKI_TOKEN_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_TOKEN_MOST_STEPS = 16 };

enum stki_token_step_kind {
    STKI_TOKEN_NORMALIZE, /* to a normalization form of Unicode */
    STKI_TOKEN_REPLACE,   /* each `from` becomes `text` */
    STKI_TOKEN_PREFIX,    /* `text` goes in front of a piece that is not empty */
    STKI_TOKEN_SPLIT      /* at the matches of the regular expression `text` */
};

enum stki_token_form { STKI_TOKEN_NFC, STKI_TOKEN_NFD, STKI_TOKEN_NFKC, STKI_TOKEN_NFKD };

enum stki_token_prefix {
    STKI_PREFIX_ALWAYS,
    STKI_PREFIX_UNLESS_THERE,         /* not if the piece begins with it */
    STKI_PREFIX_UNLESS_THERE_AT_START /* the same, and only in front of the piece that begins the document */
};

/* What becomes of the matches of a SPLIT and of the text between them. */
enum stki_token_behavior {
    STKI_SPLIT_ISOLATED,   /* each is a piece */
    STKI_SPLIT_REMOVED,    /* matches are dropped */
    STKI_SPLIT_CONTIGUOUS, /* matches that touch are one piece */
    STKI_SPLIT_WITH_PREVIOUS,
    STKI_SPLIT_WITH_NEXT /* a match goes to the text before or after it */
};

typedef struct stki_token_step {
    enum stki_token_step_kind kind;
    enum stki_token_form form;
    enum stki_token_prefix prefix;
    enum stki_token_behavior behavior;
    bool inverted;           /* SPLIT: the text between matches counts as matches, and they as the text */
    bool multiline;          /* SPLIT: ^ and $ are the ends of lines, as in Ruby */
    const char *text, *from; /* copied by stki_token_steps_add */
} stki_token_step;

typedef struct stki_token_steps {
    int count;
    stki_token_step step[STKI_TOKEN_MOST_STEPS];
} stki_token_steps; /* starts as {0} */

/* Copies `text` and `from`. STK_E_UNSUPPORTED: more than STKI_TOKEN_MOST_STEPS. STK_E_LIMIT: a REPLACE
 * or PREFIX of more than 1024 bytes. */
stk_status stki_token_steps_add(stki_token_steps *steps, const stki_token_step *step, stk_error *err);
void stki_token_steps_fini(stki_token_steps *steps);
/* The expression that matches this text alone; stki_free(). NULL: no memory. */
char *stki_token_literal(const char *text);
/* How many bytes may come of one, apart from those of prefixes; at most 1 << 24, which stands for more. */
int64_t stki_token_steps_growth(const stki_token_steps *steps);

typedef struct stki_token_program stki_token_program;
typedef struct stki_token_run stki_token_run; /* one thread's memory */

/* `steps` must outlive it. STK_E_CONFIG: a pattern is no regular expression. */
stk_status stki_token_program_create(const stki_token_steps *steps, stki_token_program **out, stk_error *err);
void stki_token_program_destroy(stki_token_program *program); /* NULL is fine */
stk_status stki_token_run_create(const stki_token_program *program, stki_token_run **out, stk_error *err);
void stki_token_run_destroy(stki_token_run *run); /* NULL is fine */

/* Gets one piece, which is not empty; `starts`: the document begins with it. */
typedef stk_status stki_token_piece_fn(void *context, const uint8_t *piece, int64_t length, bool starts,
                                       stk_error *err);
/* Calls `each` for the pieces that come of a text, valid UTF-8, in their order. */
stk_status stki_token_program_run(const stki_token_program *program, stki_token_run *run, const uint8_t *text,
                                  int64_t length, bool starts, stki_token_piece_fn *each, void *context,
                                  stk_error *err);

#endif
