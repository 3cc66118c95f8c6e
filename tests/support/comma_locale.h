/* comma_locale.h: a locale with a decimal comma, which localedef compiles for this program, because a machine may not
 * have such a locale. */
#ifndef STKT_COMMA_LOCALE_H
#define STKT_COMMA_LOCALE_H

#include "io_files.h"
#include <locale.h>
#include <stdbool.h>

/* Sets the locale for all categories. Returns false without localedef. */
static inline bool stkt_comma_locale(void)
{
    static const char *const same[] = {"LC_CTYPE", "LC_COLLATE", "LC_MONETARY", "LC_TIME", "LC_MESSAGES"};
    char command[700];
    FILE *file = fopen(stkt_path("comma"), "w");

    if (!file)
        return false;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        fprintf(file, "%s\ncopy \"POSIX\"\nEND %s\n", same[i], same[i]);
    fprintf(file, "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n");
    fclose(file);
    /* -c: missing categories cause only a warning */
    snprintf(command, sizeof command, "localedef -c -i '%s' '%s' >'%s' 2>&1", stkt_path("comma"), stkt_path("comma_XX"),
             stkt_path("comma.log"));
    if (system(command) < 0 || setenv("LOCPATH", stkt_dir, 1) != 0 || !setlocale(LC_ALL, "comma_XX"))
        return false;
    return !strcmp(localeconv()->decimal_point, ",");
}

#endif
