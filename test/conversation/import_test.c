/* Conversations sent by callers, in every form, and which part of them a session already
 * has. */
#include "conversation/import.h"

#include "base/mem.h"
#include "helper/assert_str.h"

static struct arena *arena;

static int set_up(void **state) {
    (void)state;
    arena = arena_new(4 * MIB);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

/* --- reading ------------------------------------------------------------------------------ */

static bool read_list(const char *text, struct import *ret, struct err *e) {
    struct json list;
    assert_true(json_read(str_from(text), &list, e));
    return import_read(list, arena, ret, e);
}

/* Messages as text: U user, S system, A agent, C call, R result (! failed), each with what it
 * says; [parts] where it has any. */
static void write_messages(const struct message *messages, size_t count, struct buf *out) {
    static const char letters[] = {
        [MESSAGE_USER] = 'U',        [MESSAGE_AGENT] = 'A',  [MESSAGE_TOOL_CALL] = 'C',
        [MESSAGE_TOOL_RESULT] = 'R', [MESSAGE_OPAQUE] = 'O', [MESSAGE_SYSTEM] = 'S'};
    for (size_t i = 0; i < count; i++) {
        const struct message *message = &messages[i];
        buf_printf(out, "%c", letters[message->role]);
        if (message->error) buf_append(out, STR("!"));
        if (message->call_id.len)
            buf_printf(out, " " STR_FMT "=" STR_FMT, STR_ARG(message->call_id),
                       STR_ARG(message->tool));
        buf_printf(out, " " STR_FMT, STR_ARG(message->text));
        if (message->parts.len) buf_printf(out, " " STR_FMT, STR_ARG(message->parts));
        buf_append(out, STR("|"));
    }
}

static const struct {
    const char *list, *read;
} lists[] = {
    /* OpenAI */
    {"[{\"role\":\"user\",\"content\":\"a\"}]", "U a|"},
    {"[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"a\"},"
     "{\"role\":\"assistant\",\"content\":\"b\"},{\"role\":\"developer\",\"content\":\"d\"},"
     "{\"role\":\"user\",\"content\":\"c\",\"name\":\"ann\"}]",
     "S s|U a|A b|S d|U c|"},
    {"[{\"role\":\"user\",\"content\":\"\"}]", "U |"},
    {"[{\"role\":\"user\",\"content\":[]}]", "U |"},
    {"[{\"content\":\"a\"},{\"role\":\"\",\"content\":\"b\"}]", "U a|U b|"},
    {"[{\"role\":\"user\",\"content\":\"a\\u0000\\u00e9\\n\"}]", NULL},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"input_"
     "text\",\"text\":\"b\"},\"c\",{\"text\":\"d\"}]}]",
     "U a\n\nb\n\nc\n\nd|"},
    {"[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[{\"type\":"
     "\"output_text\",\"text\":\"a \"},{\"type\":\"text\",\"text\":\"b\"}]}]",
     "U q|A a b|"},
    {"[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":null,"
     "\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"find\","
     "\"arguments\":\"{\\\"q\\\": 1}\"}},{\"id\":\"2\",\"type\":\"function\",\"function\":{"
     "\"name\":\"now\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":\"noon\"},"
     "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"{\\\"r\\\":1}\"}]",
     "U q|C 1=find {\"q\": 1}|C 2=now {}|R 2=now {\"result\":\"noon\"}|R 1=find {\"r\":1}|"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"what\"},{\"type\":"
     "\"image_url\",\"image_url\":{\"url\":\"https://a.example/b.png\",\"detail\":\"low\"}}]}]",
     "U what [{\"type\":\"text\",\"text\":\"what\"},{\"type\":\"image\",\"url\":"
     "\"https://a.example/b.png\",\"detail\":\"low\"}]|"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":"
     "\"data:image/png;base64,aGk=\"},{\"type\":\"input_image\",\"image_url\":"
     "\"http://a.example/\"}]}]",
     "U  [{\"type\":\"image\",\"media_type\":\"image/png\",\"data\":\"aGk=\"},"
     "{\"type\":\"image\",\"url\":\"http://a.example/\"}]|"},
    /* LangChain, Anthropic */
    {"[{\"type\":\"system\",\"content\":\"s\"},{\"type\":\"human\",\"content\":\"q\",\"id\":"
     "null},{\"type\":\"ai\",\"content\":\"\",\"tool_calls\":[{\"name\":\"find\",\"args\":{"
     "\"q\": [1, 2]},\"id\":\"x\",\"type\":\"tool_call\"}],\"invalid_tool_calls\":[]},"
     "{\"type\":\"tool\",\"content\":\"no\",\"tool_call_id\":\"x\",\"status\":\"error\"},"
     "{\"role\":\"ai\",\"content\":\"sorry\"},{\"role\":\"human\",\"content\":\"ok\"}]",
     "S s|U q|C x=find {\"q\":[1,2]}|R! x=find {\"error\":\"no\"}|A sorry|U ok|"},
    {"[{\"type\":\"human\",\"content\":\"q\"},{\"type\":\"AIMessageChunk\",\"content\":[{"
     "\"type\":\"text\",\"text\":\"I look.\"},{\"type\":\"tool_use\",\"id\":\"x\",\"name\":"
     "\"find\",\"input\":{}}],\"tool_calls\":[{\"name\":\"find\",\"args\":{},\"id\":\"x\"}]},"
     "{\"type\":\"tool\",\"content\":[{\"type\":\"text\",\"text\":\"r\"}],\"tool_call_id\":"
     "\"x\"}]",
     "U q|A I look.|C x=find {}|R x=find {\"result\":\"r\"}|"},
    {"[{\"type\":\"human\",\"content\":\"q\"},{\"type\":\"ai\",\"content\":[{\"type\":\"tool_"
     "use\",\"id\":\"x\",\"name\":\"find\",\"input\":{\"q\":1}}]},{\"type\":\"tool\","
     "\"content\":\"r\",\"tool_call_id\":\"x\"}]",
     "U q|C x=find {\"q\":1}|R x=find {\"result\":\"r\"}|"},
    {"[{\"type\":\"human\",\"content\":\"q\"},{\"type\":\"ai\",\"content\":\"\",\"tool_calls\":"
     "[],\"additional_kwargs\":{\"tool_calls\":[{\"id\":\"x\",\"function\":{\"name\":\"f\","
     "\"arguments\":\"\"},\"type\":\"function\"}]}},{\"type\":\"tool\",\"content\":\"[1]\","
     "\"tool_call_id\":\"x\"}]",
     "U q|C x=f |R x=f {\"result\":\"[1]\"}|"},
    {"[{\"type\":\"human\",\"data\":{\"content\":\"a\"}},{\"lc\":1,\"type\":\"constructor\","
     "\"id\":[\"langchain_core\",\"messages\",\"HumanMessage\"],\"kwargs\":{\"content\":\"b\"}"
     "}]",
     "U a|U b|"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"base64\","
     "\"media_type\":\"image/jpeg\",\"data\":\"aGk=\"}},{\"type\":\"image\",\"source\":{"
     "\"type\":\"url\",\"url\":\"https://a.example/\"}},{\"type\":\"image\",\"base64\":"
     "\"aGk=\",\"mime_type\":\"image/webp\"},{\"type\":\"image\",\"source_type\":\"base64\","
     "\"data\":\"aGk=\",\"mime_type\":\"image/gif\"}]}]",
     "U  [{\"type\":\"image\",\"media_type\":\"image/jpeg\",\"data\":\"aGk=\"},"
     "{\"type\":\"image\",\"url\":\"https://a.example/\"},"
     "{\"type\":\"image\",\"media_type\":\"image/webp\",\"data\":\"aGk=\"},"
     "{\"type\":\"image\",\"media_type\":\"image/gif\",\"data\":\"aGk=\"}]|"},
    /* one id twice, within a reply and in two */
    {"[{\"role\":\"user\",\"content\":\"q\"},{\"type\":\"ai\",\"tool_calls\":[{\"id\":\"x\","
     "\"name\":\"a\"},{\"id\":\"x\",\"name\":\"b\"}]},{\"role\":\"tool\",\"tool_call_id\":"
     "\"x\",\"content\":\"1\"},{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"2\"},"
     "{\"type\":\"ai\",\"tool_calls\":[{\"id\":\"x\",\"name\":\"c\"}]},{\"role\":\"tool\","
     "\"tool_call_id\":\"x\",\"content\":\"3\"}]",
     "U q|C x=a {}|C x=b {}|R x=a {\"result\":\"1\"}|R x=b {\"result\":\"2\"}|C x=c {}|"
     "R x=c {\"result\":\"3\"}|"},
};

static void every_form_reads_as_the_same_messages(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct import import;
        struct err e;
        struct buf out;
        if (!read_list(lists[i].list, &import, &e)) fail_msg("%s: %s", lists[i].list, e.text);
        if (!lists[i].read) continue;
        buf_init(&out, 64 * KIB);
        write_messages(import.messages, import.count, &out);
        assert_str(buf_str(&out), lists[i].read);
        buf_done(&out);
    }
}

