/* The keywords that need only the value itself: its type, a number, a string. */
#include "base/nearest.h"
#include "schema/schema_inner.h"

#include <stdlib.h>

/* ---- Types ---- */

static void append_types(struct buf *out, const struct schema_clause *clause) {
    static const struct {
        unsigned kinds;
        const char *name;
    } names[] = {
        {1u << JSON_OBJECT, "an object"},
        {1u << JSON_ARRAY, "an array"},
        {1u << JSON_STRING, "a string"},
        {1u << JSON_NUMBER, "a number"},
        {1u << JSON_TRUE | 1u << JSON_FALSE, "true or false"},
        {1u << JSON_NULL, "null"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!(clause->types & names[i].kinds)) continue;
        bool integer = names[i].kinds == 1u << JSON_NUMBER && clause->integers_only;
        buf_printf(out, "%s%s", out->len ? " or " : "", integer ? "an integer" : names[i].name);
    }
}

bool schema_check_type(struct schema_check *check, const struct schema_place *place,
                       const struct schema_clause *clause, const struct datum *value) {
    bool of_type = clause->types & 1u << value->kind;
    bool fraction = value->kind == JSON_NUMBER && !datum_is_integer(value);
    if (of_type && !(fraction && clause->integers_only)) return true;

    struct buf types;
    buf_init(&types, 256);
    append_types(&types, clause);
    schema_wrong(check, place, "expected " STR_FMT ", got %s", STR_ARG(buf_str(&types)),
                 of_type ? "a number with a fraction" : json_kind_name(value->kind));
    buf_done(&types);
    return false;
}

/* ---- Given values ---- */

bool schema_check_const(struct schema_check *check, const struct schema_place *place,
                        const struct schema_clause *clause, const struct datum *value) {
    if (datum_compare(value, clause->datum) == 0) return true;
    char shown[SCHEMA_SHOWN_BYTES];
    return schema_wrong(check, place, "expected %s", schema_shown(clause->shown, shown));
}

static int by_value(const void *key, const void *item) {
    return datum_compare(key, *(const struct datum *const *)item);
}

bool schema_check_enum(struct schema_check *check, const struct schema_place *place,
                       const struct schema_clause *clause, const struct datum *value) {
    if (clause->set_count &&
        bsearch(value, clause->set, clause->set_count, sizeof(struct datum *), by_value))
        return true;
    struct nearest nearest;
    nearest_init(&nearest, value->kind == JSON_STRING ? value->text : STR_EMPTY);
    for (size_t i = 0; i < clause->set_count; i++) {
        if (clause->set[i]->kind == JSON_STRING) nearest_offer(&nearest, clause->set[i]->text);
    }
    char shown[SCHEMA_SHOWN_BYTES];
    return schema_wrong(check, place, "expected one of %s%s",
                        schema_shown(clause->shown, shown), nearest_hint(&nearest));
}

/* ---- Numbers ---- */

static bool refuse_number(const struct schema_check *check, const struct schema_place *place,
                          const struct schema_clause *clause, const char *wanted) {
    char shown[SCHEMA_SHOWN_BYTES];
    return schema_wrong(check, place, "expected a number %s %s", wanted,
                        schema_shown(clause->shown, shown));
}

bool schema_check_minimum(struct schema_check *check, const struct schema_place *place,
                          const struct schema_clause *clause, const struct datum *value) {
    return datum_compare(value, clause->datum) >= 0 ||
           refuse_number(check, place, clause, "of at least");
}

bool schema_check_maximum(struct schema_check *check, const struct schema_place *place,
                          const struct schema_clause *clause, const struct datum *value) {
    return datum_compare(value, clause->datum) <= 0 ||
           refuse_number(check, place, clause, "of at most");
}

bool schema_check_exclusive_minimum(struct schema_check *check,
                                    const struct schema_place *place,
                                    const struct schema_clause *clause,
                                    const struct datum *value) {
    return datum_compare(value, clause->datum) > 0 ||
           refuse_number(check, place, clause, "above");
}

bool schema_check_exclusive_maximum(struct schema_check *check,
                                    const struct schema_place *place,
                                    const struct schema_clause *clause,
                                    const struct datum *value) {
    return datum_compare(value, clause->datum) < 0 ||
           refuse_number(check, place, clause, "below");
}

bool schema_check_multiple(struct schema_check *check, const struct schema_place *place,
                           const struct schema_clause *clause, const struct datum *value) {
    return datum_is_multiple(value, clause->datum) ||
           refuse_number(check, place, clause, "that is a multiple of");
}

/* ---- Strings ---- */

static uint64_t characters(struct str text) {
    uint64_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.at[i] & 0xC0) != 0x80;
    return count;
}

bool schema_check_min_length(struct schema_check *check, const struct schema_place *place,
                             const struct schema_clause *clause, const struct datum *value) {
    uint64_t length = characters(value->text);
    return length >= clause->count ||
           schema_wrong(check, place, "expected at least %llu characters, got %llu",
                        (unsigned long long)clause->count, (unsigned long long)length);
}

bool schema_check_max_length(struct schema_check *check, const struct schema_place *place,
                             const struct schema_clause *clause, const struct datum *value) {
    uint64_t length = characters(value->text);
    return length <= clause->count ||
           schema_wrong(check, place, "expected at most %llu characters, got %llu",
                        (unsigned long long)clause->count, (unsigned long long)length);
}

bool schema_check_pattern(struct schema_check *check, const struct schema_place *place,
                          const struct schema_clause *clause, const struct datum *value) {
    char shown[SCHEMA_SHOWN_BYTES];
    switch (schema_pattern_match(clause->pattern, value->text)) {
    case SCHEMA_MATCH: return true;
    case SCHEMA_NO_MATCH:
        return schema_wrong(check, place, "expected a text that matches '%s'",
                            schema_shown(clause->shown, shown));
    case SCHEMA_MATCH_TOO_HARD: break;
    }
    check->gave_up = true;
    return schema_wrong(check, place,
                        "matching '%s' takes too many steps for a text of %zu bytes; shorten "
                        "the text or simplify the pattern",
                        schema_shown(clause->shown, shown), value->text.len);
}
