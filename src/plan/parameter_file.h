/* parameter_file.h: parameters of a transform that stand in a file, as preparation jobs write them: JSON (or YAML), one
 * map, or a map of them by field under "fields" (docs/reference/transforms.md). */
#ifndef STKI_PARAMETER_FILE_H
#define STKI_PARAMETER_FILE_H

#include "document.h"

/* `node` holds the path; a relative one starts as paths of data do: from the config file, from `base_dir` where the
 * config came from a text, from the working directory where it came from the command line. *out is the map for `field`
 * and lives as long as *document. */
stk_status stki_parameters_open(const stki_node *node, const char *base_dir, const char *field,
                                stki_document **document, const stki_node **out, stk_error *err);

/* ---- files of statistics, NAME.stats.json (docs/reference/statistics.md) ---- */

bool stki_parameters_are_stats(const stki_document *document);
/* The map of a field's mean and std: what the file has, or with `per` (NULL: not given) tensor or channel. */
stk_status stki_stats_moments(const stki_node *field, const stki_node *per, const stki_node **out, stk_error *err);
/* The map of a field's scale and zero point. `method`: the node of its name; a map: none was given, which is fine where
 * the file has one. */
stk_status stki_stats_calibration(const stki_node *field, const stki_node *method, const stki_node **out,
                                  stk_error *err);

#endif
