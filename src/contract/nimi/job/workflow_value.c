#include "contract/nimi/job/workflow_value.h"

#include <string.h>

/* --- paths -------------------------------------------------------------------------------- */

/* One step: ".name" or "[3]". */
struct step {
    struct str name; /* at == NULL: an index */
    uint64_t index;
};

/* Names have no space, and none of the signs of conditions and templates. */
static bool in_name(char byte) {
    return (unsigned char)byte > ' ' && !strchr(".[=<>!{}'\"", byte);
}

/* Take the next step from *rest. False: it is not a step. */
static bool step_next(struct str *rest, struct step *ret) {
    struct str at = *rest;
    size_t len = 1;
    if (at.at[0] == '[') {
        size_t end = str_find_byte(at, ']');
        *rest = str_skip(at, end < at.len ? end + 1 : end);
        ret->name = (struct str){0};
        return end < at.len && str_to_u64(str_head(str_skip(at, 1), end - 1), &ret->index);
    }
    while (len < at.len && in_name(at.at[len])) len++;
    ret->name = str_head(str_skip(at, 1), len - 1);
    *rest = str_skip(at, len);
    return at.at[0] == '.' && len > 1;
}

static bool steps_are(struct str rest) {
    struct step step;
    for (size_t count = 0; rest.len; count++) {
        if (count == WORKFLOW_PATH_STEPS_MAX || !step_next(&rest, &step)) return false;
    }
    return true;
}

static struct json steps_follow(struct json value, struct str rest) {
    struct step step;
    while (rest.len && value.kind != JSON_NONE) {
        if (!step_next(&rest, &step)) return (struct json){.kind = JSON_NONE};
        value = step.name.at ? json_find(value, step.name) : json_at(value, step.index);
    }
    return value;
}

static bool has_root(struct str path) {
    return path.len && path.at[0] == '$';
}

bool workflow_path_is(struct str path) {
    path = str_trim(path);
    return has_root(path) && steps_are(str_skip(path, 1));
}

struct json workflow_path_at(struct json value, struct str path) {
    path = str_trim(path);
    if (!workflow_path_is(path)) return (struct json){.kind = JSON_NONE};
    return steps_follow(value, str_skip(path, 1));
}

/* --- text --------------------------------------------------------------------------------- */

bool workflow_text(struct json value, struct buf *out) {
    if (value.kind == JSON_OBJECT && json_count(value) == 1) {
        struct json inner = json_find(value, STR("value"));
        if (inner.kind != JSON_NONE && inner.kind != JSON_OBJECT) value = inner;
    }
    switch (value.kind) {
    case JSON_NONE:
    case JSON_NULL: return true;
    case JSON_STRING: return json_text(value, out);
    default: return json_compact(value.raw, out);
    }
}

/* --- templates ---------------------------------------------------------------------------- */

/* "slot", "slot.path", "slot[0]". */
static struct json token_value(struct str token, struct json slots) {
    size_t len = 0;
    token = str_trim(token);
    while (len < token.len && token.at[len] != '.' && token.at[len] != '[') len++;
    struct str path = str_skip(token, len);
    if (!steps_are(path)) return (struct json){.kind = JSON_NONE};
    return steps_follow(json_find(slots, str_head(token, len)), path);
}

bool workflow_expand(struct str text, struct json slots, struct buf *out) {
    while (text.len) {
        size_t begin = str_find(text, STR("{{"));
        struct str rest = str_skip(text, begin);
        size_t end = str_find(rest, STR("}}"));
        if (end == rest.len) return buf_append(out, text); /* the braces are text */
        if (!buf_append(out, str_head(text, begin)) ||
            !workflow_text(token_value(str_head(str_skip(rest, 2), end - 2), slots), out))
            return false;
        text = str_skip(rest, end + 2);
    }
    return true;
}

/* --- conditions --------------------------------------------------------------------------- */

enum comparison { IS_TRUE, EQUAL, UNEQUAL, AT_LEAST, AT_MOST, ABOVE, BELOW };

static const struct {
    struct str sign;
    enum comparison is;
} signs[] = {
    {STR_INIT("=="), EQUAL},   {STR_INIT("!="), UNEQUAL}, {STR_INIT(">="), AT_LEAST},
    {STR_INIT("<="), AT_MOST}, {STR_INIT(">"), ABOVE},    {STR_INIT("<"), BELOW},
};

struct condition {
    struct str path;
    enum comparison is;
    struct str literal; /* JSON; or text of 'single quotes', without them */
    bool quoted;
};

