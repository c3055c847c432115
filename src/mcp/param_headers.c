#include "mcp/param_headers.h"

#include "wire/base64.h"

#define MARK "x-mcp-header"
#define PREFIX "Mcp-Param-"
#define INTEGER_MAX INT64_C(9007199254740991) /* 2^53 - 1 */

bool param_headers_wanted(struct str schema) {
    return str_find(schema, STR("\"" MARK "\"")) < schema.len;
}

/* --- checking ----------------------------------------------------------------------------- */

struct checking {
    struct str names[PARAM_HEADERS_MAX];
    size_t count;
    struct err *e;
};

static bool param_headers_is_token(struct str name) {
    static const char plain[] =
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < name.len; i++) {
        if (!name.at[i] || !strchr(plain, name.at[i])) return false;
    }
    return name.len > 0;
}

/* The contents of a string without escapes; one with escapes is not a valid name. */
static struct str inside(struct json string) {
    return str_skip(str_head(string.raw, string.raw.len - 1), 1);
}

static bool is_primitive(struct json schema) {
    struct json type = json_find(schema, STR("type"));
    return json_is(type, STR("string")) || json_is(type, STR("integer")) ||
           json_is(type, STR("boolean"));
}

static bool take_mark(struct checking *checking, struct json schema, struct json mark,
                      bool reachable) {
    struct err *e = checking->e;
    if (mark.kind != JSON_STRING || !param_headers_is_token(inside(mark)))
        return err_set(e, ERR_INVALID_ARGUMENT, MARK " is not a header name");
    if (!reachable)
        return err_set(e, ERR_INVALID_ARGUMENT, MARK " stands where no property is");
    if (!is_primitive(schema))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       MARK
                       " stands at a property that is not a string, an integer or a boolean");
    for (size_t i = 0; i < checking->count; i++) {
        if (str_equal_nocase(checking->names[i], inside(mark)))
            return err_set(e, ERR_INVALID_ARGUMENT, MARK " names the same header twice");
    }
    if (checking->count == PARAM_HEADERS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "it has more than %d headers",
                       PARAM_HEADERS_MAX);
    checking->names[checking->count++] = inside(mark);
    return true;
}

/* Whether the values of this key are data and not schemas. */
static bool is_data(struct json key) {
    return json_is(key, STR("enum")) || json_is(key, STR("const")) ||
           json_is(key, STR("default")) || json_is(key, STR("examples"));
}

static bool check_schema(struct checking *checking, struct json schema, bool reachable,
                         bool is_root);

/* A map of names to schemas. */
static bool check_map(struct checking *checking, struct json map, bool reachable) {
    struct json key, value;
    struct json_reader members = json_enter(map);
    while (json_next_member(&members, &key, &value)) {
        if (!check_schema(checking, value, reachable, false)) return false;
    }
    return true;
}

static bool is_map(struct json key) {
    return json_is(key, STR("$defs")) || json_is(key, STR("definitions")) ||
           json_is(key, STR("patternProperties")) || json_is(key, STR("dependentSchemas"));
}

/* Also checks the items of a list of schemas. Recursive, limited by the depth of JSON. */
static bool check_schema(struct checking *checking, struct json schema, bool reachable,
                         bool is_root) {
    struct json key, value, item;
    struct json_reader members = json_enter(schema), items = members;
    bool good = true;
    while (schema.kind == JSON_ARRAY && good && json_next_item(&items, &item))
        good = check_schema(checking, item, false, false);
    while (schema.kind == JSON_OBJECT && good && json_next_member(&members, &key, &value)) {
        if (json_is(key, STR(MARK))) {
            good = take_mark(checking, schema, value, reachable && !is_root);
        } else if (json_is(key, STR("properties"))) {
            good = check_map(checking, value, reachable);
        } else if (is_map(key)) {
            good = check_map(checking, value, false);
        } else if (!is_data(key)) {
            good = check_schema(checking, value, false, false);
        }
    }
    return good;
}

bool param_headers_check(struct json schema, struct err *e) {
    struct checking checking = {.e = e};
    return check_schema(&checking, schema, true, true);
}

/* --- writing ------------------------------------------------------------------------------ */

static bool param_headers_is_plain(struct str value) {
    if (value.len && (value.at[0] == ' ' || value.at[value.len - 1] == ' ')) return false;
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.at[i];
        if (byte < ' ' || byte > '~') return false;
    }
    return !(str_starts(value, STR("=?base64?")) && str_ends(value, STR("?=")));
}

void param_headers_encode(struct str value, struct buf *out) {
    if (param_headers_is_plain(value)) {
        buf_append(out, value);
        return;
    }
    buf_append(out, STR("=?base64?"));
    base64_encode(out, value, BASE64_STANDARD, BASE64_PADDED);
    buf_append(out, STR("?="));
}

struct writing {
    struct buf *room;
    struct {
        size_t name, value, end;
    } places[PARAM_HEADERS_MAX]; /* offsets in the room, which may move */
    size_t count;
};

static bool put_value(struct json value, struct buf *out) {
    int64_t number;
    struct buf text;
    if (value.kind == JSON_TRUE || value.kind == JSON_FALSE) return buf_append(out, value.raw);
    if (value.kind == JSON_NUMBER) {
        if (!json_i64(value, &number) || number > INTEGER_MAX || number < -INTEGER_MAX)
            return false;
        return buf_printf(out, "%lld", (long long)number);
    }
    if (value.kind != JSON_STRING) return false;
    buf_init(&text, SIZE_MAX);
    json_text(value, &text);
    param_headers_encode(buf_str(&text), out);
    buf_done(&text);
    return buf_ok(out);
}

static void write_properties(struct writing *writing, struct json schema, struct json args) {
    struct json key, property;
    struct json_reader members = json_enter(json_find(schema, STR("properties")));
    while (json_next_member(&members, &key, &property)) {
        struct json mark = json_find(property, STR(MARK));
        struct buf name;
        buf_init(&name, SIZE_MAX);
        json_text(key, &name);
        struct json value = json_find(args, buf_str(&name));
        buf_done(&name);
        if (value.kind == JSON_OBJECT) write_properties(writing, property, value);
        if (mark.kind != JSON_STRING || writing->count == PARAM_HEADERS_MAX) continue;
        size_t at = writing->room->len;
        buf_append(writing->room, STR(PREFIX));
        buf_append(writing->room, inside(mark));
        size_t value_at = writing->room->len;
        if (!put_value(value, writing->room)) continue; /* it is absent */
        writing->places[writing->count].name = at;
        writing->places[writing->count].value = value_at;
        writing->places[writing->count++].end = writing->room->len;
    }
}

size_t param_headers_write(struct json schema, struct json args, struct buf *room,
                           struct http_header ret[PARAM_HEADERS_MAX]) {
    struct writing writing = {.room = room};
    write_properties(&writing, schema, args);
    if (!buf_ok(room)) return 0;
    for (size_t i = 0; i < writing.count; i++) {
        struct str text = buf_str(room);
        ret[i] = (struct http_header){
            str_skip(str_head(text, writing.places[i].value), writing.places[i].name),
            str_skip(str_head(text, writing.places[i].end), writing.places[i].value)};
    }
    return writing.count;
}
