/* play_args.c: reads the command line. Words that are not options form the chain, so that a short one needs no quotes:
 * stoker play broadcast 3x1 4. */
#include "play_args.h"
#include "allocate.h"
#include "args.h"
#include "error.h"
#include "play_parse.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static stk_status read_real(const char *name, const char *value, double *out, stk_error *err)
{
    char *end;

    *out = strtod(value, &end);
    if (end == value || *end || !isfinite(*out) || *out <= 0 || *out > 1e30)
        return stki_fail(err, STK_E_CONFIG, "%s: found \"%s\", expected a number above 0 and at most 1e30", name,
                         value);
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

static stk_status take_fits(void *owner, const char *value, stk_error *err)
{
    return read_size("--fits", value, &((struct pl_args *)owner)->fits, err);
}

static stk_status take_dtype(void *owner, const char *value, stk_error *err)
{
    struct pl_args *args = owner;

    args->dtype = stk_dtype_find(value);
    return args->dtype ? STK_OK : pl_fail_dtype("--dtype", value, err);
}

static stk_status take_precision(void *owner, const char *value, stk_error *err)
{
    return read_real("--precision", value, &((struct pl_args *)owner)->amplitude, err);
}

static stk_status take_range(void *owner, const char *value, stk_error *err)
{
    return read_real("--range", value, &((struct pl_args *)owner)->range, err);
}

enum { OPTIONS = 7 };

static void options_of(struct pl_args *a, struct arg_option *options)
{
    const struct arg_option table[OPTIONS] = {
        {"--html", "FILE", "write an HTML page that draws the steps or the tables", .text = &a->html},
        {"--memory", "N|SHAPE",
         "print the memory of a model with N parameters (7B, 125M), or of a batch (32x3x224x224)", .text = &a->what,
         .action = &a->action, .as = PL_MEMORY},
        {"--fits", "SIZE", "with --memory: show what fits into this size (24GiB)", .take = take_fits},
        {"--dtype", "DTYPE", "with --memory SHAPE: dtype of the values in the table of sparse formats (f32)",
         .take = take_dtype},
        {"--precision", "A", "print the error of a sine of amplitude A in each small dtype and in int8",
         .take = take_precision, .action = &a->action, .as = PL_PRECISION},
        {"--range", "R", "with --precision: range -R to R of the int8 with a fixed range (1)", .take = take_range},
        {"--help", NULL, "print this text", .action = &a->action, .as = PL_HELP},
    };

    memcpy(options, table, sizeof table);
}

void pl_args_help(FILE *to)
{
    struct pl_args none = {.action = PL_READ};
    struct arg_option options[OPTIONS];

    fputs("Usage: stoker play [--html=FILE] [\"OPERATION; OPERATION; ...\"]\n"
          "       stoker play --memory=N|SHAPE [--fits=SIZE] [--dtype=DTYPE] [--html=FILE]\n"
          "       stoker play --precision=A [--range=R] [--html=FILE]\n"
          "\n"
          "Shows what operations on tensors do to memory. Without arguments, operations are read from standard\n"
          "input, on a terminal with a prompt. The operation `help` lists all operations.\n"
          "\n"
          "  stoker play \"arange 0 12; reshape 3 4; t; slice :, ::2; contiguous\"\n"
          "  stoker play broadcast 8x1x6x1 7x1x5\n"
          "\n",
          to);
    options_of(&none, options);
    arg_help(options, OPTIONS, 20, to);
    fputs("\nExit status: 0 success, 1 an operation failed, 2 the command is wrong.\n", to);
}

/* Joins the words into one chain. */
static stk_status join(struct pl_args *args, const char *const *words, int count, stk_error *err)
{
    for (int i = 0; i < count; i++) {
        char *chain = args->chain ? stki_format("%s %s", args->chain, words[i]) : stki_strdup(words[i]);
        if (!chain)
            return stki_fail_memory(err, (int64_t)strlen(words[i]), "the chain");
        stki_free(args->chain);
        args->chain = chain;
    }
    if (args->chain && args->action != PL_READ)
        return stki_fail(err, STK_E_CONFIG, "%s and another action are mutually exclusive", words[0]);
    args->action = args->chain ? PL_CHAIN : args->action;
    return STK_OK;
}

/* Rejects options that have no effect with the chosen action. */
static stk_status check(const struct pl_args *args, stk_error *err)
{
    if ((args->fits || args->dtype) && args->action != PL_MEMORY)
        return stki_fail(err, STK_E_CONFIG, "%s needs --memory", args->fits ? "--fits" : "--dtype");
    if (args->range > 0 && args->action != PL_PRECISION)
        return stki_fail(err, STK_E_CONFIG, "--range needs --precision");
    return STK_OK;
}

stk_status pl_args_read(int argc, char **argv, struct pl_args *out, stk_error *err)
{
    struct arg_option options[OPTIONS];
    const char **words = stki_zalloc_array(argc, sizeof *words);
    stk_status status;
    int count = 0;

    *out = (struct pl_args){.action = PL_READ};
    if (!words)
        return stki_fail_memory(err, argc, "the command line");
    options_of(out, options);
    status = arg_read(argc, argv, options, OPTIONS, out, words, argc, &count, err);
    if (status == STK_OK)
        status = join(out, words, count, err);
    if (status == STK_OK)
        status = check(out, err);
    stki_free(words);
    if (status != STK_OK)
        pl_args_fini(out);
    return status;
}

void pl_args_fini(struct pl_args *args)
{
    stki_free(args->chain);
    args->chain = NULL;
}
