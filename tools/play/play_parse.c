/* play_parse.c: see play_parse.h. */
#include "play_parse.h"
#include "document.h"
#include "error.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses numbers as in operations: 12, -3, 1.5, 1e-3, inf, nan, true, false; 0x10 is rejected. */
static bool parse_number(const char *text, stk_scalar *out)
{
    char *end;

    if (strcmp(text, "true") == 0 || strcmp(text, "True") == 0 || strcmp(text, "false") == 0 ||
        strcmp(text, "False") == 0) {
        *out = stk_bool(tolower((unsigned char)text[0]) == 't');
        return true;
    }
    /* strtod also accepts hexadecimal numbers */
    if (!*text || strpbrk(text, "xXpP") ||
        (isalpha((unsigned char)*text) && strcmp(text, "inf") && strcmp(text, "nan")))
        return false;
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    if (!*end && errno == 0) {
        *out = stk_int(whole);
        return true;
    }
    double real = strtod(text, &end);
    *out = stk_real(real);
    return !*end;
}

static bool is_word(int c)
{
    return isalnum(c) || c == '_';
}

static const char *skip_blank(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* Copies the name at `at` and returns the position after it; NULL: none, or too long. */
static const char *read_name(const char *at, char *name)
{
    int length = 0;

    if (!isalpha((unsigned char)*at) && *at != '_')
        return NULL;
    while (is_word((unsigned char)at[length]))
        if (++length == PL_NAME_BYTES)
            return NULL;
    memcpy(name, at, (size_t)length);
    name[length] = 0;
    return at + length;
}

/* Removes parentheses around all arguments: the call syntax `reshape(3, 4)`. */
static void strip_call(char *rest)
{
    int depth = 0;
    size_t length = strlen(rest);

    if (length < 2 || rest[0] != '(' || rest[length - 1] != ')')
        return;
    for (size_t i = 0; i + 1 < length; i++) {
        depth += rest[i] == '(' ? 1 : rest[i] == ')' ? -1 : 0;
        if (depth == 0)
            return;
    }
    rest[length - 1] = 0;
    memmove(rest, rest + 1, length - 1);
}

static stk_status add_item(struct pl_command *command, const char *word, int group, stk_error *err)
{
    struct pl_item *item = &command->items[command->item_count];

    if (command->item_count == PL_ITEMS)
        return stki_fail(err, STK_E_CONFIG, "more than %d arguments", PL_ITEMS);
    *item = (struct pl_item){.text = word, .group = group};
    item->kind = parse_number(word, &item->number) ? PL_NUMBER : PL_WORD;
    command->item_count++;
    return STK_OK;
}

/* Whether the word is a list of sizes such as 2x3x4. */
static bool is_size_list(const char *word)
{
    bool x = false;

    for (const char *at = word; *at; at++) {
        if (*at == 'x' && at > word && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[1]))
            x = true;
        else if (!isdigit((unsigned char)*at))
            return false;
    }
    return x;
}

static stk_status add_word(struct pl_command *command, char *word, int group, stk_error *err)
{
    char *equals = strchr(word, '=');

    if (equals && equals > word) {
        *equals = 0;
        stk_status status = add_item(command, equals + 1, group, err);
        if (status == STK_OK)
            command->items[command->item_count - 1].key = word;
        return status;
    }
    if (!is_size_list(word))
        return add_item(command, word, group, err);
    group = group ? group : ++command->group_count;
    for (char *save, *part = strtok_r(word, "x", &save); part; part = strtok_r(NULL, "x", &save)) {
        stk_status status = add_item(command, part, group, err);
        if (status != STK_OK)
            return status;
    }
    return STK_OK;
}

static stk_status split_items(struct pl_command *command, stk_error *err)
{
    char *words = command->words;
    int group = 0;

    for (const char *at = command->rest; *at;) {
        size_t length = strcspn(at, " \t\r\n,()[]");
        if (length) {
            memcpy(words, at, length);
            words[length] = 0;
            stk_status status = add_word(command, words, group, err);
            if (status != STK_OK)
                return status;
            words += length + 1;
            at += length;
            continue;
        }
        if (*at == '(' || *at == '[') {
            if (group)
                return stki_fail(err, STK_E_CONFIG, "nested brackets are not supported: %s", command->rest);
            group = ++command->group_count;
        } else if (*at == ')' || *at == ']') {
            if (!group)
                return stki_fail(err, STK_E_CONFIG, "unmatched closing bracket: %s", command->rest);
            group = 0;
        }
        at++;
    }
    if (group)
        return stki_fail(err, STK_E_CONFIG, "unclosed bracket: %s", command->rest);
    return STK_OK;
}

static void copy_rest(struct pl_command *command, const char *at)
{
    size_t length = strlen(at);

    while (length > 0 && isspace((unsigned char)at[length - 1]))
        length--;
    memcpy(command->rest, at, length);
    command->rest[length] = 0;
}

