/* stoker.c: the program; runs the subcommand. */
#include "document.h"
#include "error.h"
#include "stoker_tool.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} subcommands[] = {
    {"inspect", stoker_inspect, "shows the contents of a file: members, dtypes, shapes, layouts, checksums"},
    {"play", stoker_play, "runs tensor operations and draws the memory of each step"},
    {"prep", stoker_prep, "runs a preparation job: reads, transforms, encodes and writes a data set"},
    {"verify", stoker_verify, "reads and checks every record of a file; writes checksums"},
};

enum { SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static char **main_argv;

void stoker_begin_apart(stki_apart_report *report, void *context)
{
    stki_apart_begin(main_argv, report, context);
}

int stoker_complain(const char *name, const stk_error *err, int code)
{
    fprintf(stderr, "stoker%s%s: %s\n", *name ? " " : "", name, err->message);
    return code;
}

int stoker_finish_output(const char *name, int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "stoker %s: writing the result: %s\n", name, strerror(errno));
    return STOKER_FAILED;
}

static int help(void)
{
    fputs("Usage: stoker COMMAND [ARGUMENTS]\n"
          "       stoker COMMAND --help\n"
          "       stoker --help|--version\n"
          "\n",
          stdout);
    for (int i = 0; i < SUBCOMMANDS; i++)
        printf("  %-10s %s\n", subcommands[i].name, subcommands[i].help);
    fputs("\nExit status: 0 success, 1 the data or an operation failed, 2 the command is wrong.\n", stdout);
    return stoker_finish_output("--help", STOKER_FINE);
}

static int version(void)
{
    printf("stoker %s\n", stk_version());
    return stoker_finish_output("--version", STOKER_FINE);
}

static int unknown(const char *word)
{
    const char *names[SUBCOMMANDS];
    stk_error err;

    for (int i = 0; i < SUBCOMMANDS; i++)
        names[i] = subcommands[i].name;
    const char *near = stki_nearest_word(word, names, SUBCOMMANDS);
    stki_fail(&err, STK_E_CONFIG, "unknown command %s%s%s%s", word, near ? "; did you mean " : "; see --help",
              near ? near : "", near ? "?" : "");
    return stoker_complain("", &err, STOKER_USE);
}

int main(int argc, char **argv)
{
    stk_error err;

    main_argv = argv;
    if (argc < 2) {
        stki_fail(&err, STK_E_CONFIG, "missing command; see --help");
        return stoker_complain("", &err, STOKER_USE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help();
    if (strcmp(argv[1], "--version") == 0)
        return version();
    for (int i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
}
