/* nearest_word.h: spelling suggestions ("did you mean") and lists of words for messages. */
#ifndef STKI_NEAREST_WORD_H
#define STKI_NEAREST_WORD_H

#include <stdbool.h>

/* The word nearest to `word` if it is close enough to be a likely correction, otherwise NULL. Comparison ignores case.
 * Close enough means that at most 1/3 of the letters (at least 2) are replaced, missing, added or swapped, or that one
 * word contains the other ("workers", "num_workers"). */
const char *stki_nearest_word(const char *word, const char *const *words, int count);
/* Whether one of `words` differs from `word` in a single letter, or one of the two contains the other. */
bool stki_is_near_word(const char *word, const char *const *words, int count);
/* Writes "a, b or c" and returns `buffer`; words that do not fit are replaced by "…". */
const char *stki_word_list(const char *const *words, int count, char *buffer, int size);

#endif
