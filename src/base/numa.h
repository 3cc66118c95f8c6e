/* numa.h: memory on a device's NUMA node. Uses sysfs and system calls directly, not libnuma. */
#ifndef STKI_NUMA_H
#define STKI_NUMA_H

#include <stdbool.h>

/* The node of a PCI device ("0000:41:00.0") from sysfs; -1: none, or the machine has a single node. */
int stki_numa_node_of_pci(const char *bus);
/* The mount point of sysfs; tests replace it. */
extern const char *stki_numa_sysfs;

/* Memory that the calling thread allocates between the two calls comes from the node if it has free memory. No effect
 * if node is -1 or the kernel refuses (as in some containers). */
typedef struct stki_numa_policy {
    bool changed;
    int mode;
    unsigned long nodes[16];
} stki_numa_policy;

void stki_numa_prefer(int node, stki_numa_policy *before);
void stki_numa_restore(const stki_numa_policy *before);

#endif
