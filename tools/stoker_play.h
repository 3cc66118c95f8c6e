/* stoker_play.h: what the files of `stoker play` share: options and the printed form of a step. */
#ifndef STOKER_PLAY_H
#define STOKER_PLAY_H

#include "stoker_play_session.h"
#include <stdio.h>

/* The step `index` of the session in words and a drawing of its storage, `columns` characters wide. */
void pl_text_step(const struct pl_session *session, int index, int columns, FILE *to);

#endif
