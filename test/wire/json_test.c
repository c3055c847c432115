#include "wire/json.h"

#include "helper/assert_str.h"
#include "helper/json_cases.h"

#include "base/mem.h"

static struct json read_ok(struct str text) {
    struct json value;
    struct err e = {0};
    if (!json_read(text, &value, &e)) fail_msg(STR_FMT ": %s", STR_ARG(text), e.text);
    return value;
}

static void assert_refused(const char *text, const char *message) {
    struct json value;
    struct err e;
    assert_false(json_read(str_from(text), &value, &e));
    assert_int_equal(e.code, ERR_MALFORMED);
    assert_string_equal(e.text, message);
}

/* I1 */
static void every_text_the_grammar_allows_is_accepted(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(json_must_accept); i++) {
        struct str text = exact_copy(json_must_accept[i].text);
        struct json value;
        struct err e;
        if (!json_read(text, &value, &e)) fail_msg("%s: %s", json_must_accept[i].why, e.text);
        assert_true(value.kind != JSON_NONE);
        assert_true(str_equal(value.raw, str_trim(text)));
        free((void *)text.at);
    }
}

/* I1 */
static void every_text_the_grammar_forbids_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(json_must_reject); i++) {
        struct str text = exact_copy(json_must_reject[i].text);
        struct json value;
        struct err e = {0};
        if (json_read(text, &value, &e)) fail_msg("accepted: %s", json_must_reject[i].why);
        assert_int_equal(e.code, ERR_MALFORMED);
        free((void *)text.at);
    }
}

/* Numbers alone are the exception: 12 cut short is 1. */
static void every_truncation_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(json_must_accept); i++) {
        struct str text = str_trim(json_must_accept[i].text);
        if (json_of(text).kind == JSON_NUMBER) continue;
        for (size_t cut = 0; cut < text.len; cut++) {
            struct str head = exact_copy(str_head(text, cut));
            struct json value;
            struct err e;
            assert_false(json_read(head, &value, &e));
            free((void *)head.at);
        }
    }
}

static void any_byte_after_a_value_but_space_is_refused(void **state) {
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char text[] = {'[', ']', (char)byte};
        struct json value;
        struct err e;
        bool space = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
        assert_int_equal(json_read(str_of(text, 3), &value, &e), space);
    }
}

/* `open` so many times, `inner` once, `close` so many times. */
static struct str levels(char *room, size_t depth, const char *open, const char *inner,
                         const char *close) {
    char *at = room;
    for (size_t i = 0; i < depth; i++) at = stpcpy(at, open);
    at = stpcpy(at, inner);
    for (size_t i = 0; i < depth; i++) at = stpcpy(at, close);
    return str_of(room, (size_t)(at - room));
}

/* I2 */
static void sixty_four_levels_are_read_and_sixty_five_are_not(void **state) {
    (void)state;
    char room[1024];
    struct json value;
    struct err e;
    assert_true(json_read(levels(room, 64, "[", "", "]"), &value, &e));
    assert_false(json_read(levels(room, 65, "[", "", "]"), &value, &e));
    assert_string_equal(e.text, "JSON 1:65 (byte 64): expected at most 64 levels of arrays and "
                                "objects but found '['");
    assert_true(json_read(levels(room, 32, "{\"a\":[", "0", "]}"), &value, &e));
    assert_false(json_read(levels(room, 32, "{\"a\":[", "{}", "]}"), &value, &e));
    assert_true(json_read(levels(room, 63, "[[],{},", "0", "]"), &value, &e));
    assert_false(json_read(levels(room, 64, "[[],{},", "0", "]"), &value, &e));
}

static void the_depth_limit_can_be_walked_down_to_zero(void **state) {
    (void)state;
    char room[256];
    struct json value;
    struct err e;
    for (unsigned depth = 0; depth <= JSON_DEPTH_MAX; depth++) {
        if (depth > 0)
            assert_true(json_read_depth(levels(room, depth, "[", "", "]"), depth, &value, &e));
        assert_false(json_read_depth(levels(room, depth + 1, "[", "", "]"), depth, &value, &e));
    }
    assert_true(json_read_depth(STR("1"), 0, &value, &e));
}

