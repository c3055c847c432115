#include "schema/schema.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include <stdlib.h>

static struct schema *schema_of(const char *text) {
    struct schema *schema = NULL;
    struct err e;
    if (!schema_read(str_from(text), &schema, &e)) fail_msg("%s: %s", text, e.text);
    return schema;
}

static bool check_text(const struct schema *schema, struct str text, struct err *e) {
    struct json value;
    if (!json_read(text, &value, e)) fail_msg(STR_FMT ": %s", STR_ARG(text), e->text);
    *e = (struct err){.code = ERR_NONE};
    bool fits = schema_check(schema, value, e);
    assert_int_equal(e->code, fits ? ERR_NONE : ERR_INVALID_ARGUMENT);
    return fits;
}

/* `why` NULL: the value fits. */
static void assert_verdict(const char *schema_text, const char *value, const char *why) {
    struct schema *schema = schema_of(schema_text);
    struct err e;
    bool fits = check_text(schema, str_from(value), &e);
    if (fits != !why) fail_msg("%s on %s: %s", schema_text, value, fits ? "fits" : e.text);
    if (why) assert_string_equal(e.text, why);
    schema_free(schema);
}

struct verdict {
    const char *schema, *value, *why;
};

static void assert_verdicts(const struct verdict *cases, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_verdict(cases[i].schema, cases[i].value, cases[i].why);
}

static void a_type_is_what_the_value_is(void **state) {
    (void)state;
    static const struct verdict cases[] = {
        {"{}", "[1,{}]", NULL},
        {"true", "null", NULL},
        {"false", "null", "no value is allowed here"},
        {"{\"type\":\"object\"}", "{}", NULL},
        {"{\"type\":\"object\"}", "[]", "expected an object, got an array"},
        {"{\"type\":\"array\"}", "[]", NULL},
        {"{\"type\":\"array\"}", "\"a\"", "expected an array, got a string"},
        {"{\"type\":\"string\"}", "\"\"", NULL},
        {"{\"type\":\"string\"}", "1", "expected a string, got a number"},
        {"{\"type\":\"number\"}", "1.5", NULL},
        {"{\"type\":\"number\"}", "\"1\"", "expected a number, got a string"},
        {"{\"type\":\"integer\"}", "1", NULL},
        {"{\"type\":\"integer\"}", "1.0", NULL},
        {"{\"type\":\"integer\"}", "12e-1",
         "expected an integer, got a number with a fraction"},
        {"{\"type\":\"integer\"}", "120e-1", NULL},
        {"{\"type\":\"integer\"}", "1e400", NULL},
        {"{\"type\":\"boolean\"}", "true", NULL},
        {"{\"type\":\"boolean\"}", "false", NULL},
        {"{\"type\":\"boolean\"}", "0", "expected true or false, got a number"},
        {"{\"type\":\"null\"}", "null", NULL},
        {"{\"type\":\"null\"}", "0", "expected null, got a number"},
        {"{\"type\":[\"string\",\"null\"]}", "null", NULL},
        {"{\"type\":[\"string\",\"null\"]}", "3", "expected a string or null, got a number"},
        {"{\"type\":[\"integer\",\"number\"]}", "1.5", NULL},
        {"{\"type\":[\"integer\",\"string\"]}", "1.5",
         "expected a string or an integer, got a number with a fraction"},
        {"{\"type\":\"string\",\"nullable\":true}", "null", NULL},
        {"{\"type\":\"string\",\"nullable\":false}", "null", "expected a string, got null"},
        {"{\"type\":\"string\",\"nullable\":true}", "1",
         "expected a string or null, got a number"},
    };
    assert_verdicts(cases, ARRAY_LEN(cases));
}

