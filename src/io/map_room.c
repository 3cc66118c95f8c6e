/* map_room.c: see map_room.h. How many mappings the process has is known to the system alone, and takes long to ask
 * where there are many. So it is asked after a number of mappings of our own: half of those that there was room for. */
#include "map_room.h"
#include "clock.h"
#include "counter.h"
#include <stdint.h>
#include <stdio.h>

enum { FIRST_LOOK = 64, LEAST_ROOM = 64, LEAST_STEP = 512, ASKED_EACH = 8, USUAL = 65530 };

static stki_counter mapped;                    /* our own */
static stki_counter look_at = FIRST_LOOK;      /* the system is asked before there are more of our own */
static stki_counter full_ns;                   /* when it was asked and there was no room; 0: there was */
static atomic_flag looking = ATOMIC_FLAG_INIT; /* no lock: a child that was forked meanwhile goes on without looking */

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

/* -1: the system does not say. */
static int64_t present_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    static char bytes[1 << 16]; /* only one thread at a time is here */
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

/* Sets look_at beyond `mapped` if there is room. */
static void look(void)
{
    const int64_t most = most_mappings(), present = present_mappings(), own = stki_counted(&mapped);
    const int64_t room = most - most / 4 - (present < 0 ? own : present);
    const int64_t step = present / ASKED_EACH > LEAST_STEP ? present / ASKED_EACH : LEAST_STEP;

    stki_count_set(&full_ns, room < LEAST_ROOM ? stki_now_ns() : 0);
    stki_count_set(&look_at, own + (room < LEAST_ROOM ? 0 : room / 2 < step ? room / 2 : step));
}

/* Where there was no room a moment ago, the system is not asked again for each of thousands of files. */
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
