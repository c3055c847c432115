/* The documents about the route table: complete, valid, and equal to the committed ones. */
#include "contract/agentbreeder/describe.h"

#include "base/file.h"
#include "helper/assert_str.h"
#include "wire/json.h"
#include "wire/yaml.h"

#define COMMITTED "engine/schema/runtime-contract-v1.openapi.yaml"

static const struct runtime_settings settings = {.guest.body_max_bytes = KIB,
                                                 .agent_name = STR_INIT("tiny"),
                                                 .agent_version = STR_INIT("2.3.4")};

static struct runtime_instance instance;
static struct route_table table;
static struct buf text;
static struct json document;

static int set_up(void **state) {
    (void)state;
    guest_init(&instance.guest, &(struct contract_loop){.host = NULL}, &settings.guest);
    runtime_table(&instance, &table);
    buf_init(&text, DESCRIPTION_MAX_BYTES);
    describe_openapi(&table, &text);
    struct err e;
    return json_read(buf_str(&text), &document, &e) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    buf_done(&text);
    return 0;
}

static void the_committed_document_is_the_one_that_is_served(void **state) {
    (void)state;
    struct buf file, compact;
    struct err e;
    struct arena *arena = arena_new(4 * MIB);
    const struct yaml *committed;
    buf_init(&file, MIB);
    buf_init(&compact, MIB);
    if (!file_read(STR(COMMITTED), &file, &e)) fail_msg("%s", e.text);
    if (!yaml_parse(arena, STR(COMMITTED), buf_str(&file), &committed, &e))
        fail_msg("%s", e.text);
    assert_true(yaml_to_json(committed, &compact));
    if (!str_equal(buf_str(&compact), buf_str(&text))) {
        fail_msg(COMMITTED
                 " is not what is served; if that is meant, renew it: "
                 "curl -s 127.0.0.1:8080/openapi.json | scripts/openapi_yaml > " COMMITTED);
    }
    arena_free(arena);
    buf_done(&file);
    buf_done(&compact);
}

static void every_row_stands_in_the_document(void **state) {
    (void)state;
    struct json paths = json_find(document, STR("paths"));
    assert_int_equal(json_count(paths), table.row_count);
    for (size_t i = 0; i < table.row_count; i++) {
        const struct route *row = &table.rows[i];
        struct json path = json_find(paths, row->path);
        bool posts = str_equal(row->method, STR("POST"));
        struct json operation = json_find(path, posts ? STR("post") : STR("get"));
        assert_int_equal(operation.kind, JSON_OBJECT);
        struct json head = json_find(path, STR("head"));
        assert_int_equal(head.kind, row->needs & ROUTE_HEAD ? JSON_OBJECT : JSON_NONE);
        /* An open row says so; the others take the document's. */
        struct json security = json_find(operation, STR("security"));
        assert_int_equal(security.kind, row->door == ROUTE_GUARDED ? JSON_NONE : JSON_ARRAY);
        struct json body = json_find(operation, STR("requestBody"));
        assert_int_equal(body.kind, row->needs & ROUTE_JSON ? JSON_OBJECT : JSON_NONE);
    }
}

/* The end of every "$ref" in `value` must be a schema. */
static void follow_refs(struct json value, struct json schemas) {
    struct str prefix = STR("\"#/components/schemas/");
    struct json ref = json_find(value, STR("$ref"));
    if (ref.kind == JSON_STRING) {
        assert_true(str_starts(ref.raw, prefix));
        struct str name = str_skip(ref.raw, prefix.len);
        assert_int_equal(json_find(schemas, str_head(name, name.len - 1)).kind, JSON_OBJECT);
    }
    struct json_reader reader = json_enter(value);
    struct json key, member;
    if (value.kind == JSON_OBJECT) {
        while (json_next_member(&reader, &key, &member)) follow_refs(member, schemas);
    } else if (value.kind == JSON_ARRAY) {
        while (json_next_item(&reader, &member)) follow_refs(member, schemas);
    }
}

static void every_reference_leads_somewhere(void **state) {
    (void)state;
    struct json components = json_find(document, STR("components"));
    follow_refs(document, json_find(components, STR("schemas")));
}

static void the_document_names_the_version_of_the_contract(void **state) {
    (void)state;
    struct json info = json_find(document, STR("info"));
    assert_true(json_is(json_find(info, STR("x-agentbreeder-runtime-contract")), STR("1")));
    assert_true(json_is(json_find(document, STR("openapi")), STR("3.1.0")));
}

static void the_card_names_the_agent_and_its_paths(void **state) {
    (void)state;
    struct buf card;
    buf_init(&card, KIB);
    struct json_writer w = json_writer(&card);
    json_open_object(&w);
    describe_card(&table, &settings, &w);
    json_close(&w);
    assert_str(
        buf_str(&card),
        "{\"name\":\"tiny\",\"version\":\"2.3.4\",\"protocol\":\"a2a-v1\",\"endpoints\":{"
        "\"health\":\"/health\",\"invoke\":\"/invoke\",\"stream\":\"/stream\","
        "\"resume\":\"/resume\"}}");
    buf_done(&card);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_committed_document_is_the_one_that_is_served),
        cmocka_unit_test(every_row_stands_in_the_document),
        cmocka_unit_test(every_reference_leads_somewhere),
        cmocka_unit_test(the_document_names_the_version_of_the_contract),
        cmocka_unit_test(the_card_names_the_agent_and_its_paths),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
