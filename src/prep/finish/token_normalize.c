/* token_normalize.c: see token_normalize.h. Uses utf8proc. Most text is already normalized, which is checked first: a
 * character is safe in NFC if it has no decomposition, is not a mark (which may combine with the previous character or
 * be reordered), and is not part of a Hangul syllable. */
#include "token_normalize.h"
#include "allocate.h"
#include "error.h"
#include "text_check.h"
#include <inttypes.h>
#include <utf8proc.h>

static bool is_safe(uint32_t code)
{
    const utf8proc_property_t *property;

    if (code < 0x300)
        return true;
    if (code >= 0x1100 && code < 0x1200) /* parts of Hangul syllables */
        return false;
    property = utf8proc_get_property((utf8proc_int32_t)code);
    return property->combining_class == 0 && property->decomp_seqindex == UINT16_MAX &&
           property->category != UTF8PROC_CATEGORY_MN && property->category != UTF8PROC_CATEGORY_MC &&
           property->category != UTF8PROC_CATEGORY_ME;
}

static bool is_normal(enum stki_token_form form, const uint8_t *text, int64_t length)
{
    for (int64_t at = 0; at < length;) {
        uint32_t code;

        if (text[at] < 0x80) {
            at++;
            continue;
        }
        if (form != STKI_TOKEN_NFC)
            return false;
        at += stki_utf8_next((const char *)text + at, length - at, &code);
        if (!is_safe(code))
            return false;
    }
    return true;
}

static stk_status reserve(stki_normalized *to, int64_t count, stk_error *err)
{
    int32_t *grown;

    if (count <= to->room)
        return STK_OK;
    count += count / 4;
    grown = stki_resize(to->codes, count * (int64_t)sizeof *grown);
    if (!grown)
        return stki_fail_memory(err, count * (int64_t)sizeof *grown, "a normalized text");
    to->codes = grown;
    to->room = count;
    return STK_OK;
}

stk_status stki_token_normalize(enum stki_token_form form, stki_normalized *to, const uint8_t *text, int64_t length,
                                const uint8_t **out, int64_t *out_length, stk_error *err)
{
    static const utf8proc_option_t options[] = {
        [STKI_TOKEN_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [STKI_TOKEN_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [STKI_TOKEN_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [STKI_TOKEN_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    utf8proc_ssize_t count;
    stk_status status;

    *out = text;
    *out_length = length;
    if (is_normal(form, text, length))
        return STK_OK;
    if ((status = reserve(to, length + 1, err)) != STK_OK)
        return status;
    count = utf8proc_decompose(text, length, to->codes, to->room - 1, options[form]);
    if (count > to->room - 1) {
        if ((status = reserve(to, count + 1, err)) != STK_OK)
            return status;
        count = utf8proc_decompose(text, length, to->codes, to->room - 1, options[form]);
    }
    if (count >= 0)
        count = utf8proc_reencode(to->codes, count, options[form]);
    if (count < 0)
        return stki_fail(err, STK_E_LIMIT, "normalizing a text of %" PRId64 " bytes: %s", length,
                         utf8proc_errmsg(count));
    *out = (const uint8_t *)to->codes;
    *out_length = count;
    return STK_OK;
}

const char *stki_token_normalize_version(void)
{
    return utf8proc_version();
}

void stki_normalized_fini(stki_normalized *normalized)
{
    stki_free(normalized->codes);
    *normalized = (stki_normalized){0};
}
