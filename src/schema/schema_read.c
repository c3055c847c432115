/* The keywords: the values each accepts, and the function that checks it. */
#include "schema/schema_read.h"

#include "base/nearest.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

struct keyword {
    const char *name;
    unsigned kinds;       /* kinds of values that it applies to */
    schema_read_fn *read; /* NULL: an annotation; any value is accepted */
    schema_check_fn *check;
};

/* ---- For all keywords ---- */

void *schema_take(struct schema_reader *reader, size_t size) {
    void *at = arena_alloc(reader->schema->arena, size);
    assert(at); /* the length of the text bounds the memory */
    return at;
}

bool schema_refuse(const struct schema_reader *reader, const struct schema_place *place,
                   const char *format, ...) {
    va_list values;
    va_start(values, format);
    schema_fail(reader->e, place, format, values);
    va_end(values);
    return false;
}

bool schema_expect(const struct schema_reader *reader, const struct schema_said *said,
                   enum json_kind kind) {
    if (said->value->kind == kind) return true;
    return schema_refuse(reader, said->place, "expected %s, got %s", json_kind_name(kind),
                         json_kind_name(said->value->kind));
}

void schema_room_for_nodes(struct schema_reader *reader, struct schema_clause *clause,
                           size_t count) {
    clause->nodes = schema_take(reader, count * sizeof(struct schema_node *));
    clause->node_count = count;
}

/* ---- Nodes inside keywords ---- */

static bool read_new_node(struct schema_reader *reader, const struct schema_place *place,
                          const struct datum *from, struct schema_node **ret) {
    *ret = schema_take(reader, sizeof(**ret));
    return schema_read_node(reader, place, from, *ret);
}

static bool read_one_node(struct schema_reader *reader, const struct schema_said *said,
                          struct schema_clause *clause) {
    schema_room_for_nodes(reader, clause, 1);
    return read_new_node(reader, said->place, said->value, &clause->nodes[0]);
}

static bool read_not(struct schema_reader *reader, const struct schema_said *said,
                     struct schema_clause *clause) {
    clause->same_place = true;
    return read_one_node(reader, said, clause);
}

static bool read_node_list(struct schema_reader *reader, const struct schema_said *said,
                           struct schema_clause *clause) {
    if (!schema_expect(reader, said, JSON_ARRAY)) return false;
    if (said->value->count == 0)
        return schema_refuse(reader, said->place, "expected at least one schema in the list");
    schema_room_for_nodes(reader, clause, said->value->count);
    for (size_t i = 0; i < said->value->count; i++) {
        struct schema_place place = {.up = said->place, .index = i};
        if (!read_new_node(reader, &place, &said->value->items[i], &clause->nodes[i]))
            return false;
    }
    return true;
}

static bool read_alternatives(struct schema_reader *reader, const struct schema_said *said,
                              struct schema_clause *clause) {
    clause->same_place = true;
    return read_node_list(reader, said, clause);
}

static bool read_node_map(struct schema_reader *reader, const struct schema_said *said,
                          struct schema_clause *clause) {
    if (!schema_expect(reader, said, JSON_OBJECT)) return false;
    schema_room_for_nodes(reader, clause, said->value->count);
    clause->datum = said->value;
    for (size_t i = 0; i < said->value->count; i++) {
        const struct datum_member *member = &said->value->members[i];
        struct schema_place place = {.up = said->place, .name = member->name};
        if (!read_new_node(reader, &place, &member->value, &clause->nodes[i])) return false;
    }
    return true;
}

static bool read_additional(struct schema_reader *reader, const struct schema_said *said,
                            struct schema_clause *clause) {
    clause->datum = datum_find(said->object, STR("properties"), NULL);
    return read_one_node(reader, said, clause);
}

static bool read_items(struct schema_reader *reader, const struct schema_said *said,
                       struct schema_clause *clause) {
    if (said->value->kind == JSON_ARRAY)
        return schema_refuse(
            reader, said->place,
            "a list of schemas is said with 'prefixItems'; 'items' is one schema");
    const struct datum *prefix = datum_find(said->object, STR("prefixItems"), NULL);
    clause->skip = prefix && prefix->kind == JSON_ARRAY ? prefix->count : 0;
    return read_one_node(reader, said, clause);
}