static void a_list_in_blocks_has_results_and_reasoning_in_its_content(void **state) {
    (void)state;
    static const struct {
        const char *list, *read;
    } cases[] = {
        {"[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[{"
         "\"type\":"
         "\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},{\"type\":\"tool_use\",\"id\":"
         "\"x\","
         "\"name\":\"find\",\"input\":{}},{\"type\":\"tool_use\",\"id\":\"y\",\"name\":\"now\","
         "\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
         "\"tool_use_id\":\"x\",\"content\":[{\"type\":\"text\",\"text\":\"r\"}]},{\"type\":"
         "\"tool_result\",\"tool_use_id\":\"y\",\"is_error\":true},{\"type\":\"text\",\"text\":"
         "\"and?\"}]}]",
         "U q|C x=find {}|C y=now {}|R x=find {\"result\":\"r\"}|R! y=now {\"error\":\"\"}|"
         "U and?|"},
        {"[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[{"
         "\"type\":"
         "\"tool_use\",\"id\":\"x\",\"name\":\"find\",\"input\":{}}]},{\"role\":\"user\","
         "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"x\",\"content\":\"r\"}]}]",
         "U q|C x=find {}|R x=find {\"result\":\"r\"}|"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct import import;
        struct json list;
        struct err e;
        struct buf out;
        assert_true(json_read(str_from(cases[i].list), &list, &e));
        if (!import_read_blocks(list, false, arena, &import, &e)) fail_msg("%s", e.text);
        buf_init(&out, 64 * KIB);
        write_messages(import.messages, import.count, &out);
        assert_str(buf_str(&out), cases[i].read);
        buf_done(&out);
    }
}

static void an_error_of_agui_is_told_beside_its_content(void **state) {
    (void)state;
    static const struct {
        const char *result, *read;
    } cases[] = {
        {"\"content\":\"x\"", "R x=f {\"result\":\"x\"}|"},
        {"\"content\":\"\",\"error\":\"no \\u20ac\"",
         "R! x=f {\"error\":\"no \xE2\x82\xAC\"}|"},
        {"\"content\":\"x\",\"error\":\"no\"", "R! x=f {\"error\":\"x\\n\\nno\"}|"},
        {"\"content\":\"it says no\",\"error\":\"no\"", "R! x=f {\"error\":\"it says no\"}|"},
        {"\"content\":\"x\",\"error\":\" \"", "R! x=f {\"error\":\"x\"}|"},
        {"\"content\":\"x\",\"error\":null", "R x=f {\"result\":\"x\"}|"},
        {"\"content\":\"{}\",\"error\":\"no\"", "R! x=f {\"error\":\"{}\\n\\nno\"}|"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text, out;
        struct json list;
        struct import import;
        struct err e;
        buf_init(&text, 64 * KIB);
        buf_init(&out, 64 * KIB);
        buf_printf(
            &text,
            "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"toolCalls\":"
            "[{\"id\":\"x\",\"type\":\"function\",\"function\":{\"name\":\"f\","
            "\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"toolCallId\":\"x\",%s}]",
            cases[i].result);
        assert_true(json_read(buf_str(&text), &list, &e));
        if (!import_read_agui(list, arena, &import, &e)) fail_msg("%s", e.text);
        write_messages(&import.messages[2], 1, &out);
        assert_str(buf_str(&out), cases[i].read);
        buf_done(&out);
        buf_done(&text);
    }
}

static void a_nul_and_other_characters_arrive_as_they_are(void **state) {
    (void)state;
    struct import import;
    struct err e;
    assert_true(
        read_list("[{\"role\":\"user\",\"content\":\"a\\u0000\\u00e9\\n\"}]", &import, &e));
    assert_true(str_equal(import.messages[0].text, STR("a\0\xC3\xA9\n")));
}

#define ASK "{\"role\":\"user\",\"content\":\"q\"}"
#define CALLS(calls) ASK ",{\"role\":\"assistant\",\"tool_calls\":" calls "}"

static const struct {
    const char *list, *says;
} refused[] = {
    {"{}", "messages must be an array, not an object"},
    {"[]", "messages is empty; nothing is asked"},
    {"[" ASK ",5]", "messages[1]: a message must be an object, not a number"},
    {"[\"q\"]", "messages[0]: a message must be an object, not a string"},
    {"[{\"role\":\"bot\",\"content\":\"x\"}]",
     "messages[0]: no role 'bot'; messages are of user, assistant, system or tool"},
    {"[{\"type\":\"remove\",\"id\":\"x\"}]",
     "messages[0]: no role 'remove'; messages are of user, assistant, system or tool"},
    {"[{\"role\":\"function\",\"content\":\"x\"}]",
     "messages[0]: no role 'function'; messages are of user, assistant, system or tool"},
    {"[{\"role\":7,\"content\":\"x\"}]", "messages[0]: role must be a string, not a number"},
    {"[{\"role\":\"user\"}]",
     "messages[0]: content must be a string or an array of parts, not nothing"},
    {"[{\"role\":\"user\",\"content\":null}]",
     "messages[0]: content must be a string or an array of parts, not null"},
    {"[{\"role\":\"user\",\"content\":{}}]",
     "messages[0]: content must be a string or an array of parts, not an object"},
    {"[" ASK "," ASK ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{"
     "\"type\":\"audio\"}]}]",
     "messages[2].content[1]: a part of type 'audio' cannot be taken here"},
    {"[{\"role\":\"user\",\"content\":[{}]}]",
     "messages[0].content[0]: a part of type '(none)' cannot be taken here"},
    {"[{\"role\":\"user\",\"content\":[5]}]",
     "messages[0].content[0]: a part must be an object, not a number"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":5}]}]",
     "messages[0].content[0]: text must be a string, not a number"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]",
     "messages[0].content[0]: the image has neither bytes nor a URL; give a string"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"file:///etc\"}]}"
     "]",
     "messages[0].content[0]: the image's URL must be https:, http: or data:, not "
     "'file:///etc'"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"data:image/"
     "png,x\"}]}]",
     "messages[0].content[0]: a data: URL must say ;base64 before its comma"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"data:text/"
     "plain;base64,aGk=\"}]}]",
     "messages[0].content[0]: 'text/plain' is not an image media type"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"data:image/"
     "png;base64,aGk\"}]}]",
     "messages[0].content[0]: the image is not base64 (RFC 4648, padded)"},
    {"[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"file\","
     "\"file_id\":\"x\"}}]}]",
     "messages[0].content[0]: the image needs its media type and its bytes, as strings"},
    {"[{\"role\":\"system\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"https://a/"
     "\"}]}," ASK "]",
     "messages[0].content[0]: a part of type 'image_url' cannot be taken here"},
    {"[" ASK ",{\"type\":\"ai\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"x\"}]}]",
     "messages[1].content[0]: a part of type 'thinking' cannot be taken here"},
    {"[" CALLS("5") "]", "messages[1]: tool_calls must be an array, not a number"},
    {"[" CALLS("[{\"name\":\"f\"}]") "]",
     "messages[1].tool_calls[0]: the call's id is missing"},
    {"[" CALLS("[5]") "]", "messages[1].tool_calls[0]: the call's id is missing"},
    {"[" CALLS("[{\"id\":\"x\",\"function\":{}}]") "]",
     "messages[1].tool_calls[0]: the called tool's name is missing"},
    {"[" CALLS("[{\"id\":\"x\",\"name\":\"f\",\"args\":[]}]") "]",
     "messages[1].tool_calls[0]: arguments must be an object or a string, not an array"},
    {"[" CALLS(
         "[{\"id\":\"x\",\"name\":\"f\"},{\"id\":\"y\",\"name\":\"f\"}]") ","
                                                                          "{\"role\":\"tool\","
                                                                          "\"tool_call_id\":"
                                                                          "\"x\",\"content\":"
                                                                          "\"1\"}," ASK "]",
     "messages[1].tool_calls[1]: the call 'y' has no result in the list"},
    {"[" ASK ",{\"role\":\"tool\",\"content\":\"1\"}]", "messages[1]: tool_call_id is missing"},
    {"[" ASK ",{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"1\"}]",
     "messages[1]: no call 'x' before it waits for a result"},
    {"[" CALLS("[{\"id\":\"x\",\"name\":\"f\"}]") ",{\"role\":\"tool\",\"tool_call_id\":\"x\","
                                                  "\"content\":\"1\"},{\"role\":\"tool\","
                                                  "\"tool_call_id\":\"x\",\"content\":\"1\"}]",
     "messages[3]: no call 'x' before it waits for a result"},
    {"[" ASK ",{\"type\":\"ai\",\"content\":\"x\",\"invalid_tool_calls\":[{}]}]",
     "messages[1]: invalid_tool_calls cannot be taken; leave them out"},
    {"[" ASK ",{\"role\":\"system\",\"content\":\"s\"}]",
     "messages[1]: the last message is a system message; the last one is what is asked"},
    {"[" ASK ",{\"role\":\"assistant\",\"content\":\"\"}]",
     "messages[1]: the last message says nothing"},
    {"[{\"role\":\"assistant\",\"content\":\"x\"}]", "messages: none is of a user"},
};

static void what_cannot_be_taken_is_refused_with_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct import import;
        struct err e;
        if (read_list(refused[i].list, &import, &e)) fail_msg("took %s", refused[i].list);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_str(err_text(&e), refused[i].says);
    }
}

