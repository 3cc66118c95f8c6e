/* isa.c: the instruction set whose kernels are used, determined once, and the sizes of the caches. */
#include "convert_internal.h"
#include "platform.h"
#include "resize_internal.h"
#include "thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const names[] = {
    [STKI_ISA_REF] = "ref", [STKI_ISA_AVX2] = "avx2", [STKI_ISA_AVX512] = "avx512", [STKI_ISA_NEON] = "neon"};
enum { ISA_COUNT = sizeof names / sizeof names[0] };

static stki_once decided = STKI_ONCE;
static enum stki_isa chosen;
static char note[160];

#if defined(__x86_64__)
static bool has_f16c(void) /* clang's __builtin_cpu_supports does not accept the name of this feature */
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}
#endif

bool stki_isa_usable(enum stki_isa isa)
{
    switch (isa) {
    case STKI_ISA_REF:
        return true;
#if defined(__x86_64__)
    case STKI_ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case STKI_ISA_AVX512: /* without byte permutes (VBMI), these kernels would be no faster than the AVX2 kernels */
        return stki_isa_usable(STKI_ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
#elif defined(__aarch64__)
    case STKI_ISA_NEON:
        return true;
#endif
    default:
        return false;
    }
}

bool stki_native_bf16(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

bool stki_native_vnni(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

static enum stki_isa best(void)
{
    static const enum stki_isa by_speed[] = {STKI_ISA_AVX512, STKI_ISA_AVX2, STKI_ISA_NEON};

    for (int i = 0; i < (int)(sizeof by_speed / sizeof by_speed[0]); i++)
        if (stki_isa_usable(by_speed[i]))
            return by_speed[i];
    return STKI_ISA_REF;
}

static void decide(void)
{
    const char *wanted = getenv("STOKER_ISA");

    chosen = best();
    if (!wanted || !*wanted)
        return;
    for (int i = 0; i < ISA_COUNT; i++)
        if (strcmp(wanted, names[i]) == 0) {
            if (stki_isa_usable((enum stki_isa)i))
                chosen = (enum stki_isa)i;
            else
                snprintf(note, sizeof note, "STOKER_ISA=%s: not supported by this processor, using %s", names[i],
                         names[chosen]);
            return;
        }
    snprintf(note, sizeof note, "STOKER_ISA=%.40s: unknown value, expected ref, avx2, avx512 or neon; using %s", wanted,
             names[chosen]);
}

enum stki_isa stki_isa(void)
{
    stki_run_once(&decided, decide);
    return chosen;
}

const char *stki_isa_note(void)
{
    stki_run_once(&decided, decide);
    return note[0] ? note : NULL;
}

const char *stki_isa_name(enum stki_isa isa)
{
    return (int)isa >= 0 && (int)isa < ISA_COUNT ? names[isa] : "none";
}

/* Reads a number with an optional suffix K or M from a file of sysfs; 0: none. */
static int64_t read_size(int index, const char *leaf)
{
    char path[96], text[32] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, leaf);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const char *line = fgets(text, sizeof text, file);
    fclose(file);
    if (!line)
        return 0;
    char *end;
    int64_t value = strtoll(text, &end, 10);
    if (value < 0 || value > INT64_MAX >> 21)
        return 0;
    return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

static int64_t cache_bytes, level2_bytes;
static pthread_once_t cache_read = PTHREAD_ONCE_INIT;

static void read_cache(void)
{
    int64_t highest = 0;

    cache_bytes = INT64_C(32) << 20;
    level2_bytes = INT64_C(256) << 10;
    for (int index = 0; index < 8; index++) {
        int64_t level = read_size(index, "level"), size = read_size(index, "size");
        if (level > highest && size > 0) {
            highest = level;
            cache_bytes = size;
        }
        if (level == 2 && size > 0)
            level2_bytes = size;
    }
}

int64_t stki_cache_bytes(void)
{
    pthread_once(&cache_read, read_cache);
    return cache_bytes;
}

int64_t stki_level2_bytes(void)
{
    pthread_once(&cache_read, read_cache);
    return level2_bytes;
}
