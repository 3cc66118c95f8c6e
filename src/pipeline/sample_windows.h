/* sample_windows.h: windows over the samples of an open data set (`source.window`). A field whose files are arrays has
 * its windows in place: its reader gives each as one sample. Where that is not so for all fields of a loader, the data
 * set's numbers are those of windows (windows.h), and a row is made of its window's samples. */
#ifndef STKI_SAMPLE_WINDOWS_H
#define STKI_SAMPLE_WINDOWS_H

#include "core.h"
#include "selection.h"

/* The window that all windowed fields of the loader have; NULL: there are none. STK_E_CONFIG where they differ. */
stk_status stki_window_of(const stki_loader_config *config, const stki_window **out, stk_error *err);
/* Does the config alone rule out windows in place? */
bool stki_windows_need_samples(const stki_loader_config *config);
/* Does an epoch have one window of each file (sample_per_file at random offsets)? Subsets are then subsets of files. */
bool stki_window_one_each(const stki_loader_config *config);
/* Adds a note if some files are shorter than a window; for windows in place. */
void stki_window_short_files(stki_core *core);
/* Whether the reader's samples are the field's windows. */
bool stki_windows_in_place(const stki_field_config *field, const stki_reader *reader);
/* Finds the groups, numbers their windows and sets what each field gives of a window. All fields of the data set must
 * have the same number of samples. */
stk_status stki_windows_over_samples(stki_core *core, stk_error *err);
/* STK_E_EMPTY with the window and the longest group; STK_OK: no field has a window. Of a data set without samples. */
stk_status stki_windows_fail(const stki_core *core, stk_error *err);
/* Runs of the data set's numbers that windows do not leave: *out holds *count + 1 of them (stki_free). Without windows
 * each data set is one. */
stk_status stki_window_groups(const stki_core *core, int64_t **out, int64_t *count, stk_error *err);
/* The same for a split by place; stki_free(out->first). */
stk_status stki_window_split(const stki_core *core, stki_split_groups *out, stk_error *err);
/* Adds a note if a random split puts windows that share samples into both parts. */
void stki_window_leaks(stki_core *core);

#endif