static void every_arena_that_is_too_small_is_an_error(void **state) {
    (void)state;
    const char *text = lists[10].list;
    for (size_t limit = 0;; limit += 8) {
        struct arena *small = arena_new(limit);
        struct import import;
        struct json list;
        struct err e;
        assert_true(json_read(str_from(text), &list, &e));
        bool fine = import_read(list, small, &import, &e);
        arena_free(small);
        if (fine) break;
        assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
        assert_true(limit < 4 * KIB);
    }
}

static void a_block_goes_after_the_text_and_the_parts(void **state) {
    (void)state;
    struct message text = {.text = STR("hi")}, none = {.text = STR_EMPTY};
    struct message picture = {.text = STR_EMPTY,
                              .parts =
                                  STR("[{\"type\":\"image\",\"url\":\"https://a.example/\"}]")};
    assert_true(import_add_text(&text, STR("{\"a\":1}"), arena));
    assert_str(text.text, "hi\n\n{\"a\":1}");
    assert_true(import_add_text(&none, STR("{}"), arena));
    assert_str(none.text, "{}");
    assert_true(import_add_text(&picture, STR("{}"), arena));
    assert_str(picture.text, "{}");
    assert_str(picture.parts, "[{\"type\":\"image\",\"url\":\"https://a.example/\"},"
                              "{\"type\":\"text\",\"text\":\"{}\"}]");
}

