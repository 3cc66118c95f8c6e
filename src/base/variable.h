/* variable.h: `${NAME}` in config values. YAML would parse the braces in `{path: ${DIR}/x.npy}` as a map, so they are
 * hidden while YAML is parsed: each brace of a variable is replaced with one code point that is not allowed in configs
 * (text_check.h). The number of characters does not change, so column numbers remain correct. */
#ifndef STKI_VARIABLE_H
#define STKI_VARIABLE_H

#include "document_build.h"

/* Sets text and length to a copy with hidden braces, to be freed by the caller; *copy is NULL if no copy was needed. */
stk_status stki_variables_hide(const char **text, int64_t *length, char **copy, stk_error *err);
/* Restores the braces in place. Returns the new length. */
int64_t stki_variables_show(char *text, int64_t length);
/* Replaces `${NAME}` with the value from the environment and `$$` with `$`. The new text is owned by the document.
 * Input and output are NUL-terminated. */
stk_status stki_variables_expand(stki_document *document, const stki_location *location, const char **text,
                                 int64_t *length, stk_error *err);

#endif