static bool literal_read(struct str text, struct condition *ret) {
    struct json value;
    struct err e;
    ret->quoted = text.len >= 2 && text.at[0] == '\'' && text.at[text.len - 1] == '\'';
    ret->literal = ret->quoted ? str_head(str_skip(text, 1), text.len - 2) : text;
    if (ret->quoted) return str_find_byte(ret->literal, '\'') == ret->literal.len;
    return json_read_depth(text, 0, &value, &e);
}

static bool condition_read(struct str text, struct condition *ret) {
    text = str_trim(text);
    *ret = (struct condition){.path = text, .is = IS_TRUE, .literal = STR_EMPTY};
    for (size_t at = 0; at < text.len && ret->is == IS_TRUE; at++) {
        for (size_t i = 0; i < ARRAY_LEN(signs) && ret->is == IS_TRUE; i++) {
            struct str rest = str_skip(text, at);
            if (!str_starts(rest, signs[i].sign)) continue;
            ret->is = signs[i].is;
            ret->path = str_trim(str_head(text, at));
            if (!literal_read(str_trim(str_skip(rest, signs[i].sign.len)), ret)) return false;
        }
    }
    return workflow_path_is(ret->path);
}

bool workflow_condition_is(struct str text) {
    struct condition condition;
    return condition_read(text, &condition);
}

/* False, 0, "", null, nothing and empty containers are not true. */
static bool is_true(struct json value) {
    double number;
    switch (value.kind) {
    case JSON_TRUE: return true;
    case JSON_NUMBER: return json_double(value, &number) && number != 0;
    case JSON_STRING: return value.raw.len > 2;
    case JSON_OBJECT:
    case JSON_ARRAY: return json_count(value) > 0;
    default: return false;
    }
}

static bool ordered(enum comparison is, int order) {
    switch (is) {
    case EQUAL: return order == 0;
    case UNEQUAL: return order != 0;
    case AT_LEAST: return order >= 0;
    case AT_MOST: return order <= 0;
    case ABOVE: return order > 0;
    default: return order < 0;
    }
}

/* Values of different kinds are unequal and have no order. */
static bool workflow_value_compare(const struct condition *condition, struct json value) {
    struct json literal = {.kind = JSON_STRING};
    struct buf left, right;
    double a, b;
    if (!condition->quoted) literal = json_of(condition->literal);
    if (json_double(value, &a) && json_double(literal, &b))
        return ordered(condition->is, a < b ? -1 : a > b);
    if (value.kind != JSON_STRING || literal.kind != JSON_STRING) {
        bool same = value.kind == literal.kind ||
                    (value.kind == JSON_NONE && literal.kind == JSON_NULL);
        if (value.kind == JSON_NUMBER || literal.kind == JSON_NUMBER) same = false;
        return (condition->is == EQUAL && same) || (condition->is == UNEQUAL && !same);
    }
    buf_init(&left, value.raw.len + 1);
    buf_init(&right, condition->literal.len + 1);
    json_text(value, &left);
    if (condition->quoted) {
        buf_append(&right, condition->literal);
    } else {
        json_text(literal, &right);
    }
    bool holds = ordered(condition->is, str_compare(buf_str(&left), buf_str(&right)));
    buf_done(&left);
    buf_done(&right);
    return holds;
}

/* A value in an object of one member `value` is compared itself. */
static struct json unwrapped(struct json value) {
    if (value.kind != JSON_OBJECT || json_count(value) != 1) return value;
    struct json inner = json_find(value, STR("value"));
    return inner.kind == JSON_NONE ? value : inner;
}

bool workflow_condition_holds(struct str text, struct json value) {
    struct condition condition;
    if (!condition_read(text, &condition)) return false;
    struct json found = unwrapped(workflow_path_at(value, condition.path));
    return condition.is == IS_TRUE ? is_true(found) : workflow_value_compare(&condition, found);
}

/* --- Struct ------------------------------------------------------------------------------- */

static bool workflow_value_fill(struct json from, struct arena *arena,
                                struct google_value *ret);

static const struct google_struct *object_of(struct json from, struct arena *arena) {
    struct google_struct *ret = ARENA_NEW(arena, struct google_struct);
    size_t count = json_count(from);
    struct google_struct_fields_entry *fields =
        arena_alloc(arena, (count + 1) * sizeof(*fields));
    struct google_value *values = arena_alloc(arena, (count + 1) * sizeof(*values));
    struct json_reader reader = json_enter(from);
    struct json key, value;
    if (!ret || !fields || !values) return NULL;
    for (size_t i = 0; json_next_member(&reader, &key, &value); i++) {
        fields[i].value = &values[i];
        if (!json_str(key, arena, &fields[i].key) ||
            !workflow_value_fill(value, arena, &values[i]))
            return NULL;
    }
    *ret = (struct google_struct){fields, count};
    return ret;
}