/* --- keeping ------------------------------------------------------------------------------ */

#define M_USER(said)                                                                           \
    { .role = MESSAGE_USER, .text = STR_INIT(said) }
#define M_FAILED(said)                                                                         \
    { .role = MESSAGE_USER, .text = STR_INIT(said), .error = true }
#define M_SAID(said)                                                                           \
    { .role = MESSAGE_AGENT, .agent = STR_INIT("manager"), .text = STR_INIT(said) }
#define M_SYSTEM(said)                                                                         \
    { .role = MESSAGE_SYSTEM, .text = STR_INIT(said) }
#define M_INSTRUCTIONS(said)                                                                   \
    { .role = MESSAGE_SYSTEM, .text = STR_INIT(said), .instructions = true }
#define M_CALL(id)                                                                             \
    {                                                                                          \
        .role = MESSAGE_TOOL_CALL, .call_id = STR_INIT(id), .tool = STR_INIT("f"),             \
        .text = STR_INIT("{}")                                                                 \
    }
#define M_RESULT(id)                                                                           \
    {                                                                                          \
        .role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT(id), .text = STR_INIT("{}"),          \
        .tool = STR_INIT("f")                                                                  \
    }

static const struct message kept[] = {
    M_SYSTEM("s"),
    M_USER(""),
    {.role = MESSAGE_USER,
     .text = STR_INIT("\"a\"\n\xC3\xA9"),
     .parts = STR_INIT("[{\"type\":\"text\",\"text\":\"\\\"a\\\"\"},{\"type\":\"image\",\"url\""
                       ":\"https://a.example/\"}]")},
    M_SAID("b"),
    M_CALL("1"),
    {.role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT("1"), .text = STR_INIT("{}"), .error = 1},
    {.role = MESSAGE_USER, .text = STR_INIT("c"), .heard_by = STR_INIT("wally")},
    {.role = MESSAGE_OPAQUE, .tool = STR_INIT("openai"), .text = STR_INIT("[]")},
    M_INSTRUCTIONS("i"),
};

