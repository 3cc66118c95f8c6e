/* node_value.c: parses scalars and formats values so that they parse to the same value. The grammars are a subset of
 * the YAML 1.2 core schema: integers are decimal, only true and false are bools, and quoted scalars are strings (but
 * sizes and times may be quoted, as in JSON). Sizes and times are computed in integers, so that 0.1s is exactly 100 ms.
 */
#include "document_build.h"
#include "error.h"
#include "nearest_word.h"
#include "node_scalar.h"
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* ---- grammars ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *at)
{
    while (is_digit(*at))
        at++;
    return at;
}

static bool scalar_int(const char *text, int64_t *out)
{
    const char *at = text + (*text == '-' || *text == '+');
    int64_t value = 0;

    if (!is_digit(*at) || (at[0] == '0' && at[1] != '\0'))
        return false;
    for (; is_digit(*at); at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *text == '-' ? -(*at - '0') : *at - '0', &value))
            return false;
    *out = value;
    return *at == '\0';
}

bool stki_scalar_double(const char *text, double *out)
{
    const char *at = text + (*text == '-' || *text == '+'), *whole = at;
    locale_t locale;

    at = skip_digits(at);
    if (*at == '.') {
        const char *fraction = at + 1;

        at = skip_digits(fraction);
        if (at == fraction && fraction - 1 == whole)
            return false;
    } else if (at == whole) {
        return false;
    }
    if (*at == 'e' || *at == 'E') {
        const char *exponent = at + 1 + (at[1] == '-' || at[1] == '+');

        at = skip_digits(exponent);
        if (at == exponent)
            return false;
    }
    if (*at != '\0')
        return false;
    locale = newlocale(LC_ALL_MASK, "C",
                       (locale_t)0); /* the program's locale may use a decimal comma; the locale "C" needs no memory */
    *out = locale ? strtod_l(text, NULL, locale) : strtod(text, NULL);
    if (locale)
        freelocale(locale);
    return *out - *out == 0; /* finite */
}

static bool scalar_bool(const char *text, bool *out)
{
    *out = strcmp(text, "true") == 0;
    return *out || strcmp(text, "false") == 0;
}

struct unit {
    const char *name;
    int64_t factor;
};

/* Parses NUMBER or NUMBER.NUMBER followed by a unit of the table, which may be "". Units with factor 1 allow no
 * fraction. The result is rounded to the nearest integer. Returns false with *out = INT64_MAX if it is too large, with
 * 0 if the text has another form. */
static bool measure(const char *text, const struct unit *units, int count, int64_t *out)
{
    const char *at = skip_digits(text), *fraction = at, *rest = at;
    __int128 whole = 0, parts = 0, scale = 1, value;
    int i;

    *out = 0;
    if (at == text || at - text > 25) /* products with the factors fit in 128 bits */
        return false;
    if (*at == '.') {
        fraction = at + 1;
        rest = skip_digits(fraction);
        if (rest == fraction || rest - fraction > 9)
            return false;
    }
    for (i = 0; i < count && strcmp(units[i].name, rest) != 0; i++)
        ;
    if (i == count || (rest != at && units[i].factor == 1))
        return false;
    for (; text < at; text++)
        whole = whole * 10 + (*text - '0');
    for (; fraction < rest; fraction++) {
        parts = parts * 10 + (*fraction - '0');
        scale *= 10;
    }
    value = whole * units[i].factor + (parts * units[i].factor + scale / 2) / scale;
    *out = value > INT64_MAX ? INT64_MAX : (int64_t)value;
    return value <= INT64_MAX;
}

static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"k", 1000},
    {"kB", 1000},
    {"M", 1000000},
    {"MB", 1000000},
    {"G", 1000000000},
    {"GB", 1000000000},
    {"T", 1000000000000},
    {"TB", 1000000000000},
    {"Ki", INT64_C(1) << 10},
    {"KiB", INT64_C(1) << 10},
    {"Mi", INT64_C(1) << 20},
    {"MiB", INT64_C(1) << 20},
    {"Gi", INT64_C(1) << 30},
    {"GiB", INT64_C(1) << 30},
    {"Ti", INT64_C(1) << 40},
    {"TiB", INT64_C(1) << 40},
};

static const struct unit time_units[] = {
    {"", 1000000000},          {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60 * 1000000000L},
    {"h", 3600 * 1000000000L},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

bool stki_scalar_size(const char *text, int64_t *out)
{
    return measure(text, size_units, COUNT(size_units), out);
}

bool stki_scalar_time(const char *text, int64_t *out)
{
    return measure(text, time_units, COUNT(time_units), out);
}

static const struct unit *unit_of(const struct unit *units, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, name, length) == 0)
            return &units[i];
    return NULL;
}

bool stki_scalar_unit(const char *name, size_t length, enum stki_unit *kind, double *factor)
{
    const struct unit *size = unit_of(size_units, COUNT(size_units), name, length);
    const struct unit *time = size ? NULL : unit_of(time_units, COUNT(time_units), name, length);

    *kind = length == 0 ? STKI_UNIT_NONE : size ? STKI_UNIT_SIZE : STKI_UNIT_TIME;
    *factor = size ? (double)size->factor : time ? (double)time->factor / 1e9 : 0;
    return size || time;
}