static void numbers_keep_their_bounds_exactly(void **state) {
    (void)state;
    static const struct verdict cases[] = {
        {"{\"minimum\":1}", "1.0", NULL},
        {"{\"minimum\":1}", "0.99", "expected a number of at least 1"},
        {"{\"minimum\":-2}", "-2.5", "expected a number of at least -2"},
        {"{\"minimum\":0}", "-0.0", NULL},
        {"{\"minimum\":0}", "-1e-400", "expected a number of at least 0"},
        {"{\"maximum\":9007199254740993}", "9007199254740993", NULL},
        {"{\"maximum\":9007199254740993}", "9007199254740994",
         "expected a number of at most 9007199254740993"},
        {"{\"maximum\":1e30}", "1000000000000000000000000000001",
         "expected a number of at most 1e30"},
        {"{\"maximum\":1e30}", "1000000000000000000000000000000", NULL},
        {"{\"exclusiveMinimum\":0}", "1e-400", NULL},
        {"{\"exclusiveMinimum\":0}", "0", "expected a number above 0"},
        {"{\"exclusiveMaximum\":10}", "9.999999999999999999999", NULL},
        {"{\"exclusiveMaximum\":10}", "10.0", "expected a number below 10"},
        {"{\"multipleOf\":3}", "9", NULL},
        {"{\"multipleOf\":3}", "10", "expected a number that is a multiple of 3"},
        {"{\"multipleOf\":0.01}", "4.35", NULL},
        {"{\"multipleOf\":0.01}", "4.355", "expected a number that is a multiple of 0.01"},
        {"{\"multipleOf\":0.1}", "1e300", NULL},
        {"{\"multipleOf\":7}", "700000000000000000000000000000000000", NULL},
        {"{\"multipleOf\":7}", "700000000000000000000000000000000001",
         "expected a number that is a multiple of 7"},
        {"{\"multipleOf\":20}", "30", "expected a number that is a multiple of 20"},
        {"{\"multipleOf\":20}", "-40", NULL},
        {"{\"multipleOf\":5}", "0", NULL},
        {"{\"minimum\":5,\"multipleOf\":2}", "\"text\"", NULL},
    };
    assert_verdicts(cases, ARRAY_LEN(cases));
}

static void a_given_value_is_compared_by_value(void **state) {
    (void)state;
    static const struct verdict cases[] = {
        {"{\"const\":1}", "1.0", NULL},
        {"{\"const\":1}", "10e-1", NULL},
        {"{\"const\":1}", "true", "expected 1"},
        {"{\"const\":0}", "-0", NULL},
        {"{\"const\":0}", "false", "expected 0"},
        {"{\"const\":9007199254740993}", "9007199254740992", "expected 9007199254740993"},
        {"{\"const\":{\"a\":1,\"b\":[2]}}", "{\"b\":[2.0],\"a\":1e0}", NULL},
        {"{\"const\":{\"a\":1}}", "{\"a\":2,\"a\":1}", NULL},
        {"{\"const\":{\"a\":1}}", "{\"a\":1,\"a\":2}", "expected {\"a\":1}"},
        {"{\"const\":{\"a\":1}}", "{\"a\":1,\"b\":1}", "expected {\"a\":1}"},
        {"{\"const\":\"\\u0061\"}", "\"a\"", NULL},
        {"{\"const\":[1,2]}", "[2,1]", "expected [1,2]"},
        {"{\"enum\":[\"low\",\"high\",1,null]}", "\"high\"", NULL},
        {"{\"enum\":[\"low\",\"high\",1,null]}", "1.00", NULL},
        {"{\"enum\":[\"low\",\"high\",1,null]}", "null", NULL},
        {"{\"enum\":[\"low\",\"high\"]}", "\"hihg\"",
         "expected one of [\"low\",\"high\"]; did you mean 'high'?"},
        {"{\"enum\":[\"low\",\"high\"]}", "7", "expected one of [\"low\",\"high\"]"},
        {"{\"enum\":[]}", "7", "expected one of []"},
    };
    assert_verdicts(cases, ARRAY_LEN(cases));
}

