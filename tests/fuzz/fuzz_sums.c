/* Fuzz target: arbitrary bytes as a file of checksums, unchanged and with the size and checksum in it corrected,
 * because otherwise no input would get past these two. A failure must return a status for damaged files and a one-line
 * message that names the file. All accepted entries must lie inside the file. */
#include "allocate.h"
#include "fuzz.h"
#include "sums.h"
#include <string.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#define PATH "some/file.sums"

static uint64_t number(const uint8_t *at, int size)
{
    uint64_t value = 0;

    memcpy(&value, at, (size_t)size);
    return value;
}

static void check_failure(stk_status status, const stk_error *err)
{
    DEMAND(status == STK_E_CORRUPT || status == STK_E_TRUNCATED || status == STK_E_UNSUPPORTED);
    DEMAND(err->status == status && !strncmp(err->message, PATH ": ", sizeof PATH + 1));
    for (const char *c = err->message; *c; c++)
        DEMAND(*c >= ' ' && *c < 127);
}

/* Checks the entries with code that is independent of the parser. */
static void check_success(const uint8_t *bytes, size_t size)
{
    unsigned __int128 at = 40, members = number(bytes + 12, 4);

    for (unsigned __int128 i = 0; i < members; i++) {
        unsigned __int128 end;

        DEMAND(at + 24 <= size);
        end = number(bytes + at + 8, 8) + (unsigned __int128)8 * number(bytes + at, 8);
        DEMAND(number(bytes + at + 8, 8) % 8 == 0 && end <= size);
        at += 24 + (unsigned __int128)number(bytes + at + 16, 4) + number(bytes + at + 20, 4);
        at = (at + 7) / 8 * 8;
        DEMAND(at <= size);
    }
}

static stk_status validate(const uint8_t *bytes, size_t size)
{
    stk_error err;
    stk_status status = stki_sums_validate(bytes, (int64_t)size, PATH, &err);

    if (status)
        check_failure(status, &err);
    else
        check_success(bytes, size);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* of exactly this size, so that sanitizers detect bad accesses */
    uint64_t total = size, sum;
    stki_memory_stats before, after;

    stki_memory_read(STKI_MEM_HOST, &before);
    memcpy(copy, data, size);
    (void)validate(copy, size);
    if (size >= 40) {
        memcpy(copy, "\x89STKSUM\n\1\0\0", 12);
        memcpy(copy + 24, &total, 8);
        sum = XXH3_64bits(copy + 40, size - 40);
        memcpy(copy + 32, &sum, 8);
        (void)validate(copy, size);
    }
    free(copy);
    stki_memory_read(STKI_MEM_HOST, &after);
    DEMAND(before.total_allocations == after.total_allocations);
    return 0;
}