enum stki_scalar_kind stki_scalar_kind(const stki_node *node, int64_t *whole, double *real, bool *truth)
{
    if (node->quoted)
        return STKI_SCALAR_TEXT;
    if (node->text[0] == '\0')
        return STKI_SCALAR_NULL;
    if (scalar_bool(node->text, truth))
        return STKI_SCALAR_BOOL;
    if (scalar_int(node->text, whole))
        return STKI_SCALAR_INT;
    if (strpbrk(node->text, ".eE") && stki_scalar_double(node->text, real)) /* 007 and large integers remain strings */
        return STKI_SCALAR_REAL;
    return STKI_SCALAR_TEXT;
}

/* ---- nodes ---- */

static bool plain(const stki_node *node)
{
    return node->kind == STKI_NODE_SCALAR && !node->quoted;
}

stk_status stki_node_int(const stki_node *node, int64_t *out, stk_error *err)
{
    if (plain(node) && scalar_int(node->text, out))
        return STK_OK;
    if (plain(node) && strspn(node->text, "+-0123456789") == strlen(node->text) && strlen(node->text) > 18)
        return *node->text == '-' ? stki_fail_value(err, node, "an integer of at least %" PRId64, INT64_MIN)
                                  : stki_fail_value(err, node, "an integer of at most %" PRId64, INT64_MAX);
    if (node->kind == STKI_NODE_SCALAR && node->quoted && scalar_int(node->text, out))
        return stki_fail_value(err, node, "an integer without quotes");
    return stki_fail_value(err, node, "a decimal integer");
}

stk_status stki_node_double(const stki_node *node, double *out, stk_error *err)
{
    if (plain(node) && stki_scalar_double(node->text, out))
        return STK_OK;
    return stki_fail_value(err, node, "a number");
}

stk_status stki_node_bool(const stki_node *node, bool *out, stk_error *err)
{
    if (plain(node) && scalar_bool(node->text, out))
        return STK_OK;
    return stki_fail_value(err, node, "true or false");
}

stk_status stki_node_text(const stki_node *node, const char **out, stk_error *err)
{
    if (node->kind != STKI_NODE_SCALAR || stki_node_is_null(node))
        return stki_fail_value(err, node, "a string");
    *out = node->text;
    return STK_OK;
}

stk_status stki_node_size(const stki_node *node, int64_t *out_bytes, stk_error *err)
{
    int64_t bytes = 0;

    if (node->kind == STKI_NODE_SCALAR && stki_scalar_size(node->text, &bytes)) {
        *out_bytes = bytes;
        return STK_OK;
    }
    if (bytes > 0)
        return stki_fail_value(err, node, "a size of at most %" PRId64 " bytes", bytes);
    return stki_fail_value(err, node, "a size such as 4096, 64MiB or 1.5GB (k M G T = 1000^n, Ki Mi Gi Ti = 1024^n)");
}

stk_status stki_node_time(const stki_node *node, int64_t *out_ns, stk_error *err)
{
    if (node->kind == STKI_NODE_SCALAR && stki_scalar_time(node->text, out_ns))
        return STK_OK;
    return stki_fail_value(err, node, "a time such as 1.5s, 20ms or 60 (h m s ms us ns, seconds without a unit)");
}

stk_status stki_node_word(const stki_node *node, const char *const *words, int *out, stk_error *err)
{
    const char *nearest = NULL,
               *text = stki_node_is_null(node) ? "null" : node->text; /* null may be one of the words */
    char list[256];
    int i;

    for (i = 0; words[i]; i++)
        if (node->kind == STKI_NODE_SCALAR && strcmp(text, words[i]) == 0) {
            *out = i;
            return STK_OK;
        }
    if (node->kind == STKI_NODE_SCALAR)
        nearest = stki_nearest_word(node->text, words, i);
    stki_word_list(words, i, list, sizeof list);
    if (nearest)
        return stki_fail_value(err, node, "%s; did you mean %s?", list, nearest);
    return stki_fail_value(err, node, "%s", list);
}

stk_status stki_node_known_keys(const stki_node *map, const char *const *keys, int count, stk_error *err)
{
    if (map->kind != STKI_NODE_MAP)
        return stki_fail_value(err, map, "a map");
    for (int i = 0; i < map->count; i++) {
        bool known = false;
        const char *near;

        for (int k = 0; k < count; k++)
            known |= strcmp(map->keys[i], keys[k]) == 0;
        if (known)
            continue;
        near = stki_nearest_word(map->keys[i], keys, count);
        return stki_fail_key(err, map->items[i], "unknown key%s%s%s", near ? ", did you mean " : "", near ? near : "",
                             near ? "?" : "");
    }
    return STK_OK;
}

/* ---- values as text ---- */

enum { ROOM = 40 };

const char *stki_format_size(int64_t bytes, char *buffer)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(buffer, ROOM, "%" PRId64 "%s", bytes, units[unit]);
    return buffer;
}

const char *stki_format_time(int64_t ns, char *buffer)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0;

    if (ns == 0)
        unit = 3;
    while (unit < 3 && ns % 1000 == 0) {
        ns /= 1000;
        unit++;
    }
    snprintf(buffer, ROOM, "%" PRId64 "%s", ns, units[unit]);
    return buffer;
}

/* Writes the fewest digits (15 to 17) that parse to the same value, with a decimal point in any locale. */
const char *stki_format_double(double value, char *buffer)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = (locale_t)0;
    int digits;

    if (plain)
        before = uselocale(plain);
    for (digits = 15; digits <= 17; digits++) {
        snprintf(buffer, ROOM, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    return buffer;
}
