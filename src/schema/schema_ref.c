/* Resolves $ref, and refuses one that leads nowhere. */
#include "base/nearest.h"
#include "schema/schema_read.h"

/* ---- Definitions and references ---- */

const struct str schema_definition_keywords[2] = {STR_INIT("$defs"), STR_INIT("definitions")};

bool schema_read_definitions(struct schema_reader *reader, const struct schema_said *said,
                             struct schema_clause *clause) {
    clause->check = NULL;
    if (!schema_expect(reader, said, JSON_OBJECT)) return false;
    struct schema_node *nodes = NULL; /* the root's definitions already have nodes */
    for (size_t i = 0; i < ARRAY_LEN(schema_definition_keywords); i++) {
        if (said->value == reader->definitions[i]) nodes = reader->defined[i];
    }
    if (!nodes) nodes = schema_take(reader, said->value->count * sizeof(*nodes));
    for (size_t i = 0; i < said->value->count; i++) {
        const struct datum_member *member = &said->value->members[i];
        struct schema_place place = {.up = said->place, .name = member->name};
        if (!schema_read_node(reader, &place, &member->value, &nodes[i])) return false;
    }
    return true;
}

/* Decode a name in a reference: first the %xx of URIs, then ~0 and ~1 of JSON pointers. False
 * when it contains a '/', which would lead into the definition. */
static bool unescape_name(struct schema_reader *reader, struct str text, struct str *ret) {
    char *plain = schema_take(reader, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int high = text.at[i] == '%' && i + 2 < text.len ? str_hex_digit(text.at[i + 1]) : -1;
        int low = high >= 0 ? str_hex_digit(text.at[i + 2]) : -1;
        plain[len++] = low >= 0 ? (char)(high * 16 + low) : text.at[i];
        if (low >= 0) i += 2;
    }
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        if (plain[i] == '/') return false;
        bool escape =
            plain[i] == '~' && i + 1 < len && (plain[i + 1] == '0' || plain[i + 1] == '1');
        plain[kept++] = !escape ? plain[i] : plain[i + 1] == '0' ? '~' : '/';
        i += escape;
    }
    *ret = str_of(plain, kept);
    return true;
}

static bool refuse_name(const struct schema_reader *reader, const struct schema_said *said,
                        const struct datum *definitions, struct str name) {
    struct nearest nearest;
    char shown[SCHEMA_SHOWN_BYTES];
    nearest_init(&nearest, name);
    for (size_t i = 0; definitions && i < definitions->count; i++)
        nearest_offer(&nearest, definitions->members[i].name);
    return schema_refuse(reader, said->place, "there is no definition '%s'%s",
                         schema_shown(name, shown), nearest_hint(&nearest));
}

static bool find_definition(struct schema_reader *reader, const struct schema_said *said,
                            struct str text, struct schema_node **ret) {
    for (size_t i = 0; i < ARRAY_LEN(schema_definition_keywords); i++) {
        struct str keyword = schema_definition_keywords[i], name;
        struct str rest = str_skip(text, 2);
        if (!str_starts(text, STR("#/")) || !str_starts(rest, keyword)) continue;
        rest = str_skip(rest, keyword.len);
        if (!str_starts(rest, STR("/")) || !unescape_name(reader, str_skip(rest, 1), &name))
            continue;
        size_t index;
        if (!reader->definitions[i] || !datum_find(reader->definitions[i], name, &index))
            return refuse_name(reader, said, reader->definitions[i], name);
        *ret = &reader->defined[i][index];
        return true;
    }
    char shown[SCHEMA_SHOWN_BYTES];
    return schema_refuse(reader, said->place,
                         "'%s' is not a place that is followed; use #, #/$defs/name or "
                         "#/definitions/name",
                         schema_shown(text, shown));
}

bool schema_read_ref(struct schema_reader *reader, const struct schema_said *said,
                     struct schema_clause *clause) {
    if (!schema_expect(reader, said, JSON_STRING)) return false;
    clause->same_place = true;
    schema_room_for_nodes(reader, clause, 1);
    if (str_equal(said->value->text, STR("#"))) {
        clause->nodes[0] = reader->schema->root;
        return true;
    }
    return find_definition(reader, said, said->value->text, &clause->nodes[0]);
}

/* In a subschema, $id would change the meaning of #. */
bool schema_read_id(struct schema_reader *reader, const struct schema_said *said,
                    struct schema_clause *clause) {
    (void)clause;
    if (said->object == &reader->schema->document)
        return schema_expect(reader, said, JSON_STRING);
    return schema_refuse(
        reader, said->place,
        "an $id inside a schema is not understood; leave it out, or move what it "
        "names to $defs");
}

/* ---- Circles ----
 *
 * A schema may lead to another one for the same value, by $ref, anyOf and so on. If such a path
 * leads back to its start, checking would never end. */

/* Maximum number of schemas in a chain that apply to the same value. */
#define CHAIN_MAX 128

static bool refuse_circle(struct err *e) {
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "a $ref leads back to itself without looking at a part of the value; let it "
                   "stand below properties or items");
}

static bool walk(struct schema_node *node, unsigned depth, struct err *e) {
    if (node->walk == SCHEMA_CLOSED) return true;
    if (node->walk == SCHEMA_OPEN) return refuse_circle(e);
    if (depth == CHAIN_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "more than %d schemas follow each other by $ref, allOf and their "
                       "like; make the chain shorter",
                       CHAIN_MAX);
    node->walk = SCHEMA_OPEN;
    for (size_t i = 0; i < node->clause_count; i++) {
        const struct schema_clause *clause = &node->clauses[i];
        for (size_t k = 0; clause->same_place && k < clause->node_count; k++) {
            if (clause->nodes[k] && !walk(clause->nodes[k], depth + 1, e)) return false;
        }
    }
    node->walk = SCHEMA_CLOSED;
    return true;
}

bool schema_refuse_circles(struct schema *schema, struct err *e) {
    for (struct schema_node *node = schema->nodes; node; node = node->next) {
        if (!walk(node, 0, e)) return false;
    }
    return true;
}
