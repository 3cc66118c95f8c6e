/* open_lists.h: opens a loader for the Python package from a config, lists of numbers that may be too long for a
 * config, and the ranks of the caller's framework, and distinguishes kinds of notes. */
#ifndef STKI_OPEN_LISTS_H
#define STKI_OPEN_LISTS_H

#include <stdbool.h>
#include <stoker/loader.h>

/* The lists are copied. NULL: use the config's. Weights require loader.weights in the config, which may be an empty
 * list. */
typedef struct stki_open_lists {
    const int64_t *indices;
    int64_t index_count;
    const double *weights;
    int64_t weight_count;
    int rank_sets; /* how many of the first `sets`, such as loader.rank?=1, apply only with launcher: auto */
} stki_open_lists;

/* Like stk_loader_open_file, or like stk_loader_open_text if `path` is NULL. */
stk_status stki_loader_open_lists(const char *path, const char *text, const char *base_dir, const char *const *sets,
                                  int set_count, const stki_open_lists *lists, stk_loader **out, stk_error *err);
/* Whether the note requires no attention (stki_config_fact). */
bool stki_loader_note_is_fact(const stk_loader *loader, int index);

#endif
