/* token_split.c: see token_split.h. Uses PCRE2, with just-in-time compilation if the system allows it. Text between two
 * matches is also a piece, so no byte is lost.
 *
 * Patterns are written for other regular expression libraries, in which \s is Unicode's White_Space property (PCRE2's
 * \s also matches U+180E) and \w includes marks and connector punctuation (not in PCRE2 before 10.43). Both are
 * therefore replaced before a pattern is compiled, as are \S and \W outside sets. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "token_split.h"
#include "allocate.h"
#include "error.h"
#include "nearest_word.h"
#include "text_build.h"
#include <inttypes.h>
#include <pcre2.h>
#include <string.h>

enum { MACHINE_STACK = 32 << 10, MOST_MACHINE_STACK = 8 << 20, MOST_PATTERN = 64 << 10 };

#define SPACES \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

/* Letters and other alphabetic characters, marks, decimal digits, connector punctuation. */
#define WORDS                                                                                                       \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{" \
    "1f189}"

/* The patterns that the models of these names were trained with: contractions, words with the preceding space, numbers,
 * other characters, white space. Possessive `++` and `?+` avoid backtracking without changing the result. */
static const struct {
    const char *name, *pattern;
} known[] = {
    {"gpt2", "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s"},
    {"cl100k", "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|"
               "\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"},
    {"o200k", "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
              "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
              "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
              "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
              "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
};

struct stki_token_split {
    pcre2_general_context *memory;
    pcre2_code *code;
    bool machine; /* compiled to machine code */
};

struct stki_token_finder {
    pcre2_match_data *found;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

const char *stki_token_pattern(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].pattern;
    return NULL;
}

const char *stki_token_pattern_list(const char *last, char *buffer, int size)
{
    enum { KNOWN = sizeof known / sizeof known[0] };
    const char *all[KNOWN + 1];

    for (int i = 0; i < KNOWN; i++)
        all[i] = known[i].name;
    all[KNOWN] = last;
    return stki_word_list(all, last ? KNOWN + 1 : KNOWN, buffer, size);
}

const char *stki_token_split_version(char buffer[64])
{
    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) > 64 || pcre2_config(PCRE2_CONFIG_VERSION, buffer) < 0)
        buffer[0] = '\0';
    return buffer;
}

static void *take(size_t bytes, void *unused)
{
    (void)unused;
    return bytes > INT64_MAX ? NULL : stki_resize(NULL, (int64_t)bytes);
}

static void give(void *block, void *unused)
{
    (void)unused;
    stki_free(block);
}

/* ---- patterns ---- */

/* Replaces \s and \w, and outside sets also \S and \W. The caller frees *out with stki_free. Nested sets have a
 * different meaning in PCRE2. */
static stk_status translate(const char *pattern, bool ruby, char **out, stk_error *err)
{
    stki_text_build build = {0};
    bool inside = false; /* inside brackets */

    for (const char *at = pattern; *at; at++) {
        if (at[0] == '\\' && at[1]) {
            const char kind = (char)(at[1] | 32);
            const bool is_not = at[1] != kind; /* \S, \W */

            if ((kind != 's' && kind != 'w') || (is_not && inside))
                stki_put_bytes(&build, at, 2);
            else {
                stki_put(&build, inside ? "" : is_not ? "[^" : "[");
                stki_put(&build, kind == 's' ? SPACES : WORDS);
                stki_put(&build, inside ? "" : "]");
            }
            at++;
            continue;
        }
        if (*at == '[' && !inside) {
            inside = true;
            /* A leading ] is a member of the set. */
            stki_put_bytes(&build, at, at[1] == '^' ? (at[2] == ']' ? 3 : 2) : at[1] == ']' ? 2 : 1);
            at += at[1] == '^' ? (at[2] == ']' ? 2 : 1) : at[1] == ']' ? 1 : 0;
            continue;
        }
        if (ruby && inside && ((at[0] == '[' && at[1] != ':') || (at[0] == '&' && at[1] == '&'))) {
            stki_free(stki_text_take(&build));
            return stki_fail(err, STK_E_UNSUPPORTED,
                             "pattern: found %.2s inside a set, at byte %" PRId64 " of %s, expected no nested sets", at,
                             (int64_t)(at - pattern), pattern);
        }
        if (inside && at[0] == '[' && at[1] == ':' && strstr(at, ":]")) { /* [:alpha:] */
            const char *end = strstr(at, ":]") + 2;

            stki_put_bytes(&build, at, end - at);
            at = end - 1;
            continue;
        }
        inside = inside && *at != ']';
        stki_put_bytes(&build, at, 1);
    }
    stki_put(&build, "");
    *out = stki_text_take(&build);
    return *out ? STK_OK : stki_fail_memory(err, (int64_t)strlen(pattern), "a pattern");
}

