#include "provider/reply_schema.h"

#include "provider/body.h"

#define LEVELS_MAX 64       /* of subschemas, also through references */
#define SUBSCHEMAS_MAX 5000 /* also OpenAI's limit of properties */
#define MEMBERS_MAX 1000    /* of one object */

/* A subschema is read once for each level above it, and again at each reference to it. */
#define READ_MAX_BYTES (32 * MIB)

/* --- what the vendors know ---------------------------------------------------------------- */

#define OPENAI (1u << SCHEMA_OPENAI)
#define ANTHROPIC (1u << SCHEMA_ANTHROPIC)
#define BOTH (OPENAI | ANTHROPIC)

/* A keyword that is not listed makes the vendor refuse the request. */
static const struct keyword {
    struct str name;
    unsigned vendors;
    enum { HOLDS_NO_SCHEMA, HOLDS_ONE, HOLDS_LIST, HOLDS_MAP } holds;
} keywords[] = {
    {STR_INIT("type"), BOTH, HOLDS_NO_SCHEMA},
    {STR_INIT("title"), BOTH, HOLDS_NO_SCHEMA},
    {STR_INIT("description"), BOTH, HOLDS_NO_SCHEMA},
    {STR_INIT("default"), ANTHROPIC, HOLDS_NO_SCHEMA},
    {STR_INIT("enum"), BOTH, HOLDS_NO_SCHEMA},
    {STR_INIT("const"), BOTH, HOLDS_NO_SCHEMA},
    {STR_INIT("format"), BOTH, HOLDS_NO_SCHEMA}, /* formats[] */
    {STR_INIT("pattern"), OPENAI, HOLDS_NO_SCHEMA},
    {STR_INIT("minimum"), OPENAI, HOLDS_NO_SCHEMA},
    {STR_INIT("maximum"), OPENAI, HOLDS_NO_SCHEMA},
    {STR_INIT("exclusiveMinimum"), OPENAI, HOLDS_NO_SCHEMA},
    {STR_INIT("exclusiveMaximum"), OPENAI, HOLDS_NO_SCHEMA},
    {STR_INIT("multipleOf"), OPENAI, HOLDS_NO_SCHEMA},
    {STR_INIT("minItems"), OPENAI, HOLDS_NO_SCHEMA},
    {STR_INIT("maxItems"), OPENAI, HOLDS_NO_SCHEMA},
    {STR_INIT("required"), BOTH, HOLDS_NO_SCHEMA},
    {STR_INIT("additionalProperties"), BOTH, HOLDS_NO_SCHEMA}, /* must be false */
    {STR_INIT("properties"), BOTH, HOLDS_MAP},
    {STR_INIT("items"), BOTH, HOLDS_ONE},
    {STR_INIT("anyOf"), BOTH, HOLDS_LIST},
    {STR_INIT("$ref"), BOTH, HOLDS_NO_SCHEMA}, /* fits_ref() */
    {STR_INIT("$defs"), BOTH, HOLDS_MAP},
    {STR_INIT("definitions"), BOTH, HOLDS_MAP},
    {STR_INIT("$schema"), OPENAI, HOLDS_NO_SCHEMA},
};

static const struct {
    struct str name;
    unsigned vendors;
} formats[] = {
    {STR_INIT("date-time"), BOTH}, {STR_INIT("time"), BOTH},  {STR_INIT("date"), BOTH},
    {STR_INIT("duration"), BOTH},  {STR_INIT("email"), BOTH}, {STR_INIT("hostname"), BOTH},
    {STR_INIT("ipv4"), BOTH},      {STR_INIT("ipv6"), BOTH},  {STR_INIT("uuid"), BOTH},
    {STR_INIT("uri"), ANTHROPIC},
};

/* --- the walk ----------------------------------------------------------------------------- */

struct walk {
    struct json root;
    unsigned vendor;
    size_t subschemas, levels, read_bytes;
};

