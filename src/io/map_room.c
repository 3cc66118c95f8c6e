/* map_room.c: see map_room.h. The number of mappings of a process can only be determined by listing them, which is slow
 * if there are many. They are therefore counted again only after the library has created a certain number of new
 * mappings: an eighth of the number that existed (at least 512), but at most half of the number that was still
 * allowed. */
#include "map_room.h"
#include "clock.h"
#include "counter.h"
#include <stdint.h>
#include <stdio.h>

enum { FIRST_LOOK = 64, LEAST_ROOM = 64, LEAST_STEP = 512, ASKED_EACH = 8, USUAL = 65530 };

static stki_counter mapped;               /* number of the library's own mappings */
static stki_counter look_at = FIRST_LOOK; /* all mappings are counted again when `mapped` reaches this */
static stki_counter full_ns;              /* time of the last count if no room was found; otherwise 0 */
static atomic_flag looking =
    ATOMIC_FLAG_INIT; /* not a lock: a child forked during a count skips counting instead of blocking */

static int64_t most_mappings(void)
{
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    long long most = USUAL;

    if (file) {
        if (fscanf(file, "%lld", &most) != 1)
            most = USUAL;
        fclose(file);
    }
    return most;
}

/* Counts the mappings of the process; -1: unknown. */
static int64_t present_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    static char bytes[1 << 16]; /* guarded by `looking` */
    int64_t lines = 0;
    size_t n;

    if (!file)
        return -1;
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        for (size_t i = 0; i < n; i++)
            lines += bytes[i] == '\n';
    fclose(file);
    return lines;
}

/* Counts the mappings. Sets look_at above `mapped` if there is room for more. */
static void look(void)
{
    const int64_t most = most_mappings(), present = present_mappings(), own = stki_counted(&mapped);
    const int64_t room = most - most / 4 - (present < 0 ? own : present);
    const int64_t step = present / ASKED_EACH > LEAST_STEP ? present / ASKED_EACH : LEAST_STEP;

    stki_count_set(&full_ns, room < LEAST_ROOM ? stki_now_ns() : 0);
    stki_count_set(&look_at, own + (room < LEAST_ROOM ? 0 : room / 2 < step ? room / 2 : step));
}

/* After a count that found no room, the next one is allowed only after a second, so that opening thousands of files
 * does not count the mappings each time. */
static bool may_look(void)
{
    const int64_t full = stki_counted(&full_ns);

    return full == 0 || stki_now_ns() - full > STKI_SECOND;
}

bool stki_map_room_take(void)
{
    if (stki_counted(&mapped) >= stki_counted(&look_at) && may_look() && !atomic_flag_test_and_set(&looking)) {
        look();
        atomic_flag_clear(&looking);
    }
    if (stki_counted(&mapped) >= stki_counted(&look_at))
        return false;
    stki_count(&mapped, 1);
    return true;
}

void stki_map_room_give(void)
{
    stki_count(&mapped, -1);
}
