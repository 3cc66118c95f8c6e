/* variable.h: `${NAME}` in config values. YAML takes braces for its own in `{path: ${DIR}/x.npy}`, so they are hidden
 * while YAML is read: each brace of a variable becomes a code point that no text may hold (text_check.h), one character
 * for one, so that columns stay right. */
#ifndef STKI_VARIABLE_H
#define STKI_VARIABLE_H

#include "document_build.h"

/* Points text and length at a copy with hidden braces, which the caller frees; *copy is NULL if none was needed. */
stk_status stki_variables_hide(const char **text, int64_t *length, char **copy, stk_error *err);
/* Puts the braces back, in place. Returns the new length. */
int64_t stki_variables_show(char *text, int64_t length);
/* Replaces `${NAME}` from the environment and `$$` by `$`; the new text lies in the document and ends with a NUL.
 * `text` ends with a NUL, too. */
stk_status stki_variables_expand(stki_document *document, const stki_node_seat *seat, const char **text,
                                 int64_t *length, stk_error *err);

#endif
