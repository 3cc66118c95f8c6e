/* sample_windows.h: windows over the samples of an open data set (`source.window`). A field whose files are arrays has
 * its windows in place: its reader gives each as one sample. Where that is not so for all fields of a loader, the data
 * set's numbers are those of windows (windows.h), and a row is made of its window's samples. */
#ifndef STKI_SAMPLE_WINDOWS_H
#define STKI_SAMPLE_WINDOWS_H

#include "core.h"
#include "selection.h"

/* The window that all windowed fields of the loader have; NULL: there are none. STK_E_CONFIG where they differ. */
stk_status stki_window_of(const stki_loader_config *config, const stki_window **out, stk_error *err);
/* What the config says already rules windows in place out. */
bool stki_windows_need_samples(const stki_loader_config *config);
/* An epoch has one window of each file (sample_per_file at random offsets), so that its subsets are those of files. */
bool stki_window_one_each(const stki_loader_config *config);
/* Says which files hold no window in place. */
void stki_window_short_files(stki_core *core);
/* Whether the reader's samples are the field's windows. */
bool stki_windows_in_place(const stki_field_config *field, const stki_reader *reader);
/* Finds the groups, numbers their windows and says what each field gives. Of a data set whose fields have as many
 * samples each. */
stk_status stki_windows_over_samples(stki_core *core, stk_error *err);
/* Runs of the data set's numbers that windows do not leave: *out holds *count + 1 of them (stki_free). Without windows
 * each data set is one. */
stk_status stki_window_groups(const stki_core *core, int64_t **out, int64_t *count, stk_error *err);
/* The same as what a split by place divides; stki_free(out->first). */
stk_status stki_window_split(const stki_core *core, stki_split_groups *out, stk_error *err);
/* Says so where a split at random puts windows into both parts that have samples in common. */
void stki_window_leaks(stki_core *core);

#endif
