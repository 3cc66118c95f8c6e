/* loadbench_prepare.h: prepares a repeat. */
#ifndef LOADBENCH_PREPARE_H
#define LOADBENCH_PREPARE_H

#include "loadbench_run.h"

/* Reads all facts from a loader that is opened without workers and therefore reads no samples. If the config does not
 * allow that, opens the loader as configured. `out` must be zeroed. Call lb_facts_fini even after a failure. */
stk_status lb_prepare_facts(const struct lb_config *config, struct lb_facts *out, stk_error *err);
/* Sets facts->data, the list of data files, using lb_prepare_facts. STK_E_CONFIG: the config does not match the
 * data. */
stk_status lb_prepare_files(const struct lb_config *config, struct lb_facts *facts, stk_error *err);
/* Loads or evicts the data according to bench.cache, then measures its residency. Must be called before the loader is
 * opened, because mapped pages cannot be evicted. */
stk_status lb_prepare_cache(const struct lb_config *config, const struct lb_facts *facts, struct lb_residency *before,
                            stk_error *err);
/* Opens the loader. The first call sets the rest of `facts`. Later calls return STK_E_MISMATCH if the data no longer
 * matches them. */
stk_status lb_prepare_loader(const struct lb_config *config, struct lb_facts *facts, stk_loader **out, stk_error *err);

#endif
