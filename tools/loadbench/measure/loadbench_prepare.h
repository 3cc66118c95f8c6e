/* loadbench_prepare.h: what comes before a repeat. */
#ifndef LOADBENCH_PREPARE_H
#define LOADBENCH_PREPARE_H

#include "loadbench_run.h"

/* Fills facts->data: which files there are, from a loader that is opened without workers: it reads no sample. Where the
 * config does not allow that, from one as the config has it. STK_E_CONFIG: the config and the data do not go together.
 */
stk_status lb_prepare_files(const struct lb_config *config, struct lb_facts *facts, stk_error *err);
/* As bench.cache says, before the loader is opened: what it has mapped would stay. Then what lies in memory. */
stk_status lb_prepare_cache(const struct lb_config *config, const struct lb_facts *facts, struct lb_residency *before,
                            stk_error *err);
/* The first one fills the rest of `facts`, later ones must agree with it (STK_E_MISMATCH). */
stk_status lb_prepare_loader(const struct lb_config *config, struct lb_facts *facts, stk_loader **out, stk_error *err);

#endif