static const struct google_list_value *list_of(struct json from, struct arena *arena) {
    struct google_list_value *ret = ARENA_NEW(arena, struct google_list_value);
    size_t count = json_count(from);
    struct google_value *values = arena_alloc(arena, (count + 1) * sizeof(*values));
    struct json_reader reader = json_enter(from);
    struct json item;
    if (!ret || !values) return NULL;
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!workflow_value_fill(item, arena, &values[i])) return NULL;
    }
    *ret = (struct google_list_value){values, count};
    return ret;
}

/* The depth is bounded by JSON_DEPTH_MAX. */
static bool workflow_value_fill(struct json from, struct arena *arena,
                                struct google_value *ret) {
    switch (from.kind) {
    case JSON_OBJECT:
        ret->which_kind = GOOGLE_VALUE_STRUCT_VALUE;
        return (ret->struct_value = object_of(from, arena)) != NULL;
    case JSON_ARRAY:
        ret->which_kind = GOOGLE_VALUE_LIST_VALUE;
        return (ret->list_value = list_of(from, arena)) != NULL;
    case JSON_STRING:
        ret->which_kind = GOOGLE_VALUE_STRING_VALUE;
        return json_str(from, arena, &ret->string_value);
    case JSON_NUMBER:
        ret->which_kind = GOOGLE_VALUE_NUMBER_VALUE;
        return json_double(from, &ret->number_value);
    case JSON_TRUE:
    case JSON_FALSE:
        ret->which_kind = GOOGLE_VALUE_BOOL_VALUE;
        ret->bool_value = from.kind == JSON_TRUE;
        return true;
    default: ret->which_kind = GOOGLE_VALUE_NULL_VALUE; return true;
    }
}

const struct google_struct *workflow_struct(struct json value, struct arena *arena) {
    if (value.kind == JSON_OBJECT) return object_of(value, arena);
    struct google_struct *ret = ARENA_NEW(arena, struct google_struct);
    struct google_struct_fields_entry *field =
        ARENA_NEW(arena, struct google_struct_fields_entry);
    struct google_value *inner = ARENA_NEW(arena, struct google_value);
    if (!ret || !field || !inner || !workflow_value_fill(value, arena, inner)) return NULL;
    *field = (struct google_struct_fields_entry){STR("value"), inner};
    *ret = (struct google_struct){field, 1};
    return ret;
}

/* {"bytes_omitted": len} */
static const struct google_struct *omitted(size_t len, struct arena *arena) {
    struct google_struct *ret = ARENA_NEW(arena, struct google_struct);
    struct google_struct_fields_entry *field =
        ARENA_NEW(arena, struct google_struct_fields_entry);
    struct google_value *value = ARENA_NEW(arena, struct google_value);
    if (!ret || !field || !value) return NULL;
    value->which_kind = GOOGLE_VALUE_NUMBER_VALUE;
    value->number_value = (double)len;
    *field = (struct google_struct_fields_entry){STR("bytes_omitted"), value};
    *ret = (struct google_struct){field, 1};
    return ret;
}

static const struct google_struct *without_long_members(const struct google_struct *from,
                                                        struct arena *arena) {
    struct google_struct *ret = ARENA_NEW(arena, struct google_struct);
    struct google_struct_fields_entry *fields =
        arena_alloc(arena, (from->fields_count + 1) * sizeof(*fields));
    if (!ret || !fields) return NULL;
    *ret = (struct google_struct){fields, from->fields_count};
    for (size_t i = 0; i < from->fields_count; i++) {
        size_t len = pb_encoded_len(&google_value_table, from->fields[i].value);
        fields[i] = from->fields[i];
        if (len <= WORKFLOW_MEMBER_MAX_BYTES) continue;
        struct google_value *value = ARENA_NEW(arena, struct google_value);
        if (!value) return NULL;
        value->which_kind = GOOGLE_VALUE_STRUCT_VALUE;
        if (!(value->struct_value = omitted(len, arena))) return NULL;
        fields[i].value = value;
    }
    return ret;
}

const struct google_struct *workflow_struct_within(struct json value, size_t max_bytes,
                                                   struct arena *arena) {
    const struct google_struct *whole = workflow_struct(value, arena);
    if (!whole) return omitted(value.raw.len, arena);
    size_t len = pb_encoded_len(&google_struct_table, whole);
    if (len <= max_bytes) return whole;
    const struct google_struct *most = without_long_members(whole, arena);
    if (most && pb_encoded_len(&google_struct_table, most) <= max_bytes) return most;
    return omitted(len, arena);
}