/* I2: each of these must end at once; a quadratic or recursive reader would not. */
static void a_million_brackets_and_megabytes_of_nesting_are_refused(void **state) {
    (void)state;
    size_t len = 8 * MIB;
    char *text = mem_alloc(len);
    struct json value;
    struct err e;
    memset(text, '[', len);
    assert_false(json_read(str_of(text, 1000000), &value, &e));
    for (size_t i = 0; i + 5 <= len; i += 5) memcpy(text + i, "{\"a\":", 5);
    assert_false(json_read(str_of(text, len), &value, &e));
    memset(text, ' ', len);
    assert_false(json_read(str_of(text, len), &value, &e));
    memset(text, 'a', len);
    text[0] = '"';
    assert_false(json_read(str_of(text, len), &value, &e));
    text[len - 1] = '"';
    assert_true(json_read(str_of(text, len), &value, &e));
    for (size_t i = 1; i + 1 < len; i++) text[i] = '\\';
    assert_true(json_read(str_of(text, len), &value, &e));
    for (size_t i = 0; i + 2 < len; i += 2) memcpy(text + i, i ? "1," : "[ ", 2);
    memcpy(text + len - 2, "1]", 2);
    assert_true(json_read(str_of(text, len), &value, &e));
    assert_int_equal(json_count(value), len / 2 - 1);
    free(text);
}

static void a_refusal_says_where_and_what_was_expected(void **state) {
    (void)state;
    /* clang-format off */
    assert_refused("", "JSON 1:1 (byte 0): expected a value but the text ends");
    assert_refused("{\"a\":1,\n \"b\" 2}", "JSON 2:6 (byte 13): expected ':' but found '2'");
    assert_refused("{\"a\":1 2}", "JSON 1:8 (byte 7): expected ',' or '}' but found '2'");
    assert_refused("[1 2]", "JSON 1:4 (byte 3): expected ',' or ']' but found '2'");
    assert_refused("[1,]", "JSON 1:4 (byte 3): expected a value but found ']'");
    assert_refused("[", "JSON 1:2 (byte 1): expected a value or ']' but the text ends");
    assert_refused("{", "JSON 1:2 (byte 1): expected a key in quotes or '}' but the text ends");
    assert_refused("{\"a\":1,}", "JSON 1:8 (byte 7): expected a key in quotes but found '}'");
    assert_refused("nul", "JSON 1:4 (byte 3): expected null but the text ends");
    assert_refused("1.x", "JSON 1:3 (byte 2): expected a digit but found 'x'");
    assert_refused("1 1", "JSON 1:3 (byte 2): expected the end of the text but found '1'");
    assert_refused("\"\xE2\x82\xAC\\x\"", "JSON 1:4 (byte 5): expected one of \" \\ / b f n r t u after a backslash but found 'x'");
    assert_refused("\"a\n\"", "JSON 1:3 (byte 2): expected '\"' or a character that needs no escape but found byte 0x0A");
    assert_refused("\"a\xFF\"", "JSON 1:3 (byte 2): expected valid UTF-8 but found byte 0xFF");
    assert_refused("\"\\u12x4\"", "JSON 1:6 (byte 5): expected four hexadecimal digits after \\u but found 'x'");
    assert_refused("\"\\udc00\"", "JSON 1:4 (byte 3): expected no low surrogate without a high one before it but found 'd'");
    assert_refused("\"\\ud800\"", "JSON 1:8 (byte 7): expected \\u and a low surrogate after a high one but found '\"'");
    assert_refused("\"\\ud800\\u0020\"", "JSON 1:10 (byte 9): expected a low surrogate after a high one but found '0'");
    /* clang-format on */
}

static void members_come_in_order_with_their_raw_slices(void **state) {
    (void)state;
    struct json object =
        read_ok(STR("{ \"a\" : 1.50 ,\"b\":{\"x\":[\"}\",2]} , \"c\\n\":\"\\\"\" }"));
    struct json_reader reader = json_enter(object);
    struct json key, value;
    assert_int_equal(object.kind, JSON_OBJECT);
    assert_int_equal(json_count(object), 3);
    assert_true(json_next_member(&reader, &key, &value));
    assert_str(key.raw, "\"a\"");
    assert_str(value.raw, "1.50");
    assert_int_equal(value.kind, JSON_NUMBER);
    assert_true(json_next_member(&reader, &key, &value));
    assert_str(value.raw, "{\"x\":[\"}\",2]}");
    assert_int_equal(value.kind, JSON_OBJECT);
    assert_true(json_next_member(&reader, &key, &value));
    assert_true(json_is(key, STR("c\n")));
    assert_str(value.raw, "\"\\\"\"");
    assert_int_equal(value.kind, JSON_STRING);
    assert_false(json_next_member(&reader, &key, &value));
    assert_false(json_next_member(&reader, &key, &value));
}

