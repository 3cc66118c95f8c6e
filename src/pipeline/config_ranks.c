/* config_ranks.c: derives the rank of this process, among all processes and among the groups that read different data,
 * from the keys rank, world_size, launcher, replication and replication_blocks. Values set both in the config and by a
 * launcher must agree. */
#include "config.h"
#include "error.h"
#include <string.h>

static stk_status contradiction(const stki_loader_config *config, const stki_node *section, const char *key,
                                const char *variable, int64_t said, int64_t launched, stk_error *err)
{
    const stki_node *node = stki_node_get(section, key);
    const char *name = config->ranks.source;

    return stki_fail_node(err, node ? node : section,
                          "found %lld, but %s sets %lld (%s in the environment): remove it, or set launcher: none",
                          (long long)said, name, (long long)launched, variable);
}

static stk_status ask_launcher(stki_loader_config *config, const stki_node *section, stk_error *err)
{
    stki_launcher_ranks launch;
    stk_status status = stki_launch_find(&launch, err);

    if (status != STK_OK || !launch.name)
        return status;
    config->ranks.source = launch.name;
    if (config->world_size && config->world_size != launch.world_size)
        return contradiction(config, section, "world_size", launch.size_variable, config->world_size, launch.world_size,
                             err);
    if (config->rank >= 0 && config->rank != launch.rank)
        return contradiction(config, section, "rank", launch.rank_variable, config->rank, launch.rank, err);
    config->rank = launch.rank;
    config->world_size = launch.world_size;
    config->ranks.local_size = launch.local_size;
    config->ranks.local_rank = launch.local_rank;
    config->ranks.local_rank_variable = launch.local_rank_variable;
    stki_config_fact(config, "rank %lld of %lld: %s (%s, %s in the environment)", (long long)launch.rank,
                     (long long)launch.world_size, launch.name, launch.rank_variable, launch.size_variable);
    return STK_OK;
}

stk_status stki_config_ranks(stki_loader_config *config, const stki_node *section, stk_error *err)
{
    stk_status status = STK_OK;

    config->ranks.local_rank = -1;
    config->ranks.source = config->rank >= 0 || config->world_size ? "options" : "alone";
    if (config->launcher == STK_LAUNCHER_AUTO)
        status = ask_launcher(config, section, err);
    if (status != STK_OK)
        return status;
    config->world_size = config->world_size ? config->world_size : 1;
    config->rank = config->rank < 0 ? 0 : config->rank;
    if (config->rank >= config->world_size)
        return stki_fail_node(err, stki_node_get(section, "rank"),
                              "found rank %lld of world_size %lld, expected 0 to %lld", (long long)config->rank,
                              (long long)config->world_size, (long long)config->world_size - 1);
    config->ranks.rank = config->rank;
    config->ranks.world_size = config->world_size;
    if (config->launcher == STK_LAUNCHER_AUTO && (status = stki_ranks_complete(&config->ranks, err)) != STK_OK)
        return status;
    return stki_ranks_replicate(&config->ranks, config->replication, config->replication_blocks, err);
}
