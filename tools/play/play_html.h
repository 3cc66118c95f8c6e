/* play_html.h: steps of a session as sections of a page. */
#ifndef STOKER_PLAY_HTML_H
#define STOKER_PLAY_HTML_H

#include "play_session.h"
#include <stdio.h>

void pl_html_begin(FILE *to, const char *chain);
stk_status pl_html_step(const struct pl_session *session, int index, FILE *to, stk_error *err);
/* Writes the failed command and the reason. */
void pl_html_trouble(const struct pl_trouble *trouble, const char *command, const char *figure, FILE *to);

#endif