/* if, then and else make one clause. Without `if`, the other two are parsed and ignored. */
static bool read_if(struct schema_reader *reader, const struct schema_said *said,
                    struct schema_clause *clause) {
    static const struct str names[] = {STR_INIT("if"), STR_INIT("then"), STR_INIT("else")};
    clause->same_place = true;
    schema_room_for_nodes(reader, clause, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct datum *from = datum_find(said->object, names[i], NULL);
        struct schema_place place = {.up = said->place ? said->place->up : NULL,
                                     .name = names[i]};
        if (from && !read_new_node(reader, &place, from, &clause->nodes[i])) return false;
    }
    return true;
}

static bool read_then(struct schema_reader *reader, const struct schema_said *said,
                      struct schema_clause *clause) {
    clause->check = NULL;
    if (datum_find(said->object, STR("if"), NULL)) return true;
    struct schema_node *node;
    return read_new_node(reader, said->place, said->value, &node);
}

/* ---- The table ---- */

#define ANY (~0u)
#define OBJECT (1u << JSON_OBJECT)
#define ARRAY (1u << JSON_ARRAY)
#define STRING (1u << JSON_STRING)
#define NUMBER (1u << JSON_NUMBER)

/* In the order of checking: a value's own properties before its contents, and a misspelt
 * property before the required one that is missing because of it. */
/* clang-format off */
static const struct keyword keywords[] = {
    {"$ref",                 ANY,    schema_read_ref,          schema_check_ref},
    {"type",                 ANY,    schema_read_type,         schema_check_type},
    {"const",                ANY,    schema_read_const,        schema_check_const},
    {"enum",                 ANY,    schema_read_enum,         schema_check_enum},
    {"minimum",              NUMBER, schema_read_number,       schema_check_minimum},
    {"maximum",              NUMBER, schema_read_number,       schema_check_maximum},
    {"exclusiveMinimum",     NUMBER, schema_read_number,       schema_check_exclusive_minimum},
    {"exclusiveMaximum",     NUMBER, schema_read_number,       schema_check_exclusive_maximum},
    {"multipleOf",           NUMBER, schema_read_divisor,      schema_check_multiple},
    {"minLength",            STRING, schema_read_count,        schema_check_min_length},
    {"maxLength",            STRING, schema_read_count,        schema_check_max_length},
    {"pattern",              STRING, schema_read_pattern,      schema_check_pattern},
    {"additionalProperties", OBJECT, read_additional,   schema_check_additional},
    {"required",             OBJECT, schema_read_names,        schema_check_required},
    {"properties",           OBJECT, read_node_map,     schema_check_properties},
    {"propertyNames",        OBJECT, read_one_node,     schema_check_names},
    {"minProperties",        OBJECT, schema_read_count,        schema_check_min_count},
    {"maxProperties",        OBJECT, schema_read_count,        schema_check_max_count},
    {"dependentRequired",    OBJECT, schema_read_dependent,    schema_check_dependent},
    {"minItems",             ARRAY,  schema_read_count,        schema_check_min_count},
    {"maxItems",             ARRAY,  schema_read_count,        schema_check_max_count},
    {"prefixItems",          ARRAY,  read_node_list,    schema_check_prefix},
    {"items",                ARRAY,  read_items,        schema_check_items},
    {"contains",             ARRAY,  read_one_node,     schema_check_contains},
    {"uniqueItems",          ARRAY,  schema_read_bool,         schema_check_unique},
    {"allOf",                ANY,    read_alternatives, schema_check_all},
    {"anyOf",                ANY,    read_alternatives, schema_check_any},
    {"oneOf",                ANY,    read_alternatives, schema_check_one},
    {"not",                  ANY,    read_not,          schema_check_not},
    {"if",                   ANY,    read_if,           schema_check_if},
    {"then",                 ANY,    read_then,         NULL},
    {"else",                 ANY,    read_then,         NULL},
    {"$defs",                ANY,    schema_read_definitions,  NULL},
    {"definitions",          ANY,    schema_read_definitions,  NULL},
    {"$id",                  ANY,    schema_read_id,           NULL},
    {"nullable",             ANY,    schema_read_bool,         NULL}, /* see schema_read_type() */
    {"title",                ANY,    NULL,              NULL},
    {"description",          ANY,    NULL,              NULL},
    {"default",              ANY,    NULL,              NULL},
    {"examples",             ANY,    NULL,              NULL},
    {"format",               ANY,    NULL,              NULL},
    {"deprecated",           ANY,    NULL,              NULL},
    {"readOnly",             ANY,    NULL,              NULL},
    {"writeOnly",            ANY,    NULL,              NULL},
    {"$schema",              ANY,    NULL,              NULL},
    {"$comment",             ANY,    NULL,              NULL},
};
/* clang-format on */

