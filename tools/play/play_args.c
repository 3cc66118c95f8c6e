/* play_args.c: reads the command line. Words that are no options make the chain, so that a short one needs no
 * quotes: stoker play broadcast 3x1 4.
 */
#include "play_args.h"
#include "allocate.h"
#include "document.h"
#include "error.h"
#include "play_parse.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum flag { HTML, MEMORY, FITS, DTYPE, PRECISION, RANGE, HELP, FLAG_COUNT };

static const struct {
    const char *name;
    const char *value; /* what to write after '='; NULL: the flag takes no value */
    const char *help;
} flags[FLAG_COUNT] = {
    [HTML] = {"--html", "FILE", "write a page with the same steps, drawn"},
    [MEMORY] = {"--memory", "N|SHAPE", "memory of a model of N parameters (7B, 125M), or of a batch (32x3x224x224)"},
    [FITS] = {"--fits", "SIZE", "with --memory: what fits into so much (24GiB)"},
    [DTYPE] = {"--dtype", "DTYPE", "with --memory SHAPE: of the values in the table of sparse forms (f32)"},
    [PRECISION] = {"--precision", "A", "a sine of amplitude A in each dtype and in int8"},
    [RANGE] = {"--range", "R", "with --precision: int8 also for a fixed range of -R to R (1)"},
    [HELP] = {"--help", NULL, "this text"},
};

void pl_args_help(FILE *to)
{
    fputs("Usage: stoker play [--html=FILE] [\"OPERATION; OPERATION; ...\"]\n"
          "       stoker play --memory=N|SHAPE [--fits=SIZE] [--dtype=DTYPE] [--html=FILE]\n"
          "       stoker play --precision=A [--range=R] [--html=FILE]\n"
          "\n"
          "Shows what operations on tensors do to memory. Without operations they are read from standard\n"
          "input, on a terminal with a prompt; the operation `help` lists them all.\n"
          "\n"
          "  stoker play \"arange 0 12; reshape 3 4; t; slice :, ::2; contiguous\"\n"
          "  stoker play broadcast 8x1x6x1 7x1x5\n"
          "\n",
          to);
    for (int i = 0; i < FLAG_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", flags[i].name, flags[i].value ? "=" : "",
                 flags[i].value ? flags[i].value : "");
        fprintf(to, "  %-20s %s\n", left, flags[i].help);
    }
    fputs("\nExit status: 0 fine, 1 an operation failed, 2 the command is wrong.\n", to);
}

static stk_status fail_unknown(const char *word, size_t length, stk_error *err)
{
    const char *names[FLAG_COUNT];
    char name[64];

    for (int i = 0; i < FLAG_COUNT; i++)
        names[i] = flags[i].name;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    const char *near = stki_nearest_word(name, names, FLAG_COUNT);
    return stki_fail(err, STK_E_CONFIG, "unknown option %s%s%s%s", name, near ? "; did you mean " : "; see --help",
                     near ? near : "", near ? "?" : "");
}

static stk_status read_real(const char *name, const char *value, double *out, stk_error *err)
{
    char *end;

    *out = strtod(value, &end);
    if (end == value || *end || !isfinite(*out) || *out <= 0 || *out > 1e30)
        return stki_fail(err, STK_E_CONFIG, "%s: found \"%s\", expected a number above 0, at most 1e30", name, value);
    return STK_OK;
}

static stk_status read_size(const char *name, const char *value, int64_t *out, stk_error *err)
{
    static const char units[] = "kMGTP";
    char *end;
    double number = strtod(value, &end), base = 1000;
    const char *unit = *end ? strchr(units, *end) : NULL;
    bool fine = end != value && number > 0;

    if (unit) {
        end++;
        if (*end == 'i') {
            base = 1024;
            end++;
        }
        number *= pow(base, (double)(unit - units + 1));
    }
    end += *end == 'B';
    if (!fine || *end || !(number >= 1) || number > 9e18)
        return stki_fail(err, STK_E_CONFIG, "%s: found \"%s\", expected a size such as 24GiB", name, value);
    *out = (int64_t)number;
    return STK_OK;
}

