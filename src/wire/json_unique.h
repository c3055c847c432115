/* json_unique: whether each object of a JSON value has each of its members once.
 *
 * Of two members with one key one reader takes the first and another the last: what was checked, or
 * shown to a person, would then be another value than the one that is used.
 *
 * Memory   none that outlives the call.
 * Threads  none; values only.
 * Source   RFC 8259 4. */
#ifndef WEIR_WIRE_JSON_UNIQUE_H
#define WEIR_WIRE_JSON_UNIQUE_H

#include "wire/json.h"

/* All objects at every level; linear in the length of `value`, accepted JSON.
 * errors  ERR_INVALID_ARGUMENT names the key */
MUST_CHECK bool json_check_unique(struct json value, struct err *e);

#endif