/* Its index in the table, or ARRAY_LEN(keywords). */
static size_t keyword_find(struct str name) {
    size_t i = 0;
    for (; i < ARRAY_LEN(keywords); i++) {
        const char *known = keywords[i].name;
        if (name.len && *known == *name.at && str_equal(str_from(known), name)) break;
    }
    return i;
}

static bool schema_read_is_known(struct str name) {
    return str_starts(name, STR("x-")) || keyword_find(name) < ARRAY_LEN(keywords);
}

static bool schema_read_refuse_unknown(const struct schema_reader *reader,
                                       const struct schema_place *place,
                                       const struct datum *object) {
    for (size_t i = 0; i < object->count; i++) {
        struct str name = object->members[i].name;
        if (schema_read_is_known(name)) continue;
        struct nearest nearest;
        char shown[SCHEMA_SHOWN_BYTES];
        nearest_init(&nearest, name);
        for (size_t k = 0; k < ARRAY_LEN(keywords); k++)
            nearest_offer(&nearest, str_from(keywords[k].name));
        const char *meant = nearest_hint(&nearest);
        return schema_refuse(reader, place, "the keyword '%s' is not understood%s",
                             schema_shown(name, shown),
                             meant[0] ? meant : "; leave it out, or say it with others");
    }
    return true;
}

/* ---- One schema object ---- */

static bool read_clauses(struct schema_reader *reader, const struct schema_place *place,
                         const struct datum *from, struct schema_node *node) {
    const struct datum *values[ARRAY_LEN(keywords) + 1] = {0}; /* the last: of unknown names */
    node->clauses = schema_take(reader, from->count * sizeof(*node->clauses));
    for (size_t i = 0; i < from->count; i++)
        values[keyword_find(from->members[i].name)] = &from->members[i].value;
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        const struct keyword *keyword = &keywords[i];
        const struct datum *value = values[i];
        if (!value || !keyword->read) continue;
        struct str name = str_from(keyword->name);
        struct schema_place at = {.up = place, .name = name};
        struct schema_said said = {&at, from, value};
        struct schema_clause clause = {.check = keyword->check, .kinds = keyword->kinds};
        if (!keyword->read(reader, &said, &clause)) return false;
        if (clause.check) node->clauses[node->clause_count++] = clause;
    }
    return true;
}

bool schema_read_node(struct schema_reader *reader, const struct schema_place *place,
                      const struct datum *from, struct schema_node *node) {
    node->next = reader->schema->nodes;
    reader->schema->nodes = node;
    node->never = from->kind == JSON_FALSE;
    if (from->kind == JSON_TRUE || from->kind == JSON_FALSE) return true;
    if (from->kind != JSON_OBJECT)
        return schema_refuse(reader, place,
                             "expected a schema (an object, true or false), got %s",
                             json_kind_name(from->kind));
    return schema_read_refuse_unknown(reader, place, from) &&
           read_clauses(reader, place, from, node);
}

bool schema_read_document(struct schema *schema, struct err *e) {
    struct schema_reader reader = {.schema = schema, .e = e};
    for (size_t i = 0; i < ARRAY_LEN(schema_definition_keywords); i++) {
        const struct datum *found =
            datum_find(&schema->document, schema_definition_keywords[i], NULL);
        if (!found || found->kind != JSON_OBJECT) continue;
        reader.definitions[i] = found;
        reader.defined[i] = schema_take(&reader, found->count * sizeof(struct schema_node));
    }
    schema->root = schema_take(&reader, sizeof(*schema->root));
    return schema_read_node(&reader, NULL, &schema->document, schema->root);
}
