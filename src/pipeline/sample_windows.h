/* sample_windows.h: windows over the samples of an open data set (`source.window`). If a field's files are arrays, its
 * windows are in place: its reader returns each window as one sample. Unless the windows of all fields are in place,
 * the data set is numbered by windows (windows.h), and a row is made from the samples of its window. */
#ifndef STKI_SAMPLE_WINDOWS_H
#define STKI_SAMPLE_WINDOWS_H

#include "core.h"
#include "selection.h"

/* Returns the window, which all fields that have one must share; NULL: no field has one. STK_E_CONFIG: the windows of
 * two fields differ. */
stk_status stki_window_of(const stki_loader_config *config, const stki_window **out, stk_error *err);
/* Whether the config rules out windows in place, regardless of the files. */
bool stki_windows_need_samples(const stki_loader_config *config);
/* Whether an epoch has one window per file (sample_per_file at random offsets). Subsets then select files. */
bool stki_window_one_each(const stki_loader_config *config);
/* Adds a note if windows are in place and some files are shorter than a window. */
void stki_window_short_files(stki_core *core);
/* Whether the reader's samples are the field's windows. */
bool stki_windows_in_place(const stki_field_config *field, const stki_reader *reader);
/* Finds the groups of samples, numbers their windows and sets which samples of a window each field returns. All fields
 * of the data set must have the same number of samples. */
stk_status stki_windows_over_samples(stki_core *core, stk_error *err);
/* For a data set without samples: fails with STK_E_EMPTY, naming the window and the longest group. STK_OK: no field has
 * a window. */
stk_status stki_windows_fail(const stki_core *core, stk_error *err);
/* Finds the runs of sample numbers that windows do not cross: *out receives *count + 1 boundaries (stki_free). Without
 * windows each data set is one run. */
stk_status stki_window_groups(const stki_core *core, int64_t **out, int64_t *count, stk_error *err);
/* Describes these runs for a contiguous split. The caller frees out->first with stki_free. */
stk_status stki_window_split(const stki_core *core, stki_split_groups *out, stk_error *err);
/* Adds a note if a random split puts windows that share samples into both parts. */
void stki_window_leaks(stki_core *core);

#endif
