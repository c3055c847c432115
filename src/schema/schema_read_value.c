/* The keywords with plain values: a type, a number, a list of names. */
#include "base/nearest.h"
#include "schema/schema_read.h"

#include <stdlib.h>

static const struct {
    const char *name;
    unsigned kinds;
} types[] = {
    {"object", 1u << JSON_OBJECT},  {"array", 1u << JSON_ARRAY},
    {"string", 1u << JSON_STRING},  {"number", 1u << JSON_NUMBER},
    {"integer", 1u << JSON_NUMBER}, {"boolean", 1u << JSON_TRUE | 1u << JSON_FALSE},
    {"null", 1u << JSON_NULL},
};

static bool read_type_name(struct schema_reader *reader, const struct schema_said *said,
                           struct schema_clause *clause, bool *number) {
    if (!schema_expect(reader, said, JSON_STRING)) return false;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct str name = str_from(types[i].name);
        if (!str_equal(name, said->value->text)) continue;
        clause->types |= types[i].kinds;
        if (str_equal(name, STR("number"))) *number = true;
        return true;
    }
    char shown[SCHEMA_SHOWN_BYTES];
    struct nearest nearest;
    nearest_init(&nearest, said->value->text);
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        nearest_offer(&nearest, str_from(types[i].name));
    return schema_refuse(reader, said->place, "no type is called '%s'%s",
                         schema_shown(said->value->text, shown), nearest_hint(&nearest));
}

bool schema_read_type(struct schema_reader *reader, const struct schema_said *said,
                      struct schema_clause *clause) {
    const struct datum *names =
        said->value->kind == JSON_ARRAY ? said->value->items : said->value;
    size_t count = said->value->kind == JSON_ARRAY ? said->value->count : 1;
    if (count == 0) return schema_refuse(reader, said->place, "expected at least one type");
    bool number = false;
    for (size_t i = 0; i < count; i++) {
        struct schema_place item = {.up = said->place, .index = i};
        struct schema_said name = {names == said->value ? said->place : &item, said->object,
                                   &names[i]};
        if (!read_type_name(reader, &name, clause, &number)) return false;
    }
    clause->integers_only = (clause->types & 1u << JSON_NUMBER) && !number;
    const struct datum *nullable = datum_find(said->object, STR("nullable"), NULL);
    if (nullable && nullable->kind == JSON_TRUE) clause->types |= 1u << JSON_NULL;
    return true;
}

bool schema_read_bool(struct schema_reader *reader, const struct schema_said *said,
                      struct schema_clause *clause) {
    if (said->value->kind == JSON_FALSE) clause->check = NULL;
    if (said->value->kind == JSON_FALSE || said->value->kind == JSON_TRUE) return true;
    return schema_refuse(reader, said->place, "expected true or false, got %s",
                         json_kind_name(said->value->kind));
}

static int by_value(const void *a, const void *b) {
    return datum_compare(*(const struct datum *const *)a, *(const struct datum *const *)b);
}

bool schema_read_enum(struct schema_reader *reader, const struct schema_said *said,
                      struct schema_clause *clause) {
    if (!schema_expect(reader, said, JSON_ARRAY)) return false;
    size_t count = said->value->count;
    const struct datum **set = schema_take(reader, count * sizeof(struct datum *));
    for (size_t i = 0; i < count; i++) set[i] = &said->value->items[i];
    if (count) qsort(set, count, sizeof(struct datum *), by_value);
    clause->set = set;
    clause->set_count = count;
    clause->shown = said->value->raw;
    return true;
}

bool schema_read_const(struct schema_reader *reader, const struct schema_said *said,
                       struct schema_clause *clause) {
    (void)reader;
    clause->datum = said->value;
    clause->shown = said->value->raw;
    return true;
}

bool schema_read_number(struct schema_reader *reader, const struct schema_said *said,
                        struct schema_clause *clause) {
    if (said->value->kind == JSON_TRUE || said->value->kind == JSON_FALSE)
        return schema_refuse(reader, said->place,
                             "expected the limit itself, a number, got a boolean "
                             "as in draft 4");
    return schema_expect(reader, said, JSON_NUMBER) && schema_read_const(reader, said, clause);
}

bool schema_read_divisor(struct schema_reader *reader, const struct schema_said *said,
                         struct schema_clause *clause) {
    if (!schema_read_number(reader, said, clause)) return false;
    if (said->value->negative || said->value->digits.len == 0)
        return schema_refuse(reader, said->place, "expected a number above zero");
    if (said->value->digits.len > DATUM_DIVISOR_DIGITS)
        return schema_refuse(reader, said->place, "expected a number of at most %d digits",
                             DATUM_DIVISOR_DIGITS);
    return true;
}

bool schema_read_count(struct schema_reader *reader, const struct schema_said *said,
                       struct schema_clause *clause) {
    int64_t count;
    if (!json_i64(json_of(said->value->raw), &count) || count < 0)
        return schema_refuse(reader, said->place, "expected a whole number from 0 on");
    clause->count = (uint64_t)count;
    return true;
}

bool schema_read_pattern(struct schema_reader *reader, const struct schema_said *said,
                         struct schema_clause *clause) {
    if (!schema_expect(reader, said, JSON_STRING)) return false;
    struct err why;
    if (!schema_pattern_new(said->value->text, &clause->pattern, &why))
        return schema_refuse(reader, said->place, "%s", why.text);
    struct schema_held_pattern *held = schema_take(reader, sizeof(*held));
    *held = (struct schema_held_pattern){reader->schema->patterns, clause->pattern};
    reader->schema->patterns = held;
    clause->shown = said->value->text;
    return true;
}

bool schema_read_names(struct schema_reader *reader, const struct schema_said *said,
                       struct schema_clause *clause) {
    if (!schema_expect(reader, said, JSON_ARRAY)) return false;
    for (size_t i = 0; i < said->value->count; i++) {
        struct schema_place place = {.up = said->place, .index = i};
        struct schema_said name = {&place, said->object, &said->value->items[i]};
        if (!schema_expect(reader, &name, JSON_STRING)) return false;
    }
    clause->datum = said->value;
    return true;
}

bool schema_read_dependent(struct schema_reader *reader, const struct schema_said *said,
                           struct schema_clause *clause) {
    if (!schema_expect(reader, said, JSON_OBJECT)) return false;
    for (size_t i = 0; i < said->value->count; i++) {
        const struct datum_member *member = &said->value->members[i];
        struct schema_place place = {.up = said->place, .name = member->name};
        struct schema_said names = {&place, said->object, &member->value};
        if (!schema_read_names(reader, &names, clause)) return false;
    }
    clause->datum = said->value;
    return true;
}
