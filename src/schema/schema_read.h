/* schema_read: parse the keywords of a schema, for the files of schema only.
 *
 * The keyword table and the keywords that contain schemas are in schema_read.c, the keywords
 * with plain values in schema_read_value.c, $ref and definitions in schema_ref.c. */
#ifndef WEIR_SCHEMA_SCHEMA_READ_H
#define WEIR_SCHEMA_SCHEMA_READ_H

#include "schema/schema_inner.h"

struct schema_reader {
    struct schema *schema;
    const struct datum *definitions[2]; /* $defs and definitions of the root, or NULL */
    struct schema_node *defined[2];     /* a node for each of their members */
    struct err *e;
};

/* One keyword of one schema object. */
struct schema_said {
    const struct schema_place *place;
    const struct datum *object; /* the object that the keyword is in */
    const struct datum *value;
};

/* Fill `clause`. A keyword with nothing to check leaves clause->check NULL. */
typedef bool schema_read_fn(struct schema_reader *reader, const struct schema_said *said,
                            struct schema_clause *clause);

/* Memory of the schema; the length of its text bounds the total. */
void *schema_take(struct schema_reader *reader, size_t size);
void schema_room_for_nodes(struct schema_reader *reader, struct schema_clause *clause,
                           size_t count);

/* Refuse the schema at `place`. Returns false. */
PRINTF_LIKE(3, 4)
bool schema_refuse(const struct schema_reader *reader, const struct schema_place *place,
                   const char *format, ...);

/* Check that the keyword's value has this kind. */
bool schema_expect(const struct schema_reader *reader, const struct schema_said *said,
                   enum json_kind kind);

/* Parse one schema object, true or false into `node`. */
bool schema_read_node(struct schema_reader *reader, const struct schema_place *place,
                      const struct datum *from, struct schema_node *node);

/* In the same order as the arrays in struct schema_reader. */
extern const struct str schema_definition_keywords[2];

schema_read_fn schema_read_type, schema_read_bool, schema_read_enum, schema_read_const,
    schema_read_number, schema_read_divisor, schema_read_count, schema_read_pattern,
    schema_read_names, schema_read_dependent, schema_read_definitions, schema_read_ref,
    schema_read_id;

#endif
