/* token_steps.h: the processing of a text before byte-pair encoding as a list of steps: a tokenizer.json's normalizer
 * and pre-tokenizer. A step changes a piece of text or splits it, and the next step gets each piece separately.
 * Immutable once compiled; thread-safe with one scratch per thread. */
#ifndef STKI_TOKEN_STEPS_H
#define STKI_TOKEN_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_TOKEN_MOST_STEPS = 16 };

enum stki_token_step_kind {
    STKI_TOKEN_NORMALIZE, /* converts to a Unicode normalization form */
    STKI_TOKEN_REPLACE,   /* replaces each `from` by `text` */
    STKI_TOKEN_PREFIX,    /* prepends `text` to a non-empty piece */
    STKI_TOKEN_SPLIT      /* splits at the matches of the regular expression `text` */
};

enum stki_token_form { STKI_TOKEN_NFC, STKI_TOKEN_NFD, STKI_TOKEN_NFKC, STKI_TOKEN_NFKD };

enum stki_token_prefix {
    STKI_PREFIX_ALWAYS,
    STKI_PREFIX_UNLESS_THERE,         /* unless the piece starts with it */
    STKI_PREFIX_UNLESS_THERE_AT_START /* like the previous one, but only for the first piece of the document */
};

/* The treatment of the matches of a SPLIT and of the text between them. */
enum stki_token_behavior {
    STKI_SPLIT_ISOLATED,   /* each of them is a piece */
    STKI_SPLIT_REMOVED,    /* matches are dropped */
    STKI_SPLIT_CONTIGUOUS, /* adjacent matches form one piece */
    STKI_SPLIT_WITH_PREVIOUS,
    STKI_SPLIT_WITH_NEXT /* a match is merged with the text before or after it */
};

typedef struct stki_token_step {
    enum stki_token_step_kind kind;
    enum stki_token_form form;
    enum stki_token_prefix prefix;
    enum stki_token_behavior behavior;
    bool inverted;           /* SPLIT: swaps matches and the text between them */
    bool multiline;          /* SPLIT: ^ and $ match at line ends, as in Ruby */
    const char *text, *from; /* copied by stki_token_steps_add */
} stki_token_step;

typedef struct stki_token_steps {
    int count;
    stki_token_step step[STKI_TOKEN_MOST_STEPS];
} stki_token_steps; /* initialize with {0} */

/* Copies `text` and `from`. STK_E_UNSUPPORTED: more than STKI_TOKEN_MOST_STEPS. STK_E_LIMIT: a REPLACE
 * or PREFIX of more than 1024 bytes. */
stk_status stki_token_steps_add(stki_token_steps *steps, const stki_token_step *step, stk_error *err);
void stki_token_steps_fini(stki_token_steps *steps);
/* Returns a regular expression that matches exactly this text; free it with stki_free. NULL: out of memory. */
char *stki_token_literal(const char *text);
/* Returns the maximum number of output bytes per input byte, without prefixes; at most 1 << 24, which means at least
 * that many. */
int64_t stki_token_steps_growth(const stki_token_steps *steps);

typedef struct stki_token_program stki_token_program;
typedef struct stki_token_run stki_token_run; /* memory of one thread */

/* `steps` must outlive it. STK_E_CONFIG: a pattern is not a regular expression. */
stk_status stki_token_program_create(const stki_token_steps *steps, stki_token_program **out, stk_error *err);
void stki_token_program_destroy(stki_token_program *program); /* NULL is allowed */
stk_status stki_token_run_create(const stki_token_program *program, stki_token_run **out, stk_error *err);
void stki_token_run_destroy(stki_token_run *run); /* NULL is allowed */

/* Receives a non-empty piece; `starts`: it is the first of the document. */
typedef stk_status stki_token_piece_fn(void *context, const uint8_t *piece, int64_t length, bool starts,
                                       stk_error *err);
/* Calls `each` for the resulting pieces of a text (valid UTF-8), in order. */
stk_status stki_token_program_run(const stki_token_program *program, stki_token_run *run, const uint8_t *text,
                                  int64_t length, bool starts, stki_token_piece_fn *each, void *context,
                                  stk_error *err);

#endif
