/* kernel_twin.c: see kernel_twin.h. A barrier of a kernel is the end of a phase: all threads of a block run one phase
 * before the next one starts. */
#include "kernel_twin.h"
#include "float_control.h"

typedef void (*phase_fn)(const stki_launch *launch, stki_spot spot, void *shared, int phase);

/* The shared memory of a block, large enough for every kernel. */
typedef union twin_memory {
    stki_words words; /* for the alignment */
    uint8_t tile[STKI_MAP_TILE_BYTES];
    uint8_t pixels[STKI_PIXELS_BYTES];
    stki_partial partials[STKI_BLOCK_THREADS];
} twin_memory;

static void linear(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    (void)shared, (void)phase;
    stki_map_linear(&launch->args.map, launch->map_kind, spot);
}

static void tiled(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    if (phase == 0)
        stki_map_tile_read(&launch->args.map, launch->map_kind, spot, shared);
    else
        stki_map_tile_write(&launch->args.map, launch->map_kind, spot, shared);
}

static void runs(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    (void)shared, (void)phase;
    stki_runs(&launch->args.runs, launch->dst_dtype, launch->src_dtype, launch->pattern, spot);
}

static void pixels(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    const int size = stki_kernel_size(launch->dst_dtype);

    if (phase == 0)
        stki_pixels_read(&launch->args.pixels, size, launch->mirrored, spot, shared);
    else
        stki_pixels_write(&launch->args.pixels, launch->dst_dtype, launch->raw, launch->step, launch->mirrored, spot,
                          shared);
}

static void binary_linear(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    (void)shared, (void)phase;
    stki_binary_linear(&launch->args.binary, spot);
}

static void binary_runs(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    (void)shared, (void)phase;
    stki_binary_runs(&launch->args.binary, launch->dst_dtype, spot);
}

static void sum_rows(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    if (phase == 0)
        stki_sum_rows(&launch->args.sum, spot, shared);
    else
        stki_sum_halve(&launch->args.sum, spot, shared, (uint32_t)STKI_BLOCK_THREADS >> phase);
}

static void sum_cells(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    (void)shared, (void)phase;
    stki_sum_cells(&launch->args.sum, spot);
}

static void sum_finish(const stki_launch *launch, stki_spot spot, void *shared, int phase)
{
    (void)shared, (void)phase;
    stki_sum_finish(&launch->args.sum, spot);
}

static const struct twin_row {
    phase_fn run;
    int phases;
} rows[STKI_KERNELS] = {
    [STKI_KERNEL_MAP_LINEAR] = {linear, 1},
    [STKI_KERNEL_MAP_TILED] = {tiled, 2},
    [STKI_KERNEL_RUNS] = {runs, 1},
    [STKI_KERNEL_PIXELS] = {pixels, 2},
    [STKI_KERNEL_BINARY_LINEAR] = {binary_linear, 1},
    [STKI_KERNEL_BINARY_RUNS] = {binary_runs, 1},
    [STKI_KERNEL_SUM_ROWS] = {sum_rows, 1 + STKI_SUM_HALVINGS},
    [STKI_KERNEL_SUM_CELLS] = {sum_cells, 1},
    [STKI_KERNEL_SUM_FINISH] = {sum_finish, 1},
};

static void run_block(const stki_launch *launch, const struct twin_row *row, uint32_t block, twin_memory *shared)
{
    for (int phase = 0; phase < row->phases; phase++)
        for (uint32_t thread = 0; thread < STKI_BLOCK_THREADS; thread++)
            row->run(launch, (stki_spot){block, thread}, shared, phase);
}

void stki_kernel_twin_run(const stki_launch *launch)
{
    const struct twin_row *row = &rows[launch->kernel];
    stki_float_control control;
    twin_memory shared;

    control = stki_float_enter();
    for (uint32_t block = 0; block < launch->blocks; block++)
        run_block(launch, row, block, &shared);
    stki_float_leave(control);
}