static void items_come_in_order_with_their_kinds(void **state) {
    (void)state;
    struct json array = read_ok(STR("[{}, [] ,\"\",-1,true,false,null]"));
    struct json_reader reader = json_enter(array);
    struct json item;
    for (int kind = JSON_OBJECT; kind <= JSON_NULL; kind++) {
        assert_true(json_next_item(&reader, &item));
        assert_int_equal(item.kind, kind);
        assert_true(str_equal(json_at(array, (size_t)kind - 1).raw, item.raw));
    }
    assert_false(json_next_item(&reader, &item));
    assert_int_equal(json_at(array, 7).kind, JSON_NONE);
}

static void the_last_of_two_equal_keys_wins(void **state) {
    (void)state;
    struct json object = read_ok(STR("{\"a\":1,\"b\":2,\"\\u0061\":3,\"ab\":4}"));
    assert_str(json_find(object, STR("a")).raw, "3");
    assert_str(json_find(object, STR("b")).raw, "2");
    assert_int_equal(json_find(object, STR("c")).kind, JSON_NONE);
    assert_int_equal(json_find(object, STR("")).kind, JSON_NONE);
}

static void many_keys_are_found_in_one_walk_as_each_alone(void **state) {
    (void)state;
    static const struct str keys[] = {STR_INIT("a"), STR_INIT(""), STR_INIT("b"),
                                      STR_INIT("none"), STR_INIT("a")};
    struct json found[ARRAY_LEN(keys)];
    struct json object =
        read_ok(STR("{\"a\":1,\"b\":{\"a\":2},\"\\u0061\":3,\"\":[\"a\"],\"ab\":4}"));
    json_find_each(object, keys, ARRAY_LEN(keys), found);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct json alone = json_find(object, keys[i]);
        assert_int_equal(found[i].kind, alone.kind);
        assert_true(str_equal(found[i].raw, alone.raw));
    }
    assert_str(found[0].raw, "3");
    assert_str(found[1].raw, "[\"a\"]");
    json_find_each(found[1], keys, ARRAY_LEN(keys), found);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) assert_int_equal(found[i].kind, JSON_NONE);
}

static void a_string_ends_at_its_quote_wherever_that_stands(void **state) {
    (void)state;
    for (size_t len = 0; len < 40; len++) {
        char text[64] = "[\"";
        memset(text + 2, 'x', len);
        memcpy(text + 2 + len, "\",\"\\\"!\"]", 9);
        struct json array = read_ok(str_from(text));
        assert_int_equal(json_count(array), 2);
        assert_int_equal(json_at(array, 0).raw.len, len + 2);
        assert_true(json_is(json_at(array, 1), STR("\"!")));
    }
}

/* Strings with brackets, quotes and backslashes at every place of the sixteen bytes. */
static void a_container_ends_at_its_bracket_wherever_that_stands(void **state) {
    (void)state;
    static const char *const inner[] = {
        "", "]}[{", "\\\"]", "\\\\", "a\\\\\\\"}", "0123456789abcdef[", "\\u005d]"};
    for (size_t i = 0; i < 40 * ARRAY_LEN(inner); i++) {
        const char *text = inner[i % ARRAY_LEN(inner)];
        struct buf json;
        struct json item, next;
        buf_init(&json, KIB);
        buf_printf(&json, "[{\"k\":[[\"%.*s\"],{}],\"%s\":{\"b\":\"%s\"},\"c\":[1,[]]}",
                   (int)(i / ARRAY_LEN(inner)), "........................................",
                   text, text);
        size_t len = json.len - 1;
        buf_append(&json, STR(",7]"));
        struct json_reader reader = json_enter(read_ok(buf_str(&json)));
        assert_true(json_next_item(&reader, &item) && json_next_item(&reader, &next));
        assert_int_equal(item.raw.len, len);
        assert_int_equal(json_count(item), 3);
        assert_str(next.raw, "7");
        buf_done(&json);
    }
}

