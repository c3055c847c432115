/* event_json: an event as one JSON object, for people and programs of our own.
 *
 *     {"seq":2,"at_ms":13,"type":"text","agent":"manager","text":"Hello"}
 *
 * Unknown token counts are null. Members may be added, never renamed.
 *
 * Threads  none.
 */
#ifndef WEIR_WIRE_EVENT_JSON_H
#define WEIR_WIRE_EVENT_JSON_H

#include "wire/event.h"

/* False at the buffer's limit. */
bool event_to_json(const struct event *event, struct buf *out);

#endif
