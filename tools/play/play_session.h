/* play_session.h: a session of the playground: its steps, each with its tensor and how it was made. Tensors live as
 * long as the session, so that shared storage can be shown for every step. */
#ifndef STOKER_PLAY_SESSION_H
#define STOKER_PLAY_SESSION_H

#include "play_parse.h"

/* Maximum size of a tensor. Drawings of larger ones would show nothing more, and --memory computes their size. */
#define PL_MOST_BYTES ((int64_t)256 << 20)

enum pl_how {
    PL_NEW,      /* new memory, new values */
    PL_VIEW,     /* a view of the input's memory */
    PL_SAME,     /* the input itself: nothing to do */
    PL_COPY,     /* a copy in new memory */
    PL_COMPUTED, /* results in new memory */
    PL_IN_PLACE, /* results in the input's memory */
    PL_TEXT      /* no tensor, only text */
};

struct pl_step {
    char *text;               /* the command */
    char name[PL_NAME_BYTES]; /* "" if unnamed */
    stk_tensor tensor;        /* owned */
    int from;                 /* index of the input's step, -1: none */
    enum pl_how how;
    char *said;   /* a remark, or the output of a command without a tensor; NULL: none */
    char *figure; /* SVG shown instead on a page; NULL: the text */
};

struct pl_session {
    struct pl_step *steps;
    int count;
    int64_t capacity;
    int64_t seed;
};

/* Error of a command. `why` explains the rule in sentences, or is "". */
struct pl_trouble {
    stk_error err;
    char why[1600];
    char *figure, *drawing; /* SVG, and the same as text, or NULL; freed with stki_free */
};

void pl_session_init(struct pl_session *session);
void pl_session_fini(struct pl_session *session);

/* Called after each step, which is then the last one of the session. */
typedef stk_status (*pl_sink)(void *context, const struct pl_session *session, stk_error *err);

/* Runs commands separated by `;` or newlines; `#` starts a comment. Stops at the first error; STK_E_CONFIG: syntax
 * error. `at` (may be NULL) receives the failed command; free it with stki_free. */
stk_status pl_session_run(struct pl_session *session, const char *chain, pl_sink sink, void *context, char **at,
                          struct pl_trouble *trouble);

/* Returns the index of the latest step with that name, or of step n for "_n"; -1: none. */
int pl_session_find(const struct pl_session *session, const char *name);
/* Returns the index of the step's storage among the distinct storages in order of first use; 0 for a step without a
 * tensor. */
int pl_session_storage(const struct pl_session *session, int index);
/* "A", "B", …, "Z", "A1", … */
const char *pl_storage_name(char *buffer, int size, int storage);
/* Returns the total size of all distinct storages. */
int64_t pl_session_bytes(const struct pl_session *session);

#endif
