/* stki-threads */
/* Tests every option of jobs against a job that was stopped. Each option of `prep`, `output` and `stats` is changed to
 * other valid values. If a complete run with the new value gives different files, continuing in the work folder must be
 * rejected with the option's name. If the option's row says that it changes nothing, the run must continue and give the
 * same files. */
#include "faults.h"
#include "job.h"
#include "jpeg_make.h"
#include "loader_test.h"
#include "option_print.h"
#include "option_values.h"
#include "prep_test.h"

enum { ROWS = 60, BYTES = 300 };

typedef struct fixture {
    const char *places; /* where options go in the config, in the form for stkt_place_in */
    const char *config; /* %D: folder of the inputs; %O: folder of the output */
} fixture;

#define PREP "prep=prep "
#define DATA "dataset: {fields: {x: {path: '%D/in.npy'}, label: {path: '%D/in.label.npy'}}}\n"
#define IMAGES "dataset: {fields: {image: {path: '%D/images.npy', source: {layout: nhwc}}}}\n"
#define RUN "num_workers: 0, piece_bytes: 4096"

static const fixture fixtures[] = {
    {PREP "output=output", DATA "prep: {" RUN ", order: random}\noutput: {path: '%O/out.npy'}\n"},
    {PREP, "dataset: {fields: {x: {path: '%D/b?.npy'}}}\n"
           "prep: {" RUN ", order: block, block_window: 2}\noutput: {path: '%O/out.npy'}\n"},
    {PREP, "dataset: {fields: {x: {path: '%D/b?.npy'}}}\n"
           "prep: {" RUN ", order: block, block_rows: in_order}\noutput: {path: '%O/out.npy'}\n"},
    {"output=output", DATA "prep: {" RUN "}\noutput: {path: '%O/out', format: raw}\n"},
    {"output=output", DATA "prep: {" RUN "}\noutput: {path: '%O/out.h5', level: 1}\n"},
    {"output=output", DATA "prep: {" RUN "}\noutput: {path: '%O/out.npz'}\n"},
    {"loader.split=prep.split",
     DATA "prep: {" RUN ", split: {part: train, fraction: 0.4}}\noutput: {path: '%O/out.npy'}\n"},
    {"loader.split=prep.split",
     DATA "prep: {" RUN ", split: {part: train, fraction: 0.4, method: hash}}\noutput: {path: '%O/out.npy'}\n"},
    {"loader.split=prep.split",
     "dataset: {fields: {x: {path: '%D/in.npy', source: {window: {length: 3, stride: 1}}}}}\n"
     "prep: {" RUN ", split: {part: train, fraction: 0.4, method: contiguous}}\noutput: {path: '%O/out.npy'}\n"},
    {"prep.filter.label=prep.filter.label",
     "dataset: {fields: {x: {path: '%D/in.npy'}, label: {path: '%D/in.label.npy'}, other: {path: '%D/other.npy'}}}\n"
     "prep: {" RUN ", filter: {label: {keep: [1, 2, 5]}}}\noutput: {path: '%O/out.npy'}\n"},
    {"prep.filter.label=prep.filter.label",
     DATA "prep: {" RUN ", filter: {label: {drop: [1, 2, 5]}}}\noutput: {path: '%O/out.npy'}\n"},
    {"prep.filter.size=prep.filter.size",
     "dataset: {fields: {image: {path: '%D/pictures', ragged: true}, other: {path: '%D/others', ragged: true, "
     "source: {name: image}}}}\n"
     "prep: {" RUN ", filter: {size: {min_width: 60}}}\noutput: {path: '%O/out.beton'}\n"},
    {"prep.filter.size=prep.filter.size",
     "dataset: {fields: {image: {path: '%D/lines.txt'}}}\n"
     "prep: {" RUN ", filter: {size: {min_length: 2}}}\noutput: {path: '%O/out.bin', format: tokens, fields: {image: "
     "{encode: tokens}}}\n"},
    {PREP, "dataset: {fields: {image: {path: '%D/damaged', transforms: [{resize: [8, 8]}]}}}\n"
           "prep: {" RUN ", on_error: skip, max_error_fraction: 0.5}\noutput: {path: '%O/out.npy'}\n"},
    {"output=output output.fields.NAME=output.fields.image",
     IMAGES "prep: {" RUN "}\noutput: {path: '%O/out.beton', fields: {image: {encode: jpeg, proportion: 0.5}}}\n"},
    {"output.fields.NAME=output.fields.image",
     IMAGES "prep: {" RUN "}\noutput: {path: '%O/out.beton', fields: {image: {encode: jpeg}}}\n"},
    {"output.fields.NAME=output.fields.image",
     IMAGES "prep: {" RUN "}\noutput: {path: '%O/out.tar', fields: {image: {encode: jpeg}}}\n"},
    {"output.fields.NAME=output.fields.image",
     IMAGES "prep: {" RUN "}\noutput: {path: '%O/out.tar', fields: {image: {encode: png}}}\n"},
    {"output=output", IMAGES "prep: {" RUN "}\noutput: {path: '%O/out.beton'}\n"},
    {"output.fields.NAME=output.fields.image",
     "dataset: {fields: {image: {path: '%D/pictures', source: {decode: none}}}}\n"
     "prep: {" RUN "}\noutput: {path: '%O/out.tar', fields: {image: {encode: keep}}}\n"},
    {"output.fields.NAME=output.fields.image output.fields.NAME.encode=output.fields.image.encode",
     "dataset: {fields: {image: {path: '%D/pictures', source: {decode: none}}}}\n"
     "prep: {" RUN "}\noutput: {path: '%O/out.tar', fields: {image: {encode: {transcode: jpeg}}}}\n"},
    {"output.fields.NAME=output.fields.x",
     "dataset: {fields: {x: {path: '%D/words.npy', source: {dtype: bfloat16}}}}\n"
     "prep: {" RUN "}\noutput: {path: '%O/out.npy', fields: {x: {alias: true}}}\n"},
    {"output.fields.NAME=output.fields.x",
     "dataset: {fields: {x: {path: '%D/in.npy'}}}\nprep: {" RUN "}\noutput: {path: '%O/out.tar', fields: {x: {}}}\n"},
    {"output=output output.fields.NAME=output.fields.text",
     "dataset: {fields: {text: {path: '%D/lines.txt'}}}\n"
     "prep: {" RUN "}\noutput: {path: '%O/out.bin', format: tokens, fields: {text: {encode: tokens, end: 256}}}\n"},
    {"output.fields.NAME=output.fields.text",
     "dataset: {fields: {text: {path: '%D/lines.txt'}}}\n"
     "prep: {" RUN "}\noutput: {path: '%O/out.tar', fields: {text: {encode: tokens, split: gpt2, vocabulary: "
     "'%D/letters.tiktoken'}}}\n"},
    {"output.fields.NAME=output.fields.text",
     "dataset: {fields: {text: {path: '%D/lines.txt'}}}\n"
     "prep: {" RUN "}\noutput: {path: '%O/out.tar', fields: {text: {encode: tokens, pattern: '.', vocabulary: "
     "'%D/letters.tiktoken'}}}\n"},
    {"output.fields.NAME=output.fields.text",
     "dataset: {fields: {text: {path: '%D/special.txt'}}}\n"
     "prep: {" RUN
     "}\noutput: {path: '%O/out.tar', fields: {text: {encode: tokens, special_tokens: tokens, vocabulary: "
     "'%D/tokenizer.json'}}}\n"},
    {"stats=stats stats.fields.NAME=stats.fields.x",
     DATA "prep: {" RUN "}\noutput: {path: '%O/out.npy'}\nstats: {fields: {x: {calibrate: percentile}}}\n"},
    {"stats.fields.NAME=stats.fields.image",
     IMAGES "prep: {" RUN "}\noutput: {path: '%O/out.npy'}\nstats: {fields: {image: {calibrate: minmax}}}\n"},
};
enum { FIXTURES = sizeof fixtures / sizeof fixtures[0] };

