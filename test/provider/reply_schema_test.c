/* Which schemas a vendor is asked to enforce, and how the others are asked for. */
#include "provider/reply_schema.h"

#include "asking.h"

/* With ' in place of ". */
static struct json schema_of(const char *text, struct buf *room) {
    struct json schema = {.kind = JSON_NONE};
    struct err e;
    append_json(room, text);
    assert_true(json_read(buf_str(room), &schema, &e));
    return schema;
}

static void assert_enforced(const char *text, bool openai, bool anthropic) {
    struct buf room;
    buf_init(&room, BODY_MAX_BYTES);
    struct json schema = schema_of(text, &room);
    if (reply_schema_is_enforced(schema, SCHEMA_OPENAI) != openai ||
        reply_schema_is_enforced(schema, SCHEMA_ANTHROPIC) != anthropic)
        fail_msg("%s", text);
    buf_done(&room);
}

#define OBJECT(more) "{'type':'object','additionalProperties':false" more "}"
#define WITH_A(schema) OBJECT(",'properties':{'a':" schema "},'required':['a']")

static void an_object_must_be_closed_and_at_openai_complete(void **state) {
    (void)state;
    assert_enforced(OBJECT(""), true, true);
    assert_enforced(WITH_A("{'type':'string'}"), true, true);
    assert_enforced(OBJECT(",'properties':{'a':{'type':'string'},'b':{'type':'null'}},"
                           "'required':['b','a']"),
                    true, true);
    assert_enforced(OBJECT(",'properties':{'a':{'type':'string'}}"), false, true);
    assert_enforced(OBJECT(",'properties':{'a':{'type':'string'}},'required':[]"), false, true);
    assert_enforced("{'type':'object'}", false, false);
    assert_enforced("{'type':'object','additionalProperties':true}", false, false);
    assert_enforced("{'type':'object','properties':{'a':{'type':'string'}},'required':['a']}",
                    false, false);
}

static void a_rule_holds_at_every_depth(void **state) {
    (void)state;
    assert_enforced(WITH_A(WITH_A("{'type':'integer'}")), true, true);
    assert_enforced(WITH_A("{'type':'object'}"), false, false);
    assert_enforced(WITH_A("{'type':['object','null']}"), false, false);
    assert_enforced(WITH_A("{'type':'array','items':{'type':'object'}}"), false, false);
    assert_enforced(WITH_A("{'type':'array','items':" OBJECT("") "}"), true, true);
    assert_enforced(WITH_A("{'type':'array'}"), false, false);
    assert_enforced(WITH_A("{'anyOf':[{'type':'string'},{'type':'object'}]}"), false, false);
    assert_enforced(WITH_A("{'anyOf':[{'type':'string'},{'type':'null'}]}"), true, true);
    assert_enforced(WITH_A("{'description':'anything'}"), false, false);
    assert_enforced(WITH_A("true"), false, false);
}

static void what_a_vendor_does_not_know_is_not_sent_to_it(void **state) {
    (void)state;
    assert_enforced(WITH_A("{'type':'integer','minimum':1}"), true, false);
    assert_enforced(WITH_A("{'type':'string','pattern':'a'}"), true, false);
    assert_enforced(WITH_A("{'type':'string','default':'a'}"), false, true);
    assert_enforced(WITH_A("{'type':'string','minLength':1}"), false, false);
    assert_enforced(WITH_A("{'type':'string','format':'date'}"), true, true);
    assert_enforced(WITH_A("{'type':'string','format':'uri'}"), false, true);
    assert_enforced(WITH_A("{'type':'string','format':'iban'}"), false, false);
    assert_enforced(WITH_A("{'oneOf':[{'type':'string'}]}"), false, false);
    assert_enforced(OBJECT(",'anyOf':[{'type':'object'}]"), false, false);
}

static void a_reference_may_lead_back_at_openai_only(void **state) {
    (void)state;
#define WITH_DEFS(place, schema)                                                               \
    OBJECT(",'properties':{'a':{'$ref':'#/" place "/n'}},'required':['a'],'" place             \
           "':{'n':" schema "}")
    assert_enforced(WITH_DEFS("$defs", "{'type':'string'}"), true, true);
    assert_enforced(WITH_DEFS("definitions", "{'type':'string'}"), true, true);
    assert_enforced(WITH_DEFS("$defs", "{'type':'object'}"), false, false);
    assert_enforced(WITH_DEFS("$defs", WITH_A("{'$ref':'#/$defs/n'}")), true, false);
    assert_enforced(WITH_A("{'$ref':'#/$defs/none'}"), true, false);
    assert_enforced(
        OBJECT(",'properties':{'a':{'$ref':'#/$defs/n','title':'N'}},'required':['a'],"
               "'$defs':{'n':{'type':'string'}}"),
        false, true);
}

