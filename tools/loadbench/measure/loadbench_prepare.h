/* loadbench_prepare.h: preparation of a repeat. */
#ifndef LOADBENCH_PREPARE_H
#define LOADBENCH_PREPARE_H

#include "loadbench_run.h"

/* Gets all facts from a loader opened without workers, which reads no sample; if the config does not allow that, from a
 * loader opened with the config. `out` must be zeroed; call lb_facts_fini even after a failure. */
stk_status lb_prepare_facts(const struct lb_config *config, struct lb_facts *out, stk_error *err);
/* Sets facts->data, the list of files, in the same way. STK_E_CONFIG: the config does not match the data. */
stk_status lb_prepare_files(const struct lb_config *config, struct lb_facts *facts, stk_error *err);
/* Sets up the page cache for bench.cache before the loader is opened, because mapped pages cannot be evicted. Then
 * measures residency. */
stk_status lb_prepare_cache(const struct lb_config *config, const struct lb_facts *facts, struct lb_residency *before,
                            stk_error *err);
/* Opens the loader. The first one sets the rest of `facts`, which later ones must match (STK_E_MISMATCH). */
stk_status lb_prepare_loader(const struct lb_config *config, struct lb_facts *facts, stk_loader **out, stk_error *err);

#endif
