#include "wire/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/json.h"

#define ARENA_BYTES (16 * MIB)

static struct arena *arena;

static int open_arena(void **state) {
    (void)state;
    arena = arena_new(ARENA_BYTES);
    return 0;
}

static int close_arena(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

static const struct yaml *parse(const char *text) {
    struct err e = {0};
    const struct yaml *root = NULL;
    if (!yaml_parse(arena, STR("f.yaml"), str_from(text), &root, &e)) fail_msg("%s", e.text);
    return root;
}

/* The text must be refused, with an error that begins like this. */
static void refused(struct str text, const char *begins) {
    struct err e = {0};
    const struct yaml *root = NULL;
    assert_false(yaml_parse(arena, STR("f.yaml"), text, &root, &e));
    assert_null(root);
    if (!str_starts(err_text(&e), str_from(begins)))
        fail_msg("'%s' is not '%s'", e.text, begins);
}

static void as_json(const char *yaml, const char *json) {
    struct buf out;
    struct err e;
    struct json value;
    buf_init(&out, MIB);
    assert_true(yaml_to_json(parse(yaml), &out));
    assert_true(json_read(buf_str(&out), &value, &e));
    buf_append_byte(&out, '\0');
    assert_string_equal(out.at, json);
    buf_done(&out);
}

static void a_document_becomes_a_tree_that_knows_its_places(void **state) {
    (void)state;
    const struct yaml *root = parse("name: weir\nlist:\n  - one\n  - {two: \"2\"}\n");
    assert_int_equal(root->kind, YAML_MAP);
    assert_int_equal(root->count, 2);

    const struct yaml *name = yaml_find(root, STR("name"));
    assert_true(str_equal(name->text, STR("weir")));
    assert_false(name->quoted);
    assert_int_equal(name->line, 1);
    assert_int_equal(name->column, 7);
    assert_int_equal(name->key_column, 1);

    const struct yaml *list = yaml_find(root, STR("list"));
    assert_int_equal(list->kind, YAML_LIST);
    assert_int_equal(list->count, 2);
    const struct yaml *two = yaml_find(list->first->next, STR("two"));
    assert_true(two->quoted);
    assert_int_equal(two->key_line, 4);
    assert_int_equal(two->key_column, 6);
    assert_int_equal(two->column, 11);
    assert_null(yaml_find(root, STR("nam")));
    assert_null(yaml_find(name, STR("name")));
}

static void columns_count_characters_and_a_byte_order_mark_is_none(void **state) {
    (void)state;
    const struct yaml *root = parse("\xEF\xBB\xBF{\"é\": ü, b: c}");
    assert_int_equal(root->first->next->key_column, 10);
}

static void an_empty_document_is_nothing(void **state) {
    (void)state;
    assert_true(yaml_is_null(parse("")));
    assert_true(yaml_is_null(parse("# only a remark\n")));
    assert_true(yaml_is_null(parse("---\n...\n")));
    assert_true(yaml_is_null(parse("~")));
    assert_false(yaml_is_null(parse("\"\"")));
    assert_false(yaml_is_null(parse("[]")));
}

static void what_could_surprise_is_refused_with_its_place(void **state) {
    (void)state;
    refused(STR("a: &x 1\n"), "f.yaml:1:4: anchors and aliases");
    refused(STR("a: *x\n"), "f.yaml:1:4: anchors and aliases");
    refused(STR("a: !!int 1\n"), "f.yaml:1:4: tags (!) are not taken");
    refused(STR("a: !x {}\n"), "f.yaml:1:4: tags");
    refused(STR("a: !x []\n"), "f.yaml:1:4: tags");
    refused(STR("a: 1\n---\nb: 2\n"), "f.yaml:2:1: a second document");
    refused(STR("a: 1\nb: 2\na: 3\n"), "f.yaml:3:1: the key 'a' stands twice, first on line 1");
    refused(STR("[1]: 2\n"), "f.yaml:1:1: a key must be plain text");
    refused(STR("? {a: b}\n: c\n"), "f.yaml:1:3: a key must be plain text");
}

static void broken_yaml_is_explained_with_a_fix(void **state) {
    (void)state;
    static const struct {
        const char *text, *begins, *fix;
    } cases[] = {
        {"a: b: c\n", "f.yaml:1:5: ", "in quotes"},
        {"a: \"open\n", "f.yaml:2:1: ", "left open"},
        {"a: [1, 2\n", "f.yaml:2:1: ", "bracket"},
        {"a:\n\t- b\n", "f.yaml:2:1: ", "spaces, not tabs"},
        {"a: @b\n", "f.yaml:1:4: ", "in quotes"},
        {"a: b\n c: d\n", "f.yaml:2:3: ", "indentation"},
        {"a: 1\nb\n", "f.yaml:3:1: ", "key: value"},
        {"a: 1\nb: \x01\n", "f.yaml:2:4: ", "double quotes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        const struct yaml *root;
        assert_false(yaml_parse(arena, STR("f.yaml"), str_from(cases[i].text), &root, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
        if (!str_starts(err_text(&e), str_from(cases[i].begins)) ||
            !strstr(e.text, cases[i].fix))
            fail_msg("case %zu: %s", i, e.text);
    }
}

static void bytes_that_are_no_text_are_refused(void **state) {
    (void)state;
    refused(STR("a: b\né: \xC3\x28\n"), "f.yaml:2:4: this is not UTF-8");
    refused(str_of("a: \0\n", 5), "f.yaml:1:4: ");
    refused(STR("\xFF\xFE"
                "a"),
            "f.yaml:1:1: this is not UTF-8");
}

static char *nested(size_t levels) {
    char *text = malloc(2 * levels + 1);
    memset(text, '[', levels);
    memset(text + levels, ']', levels);
    text[2 * levels] = '\0';
    return text;
}

static void depth_size_keys_and_memory_end_somewhere(void **state) {
    (void)state;
    char *deep = nested(YAML_DEPTH_MAX);
    assert_int_equal(parse(deep)->kind, YAML_LIST);
    free(deep);
    deep = nested(YAML_DEPTH_MAX + 1);
    refused(str_from(deep), "f.yaml:1:65: more than 64 levels deep");
    free(deep);
    deep = nested(100000);
    refused(str_from(deep), "f.yaml:1:65: more than 64 levels deep");
    free(deep);

    char *large = malloc(YAML_MAX_BYTES + 1);
    memset(large, ' ', YAML_MAX_BYTES + 1);
    assert_true(yaml_is_null(parse("")));
    refused(str_of(large, YAML_MAX_BYTES + 1),
            "f.yaml: 1048577 bytes; at most 1048576 are read");
    free(large);

    struct buf keys;
    buf_init(&keys, MIB);
    for (int i = 0; i <= YAML_KEYS_MAX; i++) buf_printf(&keys, "k%d: 1\n", i);
    refused(buf_str(&keys), "f.yaml:1001:1: more than 1000 keys");
    buf_done(&keys);

    for (size_t room = 0; room < 600; room++) {
        struct arena *small = arena_new(room);
        struct err e = {0};
        const struct yaml *root;
        if (!yaml_parse(small, STR("f.yaml"), STR("a: [b]\n"), &root, &e))
            assert_int_equal(e.code, ERR_TOO_LARGE);
        arena_free(small);
    }
}

static void every_prefix_is_read_or_refused_with_a_sentence(void **state) {
    (void)state;
    struct str text = STR("a: {b: [1, \"x\\u00e9\"], c: >-\n  two\n  lines\n}\nd: 'é'\n- e\n");
    for (size_t cut = 0; cut <= text.len; cut++) {
        struct err e = {0};
        const struct yaml *root;
        if (yaml_parse(arena, STR("f"), str_head(text, cut), &root, &e)) continue;
        assert_true(e.code == ERR_MALFORMED);
        assert_true(strlen(e.text) > 10);
    }
}

static void a_tree_becomes_compact_json(void **state) {
    (void)state;
    as_json("a: 1\nb: [true, null, ~, 1.50, -2e3, x]\n",
            "{\"a\":1,\"b\":[true,null,null,1.50,-2e3,\"x\"]}");
    as_json(
        "a: \"1\"\nb: 'true'\nc: 007\nd: 0x1F\ne: .5\nf: yes\n",
        "{\"a\":\"1\",\"b\":\"true\",\"c\":\"007\",\"d\":\"0x1F\",\"e\":\".5\",\"f\":\"yes\"}");
    as_json("say: \"a \\\"quote\\\"\\n\\0é\"\n", "{\"say\":\"a \\\"quote\\\"\\n\\u0000é\"}");
    as_json("t: |\n  two\n  lines\n", "{\"t\":\"two\\nlines\\n\"}");
    as_json("\"a\\nb\": {}\nempty: []\n", "{\"a\\nb\":{},\"empty\":[]}");
    as_json("", "null");
}

struct thing {
    struct str name, text, json;
    bool flag;
    uint64_t count, wait_us, room;
    const struct yaml *node;
};

static const struct yaml_field thing_fields[] = {
    {"name", YAML_NAME, offsetof(struct thing, name), true},
    {"text", YAML_TEXT, offsetof(struct thing, text), false},
    {"args", YAML_JSON, offsetof(struct thing, json), false},
    {"flag", YAML_BOOL, offsetof(struct thing, flag), false},
    {"count", YAML_COUNT, offsetof(struct thing, count), false},
    {"wait", YAML_DURATION, offsetof(struct thing, wait_us), false},
    {"room", YAML_SIZE, offsetof(struct thing, room), false},
    {"node", YAML_NODE, offsetof(struct thing, node), false},
};

static bool read_thing(const char *text, struct thing *thing, struct err *e) {
    return yaml_fields(parse(text), "a thing", thing_fields, ARRAY_LEN(thing_fields), thing, e);
}

static void a_map_fills_a_struct(void **state) {
    (void)state;
    struct thing thing = {.count = 7, .text = STR("kept")};
    struct err e;
    assert_true(read_thing("name: n-1\nargs: {a: [1]}\nflag: true\nwait: 20ms\nroom: 2KiB\n"
                           "node: [x]\n",
                           &thing, &e));
    assert_true(str_equal(thing.name, STR("n-1")));
    assert_true(str_equal(thing.json, STR("{\"a\":[1]}")));
    assert_true(thing.flag);
    assert_int_equal(thing.wait_us, 20000);
    assert_int_equal(thing.room, 2048);
    assert_int_equal(thing.node->kind, YAML_LIST);
    assert_int_equal(thing.count, 7);
    assert_true(str_equal(thing.text, STR("kept")));
}

static void a_map_that_does_not_fit_is_refused_at_the_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"[1]", "f.yaml:1:1: expected a thing, which is a map, found a list"},
        {"\"\"", "f.yaml:1:1: expected a thing, which is a map, found text"},
        {"", "f.yaml:1:1: expected a thing, which is a map, found nothing"},
        {"text: x", "f.yaml:1:1: a thing needs the key 'name'"},
        {"name: x\ntxet: y", "f.yaml:2:1: a thing has no key 'txet'; did you mean 'text'?"},
        {"name: x\nfarbe: y", "f.yaml:2:1: a thing has no key 'farbe'"},
        {"name: [x]", "f.yaml:1:7: expected a name, found a list"},
        {"name: ''", "f.yaml:1:7: '' is not a name"},
        {"name: a b", "f.yaml:1:7: 'a b' is not a name"},
        {"name: x\ntext:", "f.yaml:2:6: expected text, found nothing"},
        {"name: x\nargs: [1]",
         "f.yaml:2:7: expected a map, such as {key: value}, found a list"},
        {"name: x\nflag: yes", "f.yaml:2:7: expected true or false"},
        {"name: x\nflag: 'true'", "f.yaml:2:7: expected true or false"},
        {"name: x\ncount: -1", "f.yaml:2:8: '-1' is not a whole number"},
        {"name: x\ncount: {}", "f.yaml:2:8: expected a whole number, found a map"},
        {"name: x\nwait: 20", "f.yaml:2:7: '20' has no unit; write it like 20ms, 1.5s or 5m"},
        {"name: x\nroom: 20",
         "f.yaml:2:7: '20' has no unit; write it like 30000B, 256KiB or 4MiB"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct thing thing = {0};
        struct err e = {0};
        assert_false(read_thing(cases[i].text, &thing, &e));
        if (!str_starts(err_text(&e), str_from(cases[i].why)))
            fail_msg("'%s' is not '%s'", e.text, cases[i].why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_becomes_a_tree_that_knows_its_places),
        cmocka_unit_test(columns_count_characters_and_a_byte_order_mark_is_none),
        cmocka_unit_test(an_empty_document_is_nothing),
        cmocka_unit_test(what_could_surprise_is_refused_with_its_place),
        cmocka_unit_test(broken_yaml_is_explained_with_a_fix),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(depth_size_keys_and_memory_end_somewhere),
        cmocka_unit_test(every_prefix_is_read_or_refused_with_a_sentence),
        cmocka_unit_test(a_tree_becomes_compact_json),
        cmocka_unit_test(a_map_fills_a_struct),
        cmocka_unit_test(a_map_that_does_not_fit_is_refused_at_the_place),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