static void what_is_kept_reads_back_equal(void **state) {
    (void)state;
    struct buf out, before, after;
    struct import import;
    struct err e;
    buf_init(&out, 64 * KIB);
    buf_init(&before, 64 * KIB);
    buf_init(&after, 64 * KIB);
    assert_true(import_append(kept, ARRAY_LEN(kept), &out));
    struct str bytes = exact_copy(buf_str(&out));
    assert_true(import_decode(bytes, arena, &import, &e));
    free((char *)bytes.at); /* nothing is a view of it */
    assert_int_equal(import.count, ARRAY_LEN(kept));
    write_messages(kept, ARRAY_LEN(kept), &before);
    write_messages(import.messages, import.count, &after);
    assert_true(str_equal(buf_str(&before), buf_str(&after)));
    assert_str(import.messages[3].agent, "manager");
    for (size_t i = 0; i < import.count; i++) {
        if (!str_equal(import.messages[i].heard_by, kept[i].heard_by)) fail_msg("%zu", i);
        if (import.messages[i].instructions != kept[i].instructions) fail_msg("%zu", i);
    }

    buf_clear(&after);
    assert_true(import_append(import.messages, import.count, &after));
    assert_true(str_equal(buf_str(&after), buf_str(&out)));
    for (size_t room = 0; room < out.len; room++) {
        struct buf small;
        buf_init(&small, room);
        assert_false(import_append(kept, ARRAY_LEN(kept), &small));
        buf_done(&small);
    }
    buf_done(&out);
    buf_done(&before);
    buf_done(&after);
}