stk_status pl_parse(const char *text, int length, bool (*is_name)(const void *context, const char *word),
                    const void *context, struct pl_command *out, stk_error *err)
{
    char line[PL_COMMAND_BYTES], word[PL_NAME_BYTES];
    const char *at = line, *behind;

    memset(out, 0, sizeof *out);
    if (length >= PL_COMMAND_BYTES)
        return stki_fail(err, STK_E_CONFIG, "found a command of %d characters, expected at most %d", length,
                         PL_COMMAND_BYTES - 1);
    memcpy(line, text, (size_t)length);
    line[length] = 0;
    at = skip_blank(at);
    behind = read_name(at, word);
    if (behind && *skip_blank(behind) == '=') {
        memcpy(out->target, word, sizeof word);
        at = skip_blank(skip_blank(behind) + 1);
        behind = read_name(at, word);
    }
    if (behind && is_name(context, word)) {
        memcpy(out->subject, word, sizeof word);
        at = skip_blank(behind);
        at = skip_blank(*at == '.' ? at + 1 : at);
        behind = read_name(at, word);
    }
    if (strstr(at, ").") || strstr(at, "]."))
        return stki_fail(err, STK_E_CONFIG, "found several operations in one step: %s: separate them with ;", at);
    if (*at == '[') {
        memcpy(out->op, "slice", sizeof "slice");
        copy_rest(out, at);
        return STK_OK;
    }
    if (!*at && *out->subject)
        return STK_OK;
    if (!behind)
        return stki_fail(err, STK_E_CONFIG, "expected an operation, found \"%s\"", at);
    memcpy(out->op, word, sizeof word);
    at = skip_blank(behind);
    copy_rest(out, at);
    if (*behind == '(')
        strip_call(out->rest);
    return strcmp(word, "slice") == 0 ? STK_OK : split_items(out, err);
}

/* ---- reading arguments ---- */

static struct pl_item *find(struct pl_command *command, enum pl_item_kind kind)
{
    for (int i = 0; i < command->item_count; i++)
        if (!command->items[i].used && !command->items[i].key && command->items[i].kind == kind)
            return &command->items[i];
    return NULL;
}

static struct pl_item *find_key(struct pl_command *command, const char *key)
{
    for (int i = 0; i < command->item_count; i++)
        if (!command->items[i].used && command->items[i].key && strcmp(command->items[i].key, key) == 0)
            return &command->items[i];
    return NULL;
}

stk_status pl_fail_dtype(const char *where, const char *given, stk_error *err)
{
    const char *names[STK_DTYPE_END], *nearest;
    char list[256] = "";
    int count = 0;

    for (int dtype = STK_DTYPE_NONE + 1; dtype < STK_DTYPE_END; dtype++) {
        size_t used = strlen(list);

        names[count] = stk_dtype_name((stk_dtype)dtype);
        snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "", names[count]);
        count++;
    }
    nearest = stki_nearest_word(given, names, count);
    return stki_fail(err, STK_E_CONFIG, "%s: unknown dtype %s; %s%s", where, given,
                     nearest ? "did you mean " : "expected one of: ", nearest ? nearest : list);
}

stk_status pl_take_dtype(struct pl_command *command, stk_dtype usual, stk_dtype *out, stk_error *err)
{
    struct pl_item *item = find_key(command, "dtype");

    *out = usual;
    if (item) {
        item->used = true;
        *out = stk_dtype_find(item->text);
        if (*out == STK_DTYPE_NONE)
            return pl_fail_dtype(command->op, item->text, err);
        return STK_OK;
    }
    for (int i = 0; i < command->item_count; i++) {
        item = &command->items[i];
        if (item->used || item->key || stk_dtype_find(item->text) == STK_DTYPE_NONE)
            continue;
        *out = stk_dtype_find(item->text);
        item->used = true;
        return STK_OK;
    }
    return STK_OK;
}

stk_status pl_take_int_key(struct pl_command *command, const char *key, int64_t usual, int64_t *out, stk_error *err)
{
    struct pl_item *item = find_key(command, key);

    *out = usual;
    if (!item)
        return STK_OK;
    if (item->kind != PL_NUMBER || item->number.kind != STK_SCALAR_INT)
        return stki_fail(err, STK_E_CONFIG, "%s: %s=%s: expected an integer", command->op, key, item->text);
    item->used = true;
    *out = item->number.as.i;
    return STK_OK;
}

bool pl_take_word(struct pl_command *command, const char *word)
{
    struct pl_item *key = find_key(command, word);

    if (key && key->kind == PL_NUMBER && key->number.kind == STK_SCALAR_BOOL) {
        key->used = true;
        return key->number.as.b;
    }
    for (int i = 0; i < command->item_count; i++) {
        struct pl_item *item = &command->items[i];
        if (!item->used && !item->key && item->kind == PL_WORD && strcmp(item->text, word) == 0)
            return item->used = true;
    }
    return false;
}

