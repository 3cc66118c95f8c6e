/* numa.c: see numa.h. */
#include "numa.h"
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *stki_numa_sysfs = "/sys";

enum { PREFERRED = 1 }; /* MPOL_PREFERRED of <linux/mempolicy.h> */
#define MAX_NODES ((int)(sizeof((stki_numa_policy *)0)->nodes * CHAR_BIT))

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

int stki_numa_node_of_pci(const char *bus)
{
    char path[4096], name[32];
    int node = -1;
    FILE *file;

    for (size_t i = 0; i < sizeof name; i++) { /* CUDA's bus IDs are in upper case, those of sysfs in lower case */
        name[i] = (char)tolower((unsigned char)bus[i]);
        if (!bus[i])
            break;
    }
    name[sizeof name - 1] = 0;
    snprintf(path, sizeof path, "%s/devices/system/node/node1", stki_numa_sysfs);
    if (!is_there(path))
        return -1;
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", stki_numa_sysfs, name);
    file = fopen(path, "r");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &node) != 1 || node < 0 || node >= MAX_NODES)
        node = -1;
    fclose(file);
    return node;
}

void stki_numa_prefer(int node, stki_numa_policy *before)
{
    unsigned long nodes[sizeof before->nodes / sizeof *before->nodes] = {0};
    const int bits = (int)(sizeof *nodes * CHAR_BIT);

    before->changed = false;
    if (node < 0 || node >= MAX_NODES || syscall(SYS_get_mempolicy, &before->mode, before->nodes, MAX_NODES, NULL, 0))
        return;
    nodes[node / bits] = 1UL << (node % bits);
    before->changed = syscall(SYS_set_mempolicy, PREFERRED, nodes, MAX_NODES) == 0;
}

void stki_numa_restore(const stki_numa_policy *before)
{
    if (before->changed)
        (void)syscall(SYS_set_mempolicy, before->mode, before->nodes, MAX_NODES);
}