static void strings_are_measured_in_characters(void **state) {
    (void)state;
    static const struct verdict cases[] = {
        {"{\"minLength\":3}", "\"äöü\"", NULL},
        {"{\"minLength\":3}", "\"\\ud83d\\ude00a\"", "expected at least 3 characters, got 2"},
        {"{\"maxLength\":2}", "\"\\ud83d\\ude00a\"", NULL},
        {"{\"maxLength\":2.0}", "\"abc\"", "expected at most 2 characters, got 3"},
        {"{\"maxLength\":0}", "\"\"", NULL},
        {"{\"minLength\":3}", "17", NULL},
        {"{\"pattern\":\"b+\"}", "\"abbc\"", NULL},
        {"{\"pattern\":\"^b+$\"}", "\"abbc\"", "expected a text that matches '^b+$'"},
        {"{\"pattern\":\"^b+$\"}", "\"bb\"", NULL},
        {"{\"pattern\":\"^b+$\"}", "\"bb\\n\"", "expected a text that matches '^b+$'"},
        {"{\"pattern\":\"^.$\"}", "\"ä\"", NULL},
        {"{\"pattern\":\"^\\\\d$\"}", "\"٣\"", "expected a text that matches '^\\d$'"},
        {"{\"pattern\":\"^\\\\u00e4$\"}", "\"ä\"", NULL},
        {"{\"pattern\":\"^\\\\p{L}+$\"}", "\"Kyōto\"", NULL},
        {"{\"pattern\":\"a\"}", "[]", NULL},
        {"{\"pattern\":\"\"}", "\"\"", NULL},
        {"{\"pattern\":\"a\\u0000b\"}", "\"a\\u0000b\"", NULL},
    };
    assert_verdicts(cases, ARRAY_LEN(cases));
}

#define TRIP                                                                                   \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":"  \
    "\"array\",\"items\":{\"type\":\"integer\"}}},\"required\":[\"city\"],"                    \
    "\"additionalProperties\":false}"

static void objects_are_their_properties(void **state) {
    (void)state;
    static const struct verdict cases[] = {
        {TRIP, "{\"city\":\"Kyoto\",\"days\":[1,2]}", NULL},
        {TRIP, "{\"city\":\"Kyoto\",\"days\":[1,\"2\"]}",
         "/days/1: expected an integer, got a string"},
        {TRIP, "{\"days\":[]}", "the property 'city' is missing"},
        {TRIP, "{\"citty\":\"Kyoto\"}",
         "/citty: there is no such property; did you mean 'city'?"},
        {TRIP, "{\"city\":\"Kyoto\",\"budget\":1}", "/budget: there is no such property"},
        {TRIP, "{\"city\":1,\"city\":\"Kyoto\"}", NULL},
        {"{\"additionalProperties\":false}", "{}", NULL},
        {"{\"additionalProperties\":false}", "{\"a\":1}", "/a: there is no such property"},
        {"{\"additionalProperties\":{\"type\":\"string\"},\"properties\":{\"n\":{}}}",
         "{\"n\":1,\"m\":\"x\"}", NULL},
        {"{\"additionalProperties\":{\"type\":\"string\"},\"properties\":{\"n\":{}}}",
         "{\"n\":1,\"m\":1}", "/m: expected a string, got a number"},
        {"{\"propertyNames\":{\"maxLength\":2}}", "{\"ab\":1}", NULL},
        {"{\"propertyNames\":{\"maxLength\":2}}", "{\"abc\":1}",
         "the name of a property: /abc: expected at most 2 characters, got 3"},
        {"{\"minProperties\":1}", "{\"a\":1}", NULL},
        {"{\"minProperties\":2}", "{\"a\":1,\"a\":2}", "expected at least 2 properties, got 1"},
        {"{\"maxProperties\":1}", "{\"a\":1,\"a\":2}", NULL},
        {"{\"maxProperties\":1}", "{\"a\":1,\"b\":2}", "expected at most 1 properties, got 2"},
        {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"b\":1}", NULL},
        {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1,\"b\":1}", NULL},
        {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}",
         "the property 'b' is missing, which 'a' requires"},
        {"{\"required\":[\"a\"]}", "[]", NULL},
    };
    assert_verdicts(cases, ARRAY_LEN(cases));
}

