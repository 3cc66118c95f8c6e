/* node_format.c: values back to text, so that a config reads them as the same value. */
#include "node_scalar.h"
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>

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

/* The shortest of 15 to 17 digits that reads back; with a point whatever the program's locale writes. */
const char *stki_format_double(double value, char *buffer)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = (locale_t)0;
    int digits;

    if (plain)
        before = uselocale(plain);
    for (digits = 15; digits <= 17; digits++) {
        snprintf(buffer, ROOM, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value) /* bit for bit is not asked for: -0 is 0 */
            break;
    }
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    return buffer;
}
