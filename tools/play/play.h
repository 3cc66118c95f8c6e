/* play.h: declarations shared by the files of `stoker play`: the text of a step's figures, and of a whole step. */
#ifndef STOKER_PLAY_H
#define STOKER_PLAY_H

#include "play_session.h"
#include <stdio.h>

/* Each writes into the buffer and returns it. */
const char *pl_bytes_text(char *buffer, int size, int64_t bytes); /* "1.50 MiB" */
const char *pl_how_text(char *buffer, int size, const struct pl_step *step);
/* Lists the earlier steps with the same storage. */
const char *pl_shared_text(char *buffer, int size, const struct pl_session *session, int index);
const char *pl_contiguity_text(const stk_tensor *tensor);

/* Prints text wrapped to `columns` characters. */
void pl_print_folded(const char *text, int columns, int indent, FILE *to);

/* Prints the step `index` as text with a drawing of its storage, `columns` characters wide. */
stk_status pl_text_step(const struct pl_session *session, int index, int columns, FILE *to, stk_error *err);

#endif
