/* notes.c: see notes.h. A published text is never moved or changed, so that readers need no lock. */
#include "notes.h"
#include "allocate.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* "33 more notes", as returned to a caller. Kept until fini, since the caller may still use it. */
struct stki_more_notes {
    struct stki_more_notes *older;
    int64_t more;
    char text[64];
};

void stki_notes_add_list(stki_notes *notes, bool fact, const char *format, va_list args)
{
    char text[1024], *kept;
    int count = notes->count;

    vsnprintf(text, sizeof text, format, args);
    for (int i = 0; i < count; i++)
        if (strcmp(notes->texts[i], text) == 0)
            return;
    kept = count < STKI_NOTES ? stki_strdup(text) : NULL;
    if (!kept) {
        notes->more++;
        return;
    }
    notes->texts[count] = kept;
    notes->facts[count] = fact;
    notes->count = count + 1;
}

void stki_notes_add(stki_notes *notes, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    stki_notes_add_list(notes, false, format, args);
    va_end(args);
}

int stki_notes_count(const stki_notes *notes)
{
    return notes->count + (notes->more > 0);
}

static const char *more_text(stki_notes *notes)
{
    struct stki_more_notes *newest = notes->returned, *now;
    const int64_t more = notes->more;

    if (newest && newest->more == more)
        return newest->text;
    now = stki_zalloc(sizeof *now);
    if (!now)
        return "more notes were dropped for lack of memory";
    now->more = more;
    snprintf(now->text, sizeof now->text, "%" PRId64 " more note%s", more, more == 1 ? "" : "s");
    now->older = newest;
    while (!atomic_compare_exchange_weak(&notes->returned, &now->older, now))
        ;
    return now->text;
}

const char *stki_notes_get(const stki_notes *notes, int index)
{
    const int count = notes->count;

    if (index < 0 || index > count)
        return NULL;
    if (index < count)
        return notes->texts[index];
    return notes->more > 0 ? more_text((stki_notes *)(uintptr_t)notes) : NULL; /* changes only `returned` */
}

void stki_notes_fini(stki_notes *notes)
{
    struct stki_more_notes *next = notes->returned;

    for (int i = 0; i < notes->count; i++)
        stki_free(notes->texts[i]);
    while (next) {
        struct stki_more_notes *older = next->older;

        stki_free(next);
        next = older;
    }
    *notes = (stki_notes){0};
}