/* Options whose values give the same files, and why they are compared anyway. */
static const struct {
    const char *option, *because;
} explained[] = {
    {"prep.piece_bytes", "only where a job may go on from, but the work folder is cut by it"},
    {"prep.inputs", "only what the manifest says of the inputs"},
    {"prep.on_error", "with fail, the job whose samples cannot be read makes no files"},
    {"output.fields.NAME.alias", "without it, fields that need it are refused"},
};

static bool is_explained(const char *option)
{
    for (size_t i = 0; i < sizeof explained / sizeof explained[0]; i++)
        if (strcmp(option, explained[i].option) == 0)
            return true;
    return false;
}

/* ---- running ---- */

static char inputs[300];

/* A new, empty folder for the output. */
static const char *fresh(const char *name)
{
    const char *path = stkt_path(name);

    (void)nftw(path, stkt_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(mkdir(path, 0755), 0);
    return path;
}

static void write_config(char text[4096], const char *config, const char *output)
{
    char *to = text;

    for (const char *at = config; *at; at++)
        if (at[0] == '%' && (at[1] == 'D' || at[1] == 'O'))
            to += sprintf(to, "%s", *++at == 'D' ? inputs : output);
        else
            *to++ = *at;
    *to = '\0';
}

typedef enum action { LOOK, MAKE } action;

/* Runs task `task` of two, or the whole job if it is -1. */
static stk_status run_job(const fixture *f, const char *output, const char *set, int task, action what, stk_error *err)
{
    const stk_prep_opts opts = {.struct_size = sizeof opts, .task = task < 0 ? 0 : task, .tasks = task < 0 ? 0 : 2};
    stk_prep_plan plan = {.struct_size = sizeof plan};
    char text[4096];
    stk_prep *job = NULL;
    stk_status status;

    write_config(text, f->config, output);
    status = stk_prep_open_text(text, NULL, &set, set ? 1 : 0, &opts, &job, err);
    if (status == STK_OK)
        status = what == LOOK ? stk_prep_get_plan(job, &plan, err) : stk_prep_run(job, err);
    stk_prep_destroy(job);
    return status;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Hash of the names and bytes of all files except the manifest, which contains the job. */
static uint64_t hash_files(const char *folder)
{
    struct dirent **names;
    int count = scandir(folder, &names, NULL, by_name);
    uint64_t hash = 1;

    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        int64_t bytes;
        char *text;

        if (name[0] != '.' && !strstr(name, "manifest.json")) {
            text = stkt_read_all(stkt_text("%s/%s", folder, name), &bytes);
            assert_non_null(text);
            hash = stkt_hash(stkt_hash(hash, name, (int64_t)strlen(name)), text, bytes);
            free(text);
        }
        free(names[i]);
    }
    free(names);
    return hash;
}

/* ---- one option ---- */

static uint64_t bases[FIXTURES];

typedef struct tally {
    int opened, mattered, named, wrong;
} tally;

static void complain(tally *counts, const char *set, const char *what, const stk_error *err)
{
    print_message("%s: %s%s%s\n", set, what, err ? ": " : "", err ? err->message : "");
    counts->wrong++;
}

static const char *stopped_folder(size_t number)
{
    return stkt_path(stkt_text("stopped%zu", number));
}

/* After the first of two tasks, the second one runs with the changed option. It must give the same files, or fail if a
 * whole job with this option also fails. */
static bool goes_on(size_t number, const char *set, stk_error *err)
{
    const fixture *f = &fixtures[number];
    const char *folder = fresh("going");

    assert_int_equal(run_job(f, folder, NULL, 0, MAKE, err), STK_OK);
    if (run_job(f, folder, set, 1, MAKE, err) == STK_OK)
        return hash_files(folder) == bases[number];
    return run_job(f, fresh("whole"), set, -1, MAKE, err) != STK_OK;
}

/* Whole jobs are slow, so they are run only if a rejection does not name the option, and once to show that the files
 * would differ. */
static void check_value(size_t number, const char *set, const stki_option *row, tally *counts)
{
    const fixture *f = &fixtures[number];
    char key[256];
    stk_error err = {0}, why = {0};
    const stk_status status = run_job(f, stopped_folder(number), set, 1, LOOK, &why);
    const bool refused = status == STK_E_MISMATCH;
    bool named, differs;

    if (status != STK_OK && !refused) /* not a valid value for this job */
        return;
    counts->opened++;
    snprintf(key, sizeof key, "(%.*s: ", (int)strcspn(set, "="), set);
    named = refused && strstr(why.message, key);
    counts->named += named;
    if (refused && row->effect == STKI_ON_NOTHING)
        complain(counts, set, "changes nothing, says its row, but is refused", &why);
    else if (refused && !strstr(why.message, "(prep.") && !strstr(why.message, "(output.") &&
             !strstr(why.message, "(stats."))
        complain(counts, set, "no option is named", &why);
    else if (row->effect == STKI_ON_NOTHING && !goes_on(number, set, &err))
        complain(counts, set, "the stopped job does not go on to the same files", &err);
    if (row->effect == STKI_ON_NOTHING || (refused && (!named || counts->mattered > 0)))
        return;
    differs =
        run_job(f, fresh("whole"), set, -1, MAKE, &err) == STK_OK && hash_files(stkt_path("whole")) != bases[number];
    counts->mattered += differs && named;
    if (differs && !refused)
        complain(counts, set, "other files are made, and the work folder is accepted", NULL);
}

/* Options that name files which do not exist here: only their fingerprint lines are compared. */
static void check_path(const stki_option_table *table, const stki_option *row, tally *counts)
{
    stki_document *document;
    stki_print print = {.written = true};
    const char *text = stkt_text("{%s: some.file}", row->name);
    stk_error err = {0};

    assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err));
    stki_print_map(&print, table, stki_document_root(document), "");
    if (print.count != (row->effect != STKI_ON_NOTHING))
        complain(counts, row->name, "another path must be another job exactly if it may change what is made", NULL);
    stki_print_fini(&print);
    stki_document_destroy(document);
}

