/* schema: validate a JSON value against a JSON Schema.
 *
 * For the arguments of tool calls, and for structured answers. A schema is parsed once;
 * unsupported keywords are refused then, not ignored.
 * Supported: type (one or a list), properties, required, additionalProperties,
 * propertyNames, minProperties, maxProperties, items, prefixItems, minItems, maxItems,
 * uniqueItems, contains, enum, const, minimum, maximum, exclusiveMinimum, exclusiveMaximum,
 * multipleOf, minLength, maxLength, pattern, allOf, anyOf, oneOf, not, if/then/else,
 * dependentRequired, $ref inside the document (#, #/$defs/name, #/definitions/name),
 * true and false. `nullable: true` of OpenAPI 3.0 adds null to the type beside it. Annotations
 * are ignored: title, description, default, examples, format, deprecated, readOnly, writeOnly,
 * $schema, $id of the whole document, $comment and x-anything.
 *
 * Numbers compare by value and are never rounded: 1.0 is 1, and is an integer. Among members
 * with the same name the last one counts.
 *
 * The work is bounded. JSON_DEPTH_MAX limits the depth, a $ref that loops without consuming
 * input is refused, and patterns and whole checks have step limits. A value that reaches a
 * limit fails the check.
 *
 * Memory   a schema owns its source text and its parsed form, until schema_free().
 * Threads  read-only once read; any thread may check.
 * Source   JSON Schema 2020-12, the parts named above.
 */
#ifndef WEIR_SCHEMA_SCHEMA_H
#define WEIR_SCHEMA_SCHEMA_H

#include "wire/json.h"

struct schema;

/* Parse the schema `text` (copied, at most 1 MiB). The caller ends it with schema_free().
 * errors  ERR_MALFORMED not JSON; ERR_INVALID_ARGUMENT with the position
 *         ("/properties/x/type") */
MUST_CHECK bool schema_read(struct str text, struct schema **ret, struct err *e);
void schema_free(struct schema *schema); /* accepts NULL */

/* The document as it was given. */
struct str schema_text(const struct schema *schema);

/* errors  ERR_INVALID_ARGUMENT "/days/1: expected an integer, got a string": the first
 *         violation, with its position as a JSON pointer and, for a misspelt property, the
 *         closest existing one */
MUST_CHECK bool schema_check(const struct schema *schema, struct json value, struct err *e);

#endif