static void arrays_are_their_items(void **state) {
    (void)state;
    static const struct verdict cases[] = {
        {"{\"items\":{\"type\":\"null\"}}", "[null,null]", NULL},
        {"{\"items\":{\"type\":\"null\"}}", "[null,1]", "/1: expected null, got a number"},
        {"{\"items\":false}", "[]", NULL},
        {"{\"items\":false}", "[1]", "/0: no value is allowed here"},
        {"{\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "[\"a\"]", NULL},
        {"{\"prefixItems\":[{\"type\":\"string\"}]}", "[\"a\",2]", NULL},
        {"{\"prefixItems\":[{\"type\":\"string\"}]}", "[1]",
         "/0: expected a string, got a number"},
        {"{\"prefixItems\":[true],\"items\":{\"type\":\"null\"}}", "[1,null]", NULL},
        {"{\"prefixItems\":[true],\"items\":{\"type\":\"null\"}}", "[1,null,2]",
         "/2: expected null, got a number"},
        {"{\"minItems\":2}", "[1,2]", NULL},
        {"{\"minItems\":2}", "[1]", "expected at least 2 items, got 1"},
        {"{\"maxItems\":1}", "[1]", NULL},
        {"{\"maxItems\":1}", "[1,2]", "expected at most 1 items, got 2"},
        {"{\"contains\":{\"const\":3}}", "[1,3]", NULL},
        {"{\"contains\":{\"const\":3}}", "[1]",
         "expected at least one item as 'contains' describes"},
        {"{\"contains\":true}", "[]", "expected at least one item as 'contains' describes"},
        {"{\"uniqueItems\":true}", "[1,\"1\",true,[1],{\"a\":1}]", NULL},
        {"{\"uniqueItems\":true}", "[]", NULL},
        {"{\"uniqueItems\":true}", "[1,2,1.0]", "items 0 and 2 are the same"},
        {"{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]",
         "items 0 and 1 are the same"},
        {"{\"uniqueItems\":false}", "[1,1]", NULL},
        {"{\"items\":false,\"minItems\":3}", "{}", NULL},
    };
    assert_verdicts(cases, ARRAY_LEN(cases));
}

static void schemas_are_made_of_schemas(void **state) {
    (void)state;
    static const struct verdict cases[] = {
        {"{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "2", NULL},
        {"{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "4",
         "expected a number of at most 3"},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "null", NULL},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "1",
         "fits none of the 2 alternatives; the nearest says: expected a string, got a number"},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"properties\":{\"a\":{\"type\":\"null\"}}}]}",
         "{\"a\":1}",
         "fits none of the 2 alternatives; the nearest says: /a: expected null, got a number"},
        {"{\"anyOf\":[{\"type\":\"string\"}]}", "1", "expected a string, got a number"},
        {"{\"oneOf\":[{\"minimum\":5},{\"type\":\"integer\"}]}", "5.5", NULL},
        {"{\"oneOf\":[{\"minimum\":5},{\"type\":\"integer\"}]}", "5",
         "fits alternative 1 and 2, and must fit exactly one"},
        {"{\"oneOf\":[{\"minimum\":5},{\"type\":\"integer\"}]}", "0.5",
         "fits none of the 2 alternatives; the nearest says: expected a number of at least 5"},
        {"{\"not\":{\"type\":\"null\"}}", "1", NULL},
        {"{\"not\":{\"type\":\"null\"}}", "null", "is just what 'not' describes"},
        {"{\"if\":{\"minimum\":5},\"then\":{\"maximum\":9},\"else\":{\"type\":\"integer\"}}",
         "7", NULL},
        {"{\"if\":{\"minimum\":5},\"then\":{\"maximum\":9},\"else\":{\"type\":\"integer\"}}",
         "10", "expected a number of at most 9"},
        {"{\"if\":{\"minimum\":5},\"then\":{\"maximum\":9},\"else\":{\"type\":\"integer\"}}",
         "1.5", "expected an integer, got a number with a fraction"},
        {"{\"if\":false,\"then\":false}", "1", NULL},
        {"{\"then\":false,\"else\":false}", "1", NULL},
    };
    assert_verdicts(cases, ARRAY_LEN(cases));
}

#define TREE                                                                                   \
    "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{"     \
    "\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/node\"},{\"type\":\"null\"}]}},"                 \
    "\"additionalProperties\":false}}}"