static stk_status set_action(struct pl_args *args, enum pl_action action, const char *name, stk_error *err)
{
    if (args->action != PL_READ && args->action != action)
        return stki_fail(err, STK_E_CONFIG, "%s does not go together with the other action asked for", name);
    args->action = action;
    return STK_OK;
}

static stk_status apply(struct pl_args *args, enum flag flag, const char *value, stk_error *err)
{
    const char *name = flags[flag].name;
    stk_status status;

    switch (flag) {
    case HTML:
        args->html = value;
        return *value ? STK_OK : stki_fail(err, STK_E_CONFIG, "--html needs the name of a file");
    case MEMORY:
        args->what = value;
        return set_action(args, PL_MEMORY, name, err);
    case FITS:
        return read_size(name, value, &args->fits, err);
    case DTYPE:
        args->dtype = stk_dtype_find(value);
        return args->dtype ? STK_OK : pl_fail_dtype("--dtype", value, err);
    case PRECISION:
        status = read_real(name, value, &args->amplitude, err);
        return status ? status : set_action(args, PL_PRECISION, name, err);
    case RANGE:
        return read_real(name, value, &args->range, err);
    case HELP:
        return set_action(args, PL_HELP, name, err);
    case FLAG_COUNT:
        break;
    }
    return STK_OK;
}

static stk_status read_flag(struct pl_args *args, int argc, char **argv, int *at, stk_error *err)
{
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);

    for (int i = 0; i < FLAG_COUNT; i++) {
        if (strlen(flags[i].name) != length || memcmp(flags[i].name, word, length) != 0)
            continue;
        if (!flags[i].value && equals)
            return stki_fail(err, STK_E_CONFIG, "%s takes no value", flags[i].name);
        if (flags[i].value && !equals && *at + 1 >= argc)
            return stki_fail(err, STK_E_CONFIG, "%s needs a value: %s=%s", flags[i].name, flags[i].name,
                             flags[i].value);
        return apply(args, (enum flag)i, equals ? equals + 1 : flags[i].value ? argv[++*at] : "", err);
    }
    return fail_unknown(word, length, err);
}

static stk_status add_to_chain(struct pl_args *args, const char *word, stk_error *err)
{
    char *chain = args->chain ? stki_format("%s %s", args->chain, word) : stki_strdup(word);

    if (!chain)
        return stki_fail_memory(err, (int64_t)strlen(word), "the chain");
    stki_free(args->chain);
    args->chain = chain;
    return set_action(args, PL_CHAIN, word, err);
}

/* Options that say nothing about what is done. */
static stk_status check(const struct pl_args *args, stk_error *err)
{
    if ((args->fits || args->dtype) && args->action != PL_MEMORY)
        return stki_fail(err, STK_E_CONFIG, "%s goes with --memory", args->fits ? "--fits" : "--dtype");
    if (args->range > 0 && args->action != PL_PRECISION)
        return stki_fail(err, STK_E_CONFIG, "--range goes with --precision");
    return STK_OK;
}

stk_status pl_args_read(int argc, char **argv, struct pl_args *out, stk_error *err)
{
    stk_status status = STK_OK;

    *out = (struct pl_args){.action = PL_READ};
    for (int i = 1; !status && i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0)
            status = read_flag(out, argc, argv, &i, err);
        else if (strcmp(argv[i], "-h") == 0)
            status = apply(out, HELP, "", err);
        else
            status = add_to_chain(out, argv[i], err);
    }
    status = status ? status : check(out, err);
    if (status)
        pl_args_fini(out);
    return status;
}

void pl_args_fini(struct pl_args *args)
{
    stki_free(args->chain);
    args->chain = NULL;
}
