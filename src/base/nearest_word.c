/* nearest_word.c: "did you mean": the edit distance with swaps of neighbours, over short words. */
#include "nearest_word.h"
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int distance(const char *a, const char *b)
{
    int rows[3][LONGEST + 1]; /* the last three rows of the table, used in turn */
    int n = (int)strlen(a), m = (int)strlen(b), i, j;

    for (j = 0; j <= m; j++)
        rows[0][j] = j;
    for (i = 1; i <= n; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];

        row[0] = i;
        for (j = 1; j <= m; j++) {
            int change = lower(a[i - 1]) != lower(b[j - 1]);

            row[j] = smaller(above[j - 1] + change, 1 + smaller(above[j], row[j - 1]));
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = smaller(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

static const char *containing_word(const char *word, const char *const *words, int count)
{
    int i;

    for (i = 0; i < count; i++) {
        size_t n = strlen(word), m = strlen(words[i]);

        if ((n >= 4 && strstr(words[i], word)) || (m >= 4 && strstr(word, words[i])))
            return words[i];
    }
    return NULL;
}

const char *stki_nearest_word(const char *word, const char *const *words, int count)
{
    int length = (int)strnlen(word, LONGEST + 1), best, i;
    const char *nearest = NULL;

    if (length > LONGEST)
        return NULL;
    best = length / 3 < 2 ? 2 : length / 3;
    best = smaller(best, length - 1) + 1; /* a word with no letter in common is never meant */
    for (i = 0; i < count; i++) {
        int far;

        if (strlen(words[i]) > LONGEST)
            continue;
        far = distance(word, words[i]);
        if (far < best) {
            best = far;
            nearest = words[i];
        }
    }
    return nearest ? nearest : containing_word(word, words, count);
}

const char *stki_word_list(const char *const *words, int count, char *buffer, int size)
{
    int i, used = 0;

    buffer[0] = '\0';
    for (i = 0; i < count && used < size; i++)
        used += snprintf(buffer + used, (size_t)(size - used), "%s%s",
                         i == 0           ? ""
                         : i == count - 1 ? " or "
                                          : ", ",
                         words[i]);
    return buffer;
}