static void check_row(const stki_option_table *table, const stki_option *row, int *wrong)
{
    char values[STKT_VALUES][STKT_VALUE], name[256], place[256];
    int count = stkt_values_of(row, values);
    tally counts = {0};

    snprintf(name, sizeof name, "%.*s.%s", (int)strcspn(table->section, " "), table->section, row->name);
    /* a single word, so there is no other value */
    if (row->alias_of || row->inner || (row->type == STKI_OPT_ENUM && !row->words[1]))
        return;
    if (row->flags & STKI_PATH) {
        check_path(table, row, &counts);
        *wrong += counts.wrong;
        return;
    }
    if (count == 0)
        complain(&counts, name, "its row has no examples", NULL);
    for (size_t f = 0; f < FIXTURES; f++)
        for (int v = 0; stkt_place_in(fixtures[f].places, table->section, place, sizeof place) && v < count; v++) {
            char set[512];

            snprintf(set, sizeof set, "%s.%s=%s", place, row->name, values[v]);
            check_value(f, set, row, &counts);
        }
    if (counts.opened == 0)
        complain(&counts, name, "none of its values makes a job", NULL);
    else if (row->effect != STKI_ON_NOTHING && counts.named == 0)
        complain(&counts, name, "no refusal names it", NULL);
    else if (row->effect != STKI_ON_NOTHING && (counts.mattered == 0) != is_explained(name))
        complain(&counts, name,
                 counts.mattered ? "is explained, and changes files" : "none of its values changes a file", NULL);
    *wrong += counts.wrong;
}