static void every_truncation_of_what_is_kept_is_data_loss(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 64 * KIB);
    assert_true(import_append(kept, ARRAY_LEN(kept), &out));
    for (size_t cut = 0; cut < out.len; cut++) {
        struct str part = exact_copy(str_head(buf_str(&out), cut));
        struct import import;
        struct err e;
        assert_false(import_decode(part, arena, &import, &e));
        assert_int_equal(e.code, ERR_DATA_LOSS);
        free((char *)part.at);
    }
    static const char *const others[] = {
        "{}",
        "[5]",
        "[{}]",
        "[{\"role\":\"nobody\"}]",
        "[{\"role\":\"user\",\"text\":5}]",
        "[{\"role\":\"user\",\"error\":5}]",
        "[{\"role\":\"system\",\"instructions\":5}]",
        "[{\"role\":\"user\",\"parts\":[]}]",
        "[{\"role\":\"user\",\"parts\":[{\"type\":\"image\"}]}]",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct import import;
        struct err e;
        assert_false(import_decode(str_from(others[i]), arena, &import, &e));
        assert_int_equal(e.code, ERR_DATA_LOSS);
    }
    buf_done(&out);
}

/* --- what the session has ----------------------------------------------------------------- */

#define LIST(...) (const struct message[]){__VA_ARGS__}, COUNT_OF(__VA_ARGS__)
#define COUNT_OF(...) (sizeof((const struct message[]){__VA_ARGS__}) / sizeof(struct message))

static const struct message session[] = {
    M_SYSTEM("s"), M_USER("one"), M_SAID("let me see"), M_CALL("1"),
    M_RESULT("1"), M_SAID("uno"), M_USER("two"),        M_SAID("due"),
};

static size_t known(const struct message *brought, size_t count) {
    return import_known(session, ARRAY_LEN(session), brought, count);
}

static void the_session_or_its_newest_part_is_known_in_a_list(void **state) {
    (void)state;
    assert_int_equal(known(LIST(M_USER("one"), M_SAID("uno"), M_USER("two"), M_SAID("due"),
                                M_USER("three"))),
                     4);
    assert_int_equal(known(LIST(M_USER("two"), M_SAID("due"), M_USER("three"))), 2);
    /* what callers do not see does not matter, on either side */
    assert_int_equal(
        known(LIST(M_SYSTEM("other"), M_USER(" one\n"), M_SAID("I ask"), M_CALL("9"),
                   M_RESULT("9"), M_SAID("uno"), M_CALL("8"), M_RESULT("8"), M_USER("two"),
                   M_SAID("due"), M_SYSTEM("new"), M_USER("three"))),
        10);
    /* a turn of its own with calls and results is new as a whole */
    assert_int_equal(
        known(LIST(M_USER("two"), M_SAID("due"), M_USER("three"), M_CALL("1"), M_RESULT("1"))),
        2);
}

static void a_list_that_leaves_the_session_is_new_as_a_whole(void **state) {
    (void)state;
    assert_int_equal(known(LIST(M_USER("three"))), 0);
    assert_int_equal(known(LIST(M_USER("two"))), 0); /* the same question again */
    assert_int_equal(known(LIST(M_USER("one"), M_SAID("uno"), M_USER("three"))), 0);
    assert_int_equal(known(LIST(M_USER("two"), M_SAID("tre"), M_USER("three"))), 0);
    assert_int_equal(known(LIST(M_USER("two"), M_USER("three"))), 0);
    assert_int_equal(import_known(NULL, 0, LIST(M_USER("a"), M_SAID("b"), M_USER("c"))), 0);
}

static void a_turn_that_failed_may_be_in_the_list_or_not(void **state) {
    (void)state;
    static const struct message failed[] = {M_FAILED("one"), M_USER("one"), M_SAID("uno"),
                                            M_FAILED("two"), M_SAID("du")};
    size_t count = ARRAY_LEN(failed);
    assert_int_equal(
        import_known(failed, count, LIST(M_USER("one"), M_SAID("uno"), M_USER("two"))), 2);
    assert_int_equal(import_known(failed, count,
                                  LIST(M_USER("one"), M_USER("one"), M_SAID("uno"),
                                       M_USER("two"), M_USER("next"))),
                     4);
    assert_int_equal(import_known(failed, count,
                                  LIST(M_USER("one"), M_SAID("uno"), M_USER("two"),
                                       M_SAID("Error: no"), M_USER("next"))),
                     4);
}

static void keys_that_stood_beside_a_message_do_not_make_it_another(void **state) {
    (void)state;
    static const struct message held[] = {M_USER("one\n\n{\"tier\":\"gold\"}"), M_SAID("uno")};
    assert_int_equal(import_known(held, 2, LIST(M_USER("one"), M_SAID("uno"), M_USER("x"))), 2);
    assert_int_equal(import_known(held, 2, LIST(M_USER("on"), M_SAID("uno"), M_USER("x"))), 0);
}