static void references_lead_to_definitions(void **state) {
    (void)state;
    static const struct verdict cases[] = {
        {TREE, "{\"next\":{\"next\":{\"next\":null}}}", NULL},
        {TREE, "{\"next\":{\"mext\":{}}}",
         "/next: fits none of the 2 alternatives; the nearest says: /next/mext: there is no "
         "such "
         "property; did you mean 'next'?"},
        {"{\"properties\":{\"child\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
         "{\"child\":{\"child\":{}}}", NULL},
        {"{\"properties\":{\"child\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
         "{\"child\":{\"x\":{}}}", "/child/x: there is no such property"},
        {"{\"$ref\":\"#/definitions/a~1b%20~0\",\"definitions\":{\"a/b ~\":{\"const\":1}}}",
         "1", NULL},
        {"{\"$ref\":\"#/definitions/a~1b%20~0\",\"definitions\":{\"a/b ~\":{\"const\":1}}}",
         "2", "expected 1"},
        {"{\"$ref\":\"#/$defs/a\",\"minimum\":3,\"$defs\":{\"a\":{\"maximum\":5}}}", "2",
         "expected a number of at least 3"},
        {"{\"$ref\":\"#/$defs/a\",\"minimum\":3,\"$defs\":{\"a\":{\"maximum\":5}}}", "6",
         "expected a number of at most 5"},
    };
    assert_verdicts(cases, ARRAY_LEN(cases));
}

static void places_are_json_pointers(void **state) {
    (void)state;
    assert_verdict("{\"properties\":{\"a/b\":{\"properties\":{\"c~d\":{\"items\":{\"const\":"
                   "1}}}}}}",
                   "{\"a/b\":{\"c~d\":[1,2]}}", "/a~1b/c~0d/1: expected 1");
    assert_verdict("{\"properties\":{\"\":{\"const\":1}}}", "{\"\":2}", "/: expected 1");
    assert_verdict("{\"properties\":{\"a\\nb\":{\"const\":1}}}", "{\"a\\nb\":2}",
                   "/a?b: expected 1");
}

static void a_long_place_shows_its_end(void **state) {
    (void)state;
    struct buf value;
    buf_init(&value, 4 * KIB);
    for (int i = 0; i < 30; i++) buf_printf(&value, "{\"a_rather_long_name_%02d\":", i);
    buf_printf(&value, "1");
    for (int i = 0; i < 30; i++) buf_append_byte(&value, '}');
    struct schema *schema =
        schema_of("{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#\"}}");
    struct err e;
    assert_false(check_text(schema, buf_str(&value), &e));
    assert_true(str_starts(err_text(&e), STR("...")));
    assert_true(str_ends(err_text(&e),
                         STR("/a_rather_long_name_29: expected an object, got a number")));
    schema_free(schema);
    buf_done(&value);
}

