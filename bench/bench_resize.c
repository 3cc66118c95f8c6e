/* bench_resize.c: resizing RGB images (noise on a gradient) with every instruction set, in one thread: with the same
 * box each time, with a different box for each image (which rebuilds the tables), and followed by the conversion to
 * normalized f32 planes. Eight images are used in turn, so they are in the outer caches, like images that were just
 * decoded.
 *
 *     bench_resize [ROUNDS] [HEIGHT WIDTH OUT_HEIGHT OUT_WIDTH]
 *
 * bench/peers/bench_resize.py measures other libraries on the same sizes.
 */
#include "bench_support.h"
#include "resize.h"
#include <time.h>

enum { IMAGES = 64, DISTINCT = 8, VARIANTS = 4, FILTERS = 2 };

typedef struct picture {
    int64_t height, width, out_height, out_width;
    uint8_t *pixels[DISTINCT], *out;
    float *planes;
    stki_convert *convert;
} picture;

typedef struct work {
    picture *picture;
    stki_resizer *resizer;
    enum stki_filter filter;
    bool own_boxes, converted;
    double *cpu_seconds; /* of the fastest pass */
} work;

static void check(stk_status status, const stk_error *err)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "bench_resize: %s\n", err->message);
    exit(1);
}

/* CPU time of this thread; other programs affect it less than the wall time. */
static double cpu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void pass(const bench_way *way, int thread, int threads)
{
    const work *w = way->context;
    picture *p = w->picture;
    uint64_t state = 1;
    double before = cpu_now(), seconds;

    (void)thread, (void)threads;
    for (int i = 0; i < IMAGES; i++) {
        stki_resize_job job = {p->height,     p->width,     3,        {0, 0, (double)p->width, (double)p->height},
                               p->out_height, p->out_width, w->filter};
        const stki_resize_support *part;
        stk_error err;

        if (w->own_boxes) { /* at least half of each side */
            job.box[0] = (double)(bench_random(&state) % (uint64_t)(p->width / 4));
            job.box[1] = (double)(bench_random(&state) % (uint64_t)(p->height / 4));
            job.box[2] -= (double)(bench_random(&state) % (uint64_t)(p->width / 4));
            job.box[3] -= (double)(bench_random(&state) % (uint64_t)(p->height / 4));
        }
        check(stki_resizer_set(w->resizer, &job, &err), &err);
        part = stki_resizer_support(w->resizer);
        stki_resizer_run(w->resizer, p->pixels[i % DISTINCT] + (part->top * p->width + part->left) * 3, p->width * 3,
                         p->out, p->out_width * 3);
        if (w->converted)
            stki_convert_run(p->convert, p->planes, p->out);
    }
    seconds = cpu_now() - before;
    if (*w->cpu_seconds == 0 || seconds < *w->cpu_seconds)
        *w->cpu_seconds = seconds;
}

static void make_picture(picture *p)
{
    const float a[3] = {0.017f, 0.0175f, 0.0174f}, b[3] = {-2.1f, -2.0f, -1.8f};
    stki_convert_desc desc = {.src_dtype = STK_U8,
                              .dst_dtype = STK_F32,
                              .ndim = 3,
                              .shape = {3, p->out_height, p->out_width},
                              .src_strides = {1, p->out_width * 3, 3},
                              .dst_strides = {p->out_height * p->out_width * 4, p->out_width * 4, 4},
                              .affine = true,
                              .channel_axis = 0,
                              .channels = 3,
                              .a = a,
                              .b = b,
                              .stores = STKI_STORES_CACHED};
    uint64_t state = 7;
    stk_error err;

    check(stki_convert_create(&desc, &p->convert, &err), &err);
    for (int i = 0; i < DISTINCT; i++) {
        p->pixels[i] = bench_memory(p->height * p->width * 3);
        for (int64_t k = 0; k < p->height * p->width * 3; k++)
            p->pixels[i][k] = (uint8_t)((uint64_t)(k / 3 % p->width / 3) + bench_random(&state) % 64);
    }
    p->out = bench_memory(p->out_height * p->out_width * 3);
    p->planes = bench_memory(p->out_height * p->out_width * 12);
}

int main(int argc, char **argv)
{
    static const enum stki_isa isas[VARIANTS] = {STKI_ISA_AVX512, STKI_ISA_AVX2, STKI_ISA_NEON, STKI_ISA_REF};
    static const enum stki_filter filters[FILTERS] = {STKI_FILTER_BILINEAR, STKI_FILTER_LANCZOS};
    static picture p = {375, 500, 224, 224};
    static work works[3 * VARIANTS * FILTERS];
    static bench_way ways[3 * VARIANTS * FILTERS];
    static double cpu_seconds[3 * VARIANTS * FILTERS];
    static char names[3 * VARIANTS * FILTERS][64];
    int rounds = argc > 1 ? atoi(argv[1]) : 21, n = 0;

    if (argc == 6) {
        p.height = atoll(argv[2]);
        p.width = atoll(argv[3]);
        p.out_height = atoll(argv[4]);
        p.out_width = atoll(argv[5]);
    }
    if ((argc != 1 && argc != 2 && argc != 6) || rounds < 1 || rounds > BENCH_MAX_ROUNDS) {
        fprintf(stderr, "usage: bench_resize [ROUNDS] [HEIGHT WIDTH OUT_HEIGHT OUT_WIDTH]\n");
        return 2;
    }
    make_picture(&p);
    for (int f = 0; f < FILTERS; f++)
        for (int i = 0; i < VARIANTS; i++)
            for (int k = 0; k < 3; k++) {
                static const char *const what[] = {"", " own boxes", " + f32 planes"};
                work *w = &works[n];
                stk_error err;

                if (!stki_isa_usable(isas[i]))
                    continue;
                *w = (work){.picture = &p,
                            .filter = filters[f],
                            .own_boxes = k == 1,
                            .converted = k == 2,
                            .cpu_seconds = &cpu_seconds[n]};
                check(stki_resizer_create_isa(isas[i], &w->resizer, &err), &err);
                snprintf(names[n], sizeof names[n], "%s %s%s", stki_filter_words[filters[f]], stki_isa_name(isas[i]),
                         what[k]);
                ways[n] =
                    (bench_way){.name = names[n], .pass = pass, .context = w, .units = IMAGES, .unit = "images/s"};
                n++;
            }
    bench_run("resize", ways, n, 1, rounds);
    for (int i = 0; i < n; i++)
        printf("resize cpu, best pass: %-40s %8.1f us/image\n", names[i], cpu_seconds[i] / IMAGES * 1e6);
    return 0;
}