static void finding_in_nothing_finds_nothing(void **state) {
    (void)state;
    struct json chunk =
        read_ok(STR("{\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"n\":7}"));
    struct json delta = json_find(json_at(json_find(chunk, STR("choices")), 0), STR("delta"));
    assert_true(json_is(json_find(delta, STR("content")), STR("hi")));
    struct json none = json_find(json_at(json_find(chunk, STR("n")), 3), STR("x"));
    assert_int_equal(none.kind, JSON_NONE);
    assert_int_equal(json_count(none), 0);
    assert_int_equal(json_count(json_find(chunk, STR("n"))), 0);
    struct json_reader reader = json_enter(json_find(chunk, STR("choices")));
    struct json key, value;
    assert_false(json_next_member(&reader, &key, &value));
    reader = json_enter(chunk);
    assert_false(json_next_item(&reader, &value));
}

static void a_kept_slice_becomes_a_value_again(void **state) {
    (void)state;
    struct json object = read_ok(STR(" {\"a\":[1,2]} "));
    struct json again = json_of(json_find(object, STR("a")).raw);
    assert_int_equal(again.kind, JSON_ARRAY);
    assert_str(json_at(again, 1).raw, "2");
    assert_int_equal(json_of(STR_EMPTY).kind, JSON_NONE);
    assert_int_equal(json_of((struct str){NULL, 0}).kind, JSON_NONE);
}

static void each_kind_has_a_name_for_messages(void **state) {
    (void)state;
    assert_string_equal(json_kind_name(JSON_NONE), "nothing");
    assert_string_equal(json_kind_name(JSON_OBJECT), "an object");
    assert_string_equal(json_kind_name(JSON_NULL), "null");
}

static void a_key_that_is_read_may_stand_once(void **state) {
    (void)state;
    static const char *const keys[] = {"input", "id", NULL};
    static const struct str names[] = {STR_INIT("input"), STR_INIT("id")};
    static const struct {
        struct str text;
        bool once;
    } rows[] = {
        {STR_INIT("{\"input\":1,\"id\":2,\"other\":3,\"other\":4}"), true},
        {STR_INIT("{\"input\":{\"id\":1,\"id\":2}}"), true},
        {STR_INIT("{\"inp\\u0075t\":1,\"id\":null}"), true},
        {STR_INIT("{\"id\":null,\"id\":null}"), false},
        {STR_INIT("{}"), true},
        {STR_INIT("[1,1]"), true},
        {STR_INIT("{\"id\":1,\"input\":2,\"id\":1}"), false},
        {STR_INIT("{\"input\":1,\"inp\\u0075t\":1}"), false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct json value;
        struct err e;
        assert_true(json_read(rows[i].text, &value, &e));
        assert_int_equal(json_check_once(value, keys, &e), rows[i].once);
        if (!rows[i].once) assert_int_equal(e.code, ERR_MALFORMED);
        struct json found[2], each[2];
        e.code = ERR_NONE;
        assert_int_equal(json_find_once(value, names, 2, found, &e), rows[i].once);
        if (!rows[i].once) assert_int_equal(e.code, ERR_MALFORMED);
        json_find_each(value, names, 2, each);
        for (size_t k = 0; k < 2 && rows[i].once; k++) {
            assert_int_equal(found[k].kind, each[k].kind);
            assert_ptr_equal(found[k].raw.at, each[k].raw.at);
        }
    }
}

static void half_a_surrogate_pair_is_mended_and_nothing_else(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"{\"a\":\"\\udce9\\uD83D\"}", "{\"a\":\"\\ufffd\\ufffd\"}"},
        {"\"\\ud83d\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\""},
        {"\"\\ud83d\\u0041\"", "\"\\ufffd\\u0041\""},
        {"\"\\\\ud83d\"", "\"\\\\ud83d\""}, /* an escaped backslash, then letters */
        {"\"\\ud83\"", "\"\\ud83\""},
        {"\\ud83", "\\ud83"},
        {"\\", "\\"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct buf out;
        buf_init(&out, KIB);
        json_mend_surrogates(str_from(texts[i][0]), &out);
        assert_str(buf_str(&out), texts[i][1]);
        buf_done(&out);
    }
}