static void a_schema_with_an_unknown_demand_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *schema, *why;
    } cases[] = {
        {"7", "expected a schema (an object, true or false), got a number"},
        {"{\"properties\":{\"x\":{\"type\":\"strnig\"}}}",
         "/properties/x/type: no type is called 'strnig'; did you mean 'string'?"},
        {"{\"type\":[]}", "/type: expected at least one type"},
        {"{\"type\":[\"string\",4]}", "/type/1: expected a string, got a number"},
        {"{\"type\":5}", "/type: expected a string, got a number"},
        {"{\"nullable\":\"yes\"}", "/nullable: expected true or false, got a string"},
        {"{\"requird\":[]}",
         "the keyword 'requird' is not understood; did you mean 'required'?"},
        {"{\"items\":{\"unevaluatedProperties\":false}}",
         "/items: the keyword 'unevaluatedProperties' is not understood; leave it out, or say "
         "it "
         "with others"},
        {"{\"contentMediaType\":\"text/html\"}",
         "the keyword 'contentMediaType' is not understood; leave it out, or say it with "
         "others"},
        {"{\"contentEncoding\":\"base64\"}",
         "the keyword 'contentEncoding' is not understood; leave it out, or say it with "
         "others"},
        {"{\"items\":[{}]}",
         "/items: a list of schemas is said with 'prefixItems'; 'items' is one schema"},
        {"{\"required\":\"a\"}", "/required: expected an array, got a string"},
        {"{\"required\":[1]}", "/required/0: expected a string, got a number"},
        {"{\"properties\":[]}", "/properties: expected an object, got an array"},
        {"{\"properties\":{\"a/b\":3}}",
         "/properties/a~1b: expected a schema (an object, true or false), got a number"},
        {"{\"enum\":3}", "/enum: expected an array, got a number"},
        {"{\"minLength\":-1}", "/minLength: expected a whole number from 0 on"},
        {"{\"minLength\":1.5}", "/minLength: expected a whole number from 0 on"},
        {"{\"minItems\":\"1\"}", "/minItems: expected a whole number from 0 on"},
        {"{\"minimum\":\"1\"}", "/minimum: expected a number, got a string"},
        {"{\"exclusiveMinimum\":true}",
         "/exclusiveMinimum: expected the limit itself, a number, got a boolean as in draft 4"},
        {"{\"multipleOf\":0}", "/multipleOf: expected a number above zero"},
        {"{\"multipleOf\":-1}", "/multipleOf: expected a number above zero"},
        {"{\"multipleOf\":1234567890123456789}",
         "/multipleOf: expected a number of at most 18 digits"},
        {"{\"uniqueItems\":1}", "/uniqueItems: expected true or false, got a number"},
        {"{\"anyOf\":[]}", "/anyOf: expected at least one schema in the list"},
        {"{\"anyOf\":{}}", "/anyOf: expected an array, got an object"},
        {"{\"anyOf\":[{},{\"type\":1}]}", "/anyOf/1/type: expected a string, got a number"},
        {"{\"if\":{},\"then\":3}",
         "/then: expected a schema (an object, true or false), got a number"},
        {"{\"else\":3}", "/else: expected a schema (an object, true or false), got a number"},
        {"{\"dependentRequired\":{\"a\":\"b\"}}",
         "/dependentRequired/a: expected an array, got a string"},
        {"{\"pattern\":\"a(\"}",
         "/pattern: the pattern is wrong at byte 2: missing closing parenthesis"},
        {"{\"$defs\":{\"unused\":{\"tpye\":1}}}",
         "/$defs/unused: the keyword 'tpye' is not understood; did you mean 'type'?"},
        {"{\"$ref\":\"#/$defs/nmae\",\"$defs\":{\"name\":{}}}",
         "/$ref: there is no definition 'nmae'; did you mean 'name'?"},
        {"{\"$ref\":\"#/$defs/name\"}", "/$ref: there is no definition 'name'"},
        {"{\"$ref\":\"#/properties/a\"}",
         "/$ref: '#/properties/a' is not a place that is followed; use #, #/$defs/name or "
         "#/definitions/name"},
        {"{\"$ref\":\"https://example.com/s.json\"}",
         "/$ref: 'https://example.com/s.json' is not a place that is followed; use #, "
         "#/$defs/name or #/definitions/name"},
        {"{\"items\":{\"$id\":\"b\"}}",
         "/items/$id: an $id inside a schema is not understood; leave it out, or move what it "
         "names to $defs"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct schema *schema = NULL;
        struct err e;
        if (schema_read(str_from(cases[i].schema), &schema, &e))
            fail_msg("%s", cases[i].schema);
        assert_null(schema);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_string_equal(e.text, cases[i].why);
    }
}

static void annotations_say_nothing(void **state) {
    (void)state;
    assert_verdict(
        "{\"title\":\"t\",\"description\":1,\"default\":{},\"examples\":[],"
        "\"format\":\"date\",\"deprecated\":true,\"readOnly\":true,\"writeOnly\":true,"
        "\"$schema\":\"s\",\"$id\":\"i\",\"$comment\":\"c\",\"x-order\":3,"
        "\"nullable\":true}",
        "[]", NULL);
}

static void a_schema_keeps_its_text(void **state) {
    (void)state;
    char text[] = " { \"type\" : \"null\" } ";
    struct schema *schema = schema_of(text);
    memset(text, 'x', sizeof(text));
    assert_true(str_equal(schema_text(schema), STR(" { \"type\" : \"null\" } ")));
    struct err e;
    assert_true(check_text(schema, STR("null"), &e));
    assert_false(schema_check(schema, (struct json){.kind = JSON_NONE}, &e));
    assert_string_equal(e.text, "expected a value, got nothing");
    schema_free(schema);
    schema_free(NULL);
}

