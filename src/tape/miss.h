/* miss: why no recording answers a request.
 *
 * Threads  none; values only.
 */
#ifndef WEIR_TAPE_MISS_H
#define WEIR_TAPE_MISS_H

#include "tape/call.h"

/* How near two requests are: bytes that they have in common at their ends. */
size_t miss_nearness(struct str recorded, struct str asked);

/* Append where two requests that are not the same first differ, and what stands there, cut:
 * `messages[2].text: recorded "... Kyoto", asked "... Osaka"`. */
void miss_append(struct str recorded, struct str asked, struct buf *out);

#endif