static stk_status compile(stki_token_split *split, const char *pattern, bool ruby, stk_error *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(split->memory);
    PCRE2_SIZE where = 0;
    int code = 0;

    if (!context)
        return stki_fail_memory(err, 0, "a pattern");
    split->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | (ruby ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY),
                      &code, &where, context);
    pcre2_compile_context_free(context);
    if (!split->code) {
        char text[160] = "";

        if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED)
            return stki_fail_memory(err, 0, "a pattern");
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text);
        return stki_fail(err, STK_E_CONFIG, "pattern: %s, at character %" PRId64 " of %s", text, (int64_t)where,
                         pattern);
    }
    /* Without JIT (if executable memory is not allowed), matching is slower but has the same result. */
    split->machine = pcre2_jit_compile(split->code, PCRE2_JIT_COMPLETE) == 0;
    return STK_OK;
}

stk_status stki_token_split_create(const char *pattern, bool ruby, stki_token_split **out, stk_error *err)
{
    stki_token_split *split;
    char *translated;
    stk_status status;

    if (strlen(pattern) > MOST_PATTERN)
        return stki_fail(err, STK_E_LIMIT, "pattern: found %zu bytes, expected at most %d", strlen(pattern),
                         MOST_PATTERN);
    split = stki_zalloc(sizeof *split);
    if (!split)
        return stki_fail_memory(err, (int64_t)sizeof *split, "a pattern");
    split->memory = pcre2_general_context_create(take, give, NULL);
    status = split->memory ? translate(pattern, ruby, &translated, err) : stki_fail_memory(err, 0, "a pattern");
    if (status == STK_OK) {
        status = compile(split, translated, ruby, err);
        stki_free(translated);
    }
    if (status == STK_OK)
        *out = split;
    else
        stki_token_split_destroy(split);
    return status;
}

void stki_token_split_destroy(stki_token_split *split)
{
    if (!split)
        return;
    pcre2_code_free(split->code);
    pcre2_general_context_free(split->memory);
    stki_free(split);
}

stk_status stki_token_finder_create(const stki_token_split *split, stki_token_finder **out, stk_error *err)
{
    stki_token_finder *finder = stki_zalloc(sizeof *finder);

    if (!finder)
        return stki_fail_memory(err, (int64_t)sizeof *finder, "a pattern");
    finder->found = pcre2_match_data_create(1, split->memory);
    finder->context = pcre2_match_context_create(split->memory);
    if (split->machine)
        finder->stack = pcre2_jit_stack_create(MACHINE_STACK, MOST_MACHINE_STACK, split->memory);
    if (!finder->found || !finder->context || (split->machine && !finder->stack)) {
        stki_token_finder_destroy(finder);
        return stki_fail_memory(err, MACHINE_STACK, "a pattern");
    }
    if (finder->stack)
        pcre2_jit_stack_assign(finder->context, NULL, finder->stack);
    *out = finder;
    return STK_OK;
}

void stki_token_finder_destroy(stki_token_finder *finder)
{
    if (!finder)
        return;
    pcre2_match_data_free(finder->found);
    pcre2_match_context_free(finder->context);
    pcre2_jit_stack_free(finder->stack);
    stki_free(finder);
}

/* ---- pieces ---- */

static stk_status failed(int code, int64_t at, stk_error *err)
{
    char text[160] = "";

    if (code == PCRE2_ERROR_NOMEMORY)
        return stki_fail_memory(err, 0, "matching a pattern");
    (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text);
    return stki_fail(err, STK_E_LIMIT, "the pattern cannot be matched from byte %" PRId64 " on: %s", at, text);
}

static int64_t next_character(const uint8_t *text, int64_t length, int64_t at)
{
    at++;
    while (at < length && (text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

stk_status stki_token_split_next(const stki_token_split *split, stki_token_finder *finder, const uint8_t *text,
                                 int64_t length, int64_t at, int64_t *end, bool *matched, stk_error *err)
{
    const PCRE2_SIZE *where = pcre2_get_ovector_pointer(finder->found);
    int code = split->machine ? pcre2_jit_match(split->code, text, (PCRE2_SIZE)length, (PCRE2_SIZE)at, 0, finder->found,
                                                finder->context)
                              : PCRE2_ERROR_JIT_STACKLIMIT;

    if (code == PCRE2_ERROR_JIT_STACKLIMIT)
        code = pcre2_match(split->code, text, (PCRE2_SIZE)length, (PCRE2_SIZE)at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                           finder->found, finder->context);
    *matched = false;
    if (code == PCRE2_ERROR_NOMATCH) {
        *end = length;
        return STK_OK;
    }
    if (code < 0)
        return failed(code, at, err);
    if ((int64_t)where[0] > at)
        *end = (int64_t)where[0];
    else if ((int64_t)where[1] > at) {
        *end = (int64_t)where[1];
        *matched = true;
    } else /* an empty match */
        *end = next_character(text, length, at);
    return STK_OK;
}