static void pictures_are_compared_too(void **state) {
    (void)state;
    static const struct message held[] = {
        {.role = MESSAGE_USER,
         .text = STR_INIT("see"),
         .parts = STR_INIT("[{\"type\":\"image\",\"url\":\"https://a/\"}]")},
        M_SAID("uno")};
    static const struct message same[] = {
        {.role = MESSAGE_USER,
         .text = STR_INIT("see"),
         .parts = STR_INIT("[{\"type\":\"image\",\"url\":\"https://a/\"}]")},
        M_SAID("uno"),
        M_USER("x")};
    assert_int_equal(import_known(held, 2, same, 3), 2);
    assert_int_equal(import_known(held, 2, LIST(M_USER("see"), M_SAID("uno"), M_USER("x"))), 0);
}

static void only_a_list_with_another_past_forks(void **state) {
    (void)state;
    size_t count = ARRAY_LEN(session);
    assert_false(import_forks(session, count, LIST(M_USER("three"))));
    assert_false(import_forks(session, count, LIST(M_SYSTEM("s"), M_USER("three"))));
    assert_false(import_forks(NULL, 0, LIST(M_USER("a"), M_SAID("b"), M_USER("c"))));
    assert_false(import_forks(session, count, LIST(M_USER("two"), M_SAID("due"), M_USER("c"))));
    assert_true(import_forks(session, count, LIST(M_USER("a"), M_SAID("b"), M_USER("c"))));
}

/* Where each turn is compared with each, this takes hours. */
static void a_long_session_of_equal_turns_is_compared_in_one_walk(void **state) {
    (void)state;
    const size_t count = 200000;
    struct message *held = mem_zero(count, sizeof(struct message));
    struct message *brought = mem_zero(count, sizeof(struct message));
    for (size_t i = 0; i < count; i++) {
        held[i] = (struct message)M_USER("a");
        brought[i] = (struct message)M_USER("a");
    }
    brought[count - 1].text = STR("c");
    assert_int_equal(import_known(held, count, brought, count), count - 1);
    brought[count - 3].text = STR("b");
    assert_int_equal(import_known(held, count, brought, count), count - 3);
    for (size_t i = 0; i < count; i += 2) held[i].error = true;
    assert_int_equal(import_known(held, count, brought, count), count - 3);
    brought[0].text = STR("b");
    assert_int_equal(import_known(held, count, brought, count), 0);
    free(held);
    free(brought);
}

static void many_results_are_looked_for_in_one_walk(void **state) {
    (void)state;
    const size_t count = 200000;
    struct message *held = mem_zero(count, sizeof(struct message));
    struct message *brought = mem_zero(count, sizeof(struct message));
    for (size_t i = 0; i < count; i++) {
        held[i] = (struct message)M_CALL("known");
        brought[i] = (struct message)M_RESULT("unknown");
    }
    assert_int_equal(import_results(held, count, brought, count), count);
    brought[0] = (struct message)M_RESULT("known");
    assert_int_equal(import_results(held, count, brought, count), 0);
    held[count - 1] = (struct message)M_RESULT("known");
    assert_int_equal(import_results(held, count, brought, count), count);
    free(held);
    free(brought);
}

/* --- packed turns ------------------------------------------------------------------------- */

static struct str unpacked(const char *text) {
    return import_unpack(session, ARRAY_LEN(session), str_from(text));
}

#define PACKED "User: one\n\nAssistant: uno\n\nUser: two\n\nAssistant: due\n\nUser: "

static void what_the_dashboard_packs_is_stripped_to_what_is_asked(void **state) {
    (void)state;
    assert_str(unpacked(PACKED "three"), "three");
    assert_str(unpacked(PACKED "a\n\nUser: b"), "a\n\nUser: b");
    assert_str(unpacked(PACKED), "");
    assert_str(unpacked("User: two\n\nAssistant: due\n\nUser: three"), "three");
}

static void what_differs_in_one_byte_is_left_alone(void **state) {
    (void)state;
    struct str packed = STR(PACKED "three");
    struct str head = STR(PACKED);
    char text[sizeof(PACKED "three")];
    for (size_t i = 0; i < head.len; i++) {
        memcpy(text, packed.at, packed.len);
        text[i] = text[i] == 'x' ? 'y' : 'x';
        struct str changed = str_of(text, packed.len);
        assert_true(str_equal(import_unpack(session, ARRAY_LEN(session), changed), changed));
        struct str cut = str_head(packed, i);
        assert_true(str_equal(import_unpack(session, ARRAY_LEN(session), cut), cut));
    }
    assert_str(unpacked("three"), "three");
    assert_str(unpacked("User: three"), "User: three");
    assert_str(import_unpack(NULL, 0, STR(PACKED "three")), PACKED "three");
}