static bool may_read(struct walk *walk, struct json value) {
    walk->read_bytes += value.raw.len;
    return walk->read_bytes <= READ_MAX_BYTES;
}

static bool fits(struct walk *walk, struct json schema);

static const struct keyword *find_keyword(struct json key) {
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (json_is(key, keywords[i].name)) return &keywords[i];
    }
    return NULL;
}

static bool fits_each(struct walk *walk, const struct keyword *keyword, struct json value) {
    struct json_reader at = json_enter(value);
    struct json key, inner;
    if (keyword->holds == HOLDS_ONE) return fits(walk, value);
    if (keyword->holds == HOLDS_LIST) {
        while (json_next_item(&at, &inner)) {
            if (!fits(walk, inner)) return false;
        }
    }
    if (keyword->holds == HOLDS_MAP) {
        while (json_next_member(&at, &key, &inner)) {
            if (!fits(walk, inner)) return false;
        }
    }
    return true;
}

static bool fits_keywords(struct walk *walk, struct json schema) {
    struct json_reader at = json_enter(schema);
    struct json key, value;
    while (json_next_member(&at, &key, &value)) {
        const struct keyword *keyword = find_keyword(key);
        if (!keyword || !(keyword->vendors & walk->vendor) || !fits_each(walk, keyword, value))
            return false;
    }
    return true;
}

static bool fits_format(const struct walk *walk, struct json format) {
    if (format.kind == JSON_NONE) return true;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (json_is(format, formats[i].name)) return formats[i].vendors & walk->vendor;
    }
    return false;
}

/* The definition that "#/$defs/NAME" or "#/definitions/NAME" means; escapes are not read. */
static struct json definition_of(struct json root, struct json ref) {
    static const struct str places[] = {STR_INIT("$defs"), STR_INIT("definitions")};
    struct str text = str_head(str_skip(ref.raw, 1), ref.raw.len - 2);
    for (size_t i = 0; i < ARRAY_LEN(places) && str_starts(text, STR("#/")); i++) {
        struct str rest = str_skip(text, 2);
        if (!str_starts(rest, places[i])) continue;
        struct json all = json_find(root, places[i]);
        rest = str_skip(rest, places[i].len);
        if (str_starts(rest, STR("/"))) return json_find(all, str_skip(rest, 1));
    }
    return (struct json){.kind = JSON_NONE};
}

/* OpenAI takes a reference to anywhere, alone. Anthropic refuses one that leads back to itself:
 * it is followed, and one that loops goes too deep. */
static bool fits_ref(struct walk *walk, struct json schema, struct json ref) {
    if (ref.kind != JSON_STRING) return false;
    if (walk->vendor == OPENAI) return json_count(schema) == 1;
    if (!may_read(walk, walk->root)) return false;
    struct json definition = definition_of(walk->root, ref);
    return definition.kind != JSON_NONE && fits(walk, definition);
}

static bool has_type(struct json type, struct str name) {
    struct json_reader at = json_enter(type);
    struct json one;
    if (type.kind == JSON_STRING) return json_is(type, name);
    while (json_next_item(&at, &one)) {
        if (json_is(one, name)) return true;
    }
    return false;
}

/* Most schemas list them in the order of the properties, so the search goes on where it was. */
static bool is_required(struct json required, struct json key, struct json_reader *at) {
    struct json item;
    if (json_next_item(at, &item) && str_equal(item.raw, key.raw)) return true;
    struct json_reader whole = json_enter(required);
    while (json_next_item(&whole, &item)) {
        if (str_equal(item.raw, key.raw)) return true;
    }
    return false;
}

static bool are_all_required(struct json properties, struct json required) {
    struct json_reader at = json_enter(properties), place = json_enter(required);
    struct json key, value;
    if (json_count(properties) > MEMBERS_MAX || json_count(required) > MEMBERS_MAX)
        return false;
    while (json_next_member(&at, &key, &value)) {
        if (!is_required(required, key, &place)) return false;
    }
    return true;
}

