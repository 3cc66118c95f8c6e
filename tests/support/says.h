/* says.h: checks the facts in a message but not the words between them. */
#ifndef STKT_SAYS_H
#define STKT_SAYS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns whether the message contains these fragments, separated by "…", in this order. */
static inline bool stkt_says(const char *message, const char *pieces)
{
    static const char gap[] = "…";
    char piece[640];

    while (pieces) {
        const char *end = strstr(pieces, gap);

        snprintf(piece, sizeof piece, "%.*s", (int)(end ? (size_t)(end - pieces) : strlen(pieces)), pieces);
        message = strstr(message, piece);
        if (!message)
            return false;
        message += strlen(piece);
        pieces = end ? end + strlen(gap) : NULL;
    }
    return true;
}

#endif
