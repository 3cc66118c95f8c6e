/* parameter_file.h: reads transform parameters from a file, such as one that a preparation job wrote. It is a JSON or
 * YAML map, or has a map for each field under "fields" (docs/reference/transforms.md). */
#ifndef STKI_PARAMETER_FILE_H
#define STKI_PARAMETER_FILE_H

#include "document.h"

/* `node` holds the path. Relative paths are resolved like data paths: from the config file, from `base_dir` if the
 * config is a string, or from the working directory if given on the command line. *out is the map for `field`; it is
 * owned by *document. */
stk_status stki_parameters_open(const stki_node *node, const char *base_dir, const char *field,
                                stki_document **document, const stki_node **out, stk_error *err);

/* ---- files of statistics, NAME.stats.json (docs/reference/statistics.md) ---- */

bool stki_parameters_are_stats(const stki_document *document);
/* Returns the map that has a field's mean and std. `per`: "tensor" or "channel"; NULL: as stored in the file. */
stk_status stki_stats_moments(const stki_node *field, const stki_node *per, const stki_node **out, stk_error *err);
/* Returns the map that has a field's scale and zero point. `method`: the node with the method's name, or any map if no
 * method was given, which is allowed if the file has only one. */
stk_status stki_stats_calibration(const stki_node *field, const stki_node *method, const stki_node **out,
                                  stk_error *err);

#endif
