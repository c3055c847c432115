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
#include "wire/json.h"

/* False at the buffer's limit. */
bool event_to_json(const struct event *event, struct buf *out);

/* An id as a string, because many JSON readers cannot represent 64-bit numbers. */
void event_json_id(struct json_writer *json, const char *key, uint64_t id);

/* The output or arguments of a tool: raw if it is JSON, otherwise as a string. */
void event_json_document(struct json_writer *json, const char *key, struct str text);

/* A count of tokens; null: it is unknown. */
void event_json_count(struct json_writer *json, const char *key, int64_t count);

#endif
