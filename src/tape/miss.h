/* miss: why no recording answers a request.
 *
 * Threads  none; values only.
 */
#ifndef WEIR_TAPE_MISS_H
#define WEIR_TAPE_MISS_H

#include "tape/call.h"

/* The similarity of two requests: the number of bytes they share at both ends. */
size_t miss_nearness(struct str recorded, struct str asked);

/* Append where two different requests first differ, with a short excerpt of both:
 * `messages[2].text: recorded "... Kyoto", asked "... Osaka"`. */
void miss_append(struct str recorded, struct str asked, struct buf *out);

#endif
