/* nearest_word.c: "did you mean": edit distance with transpositions of adjacent letters (optimal string alignment). */
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
    int rows[3][LONGEST + 1]; /* the last three rows of the distance matrix, as a ring */
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

/* The nearest word at a distance of at most `most`. */
static const char *word_within(const char *word, int most, const char *const *words, int count)
{
    const char *nearest = NULL;
    int best = most + 1;

    for (int i = 0; i < count; i++) {
        int far;

        if (strlen(words[i]) > LONGEST)
            continue;
        far = distance(word, words[i]);
        if (far < best) {
            best = far;
            nearest = words[i];
        }
    }
    return nearest;
}

const char *stki_nearest_word(const char *word, const char *const *words, int count)
{
    const int length = (int)strnlen(word, LONGEST + 1), most = length / 3 < 2 ? 2 : length / 3;
    const char *nearest;

    if (length > LONGEST)
        return NULL;
    nearest = word_within(word, smaller(most, length - 1), words, count); /* at least one letter must match */
    return nearest ? nearest : containing_word(word, words, count);
}

bool stki_is_near_word(const char *word, const char *const *words, int count)
{
    const int length = (int)strnlen(word, LONGEST + 1);

    return length <= LONGEST &&
           (word_within(word, smaller(1, length - 1), words, count) || containing_word(word, words, count));
}

const char *stki_word_list(const char *const *words, int count, char *buffer, int size)
{
    static const char more[] = ", …";
    int used = 0;

    buffer[0] = '\0';
    for (int i = 0; i < count; i++) {
        const char *before = i == 0 ? "" : i == count - 1 ? " or " : ", ";
        const int length = (int)(strlen(before) + strlen(words[i])), after = i < count - 1 ? (int)sizeof more - 1 : 0;

        if (used + length + after >= size) { /* room for `more` was reserved when the previous word was written */
            snprintf(buffer + used, (size_t)(size - used), "%s", used ? more : "");
            break;
        }
        used += snprintf(buffer + used, (size_t)(size - used), "%s%s", before, words[i]);
    }
    return buffer;
}