static void bubbles_of_failed_and_silent_turns_are_stripped_too(void **state) {
    (void)state;
    static const struct message held[] = {M_FAILED("one"), M_USER("two"), M_USER("three"),
                                          M_SAID("tre")};
    assert_str(import_unpack(held, 4,
                             STR("User: one\n\nAssistant: Error: 500\n\nbroken\n\nUser: two\n\n"
                                 "Assistant: (empty response)\n\nUser: three\n\nAssistant: "
                                 "tre\n\nUser: four")),
               "four");
    assert_str(
        import_unpack(held, 4, STR("User: two\n\nUser: three\n\nAssistant: tre\n\nUser: four")),
        "four");
}

/* What a session goes on with may be results alone; a call in the list still needs its own. */
static void the_rest_of_a_conversation_may_bring_results_alone(void **state) {
    (void)state;
    static const char *const results =
        "[{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"dry\"}]";
    struct import import;
    struct json list;
    struct err e;
    assert_true(json_read(str_from(results), &list, &e));
    assert_false(import_read(list, arena, &import, &e));
    assert_true(import_read_next(list, arena, &import, &e));
    assert_int_equal(import.count, 1);
    assert_int_equal(import.messages[0].role, MESSAGE_TOOL_RESULT);
    assert_str(import.messages[0].call_id, "c");
    static const char *const open =
        "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"function\":"
        "{\"name\":\"f\",\"arguments\":\"{}\"}}]}]";
    assert_true(json_read(str_from(open), &list, &e));
    assert_false(import_read_next(list, arena, &import, &e));
}

/* One message with 100,000 calls of one id, and a result for each: read in order, and in one go. */
static void many_calls_of_one_id_are_answered_in_order(void **state) {
    (void)state;
    enum { MANY = 100000 };
    struct buf text;
    struct json list;
    struct import import;
    struct err e;
    struct arena *room = arena_new(256 * MIB);
    buf_init(&text, 64 * MIB);
    buf_append(&text, STR("[{\"role\":\"user\",\"content\":\"q\"},"
                          "{\"role\":\"assistant\",\"tool_calls\":["));
    for (int i = 0; i < MANY; i++)
        buf_printf(&text, "%s{\"id\":\"c\",\"name\":\"f%d\"}", i ? "," : "", i);
    buf_append(&text, STR("]}"));
    for (int i = 0; i < MANY; i++)
        buf_printf(&text, ",{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"%d\"}", i);
    buf_append(&text, STR("]"));
    assert_true(json_read(buf_str(&text), &list, &e));
    assert_true(import_read(list, room, &import, &e));
    assert_int_equal(import.count, 1 + 2 * MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_true(str_equal(import.messages[1 + i].tool, import.messages[1 + MANY + i].tool));
    buf_done(&text);
    arena_free(room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_calls_of_one_id_are_answered_in_order),
        cmocka_unit_test(the_rest_of_a_conversation_may_bring_results_alone),
        cmocka_unit_test(every_form_reads_as_the_same_messages),
        cmocka_unit_test(a_list_in_blocks_has_results_and_reasoning_in_its_content),
        cmocka_unit_test(an_error_of_agui_is_told_beside_its_content),
        cmocka_unit_test(a_nul_and_other_characters_arrive_as_they_are),
        cmocka_unit_test(what_cannot_be_taken_is_refused_with_its_place),
        cmocka_unit_test(every_arena_that_is_too_small_is_an_error),
        cmocka_unit_test(a_block_goes_after_the_text_and_the_parts),
        cmocka_unit_test(what_is_kept_reads_back_equal),
        cmocka_unit_test(every_truncation_of_what_is_kept_is_data_loss),
        cmocka_unit_test(the_session_or_its_newest_part_is_known_in_a_list),
        cmocka_unit_test(a_list_that_leaves_the_session_is_new_as_a_whole),
        cmocka_unit_test(a_turn_that_failed_may_be_in_the_list_or_not),
        cmocka_unit_test(keys_that_stood_beside_a_message_do_not_make_it_another),
        cmocka_unit_test(pictures_are_compared_too),
        cmocka_unit_test(only_a_list_with_another_past_forks),
        cmocka_unit_test(a_long_session_of_equal_turns_is_compared_in_one_walk),
        cmocka_unit_test(many_results_are_looked_for_in_one_walk),
        cmocka_unit_test(what_the_dashboard_packs_is_stripped_to_what_is_asked),
        cmocka_unit_test(what_differs_in_one_byte_is_left_alone),
        cmocka_unit_test(bubbles_of_failed_and_silent_turns_are_stripped_too),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