/* Each definition has the next one twice: 2 to the power of 40 when all are followed. */
static void references_that_multiply_are_given_up(void **state) {
    (void)state;
    struct buf text;
    struct err e;
    struct json schema = {.kind = JSON_NONE};
    buf_init(&text, BODY_MAX_BYTES);
    append_json(&text, "{'type':'object','additionalProperties':false,'$defs':{'d40':{'type':"
                       "'string'}");
    for (int i = 0; i < 40; i++)
        buf_printf(&text,
                   ",\"d%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}"
                   "]}",
                   i, i + 1, i + 1);
    append_json(&text, "}}");
    assert_true(json_read(buf_str(&text), &schema, &e));
    assert_true(reply_schema_is_enforced(schema, SCHEMA_OPENAI));
    assert_false(reply_schema_is_enforced(schema, SCHEMA_ANTHROPIC));
    buf_done(&text);
}

/* Each reference is one subschema, but what it means is long. */
static void references_to_a_long_definition_are_given_up(void **state) {
    (void)state;
    static const struct {
        unsigned references;
        bool enforced;
    } cases[] = {{10, true}, {500, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text;
        struct err e;
        struct json schema = {.kind = JSON_NONE};
        buf_init(&text, MIB);
        append_json(&text, "{'type':'object','additionalProperties':false,'properties':{'a':"
                           "{'$ref':'#/$defs/d'}");
        for (unsigned k = 1; k < cases[i].references; k++)
            buf_printf(&text, ",\"p%u\":{\"$ref\":\"#/$defs/d\"}", k);
        append_json(&text, "},'$defs':{'d':{'type':'string','description':'");
        for (size_t k = 0; k < 10000; k++) buf_append(&text, STR("long long "));
        append_json(&text, "'}}}");
        assert_true(json_read(buf_str(&text), &schema, &e));
        assert_int_equal(reply_schema_is_enforced(schema, SCHEMA_ANTHROPIC), cases[i].enforced);
        buf_done(&text);
    }
}

static const struct message ask[] = {M_USER("q")};

static void assert_form(const char *text, bool loose, enum reply_form openai,
                        enum reply_form anthropic) {
    struct buf room;
    struct err e;
    enum reply_form form;
    buf_init(&room, BODY_MAX_BYTES);
    append_json(&room, text);
    const struct provider_request *request =
        ASKING(ask, .schema = buf_str(&room), .schema_loose = loose);
    assert_true(reply_form_of(request, SCHEMA_OPENAI, &form, &e));
    assert_int_equal(form, openai);
    assert_true(reply_form_of(request, SCHEMA_ANTHROPIC, &form, &e));
    assert_int_equal(form, anthropic);
    buf_done(&room);
}

static void the_form_follows_from_the_schema_and_the_caller(void **state) {
    (void)state;
    assert_form("", false, REPLY_PROSE, REPLY_PROSE);
    assert_form(" { 'type' : 'object' } ", false, REPLY_ANY_OBJECT, REPLY_ANY_OBJECT);
    assert_form(WITH_A("{'type':'null'}"), false, REPLY_STRICT, REPLY_STRICT);
    assert_form(WITH_A("{'type':'null'}"), true, REPLY_LOOSE, REPLY_STRICT);
    assert_form("{'type':'object','minProperties':1}", false, REPLY_LOOSE, REPLY_LOOSE);
    assert_form("{'type':'array','items':{'type':'string'}}", false, REPLY_NO_OBJECT,
                REPLY_NO_OBJECT);
    assert_form("{}", false, REPLY_NO_OBJECT, REPLY_NO_OBJECT);
}

static void what_is_no_schema_is_refused(void **state) {
    (void)state;
    enum reply_form form;
    struct err e;
    assert_false(reply_form_of(ASKING(ask, .schema = STR("[]")), SCHEMA_OPENAI, &form, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_str(err_text(&e), "the schema of 'the answer' is an array; write an object");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_must_be_closed_and_at_openai_complete),
        cmocka_unit_test(a_rule_holds_at_every_depth),
        cmocka_unit_test(what_a_vendor_does_not_know_is_not_sent_to_it),
        cmocka_unit_test(a_reference_may_lead_back_at_openai_only),
        cmocka_unit_test(references_that_multiply_are_given_up),
        cmocka_unit_test(references_to_a_long_definition_are_given_up),
        cmocka_unit_test(the_form_follows_from_the_schema_and_the_caller),
        cmocka_unit_test(what_is_no_schema_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
