/* Runs a fuzz target on each file of the given folders (or the given files), sorted by name. Each name is printed
 * before its turn, so that the last one is the cause if the target aborts. */
#include "fuzz.h"
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static int failures, inputs;

/* Copies the file into a block of its exact size, so that AddressSanitizer detects every access outside. */
static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat facts;
    uint8_t *data;
    size_t size;

    if (!file || fstat(fileno(file), &facts) != 0) {
        perror(path);
        failures++;
        return;
    }
    size = (size_t)facts.st_size;
    data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        failures++;
    } else {
        printf("%s\n", path);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
        inputs++;
    }
    free(data);
    fclose(file);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void run_folder(const char *folder)
{
    struct dirent **entries;
    int i, count = scandir(folder, &entries, is_visible, alphasort);

    if (count < 0) {
        perror(folder);
        failures++;
        return;
    }
    for (i = 0; i < count; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        run_file(path);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        struct stat facts;

        if (stat(argv[i], &facts) == 0 && !S_ISDIR(facts.st_mode))
            run_file(argv[i]);
        else
            run_folder(argv[i]);
    }
    printf("%d inputs, %d failures\n", inputs, failures);
    return failures || inputs == 0; /* fails if there were no inputs */
}
