/* workflow_value: the values that flow along the edges of a workflow, and the small languages
 * that read them.
 *
 * A value is JSON. Three languages stand in a definition:
 *
 *     path       $  $.a.b  $.list[0].name
 *     template   "Dear {{who}}, {{letter.text}}": a slot, or a path in one; unknown: nothing
 *     condition  $.score >= 0.5   $.kind == 'short'   $.ok      == != >= <= > <, or truth
 *
 * Memory   results are views of the text that was read, or memory of the arena.
 * Threads  none; values only.
 * Source   contracts/nimi.md 6.3 "Node semantics".
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOW_VALUE_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOW_VALUE_H

#include "proto/google.pb.h"
#include "wire/json.h"

#define WORKFLOW_PATH_STEPS_MAX 64

/* Whether it is a path, and where it leads; JSON_NONE: nowhere. */
bool workflow_path_is(struct str path);
struct json workflow_path_at(struct json value, struct str path);

/* Append a value as text: a string as it is, an object of one member `value` as that, nothing
 * for null, other values as JSON. False at the buffer's limit. */
bool workflow_text(struct json value, struct buf *out);

/* Append the template with each {{...}} replaced, from an object of slots. */
bool workflow_expand(struct str text, struct json slots, struct buf *out);

/* Whether it is a condition; whether it holds. */
bool workflow_condition_is(struct str condition);
bool workflow_condition_holds(struct str condition, struct json value);

/* The value as a protobuf Struct; what is no object becomes {"value": ...}. NULL at the arena's
 * limit. */
const struct google_struct *workflow_struct(struct json value, struct arena *arena);

/* The same, but of at most `max_bytes` when encoded: if it is longer, {"bytes_omitted": ...} stands
 * for each of its members of more than WORKFLOW_MEMBER_MAX_BYTES, or, if that is not enough, for
 * all of it. Numbers grow most: "0," becomes eleven bytes. NULL: not even that fits into the
 * arena. */
#define WORKFLOW_MEMBER_MAX_BYTES (16 * KIB)
const struct google_struct *workflow_struct_within(struct json value, size_t max_bytes,
                                                   struct arena *arena);

#endif
