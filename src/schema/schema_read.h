/* schema_read: how the keywords of a schema are read, for the files of schema only.
 *
 * The table of keywords and all that hold schemas stand in schema_read.c, those that say plain
 * values in schema_read_value.c, $ref and definitions in schema_ref.c.
 */
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
    const struct datum *object; /* with the keywords beside it */
    const struct datum *value;
};

/* Fill `clause`. A keyword that has nothing to check (any more) leaves clause->check NULL. */
typedef bool schema_read_fn(struct schema_reader *reader, const struct schema_said *said,
                            struct schema_clause *clause);

/* Memory of the schema; its text bounds how much. */
void *schema_take(struct schema_reader *reader, size_t size);
void schema_room_for_nodes(struct schema_reader *reader, struct schema_clause *clause,
                           size_t count);

/* Refuse the schema at `place`. Returns false. */
PRINTF_LIKE(3, 4)
bool schema_refuse(const struct schema_reader *reader, const struct schema_place *place,
                   const char *format, ...);

/* Whether a keyword says a value of this kind. */
bool schema_expect(const struct schema_reader *reader, const struct schema_said *said,
                   enum json_kind kind);

/* Read one schema object, true or false into `node`. */
bool schema_read_node(struct schema_reader *reader, const struct schema_place *place,
                      const struct datum *from, struct schema_node *node);

/* In the order of schema_reader's two. */
extern const struct str schema_definition_keywords[2];

schema_read_fn schema_read_type, schema_read_bool, schema_read_enum, schema_read_const,
    schema_read_number, schema_read_divisor, schema_read_count, schema_read_pattern,
    schema_read_names, schema_read_dependent, schema_read_definitions, schema_read_ref,
    schema_read_id;

#endif