static void text_that_is_not_json_is_malformed(void **state) {
    (void)state;
    struct str whole = STR(TREE);
    for (size_t len = 0; len < whole.len; len++) {
        struct schema *schema;
        struct err e;
        assert_false(schema_read(str_head(whole, len), &schema, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
    }
}

static void a_reference_that_only_leads_back_is_refused(void **state) {
    (void)state;
    static const char *const circles[] = {
        "{\"$ref\":\"#\"}",
        "{\"allOf\":[{\"$ref\":\"#\"}]}",
        "{\"not\":{\"$ref\":\"#\"}}",
        "{\"if\":true,\"else\":{\"oneOf\":[true,{\"$ref\":\"#\"}]}}",
        "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"not\":{\"$ref\":\"#/$defs/a\"}}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(circles); i++) {
        struct schema *schema;
        struct err e;
        if (schema_read(str_from(circles[i]), &schema, &e)) fail_msg("%s", circles[i]);
        assert_string_equal(e.text, "a $ref leads back to itself without looking at a part of "
                                    "the value; let it stand below properties or items");
    }
}

#define FIRST "\"$ref\":\"#/$defs/d0\""

/* `root` leads to d0 -> d1 -> ... -> the last, each by `link` with the next one for each ?. */
static struct str chain(struct buf *out, const char *root, unsigned length, const char *link) {
    buf_printf(out, "{%s,\"$defs\":{", root);
    for (unsigned i = 0; i < length; i++) {
        buf_printf(out, "\"d%u\":", i);
        for (const char *at = link; *at; at++) {
            if (*at == '?') {
                buf_printf(out, "{\"$ref\":\"#/$defs/d%u\"}", i + 1);
            } else {
                buf_append_byte(out, *at);
            }
        }
        buf_append_byte(out, ',');
    }
    buf_printf(out, "\"d%u\":{\"type\":\"string\"}}}", length);
    return buf_str(out);
}

static void a_chain_of_references_has_a_length(void **state) {
    (void)state;
    static const struct {
        unsigned length;
        bool fine;
    } cases[] = {{40, true}, {200, false}, {20000, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text;
        struct schema *schema = NULL;
        struct err e;
        buf_init(&text, 1 * MIB);
        bool read =
            schema_read(chain(&text, FIRST, cases[i].length, "{\"allOf\":[?]}"), &schema, &e);
        if (read) assert_true(check_text(schema, STR("\"a\""), &e));
        if (cases[i].fine) assert_true(read);
        if (!read) assert_non_null(strstr(e.text, "make the chain shorter"));
        schema_free(schema);
        buf_done(&text);
    }
}

static void alternatives_that_multiply_come_to_an_end(void **state) {
    (void)state;
    struct buf text;
    struct schema *schema;
    struct err e;
    buf_init(&text, 1 * MIB);
    /* Neither 'not' nor 'if' nor an alternative may take giving up for an answer. */
    static const char *const roots[] = {
        FIRST,
        "\"not\":{" FIRST "}",
        "\"anyOf\":[{" FIRST "},true]",
        "\"oneOf\":[{" FIRST "},true]",
        "\"if\":{" FIRST "},\"else\":true",
        "\"contains\":{" FIRST "}",
        "\"propertyNames\":{" FIRST "}",
    };
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        const char *value = i < 5 ? "\"a\"" : i == 5 ? "[\"a\",\"b\"]" : "{\"a\":1}";
        buf_clear(&text);
        assert_true(schema_read(chain(&text, roots[i], 50, "{\"allOf\":[?,?]}"), &schema, &e));
        if (check_text(schema, str_from(value), &e)) fail_msg("%s", roots[i]);
        assert_non_null(strstr(e.text, "checking takes too many steps; simplify the schema"));
        schema_free(schema);
    }
    buf_done(&text);
}

static void patterns_that_run_away_are_stopped(void **state) {
    (void)state;
    static const char *const patterns[] = {
        "^(a+)+$",       "(a+)+b",         "(a|aa)+$",       "^(a|a?)+$",   "(.*)*x",
        "(.*)(.*)(.*)x", "^(([a-z])+.)+z", "(a?){30}a{30}b", "(a*)*\\\\1b", "(?=(a+))\\\\1*b",
    };
    struct buf value, schema_json;
    buf_init(&value, 1 * MIB);
    buf_init(&schema_json, KIB);
    buf_append_byte(&value, '"');
    for (int i = 0; i < 12000; i++) buf_append_byte(&value, 'a');
    buf_append(&value, STR("!\""));
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        buf_clear(&schema_json);
        buf_printf(&schema_json, "{\"not\":{\"pattern\":\"%s\"}}%c", patterns[i], 0);
        struct schema *schema = schema_of(schema_json.at);
        struct err e;
        /* Decided or given up, but never taken for a match. */
        bool fits = check_text(schema, buf_str(&value), &e);
        if (!fits && !strstr(e.text, "takes too many steps"))
            fail_msg("%s: %s", patterns[i], e.text);
        schema_free(schema);
    }
    buf_done(&schema_json);
    buf_done(&value);
}

static void a_pattern_decides_ordinary_texts(void **state) {
    (void)state;
    struct buf value;
    buf_init(&value, 2 * MIB);
    buf_append_byte(&value, '"');
    for (size_t i = 0; i < 900 * KIB; i++) buf_append_byte(&value, "abcdef0123456789"[i % 16]);
    buf_append_byte(&value, '"');
    struct schema *schema = schema_of("{\"pattern\":\"^[a-f0-9]*$\"}");
    struct err e;
    assert_true(check_text(schema, buf_str(&value), &e));
    schema_free(schema);
    schema = schema_of("{\"pattern\":\"^(a|b)+$\"}");
    buf_clear(&value);
    buf_append_byte(&value, '"');
    for (size_t i = 0; i < 4 * KIB; i++) buf_append_byte(&value, "ab"[i % 2]);
    buf_append_byte(&value, '"');
    assert_true(check_text(schema, buf_str(&value), &e));
    schema_free(schema);
    buf_done(&value);
}

static void a_hundred_thousand_items_are_distinguished(void **state) {
    (void)state;
    struct buf value;
    buf_init(&value, 8 * MIB);
    buf_append_byte(&value, '[');
    for (unsigned i = 0; i < 100000; i++) buf_printf(&value, "{\"n\":%u},", i * 7919 % 100003);
    size_t before = value.len;
    struct schema *schema = schema_of("{\"uniqueItems\":true,\"items\":{\"type\":\"object\"}}");
    struct err e;
    buf_printf(&value, "{\"n\":-1}]");
    assert_true(check_text(schema, buf_str(&value), &e));
    value.len = before;
    buf_printf(&value, "{\"n\":7919.0}]");
    assert_false(check_text(schema, buf_str(&value), &e));
    assert_string_equal(e.text, "items 1 and 100000 are the same");
    schema_free(schema);
    buf_done(&value);
}

static void values_are_checked_as_deep_as_they_are_read(void **state) {
    (void)state;
    struct buf value;
    buf_init(&value, KIB);
    for (int i = 0; i < JSON_DEPTH_MAX; i++) buf_append_byte(&value, '[');
    for (int i = 0; i < JSON_DEPTH_MAX; i++) buf_append_byte(&value, ']');
    struct schema *schema = schema_of("{\"anyOf\":[{\"type\":\"null\"},{\"allOf\":[{\"type\":"
                                      "\"array\",\"items\":{\"$ref\":\"#\"}}]}]}");
    struct err e;
    assert_true(check_text(schema, buf_str(&value), &e));
    schema_free(schema);
    buf_done(&value);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_type_is_what_the_value_is),
        cmocka_unit_test(numbers_keep_their_bounds_exactly),
        cmocka_unit_test(a_given_value_is_compared_by_value),
        cmocka_unit_test(strings_are_measured_in_characters),
        cmocka_unit_test(objects_are_their_properties),
        cmocka_unit_test(arrays_are_their_items),
        cmocka_unit_test(schemas_are_made_of_schemas),
        cmocka_unit_test(references_lead_to_definitions),
        cmocka_unit_test(places_are_json_pointers),
        cmocka_unit_test(a_long_place_shows_its_end),
        cmocka_unit_test(a_schema_with_an_unknown_demand_is_refused),
        cmocka_unit_test(annotations_say_nothing),
        cmocka_unit_test(a_schema_keeps_its_text),
        cmocka_unit_test(text_that_is_not_json_is_malformed),
        cmocka_unit_test(a_reference_that_only_leads_back_is_refused),
        cmocka_unit_test(a_chain_of_references_has_a_length),
        cmocka_unit_test(alternatives_that_multiply_come_to_an_end),
        cmocka_unit_test(patterns_that_run_away_are_stopped),
        cmocka_unit_test(a_pattern_decides_ordinary_texts),
        cmocka_unit_test(a_hundred_thousand_items_are_distinguished),
        cmocka_unit_test(values_are_checked_as_deep_as_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
