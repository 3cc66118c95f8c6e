/* kernels_general.c: see kernels_general.h. */
#include "kernels_general.h"
#include "kernel_nest.h"

static _Thread_local bool only_general;

void stkt_kernels_general(bool general)
{
    only_general = general;
}

#define WRAP(name, parameters, ...)                         \
    bool __real_##name parameters;                          \
    bool __wrap_##name parameters;                          \
    bool __wrap_##name parameters                           \
    {                                                       \
        return !only_general && __real_##name(__VA_ARGS__); \
    }

WRAP(stki_plan_tiles, (stki_strided * plan, stki_launch *out), plan, out)
WRAP(stki_plan_runs, (const stki_map_plan *map, const stki_strided *plan, int64_t channels, stki_launch *out), map,
     plan, channels, out)
WRAP(stki_plan_pixels,
     (const stki_map_plan *map, const stki_convert *convert, const stki_strided *plan, stki_levels levels,
      stki_launch *out),
     map, convert, plan, levels, out)
WRAP(stki_plan_is_binary_runs, (const stki_elementwise_job *job, const stki_strided *plan), job, plan)
