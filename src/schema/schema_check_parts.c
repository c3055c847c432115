/* The keywords for objects and arrays. */
#include "base/mem.h"
#include "base/nearest.h"
#include "schema/schema_inner.h"

#include <stdlib.h>

/* ---- Objects ---- */

bool schema_check_properties(struct schema_check *check, const struct schema_place *place,
                             const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = 0; i < value->count; i++) {
        const struct datum_member *member = &value->members[i];
        struct schema_place at = {.up = place, .name = member->name};
        size_t index;
        if (!datum_find(clause->datum, member->name, &index)) continue;
        if (!schema_check_node(check, &at, clause->nodes[index], &member->value)) return false;
    }
    return true;
}

/* `known` holds the schema's properties; NULL when it names none. */
static bool refuse_property(const struct schema_check *check, const struct schema_place *place,
                            const struct datum *known) {
    struct nearest nearest;
    nearest_init(&nearest, place->name);
    for (size_t i = 0; known && i < known->count; i++)
        nearest_offer(&nearest, known->members[i].name);
    return schema_wrong(check, place, "there is no such property%s", nearest_hint(&nearest));
}

bool schema_check_additional(struct schema_check *check, const struct schema_place *place,
                             const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = 0; i < value->count; i++) {
        const struct datum_member *member = &value->members[i];
        struct schema_place at = {.up = place, .name = member->name};
        if (clause->datum && datum_find(clause->datum, member->name, NULL)) continue;
        if (clause->nodes[0]->never) return refuse_property(check, &at, clause->datum);
        if (!schema_check_node(check, &at, clause->nodes[0], &member->value)) return false;
    }
    return true;
}

bool schema_check_names(struct schema_check *check, const struct schema_place *place,
                        const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = 0; i < value->count; i++) {
        struct str name = value->members[i].name;
        struct schema_place at = {.up = place, .name = name};
        struct datum text = {.kind = JSON_STRING, .text = name};
        struct err why;
        if (schema_try_node(check, &at, clause->nodes[0], &text, &why)) continue;
        if (check->gave_up) return false;
        return err_set(check->e, ERR_INVALID_ARGUMENT, "the name of a property: %s", why.text);
    }
    return true;
}

bool schema_check_required(struct schema_check *check, const struct schema_place *place,
                           const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = 0; i < clause->datum->count; i++) {
        struct str name = clause->datum->items[i].text;
        char shown[SCHEMA_SHOWN_BYTES];
        if (!datum_find(value, name, NULL))
            return schema_wrong(check, place, "the property '%s' is missing",
                                schema_shown(name, shown));
    }
    return true;
}

bool schema_check_dependent(struct schema_check *check, const struct schema_place *place,
                            const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = 0; i < clause->datum->count; i++) {
        const struct datum_member *rule = &clause->datum->members[i];
        if (!datum_find(value, rule->name, NULL)) continue;
        for (size_t k = 0; k < rule->value.count; k++) {
            struct str name = rule->value.items[k].text;
            char missing[SCHEMA_SHOWN_BYTES], because[SCHEMA_SHOWN_BYTES];
            if (!datum_find(value, name, NULL))
                return schema_wrong(
                    check, place, "the property '%s' is missing, which '%s' requires",
                    schema_shown(name, missing), schema_shown(rule->name, because));
        }
    }
    return true;
}

/* ---- Counts ---- */

static bool refuse_count(const struct schema_check *check, const struct schema_place *place,
                         const char *wanted, const struct schema_clause *clause,
                         const struct datum *value) {
    return schema_wrong(check, place, "expected %s %llu %s, got %zu", wanted,
                        (unsigned long long)clause->count,
                        value->kind == JSON_ARRAY ? "items" : "properties", value->count);
}

bool schema_check_min_count(struct schema_check *check, const struct schema_place *place,
                            const struct schema_clause *clause, const struct datum *value) {
    return value->count >= clause->count ||
           refuse_count(check, place, "at least", clause, value);
}

bool schema_check_max_count(struct schema_check *check, const struct schema_place *place,
                            const struct schema_clause *clause, const struct datum *value) {
    return value->count <= clause->count ||
           refuse_count(check, place, "at most", clause, value);
}

/* ---- Arrays ---- */

bool schema_check_prefix(struct schema_check *check, const struct schema_place *place,
                         const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = 0; i < value->count && i < clause->node_count; i++) {
        struct schema_place at = {.up = place, .index = i};
        if (!schema_check_node(check, &at, clause->nodes[i], &value->items[i])) return false;
    }
    return true;
}

bool schema_check_items(struct schema_check *check, const struct schema_place *place,
                        const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = clause->skip; i < value->count; i++) {
        struct schema_place at = {.up = place, .index = i};
        if (!schema_check_node(check, &at, clause->nodes[0], &value->items[i])) return false;
    }
    return true;
}

bool schema_check_contains(struct schema_check *check, const struct schema_place *place,
                           const struct schema_clause *clause, const struct datum *value) {
    for (size_t i = 0; i < value->count; i++) {
        struct schema_place at = {.up = place, .index = i};
        struct err why;
        if (schema_try_node(check, &at, clause->nodes[0], &value->items[i], &why)) return true;
        if (check->gave_up) return false;
    }
    return schema_wrong(check, place, "expected at least one item as 'contains' describes");
}

/* Order by value; equal items keep their order in the array. */
static int by_value(const void *a, const void *b) {
    const struct datum *x = *(const struct datum *const *)a;
    const struct datum *y = *(const struct datum *const *)b;
    int order = datum_compare(x, y);
    return order ? order : (x > y) - (x < y);
}

bool schema_check_unique(struct schema_check *check, const struct schema_place *place,
                         const struct schema_clause *clause, const struct datum *value) {
    (void)clause;
    const struct datum **sorted = mem_alloc(value->count * sizeof(struct datum *));
    for (size_t i = 0; i < value->count; i++) sorted[i] = &value->items[i];
    if (value->count) qsort(sorted, value->count, sizeof(struct datum *), by_value);
    size_t at = 1;
    while (at < value->count && datum_compare(sorted[at - 1], sorted[at]) != 0) at++;
    bool unique = at >= value->count;
    if (!unique)
        schema_wrong(check, place, "items %zu and %zu are the same",
                     (size_t)(sorted[at - 1] - value->items),
                     (size_t)(sorted[at] - value->items));
    free(sorted);
    return unique;
}