/* An object has no members but the listed ones, and at OpenAI has all of them. */
static bool fits_object(const struct walk *walk, struct json properties, struct json required,
                        struct json more) {
    return more.kind == JSON_FALSE &&
           (walk->vendor != OPENAI || are_all_required(properties, required));
}

static bool fits_here(struct walk *walk, struct json schema) {
    enum { TYPE, FORMAT, REF, ANY_OF, PROPERTIES, REQUIRED, MORE, ITEMS };
    static const struct str names[] = {[TYPE] = STR_INIT("type"),
                                       [FORMAT] = STR_INIT("format"),
                                       [REF] = STR_INIT("$ref"),
                                       [ANY_OF] = STR_INIT("anyOf"),
                                       [PROPERTIES] = STR_INIT("properties"),
                                       [REQUIRED] = STR_INIT("required"),
                                       [MORE] = STR_INIT("additionalProperties"),
                                       [ITEMS] = STR_INIT("items")};
    struct json found[ARRAY_LEN(names)];
    json_find_each(schema, names, ARRAY_LEN(names), found);
    bool object = has_type(found[TYPE], STR("object")) || found[PROPERTIES].kind != JSON_NONE;
    bool array = has_type(found[TYPE], STR("array"));
    bool says = found[TYPE].kind != JSON_NONE || found[ANY_OF].kind != JSON_NONE;
    if (!fits_keywords(walk, schema) || !fits_format(walk, found[FORMAT])) return false;
    if (found[REF].kind != JSON_NONE) return fits_ref(walk, schema, found[REF]);
    if (array && found[ITEMS].kind != JSON_OBJECT) return false;
    return says &&
           (!object || fits_object(walk, found[PROPERTIES], found[REQUIRED], found[MORE]));
}

static bool fits(struct walk *walk, struct json schema) {
    if (schema.kind != JSON_OBJECT || walk->subschemas++ == SUBSCHEMAS_MAX ||
        walk->levels == LEVELS_MAX || !may_read(walk, schema))
        return false;
    walk->levels++;
    bool fine = fits_here(walk, schema);
    walk->levels--;
    return fine;
}

bool reply_schema_is_enforced(struct json schema, enum schema_rules rules) {
    struct walk walk = {.root = schema, .vendor = 1u << rules};
    return json_find(schema, STR("anyOf")).kind == JSON_NONE && fits(&walk, schema);
}

/* --- the form ----------------------------------------------------------------------------- */

bool reply_form_of(const struct provider_request *request, enum schema_rules rules,
                   enum reply_form *ret, struct err *e) {
    struct json schema = {.kind = JSON_NONE};
    if (request->schema.len == 0) {
        *ret = REPLY_PROSE;
        return true;
    }
    if (!body_read_schema(request->schema, STR("the answer"), &schema, e)) return false;
    struct json type = json_find(schema, STR("type"));
    bool object = json_is(type, STR("object"));
    bool choice = json_find(schema, STR("anyOf")).kind != JSON_NONE;
    bool loose =
        request->schema_loose && rules == SCHEMA_OPENAI; /* Anthropic has no such form */
    if (object && json_count(schema) == 1)
        *ret = REPLY_ANY_OBJECT;
    else if (!object || choice)
        *ret = REPLY_NO_OBJECT;
    else if (!loose && reply_schema_is_enforced(schema, rules))
        *ret = REPLY_STRICT;
    else
        *ret = REPLY_LOOSE;
    return true;
}

void reply_schema_words(enum reply_form form, struct str schema, struct buf *out) {
    if (form == REPLY_PROSE) return;
    if (form == REPLY_ANY_OBJECT) {
        buf_append(out, STR("Your final answer is one JSON object alone, without any other "
                            "text or markup."));
        return;
    }
    buf_append(out, STR("Your final answer is JSON alone, without any other text or markup, "
                        "and follows this JSON Schema: "));
    buf_append(out, schema);
}
