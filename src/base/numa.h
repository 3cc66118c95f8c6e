/* numa.h: memory on the NUMA node of a device. Linux's own files and calls, no library. */
#ifndef STKI_NUMA_H
#define STKI_NUMA_H

#include <stdbool.h>

/* The node of a PCI device ("0000:41:00.0"), by sysfs; -1: it has none, or the machine has one node alone. */
int stki_numa_node_of_pci(const char *bus);
/* Where sysfs is; tests put a folder of theirs here. */
extern const char *stki_numa_sysfs;

/* What the thread allocates between the two comes from the node if it has room. Nothing where node is -1 or the kernel
 * refuses (in some containers). */
typedef struct stki_numa_policy {
    bool changed;
    int mode;
    unsigned long nodes[16];
} stki_numa_policy;

void stki_numa_prefer(int node, stki_numa_policy *before);
void stki_numa_restore(const stki_numa_policy *before);

#endif