static void check_table(const stki_option_table *table, void *context)
{
    for (int i = 0; i < table->count; i++)
        check_row(table, &table->rows[i], context);
}

static void every_option(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t f = 0; f < FIXTURES; f++) {
        stk_error err = {0};
        const char *folder = fresh("whole");

        assert_ok(run_job(&fixtures[f], folder, NULL, -1, MAKE, &err));
        bases[f] = hash_files(folder);
        assert_ok(run_job(&fixtures[f], fresh(stkt_text("stopped%zu", f)), NULL, 0, MAKE, &err));
        assert_int_equal(stkt_count_names(stopped_folder(f), ".prep"), 1);
    }
    for (int i = 0; stki_job_sections[i]; i++)
        stki_options_each(stki_job_sections[i], check_table, &wrong);
    assert_int_equal(wrong, 0);
}

/* ---- folders of older versions ---- */

/* Version 1 stored the job's options in the order of the text. The error names a flag that helps, and that flag
 * works. */
static void an_older_version(void **state)
{
    static const char old[] = "{\"version\": 1, \"stoker\": \"0.1.0\", \"job\": {\"prep\": {\"order\": \"random\"}}, "
                              "\"mode\": \"whole\"}";
    const stk_prep_opts restart = {.struct_size = sizeof restart, .restart = true};
    const char *folder = fresh("older");
    char text[4096];
    stk_error err = {0};

    (void)state;
    write_config(text, fixtures[0].config, folder);
    assert_int_equal(mkdir(stkt_text("%s/out.npy.prep", folder), 0755), 0);
    stkt_write_file(stkt_text("%s/out.npy.prep/lock", folder), "", 0);
    stkt_write_file(stkt_text("%s/out.npy.prep/job.json", folder), old, sizeof old - 1);
    for (int what = LOOK; what <= MAKE; what++) {
        assert_status(run_job(&fixtures[0], folder, NULL, -1, (action)what, &err), STK_E_MISMATCH);
        assert_says("the option restart");
        assert_says("out.npy.prep");
        assert_int_equal(stkt_count_names(folder, ".npy"), 1); /* the work folder */
    }
    assert_ok(stkt_prep_run(&restart, NULL, &err, text));
    assert_true(hash_files(folder) == bases[0]);
}

