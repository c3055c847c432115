/* schema_inner: the parsed form of a schema, for the files of schema only.
 *
 * A node is one schema object. A clause is one of its keywords that can refuse a value, with
 * the value of the keyword. Checking a node checks its clauses in the order of the keyword
 * table, so that the most useful of several errors is reported. */
#ifndef WEIR_SCHEMA_SCHEMA_INNER_H
#define WEIR_SCHEMA_SCHEMA_INNER_H

#include "schema/datum.h"
#include "schema/schema.h"
#include "schema/schema_pattern.h"

#include <stdarg.h>

struct schema_node;
struct schema_clause;

/* The current position in a schema or value: a chain on the stack, for messages. */
struct schema_place {
    const struct schema_place *up; /* NULL at the root */
    struct str name;
    size_t index; /* of an item, when name.at is NULL */
};

/* One check of one value. */
struct schema_check {
    uint64_t steps_left;
    unsigned depth;
    bool gave_up; /* a limit was reached: later failures mean nothing */
    struct err *e;
};

typedef bool schema_check_fn(struct schema_check *check, const struct schema_place *place,
                             const struct schema_clause *clause, const struct datum *value);

struct schema_clause {
    schema_check_fn *check;
    unsigned kinds;  /* one bit per json_kind; other values are accepted */
    bool same_place; /* its nodes check the value itself, not a part of it */
    /* One for each alternative, member, item ...; some may be NULL. */
    struct schema_node **nodes;
    size_t node_count;
    union {
        struct { /* type */
            unsigned types;
            bool integers_only;
        };
        uint64_t count;                 /* minLength, maxItems ... */
        const struct datum *datum;      /* const, minimum ...; the object that names members */
        const struct datum *const *set; /* enum, sorted */
        struct schema_pattern *pattern;
        size_t skip; /* items: the number of prefixItems */
    };
    size_t set_count;
    struct str shown; /* of enum, const, pattern and numbers: as spelled in the schema */
};

struct schema_node {
    struct schema_node *next;                                /* all nodes of the schema */
    bool never;                                              /* the schema false */
    enum { SCHEMA_UNSEEN, SCHEMA_OPEN, SCHEMA_CLOSED } walk; /* during the search for circles */
    struct schema_clause *clauses;
    size_t clause_count;
};

struct schema_held_pattern {
    struct schema_held_pattern *next;
    struct schema_pattern *pattern;
};

struct schema {
    struct arena *arena;
    struct str text;
    struct datum document;
    struct schema_node *root, *nodes;
    struct schema_held_pattern *patterns;
};

#define SCHEMA_PLACE_BYTES 200

/* `text` for messages: without control bytes, cut with "..." when it is long. */
#define SCHEMA_SHOWN_BYTES 80
const char *schema_shown(struct str text, char room[SCHEMA_SHOWN_BYTES]);

/* Parse the document of `schema` into nodes (schema_read.c). */
MUST_CHECK bool schema_read_document(struct schema *schema, struct err *e);

/* Refuse a node that leads back to itself for the same value (schema_ref.c). */
MUST_CHECK bool schema_refuse_circles(struct schema *schema, struct err *e);

/* Check `value` against a node (schema_check.c). */
bool schema_check_node(struct schema_check *check, const struct schema_place *place,
                       const struct schema_node *node, const struct datum *value);

/* The same when a refusal may not be final: its error goes to `why`. Also false when the check
 * gave up; that error goes to check->e. */
bool schema_try_node(struct schema_check *check, const struct schema_place *place,
                     const struct schema_node *node, const struct datum *value,
                     struct err *why);

/* Fill `e`: the sentence, and the place before it unless that is NULL. Returns false. */
PRINTF_LIKE(3, 0)
bool schema_fail(struct err *e, const struct schema_place *place, const char *format,
                 va_list values);

/* Refuse the value at `place`. Returns false. */
PRINTF_LIKE(3, 4)
bool schema_wrong(const struct schema_check *check, const struct schema_place *place,
                  const char *format, ...);

/* The check functions of the keywords: for single values (schema_check_value.c), */
schema_check_fn schema_check_type, schema_check_enum, schema_check_const, schema_check_minimum,
    schema_check_maximum, schema_check_exclusive_minimum, schema_check_exclusive_maximum,
    schema_check_multiple, schema_check_min_length, schema_check_max_length,
    schema_check_pattern;
/* for objects and arrays, */
schema_check_fn schema_check_properties, schema_check_additional, schema_check_names,
    schema_check_required, schema_check_min_count, schema_check_max_count,
    schema_check_dependent, schema_check_prefix, schema_check_items, schema_check_unique,
    schema_check_contains;
/* for keywords that contain schemas. */
schema_check_fn schema_check_ref, schema_check_all, schema_check_any, schema_check_one,
    schema_check_not, schema_check_if;

#endif