static void what_a_peer_wrote_with_half_a_pair_is_read(void **state) {
    (void)state;
    struct str text = STR("{\"a\":\"x\\ud83d\",\"b\":\"\\ud83d\\ude00\"}");
    struct json value;
    struct buf room, said;
    struct err e;
    buf_init(&room, KIB);
    buf_init(&said, KIB);
    assert_false(json_read(text, &value, &e));
    assert_true(json_read_mended(text, &room, &value, &e));
    json_text(json_find(value, STR("a")), &said);
    json_text(json_find(value, STR("b")), &said);
    assert_str(buf_str(&said), "x\xEF\xBF\xBD\xF0\x9F\x98\x80");
    assert_false(json_read_mended(STR("{\"a\":\"\\ud83d"), &room, &value, &e));
    assert_int_equal(e.code, ERR_MALFORMED);
    assert_true(json_read_mended(STR("{\"a\":1}"), &room, &value, &e));
    buf_done(&room);
    buf_init(&room, 4);
    assert_false(json_read_mended(text, &room, &value, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    buf_done(&room);
    buf_done(&said);
}

/* Each row is a stream of two texts, and what they become. */
static void a_pair_that_was_cut_between_two_texts_is_joined(void **state) {
    (void)state;
    static const char *const rows[][4] = {
        {"{\"t\":\"a\\ud83d\"}", "{\"t\":\"a\"}", "{\"t\":\"\\ude00b\"}",
         "{\"t\":\"\\ud83d\\ude00b\"}"},
        {"{\"t\":\"\\uD83D\"}", "{\"t\":\"\"}", "{\"t\":\"\\uDE00\"}",
         "{\"t\":\"\\uD83D\\uDE00\"}"},
        {"[\"a\"]", NULL, "[\"\\ude00\"]", "[\"\\ufffd\"]"}, /* no first half */
        {"[\"\\ud83dz\"]", "[\"\\ufffdz\"]", "[\"\\ude00\"]", "[\"\\ufffd\"]"},
        {"[\"\\ud83d\"]", "[\"\"]", "[\"z\\ude00\"]", "[\"z\\ufffd\"]"},
        {"[\"\\ud83d\\ude00\"]", NULL, "[\"\\\\ude00\"]", NULL}, /* nothing to mend */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct json_pairs pairs = {.waits = false};
        for (size_t n = 0; n < 4; n += 2) {
            struct buf out;
            buf_init(&out, KIB);
            bool mended = json_pairs_mend(&pairs, str_from(rows[i][n]), &out);
            assert_int_equal(mended, rows[i][n + 1] != NULL);
            assert_str(buf_str(&out), mended ? rows[i][n + 1] : "");
            buf_done(&out);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_the_grammar_allows_is_accepted),
        cmocka_unit_test(every_text_the_grammar_forbids_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_key_that_is_read_may_stand_once),
        cmocka_unit_test(any_byte_after_a_value_but_space_is_refused),
        cmocka_unit_test(sixty_four_levels_are_read_and_sixty_five_are_not),
        cmocka_unit_test(the_depth_limit_can_be_walked_down_to_zero),
        cmocka_unit_test(a_million_brackets_and_megabytes_of_nesting_are_refused),
        cmocka_unit_test(a_refusal_says_where_and_what_was_expected),
        cmocka_unit_test(members_come_in_order_with_their_raw_slices),
        cmocka_unit_test(items_come_in_order_with_their_kinds),
        cmocka_unit_test(the_last_of_two_equal_keys_wins),
        cmocka_unit_test(many_keys_are_found_in_one_walk_as_each_alone),
        cmocka_unit_test(a_string_ends_at_its_quote_wherever_that_stands),
        cmocka_unit_test(a_container_ends_at_its_bracket_wherever_that_stands),
        cmocka_unit_test(finding_in_nothing_finds_nothing),
        cmocka_unit_test(a_kept_slice_becomes_a_value_again),
        cmocka_unit_test(each_kind_has_a_name_for_messages),
        cmocka_unit_test(half_a_surrogate_pair_is_mended_and_nothing_else),
        cmocka_unit_test(what_a_peer_wrote_with_half_a_pair_is_read),
        cmocka_unit_test(a_pair_that_was_cut_between_two_texts_is_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
