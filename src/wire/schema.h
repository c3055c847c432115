/* schema: whether a JSON value is what a JSON Schema describes.
 *
 * For the arguments that a model gives a tool, and for answers that must have a shape. A
 * schema is read once, and what it asks for and we do not know is refused then, not passed
 * over. Understood: type (one or a list), properties, required, additionalProperties,
 * propertyNames, minProperties, maxProperties, items, prefixItems, minItems, maxItems,
 * uniqueItems, contains, enum, const, minimum, maximum, exclusiveMinimum, exclusiveMaximum,
 * multipleOf, minLength, maxLength, pattern, allOf, anyOf, oneOf, not, if/then/else,
 * dependentRequired, $ref inside the document (#, #/$defs/name, #/definitions/name),
 * true and false. `nullable: true` of OpenAPI 3.0 adds null to the type beside it. Annotations
 * say nothing: title, description, default, examples, format, deprecated, readOnly, writeOnly,
 * $schema, $id of the whole document, $comment and x-anything.
 *
 * Numbers compare by value and are never rounded: 1.0 is 1, and is an integer. Of members with
 * the same name the last one counts.
 *
 * Work is bounded: depth by JSON_DEPTH_MAX, a $ref that loops without consuming input is
 * refused, patterns run with a step limit, and so does the whole of a check. A value for which
 * a limit is reached does not pass.
 *
 * Memory   a schema owns what it was read from and what it became, until schema_free().
 * Threads  read-only once read; any thread may check.
 * Source   JSON Schema 2020-12, the parts named above.
 */
#ifndef WEIR_WIRE_SCHEMA_H
#define WEIR_WIRE_SCHEMA_H

#include "wire/json.h"

struct schema;

/* Read the schema `text`, copied, at most 1 MiB. The caller ends it with schema_free().
 * errors  ERR_MALFORMED no JSON; ERR_INVALID_ARGUMENT, with the place ("/properties/x/type") */
MUST_CHECK bool schema_read(struct str text, struct schema **ret, struct err *e);
void schema_free(struct schema *schema); /* accepts NULL */

/* The document as it was given. */
struct str schema_text(const struct schema *schema);

/* errors  ERR_INVALID_ARGUMENT "/days/1: expected an integer, got a string": the first thing
 *         that is wrong, with its place as a JSON pointer and, for a misspelt property, the
 *         nearest that exists */
MUST_CHECK bool schema_check(const struct schema *schema, struct json value, struct err *e);

#endif
