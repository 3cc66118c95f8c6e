/* added_tokens.c: see added_tokens.h. The names are sorted, so those that start with the bytes read so far form a
 * range, which each additional byte narrows. A table of first bytes makes it possible to skip most positions of a text.
 */
#include "added_tokens.h"
#include "allocate.h"
#include "error.h"
#include "text_check.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

typedef struct entry {
    const uint8_t *name;
    int64_t length;
    const stki_added_token *token;
} entry;

struct stki_added_finder {
    entry *entries; /* sorted by name */
    int count;
    bool special;
    bool first[256]; /* bytes that start a name */
};

static int by_name(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int order = memcmp(x->name, y->name, (size_t)(x->length < y->length ? x->length : y->length));

    return order ? order : x->length < y->length ? -1 : x->length > y->length;
}

stk_status stki_added_finder_create(const stki_added_token *tokens, int count, char *const *names, bool normalized,
                                    bool special, stki_added_finder **out, stk_error *err)
{
    stki_added_finder *finder = stki_zalloc(sizeof *finder);
    bool any = false;

    *out = NULL;
    if (finder)
        finder->entries = stki_zalloc_array(count ? count : 1, sizeof *finder->entries);
    if (!finder || !finder->entries) {
        stki_added_finder_destroy(finder);
        return stki_fail_memory(err, count * (int64_t)sizeof(entry), "added tokens");
    }
    finder->special = special;
    for (int i = 0; i < count; i++) {
        const uint8_t *name = (const uint8_t *)names[i];

        if (tokens[i].normalized != normalized || !*name)
            continue;
        finder->entries[finder->count++] = (entry){name, (int64_t)strlen(names[i]), &tokens[i]};
        finder->first[*name] = true;
        any = any || !tokens[i].special || special;
    }
    if (!any) {
        stki_added_finder_destroy(finder);
        return STK_OK;
    }
    qsort(finder->entries, (size_t)finder->count, sizeof *finder->entries, by_name);
    *out = finder;
    return STK_OK;
}

void stki_added_finder_destroy(stki_added_finder *finder)
{
    if (!finder)
        return;
    stki_free(finder->entries);
    stki_free(finder);
}

/* Returns the first entry of [low, high) whose byte at `depth` is at least `byte`. All entries are longer than
 * `depth`. */
static int lower(const stki_added_finder *finder, int low, int high, int64_t depth, int byte)
{
    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (finder->entries[middle].name[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the longest name at this position; NULL: none. */
static const entry *longest_at(const stki_added_finder *finder, const uint8_t *text, int64_t left)
{
    const entry *found = NULL;
    int low = 0, high = finder->count;

    for (int64_t depth = 0; low < high; depth++) {
        if (finder->entries[low].length == depth) {
            found = &finder->entries[low];
            while (low < high && finder->entries[low].length == depth) /* duplicate names */
                low++;
        }
        if (depth == left)
            break;
        low = lower(finder, low, high, depth, text[depth]);
        high = lower(finder, low, high, depth, text[depth] + 1);
    }
    return found;
}

/* ---- characters around a name ---- */

static bool is_space(uint32_t code)
{
    return (code >= 0x9 && code <= 0xd) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

/* Returns whether \w matches the character. */
static bool is_word(uint32_t code)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);

    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC ||
           code == 0x200c || code == 0x200d || (code >= 0x24b6 && code <= 0x24e9);
}

/* Returns the character before `at`, and its position. Requires at > 0. */
static uint32_t before(const uint8_t *text, int64_t at, int64_t *begin)
{
    uint32_t code;

    *begin = at - 1;
    while (*begin > 0 && (text[*begin] & 0xc0) == 0x80)
        --*begin;
    (void)stki_utf8_next((const char *)text + *begin, at - *begin, &code);
    return code;
}

static bool stands_alone(const uint8_t *text, int64_t length, int64_t begin, int64_t end)
{
    int64_t unused;
    uint32_t code;

    if (begin > 0 && is_word(before(text, begin, &unused)))
        return false;
    return end == length || (stki_utf8_next((const char *)text + end, length - end, &code) > 0 && !is_word(code));
}

static void strip(const stki_added_token *token, const uint8_t *text, int64_t length, int64_t used, int64_t *begin,
                  int64_t *end)
{
    while (token->strips_before && *begin > used) {
        int64_t at;

        if (!is_space(before(text, *begin, &at)))
            break;
        *begin = at;
    }
    if (token->strips_before && *begin < used)
        *begin = used;
    while (token->strips_behind && *end < length) {
        uint32_t code;
        const int step = stki_utf8_next((const char *)text + *end, length - *end, &code);

        if (!is_space(code))
            break;
        *end += step;
    }
    *end = *end < *begin ? *begin : *end;
}

bool stki_added_finder_next(const stki_added_finder *finder, const uint8_t *text, int64_t length, int64_t *from,
                            int64_t used, int64_t *begin, int64_t *end, uint32_t *id)
{
    for (; *from < length; ++*from) {
        const entry *found = finder->first[text[*from]] ? longest_at(finder, text + *from, length - *from) : NULL;

        if (!found)
            continue;
        *begin = *from;
        *end = *from + found->length;
        if ((found->token->special && !finder->special) ||
            (found->token->single_word && !stands_alone(text, length, *begin, *end))) {
            *from = *end - 1; /* continue after this match */
            continue;
        }
        *from = *end;
        strip(found->token, text, length, used, begin, end);
        *id = found->token->id;
        return true;
    }
    return false;
}
