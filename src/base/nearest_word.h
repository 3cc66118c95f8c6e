/* nearest_word.h: "did you mean", and lists of words for messages. */
#ifndef STKI_NEAREST_WORD_H
#define STKI_NEAREST_WORD_H

#include <stdbool.h>

/* The nearest of `count` words to `word` if it is near enough to be meant, else NULL: upper and lower case do not
 * matter, at most 1/3 of the length (at least 2) letters differ, are missing, extra or swapped, or one of the two is
 * part of the other ("workers", "num_workers"). */
const char *stki_nearest_word(const char *word, const char *const *words, int count);
/* Whether one of them differs from `word` in a single letter, or one of the two is part of the other. */
bool stki_is_near_word(const char *word, const char *const *words, int count);
/* "a, b or c" in `buffer`, which is returned; the words that do not fit are "…". */
const char *stki_word_list(const char *const *words, int count, char *buffer, int size);

#endif
