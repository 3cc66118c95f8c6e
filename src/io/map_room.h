/* map_room.h: limits the number of mapped files. A process may have at most vm.max_map_count mappings (usually 65,530),
 * including heap and stacks; beyond that, memory allocation fails. Files are therefore mapped only while at least a
 * quarter of that number remains free. Thread-safe. */
#ifndef STKI_MAP_ROOM_H
#define STKI_MAP_ROOM_H

#include <stdbool.h>

/* Returns whether another file may be mapped. If so, the mapping is counted until stki_map_room_give is called. */
bool stki_map_room_take(void);
void stki_map_room_give(void);

#endif
