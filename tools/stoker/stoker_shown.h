/* stoker_shown.h: names out of files and folders as they may be printed: what a terminal would obey becomes ?. */
#ifndef STOKER_SHOWN_H
#define STOKER_SHOWN_H

/* One of eight buffers in turn; long texts lose their beginning. One thread. */
const char *st_shown(const char *text);

#endif
