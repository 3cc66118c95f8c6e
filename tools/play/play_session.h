/* play_session.h: a session of the playground: the steps so far, each with its tensor, and how the next one is
 * done. Steps keep their tensors for as long as the session lives, so that each can be asked whose memory it shares.
 */
#ifndef STOKER_PLAY_SESSION_H
#define STOKER_PLAY_SESSION_H

#include "play_parse.h"

/* Of one tensor. What larger ones need can be asked with --memory; nothing is learned by drawing them. */
#define PL_MOST_BYTES ((int64_t)256 << 20)

enum pl_how {
    PL_NEW,      /* fresh memory with values from nowhere else */
    PL_VIEW,     /* the memory of the step before, seen in another way */
    PL_SAME,     /* the very tensor: nothing had to be done */
    PL_COPY,     /* the elements in fresh memory */
    PL_COMPUTED, /* fresh memory with results in it */
    PL_IN_PLACE, /* results in the memory of the step before */
    PL_TEXT      /* no tensor: the command only said something */
};

struct pl_step {
    char *text;               /* the command */
    char name[PL_NAME_BYTES]; /* "" if none was given */
    stk_tensor tensor;        /* owned */
    int from;                 /* index of the step that it worked on, -1: none */
    enum pl_how how;
    char *said;   /* a remark, or the text of a command that has no tensor; NULL: none */
    char *figure; /* what a page shows in its place; NULL: the same */
};

struct pl_session {
    struct pl_step *steps;
    int count;
    int64_t capacity;
    int64_t seed;
};

/* Why a command did not work. `why` holds sentences that explain the rule, or "". */
struct pl_trouble {
    stk_error err;
    char why[1600];
    char *figure, *drawing; /* SVG, and the same as text, or NULL; free them with stki_free */
};

void pl_session_init(struct pl_session *session);
void pl_session_fini(struct pl_session *session);

/* Called after each step; the step is the session's last. */
typedef stk_status (*pl_sink)(void *context, const struct pl_session *session, stk_error *err);

/* Runs commands separated by `;` or newlines; `#` begins a comment. Stops at the first that fails: STK_E_CONFIG if it
 * is not of the language. `at` (may be NULL) gets the command that failed; free it with stki_free. */
stk_status pl_session_run(struct pl_session *session, const char *chain, pl_sink sink, void *context, char **at,
                          struct pl_trouble *trouble);

/* The latest step of that name, or the step of that number for "_3"; -1: none. */
int pl_session_find(const struct pl_session *session, const char *name);
/* The number of the step's storage among all, from 0; 0 for a step without tensor. */
int pl_session_storage(const struct pl_session *session, int index);
/* "A", "B", …, "Z", "A1", … */
const char *pl_storage_name(char *buffer, int size, int storage);
/* Bytes of all distinct storages. */
int64_t pl_session_bytes(const struct pl_session *session);

#endif