const char *pl_take_any_word(struct pl_command *command)
{
    struct pl_item *item = find(command, PL_WORD);

    if (!item)
        return NULL;
    item->used = true;
    return item->text;
}

bool pl_take_number(struct pl_command *command, stk_scalar *out)
{
    struct pl_item *item = find(command, PL_NUMBER);

    if (!item)
        return false;
    item->used = true;
    *out = item->number;
    return true;
}

static stk_status whole(const struct pl_command *command, struct pl_item *item, const char *what, int64_t *out,
                        stk_error *err)
{
    if (item->number.kind != STK_SCALAR_INT)
        return stki_fail(err, STK_E_CONFIG, "%s: %s: found %s, expected an integer", command->op, what, item->text);
    item->used = true;
    *out = item->number.as.i;
    return STK_OK;
}

stk_status pl_take_int(struct pl_command *command, const char *what, int64_t *out, stk_error *err)
{
    struct pl_item *item = find(command, PL_NUMBER);

    if (!item)
        return stki_fail(err, STK_E_CONFIG, "%s: no %s given", command->op, what);
    return whole(command, item, what, out, err);
}

int pl_numbers_left(const struct pl_command *command)
{
    int count = 0;

    for (int i = 0; i < command->item_count; i++)
        count += !command->items[i].used && !command->items[i].key && command->items[i].kind == PL_NUMBER;
    return count;
}

stk_status pl_take_ints(struct pl_command *command, const char *what, int most, int64_t *out, int *count,
                        stk_error *err)
{
    *count = 0;
    for (struct pl_item *item; (item = find(command, PL_NUMBER)) != NULL;) {
        if (*count == most)
            return stki_fail(err, STK_E_CONFIG, "%s: more than %d numbers for %s", command->op, most, what);
        stk_status status = whole(command, item, what, &out[*count], err);
        if (status != STK_OK)
            return status;
        ++*count;
    }
    return STK_OK;
}

stk_status pl_take_dims(struct pl_command *command, int *out, int *count, stk_error *err)
{
    int64_t dims[STK_MAX_DIMS];
    stk_status status = pl_take_ints(command, "dimensions", STK_MAX_DIMS, dims, count, err);

    for (int i = 0; status == STK_OK && i < *count; i++) {
        if (dims[i] < -STK_MAX_DIMS || dims[i] > STK_MAX_DIMS)
            return stki_fail(err, STK_E_BAD_DIM, "%s: the tensor has no dimension %" PRId64, command->op, dims[i]);
        out[i] = (int)dims[i];
    }
    return status;
}

stk_status pl_take_group(struct pl_command *command, const char *what, int64_t *out, int *count, stk_error *err)
{
    struct pl_item *first = find(command, PL_NUMBER);
    int group = first ? first->group : 0;

    *count = 0;
    if (!group)
        return stki_fail(err, STK_E_CONFIG, "%s: %s must be in brackets: (2, 3)", command->op, what);
    for (int i = 0; i < command->item_count; i++) {
        struct pl_item *item = &command->items[i];
        if (item->used || item->group != group || item->kind != PL_NUMBER)
            continue;
        if (*count == STK_MAX_DIMS)
            return stki_fail(err, STK_E_CONFIG, "%s: more than %d numbers for %s", command->op, STK_MAX_DIMS, what);
        stk_status status = whole(command, item, what, &out[*count], err);
        if (status != STK_OK)
            return status;
        ++*count;
    }
    return STK_OK;
}

stk_status pl_take_end(const struct pl_command *command, stk_error *err)
{
    for (int i = 0; i < command->item_count; i++) {
        const struct pl_item *item = &command->items[i];
        if (!item->used)
            return stki_fail(err, STK_E_CONFIG, "%s: does not accept \"%s%s%s\"", command->op,
                             item->key ? item->key : "", item->key ? "=" : "", item->text);
    }
    return STK_OK;
}

stk_status pl_parse_shape(const char *text, int64_t *shape, int *ndim, stk_error *err)
{
    const char *at = text;

    *ndim = 0;
    for (;;) {
        char *end;
        at += strspn(at, " ()[],");
        if (!*at)
            return STK_OK;
        errno = 0;
        long long size = strtoll(at, &end, 10);
        if (end == at || errno || size < 0 || !isdigit((unsigned char)*at) || (*end && !strchr(" ()[],x", *end)) ||
            (*end == 'x' && !isdigit((unsigned char)end[1])))
            return stki_fail(err, STK_E_CONFIG, "found \"%s\", expected a shape such as 32x3x224x224 or (32, 3)", text);
        if (*ndim == STK_MAX_DIMS)
            return stki_fail(err, STK_E_CONFIG, "found a shape with more than %d axes", STK_MAX_DIMS);
        shape[(*ndim)++] = size;
        at = *end == 'x' ? end + 1 : end;
    }
}