/* ---- files ---- */

static void make_array(const char *name, const char *descr, const char *shape, int count, int seed)
{
    uint8_t *values = malloc((size_t)count);

    assert_non_null(values);
    for (int i = 0; i < count; i++)
        values[i] = (uint8_t)((i * 7919 + i / 13 * seed) % 251);
    stkt_write_npy(stkt_text("%s/%s", inputs, name), descr, "False", shape, 64, values, (size_t)count);
    free(values);
}

/* Images of different sizes, increasing or decreasing; if `damaged`, every third is truncated. */
static void make_pictures(const char *name, bool down, bool damaged)
{
    assert_int_equal(mkdir(stkt_text("%s/%s", inputs, name), 0755), 0);
    for (int i = 0; i < 12; i++) {
        const int size = down ? 11 - i : i;
        const stkt_jpeg jpeg = {.width = 9 + size * 15, .height = 13 + size * 13, .h = 2, .v = 2, .quality = 60 + i};
        stkt_bytes file = stkt_jpeg_make(&jpeg);

        stkt_write_file(stkt_text("%s/%s/%02d.jpg", inputs, name, i), file.data,
                        file.size - (damaged && i % 3 == 2 ? file.size / 2 : 0));
        free(file.data);
    }
}

/* A vocabulary of all bytes and of two pairs, which some patterns split. */
static void make_vocabulary(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *file = fopen(stkt_text("%s/letters.tiktoken", inputs), "w");

    assert_non_null(file);
    for (int i = 0; i < 256; i++)
        fprintf(file, "%c%c== %d\n", digits[i >> 2], digits[(i & 3) << 4], i);
    fputs("YTE= 256\nYi0= 257\n", file); /* "a1" and "b-" */
    fclose(file);
}

static void make_files(void)
{
    uint8_t labels[ROWS];
    FILE *lines;

    snprintf(inputs, sizeof inputs, "%s", stkt_path("inputs"));
    assert_int_equal(mkdir(inputs, 0755), 0);
    stkt_prep_inputs(stkt_text("%s/in", inputs), ROWS, BYTES);
    make_array("images.npy", "|u1", "(40, 16, 16, 3)", 40 * 16 * 16 * 3, 5);
    make_array("words.npy", "<u2", "(40, 150)", 40 * 150 * 2, 3);
    for (int i = 0; i < ROWS; i++)
        labels[i] = (uint8_t)((3 * i + 1) % 7);
    stkt_write_npy(stkt_text("%s/other.npy", inputs), "|u1", "False", "(60,)", 64, labels, sizeof labels);
    for (int i = 0; i < 4; i++)
        make_array(stkt_text("b%d.npy", i), "|u1", "(20, 30)", 600, 3 + i);
    make_pictures("pictures", false, false);
    make_pictures("others", true, false);
    make_pictures("damaged", false, true);
    lines = fopen(stkt_text("%s/lines.txt", inputs), "w");
    assert_non_null(lines);
    for (int i = 0; i < 400; i++)
        fprintf(lines, i % 5 == 4 ? "%.*s\n" : "%.*s ab-- a%d b-%100d\n", 1 + i % 9, "abcdefghi", i, i);
    fclose(lines);
    stkt_write_file(stkt_text("%s/special.txt", inputs), "a<|endoftext|>\nb\n", 17);
    assert_int_equal(symlink(STKT_TESTS_DIR "/prep/goldens/tokens_gpt2.json", stkt_text("%s/tokenizer.json", inputs)),
                     0);
    make_vocabulary();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_option), cmocka_unit_test(an_older_version)};

    stkt_skip_syncs(true);
    make_files();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
