/* bench_tokenize.c: tokenizing texts in one thread; bench/peers/bench_tokenize.py compares it with tiktoken.
 *
 *     bench_tokenize TEXTS [VOCABULARY SPLIT [ROUNDS]]      TEXTS: documents, each followed by a NUL
 *
 * Prints the best round: bytes per second of CPU time, the number of tokens, and the time to open the vocabulary.
 */
#include "bench_support.h"
#include "tokenize.h"
#include <inttypes.h>

static double cpu_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *read_file(const char *path, int64_t *bytes)
{
    FILE *from = fopen(path, "rb");
    char *text;

    if (!from) {
        perror(path);
        exit(2);
    }
    fseek(from, 0, SEEK_END);
    *bytes = ftell(from);
    rewind(from);
    text = malloc((size_t)*bytes + 1);
    if (!text || fread(text, 1, (size_t)*bytes, from) != (size_t)*bytes)
        exit(2);
    text[*bytes] = '\0';
    fclose(from);
    return text;
}

static void must(stk_status status, const stk_error *err)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

int main(int argc, char **argv)
{
    const stki_tokenizer_opts opts = {.vocabulary = argc > 2 ? argv[2] : NULL, .split = argc > 3 ? argv[3] : NULL};
    const int rounds = argc > 4 ? atoi(argv[4]) : 3;
    int64_t bytes, tokens = 0;
    uint64_t sum = 0;
    stki_tokenizer *tokenizer;
    stki_token_scratch *scratch;
    stk_error err;
    double open_seconds, best = 1e9;
    char *text;

    if (argc < 2) {
        fprintf(stderr, "bench_tokenize TEXTS [VOCABULARY SPLIT [ROUNDS]]\n");
        return 2;
    }
    text = read_file(argv[1], &bytes);
    open_seconds = cpu_now();
    must(stki_tokenizer_open(&opts, &tokenizer, &err), &err);
    must(stki_token_scratch_create(tokenizer, &scratch, &err), &err);
    open_seconds = cpu_now() - open_seconds;
    for (int round = 0; round < rounds; round++) {
        double begin = cpu_now(), seconds;

        tokens = 0;
        sum = 0;
        for (int64_t at = 0; at < bytes;) {
            const int64_t length = (int64_t)strlen(text + at);
            const uint32_t *ids;
            int64_t count;

            must(stki_tokenize(tokenizer, scratch, text + at, length, &ids, &count, &err), &err);
            for (int64_t i = 0; i < count; i++)
                sum = sum * 31 + ids[i];
            tokens += count;
            at += length + 1;
        }
        seconds = cpu_now() - begin;
        best = seconds < best ? seconds : best;
    }
    printf("%.1f MB/s of a processor, %" PRId64 " tokens (%016" PRIx64 "), vocabulary opened in %.0f ms\n",
           (double)bytes / best * 1e-6, tokens, sum, open_seconds * 1e3);
    stki_token_scratch_destroy(scratch);
    stki_tokenizer_destroy(tokenizer);
    free(text);
    return 0;
}
