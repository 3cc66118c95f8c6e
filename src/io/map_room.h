/* map_room.h: mappings, of which a process may have no more than vm.max_map_count (usually 65,530), its heap and its
 * stacks included: where they run out, memory runs out. So mapped files leave a quarter of them to others. Any thread.
 */
#ifndef STKI_MAP_ROOM_H
#define STKI_MAP_ROOM_H

#include <stdbool.h>

/* May one more file be mapped? It is then counted until stki_map_room_give. */
bool stki_map_room_take(void);
void stki_map_room_give(void);

#endif
