/* job_words.c: see job.h. The loader that makes a job's rows reads keys of `prep` as its own (job.c), and names them so
 * in what it says. Whoever wrote the job knows no section `loader`: messages and notes are told in his words before
 * they leave the job. */
#include "job.h"
#include <string.h>

static const char loader[] = "loader.", prep[] = "prep.";
enum { LOADER = sizeof loader - 1, PREP = sizeof prep - 1 };

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

/* Is what the text begins with a key of `prep`? */
static bool is_key(const char *text)
{
    size_t length = 0;

    while (is_letter(text[length]))
        length++;
    for (int i = 0; i < stki_prep_table.count; i++)
        if (strlen(stki_prep_table.rows[i].name) == length && !memcmp(stki_prep_table.rows[i].name, text, length))
            return true;
    return false;
}

void stki_job_words(char *text)
{
    for (char *at = text; (at = strstr(at, loader)) != NULL; at++) {
        if ((at > text && (is_letter(at[-1]) || at[-1] == '.' || at[-1] == '/')) || !is_key(at + LOADER))
            continue;
        memcpy(at, prep, PREP);
        memmove(at + PREP, at + LOADER, strlen(at + LOADER) + 1);
    }
}

void stki_job_error(stk_error *err)
{
    if (!err)
        return;
    stki_job_words(err->message);
    stki_job_words(err->expected);
}
