/* Checks a value against a node; implements the keywords that contain schemas. */
#include "schema/schema_inner.h"

/* Nested nodes: levels of the value times schemas applied to the same value. */
#define DEPTH_MAX 512

static bool schema_check_give_up(struct schema_check *check, const struct schema_place *place,
                                 const char *why) {
    check->gave_up = true;
    return schema_wrong(check, place, "%s", why);
}

static bool check_clauses(struct schema_check *check, const struct schema_place *place,
                          const struct schema_node *node, const struct datum *value) {
    for (size_t i = 0; i < node->clause_count; i++) {
        const struct schema_clause *clause = &node->clauses[i];
        if (!(clause->kinds & 1u << value->kind)) continue;
        if (!clause->check(check, place, clause, value)) return false;
        if (check->gave_up) return false;
    }
    return true;
}

bool schema_check_node(struct schema_check *check, const struct schema_place *place,
                       const struct schema_node *node, const struct datum *value) {
    if (node->never) return schema_wrong(check, place, "no value is allowed here");
    if (check->steps_left == 0)
        return schema_check_give_up(check, place,
                                    "checking takes too many steps; simplify the schema");
    if (check->depth == DEPTH_MAX)
        return schema_check_give_up(check, place,
                                    "the schema leads too deep here; simplify it");
    check->steps_left--;
    check->depth++;
    bool fits = check_clauses(check, place, node, value);
    check->depth--;
    return fits;
}

bool schema_check_ref(struct schema_check *check, const struct schema_place *place,
                      const struct schema_clause *clause, const struct datum *value) {
    return schema_check_node(check, place, clause->nodes[0], value);
}

bool schema_check_all(struct schema_check *check, const struct schema_place *place,
                      const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = 0; i < clause->node_count; i++) {
        if (!schema_check_node(check, place, clause->nodes[i], value)) return false;
    }
    return true;
}

/* ---- Alternatives ----
 *
 * The alternative that was probably meant is the one that fits to the greatest depth. Its error
 * is reported. */

struct attempt {
    struct err why;
    size_t depth; /* steps in the position of the error */
};

static size_t place_depth(const struct err *why) {
    if (why->text[0] != '/') return 0;
    size_t depth = 0;
    for (const char *at = why->text; *at && *at != ' '; at++) depth += *at == '/';
    return depth;
}

bool schema_try_node(struct schema_check *check, const struct schema_place *place,
                     const struct schema_node *node, const struct datum *value,
                     struct err *why) {
    struct err *outer = check->e;
    check->e = why;
    bool fits = schema_check_node(check, place, node, value);
    check->e = outer;
    if (check->gave_up) *outer = *why;
    return fits && !check->gave_up;
}

static bool refuse_all(const struct schema_check *check, const struct schema_place *place,
                       const struct schema_clause *clause, const struct attempt *best) {
    if (clause->node_count == 1) {
        *check->e = best->why;
        return false;
    }
    return schema_wrong(check, place, "fits none of the %zu alternatives; the nearest says: %s",
                        clause->node_count, best->why.text);
}

bool schema_check_any(struct schema_check *check, const struct schema_place *place,
                      const struct schema_clause *clause, const struct datum *value) {
    struct attempt best = {.depth = 0};
    for (size_t i = 0; i < clause->node_count; i++) {
        struct err why;
        if (schema_try_node(check, place, clause->nodes[i], value, &why)) return true;
        if (check->gave_up) return false;
        size_t depth = place_depth(&why);
        if (i == 0 || depth > best.depth) best = (struct attempt){why, depth};
    }
    return refuse_all(check, place, clause, &best);
}

bool schema_check_one(struct schema_check *check, const struct schema_place *place,
                      const struct schema_clause *clause, const struct datum *value) {
    struct attempt best = {.depth = 0};
    size_t fitting = 0, first = 0;
    for (size_t i = 0; i < clause->node_count; i++) {
        struct err why;
        bool fits = schema_try_node(check, place, clause->nodes[i], value, &why);
        if (check->gave_up) return false;
        if (fits && ++fitting == 2)
            return schema_wrong(check, place,
                                "fits alternative %zu and %zu, and must fit exactly one",
                                first + 1, i + 1);
        if (fits) first = i;
        size_t depth = fits ? 0 : place_depth(&why);
        if (!fits && (!best.why.code || depth > best.depth))
            best = (struct attempt){why, depth};
    }
    return fitting == 1 || refuse_all(check, place, clause, &best);
}

bool schema_check_not(struct schema_check *check, const struct schema_place *place,
                      const struct schema_clause *clause, const struct datum *value) {
    struct err why;
    bool fits = schema_try_node(check, place, clause->nodes[0], value, &why);
    if (check->gave_up) return false;
    return !fits || schema_wrong(check, place, "is just what 'not' describes");
}

bool schema_check_if(struct schema_check *check, const struct schema_place *place,
                     const struct schema_clause *clause, const struct datum *value) {
    struct err why;
    bool fits = schema_try_node(check, place, clause->nodes[0], value, &why);
    if (check->gave_up) return false;
    const struct schema_node *next = clause->nodes[fits ? 1 : 2];
    return !next || schema_check_node(check, place, next, value);
}
