/* The parts of a conversation besides text, as each dialect sends them or refuses them. */
#include "provider/parts.h"

#include "asking.h"

#include <stdio.h>

#define M_SYSTEM(said)                                                                         \
    { .role = MESSAGE_SYSTEM, .text = STR_INIT(said) }
#define M_PARTS(said, list)                                                                    \
    { .role = MESSAGE_USER, .text = STR_INIT(said), .parts = STR_INIT(list) }

#define TEXT(said) "{\"type\":\"text\",\"text\":\"" said "\"}"
#define BYTES(type) "{\"type\":\"image\",\"media_type\":\"" type "\",\"data\":\"aGk=\"}"
#define AT(url) "{\"type\":\"image\",\"url\":\"" url "\"}"
#define LOW(url) "{\"type\":\"image\",\"url\":\"" url "\",\"detail\":\"low\"}"

static const struct {
    const char *parts;
    bool fine;
} checked[] = {
    {"[" TEXT("a") "," BYTES("image/png") "," AT("https://a/") "," LOW("https://a/") "]", true},
    {"[" TEXT("") "]", true},
    {"[]", false},
    {"{}", false},
    {"[5]", false},
    {"[{}]", false},
    {"[{\"type\":\"text\"}]", false},
    {"[{\"type\":\"image\"}]", false},
    {"[{\"type\":\"image\",\"data\":\"aGk=\"}]", false},
    {"[{\"type\":\"image\",\"media_type\":\"a\",\"data\":\"b\",\"url\":\"c\"}]", false},
    {"[{\"type\":\"image\",\"url\":\"c\",\"detail\":5}]", false},
    {"[{\"type\":\"audio\",\"url\":\"c\"}]", false},
};

static void only_texts_and_images_are_parts(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(checked); i++) {
        struct json parts;
        struct err e;
        assert_true(json_read(str_from(checked[i].parts), &parts, &e));
        assert_int_equal(parts_check(parts, &e), checked[i].fine);
    }
}

/* --- pictures ----------------------------------------------------------------------------- */

static const struct message seen[] = {
    M_PARTS("what\n\nis it", "[" TEXT("what") "," BYTES("image/png") "," TEXT("is it") "," LOW(
                                 "https://a.example/b.webp?c") "]"),
};

static void assert_sends(const struct dialect *dialect, const char *model, const char *key,
                         const char *expected) {
    assert_member(dialect, ASKING(seen, .model = str_from(model)), key, expected);
}

static void every_dialect_sends_pictures_in_their_place(void **state) {
    (void)state;
    assert_sends(&openai_dialect, "m", "messages",
                 "[{'role':'user','content':[{'type':'text','text':'what'},"
                 "{'type':'image_url','image_url':{'url':'data:image/png;base64,aGk='}},"
                 "{'type':'text','text':'is it'},{'type':'image_url','image_url':"
                 "{'url':'https://a.example/b.webp?c','detail':'low'}}]}]");
    assert_sends(&responses_dialect, "m", "input",
                 "[{'type':'message','role':'user','content':[{'type':'input_text','text':"
                 "'what'},{'type':'input_image','image_url':'data:image/png;base64,aGk=',"
                 "'detail':'auto'},{'type':'input_text','text':'is it'},{'type':'input_image',"
                 "'image_url':'https://a.example/b.webp?c','detail':'low'}]}]");
    assert_sends(&anthropic_dialect, "claude-sonnet-4-5", "messages",
                 "[{'role':'user','content':[{'type':'text','text':'what'},{'type':'image',"
                 "'source':{'type':'base64','media_type':'image/png','data':'aGk='}},"
                 "{'type':'text','text':'is it'},{'type':'image','source':{'type':'url','url':"
                 "'https://a.example/b.webp?c'},'cache_control':{'type':'ephemeral'}}]}]");
    assert_sends(&gemini_dialect, "gemini-2.5-flash", "contents",
                 "[{'role':'user','parts':[{'text':'what'},{'inlineData':{'mimeType':"
                 "'image/png','data':'aGk='}},{'text':'is it'},{'fileData':{'mimeType':"
                 "'image/webp','fileUri':'https://a.example/b.webp?c'}}]}]");
}

static void assert_cannot(const struct dialect *dialect, const struct provider_request *request,
                          const char *says) {
    struct buf body;
    struct err e;
    buf_init(&body, BODY_MAX_BYTES);
    assert_false(write_body_of(dialect, request, &body, &e));
    assert_int_equal(e.code, ERR_UNIMPLEMENTED);
    assert_str(err_text(&e), says);
    buf_done(&body);
}

static void a_picture_that_a_vendor_does_not_take_is_refused_with_its_place(void **state) {
    (void)state;
    static const struct message tiff[] = {
        M_USER("a"), M_SAID("", "b"), M_PARTS("c", "[" TEXT("c") "," BYTES("image/tiff") "]")};
    static const struct message plain[] = {M_PARTS("", "[" AT("http://a.example/") "]")};
    assert_cannot(
        &anthropic_dialect, ASKING(tiff, .model = STR("claude-sonnet-4-5")),
        "messages[2].content[1]: Anthropic's models take pictures that are JPEG, PNG, "
        "GIF or WebP, or at an https: URL");
    assert_cannot(
        &anthropic_dialect, ASKING(plain, .model = STR("claude-sonnet-4-5")),
        "messages[0].content[0]: Anthropic's models take pictures that are JPEG, PNG, "
        "GIF or WebP, or at an https: URL");
    assert_cannot(&gemini_dialect, ASKING(tiff, .model = STR("gemini-2.5-flash")),
                  "messages[2].content[1]: Google's models take pictures that are PNG, JPEG, "
                  "WebP or HEIC");
}

/* --- instructions between messages -------------------------------------------------------- */

static const struct message instructed[] = {M_SYSTEM("s"), M_SYSTEM("t"), M_USER("a"),
                                            M_SAID("", "b"), M_USER("c")};
static const struct message between[] = {M_SYSTEM("s"), M_USER("a"), M_SAID("", "b"),
                                         M_SYSTEM("t"), M_USER("c")};
static const struct message again[] = {M_SYSTEM("s"), M_USER("a"), M_SAID("", "b"),
                                       M_SYSTEM("s"), M_USER("c")};

static void leading_system_messages_stand_where_the_vendor_wants_them(void **state) {
    (void)state;
    assert_member(&openai_dialect, ASKING(instructed, .system = STR("own")), "messages",
                  "[{'role':'system','content':'own'},{'role':'system','content':'s'},"
                  "{'role':'system','content':'t'},{'role':'user','content':'a'},"
                  "{'role':'assistant','content':'b'},{'role':'user','content':'c'}]");
    assert_member(&responses_dialect, ASKING(instructed, .system = STR("own")), "input",
                  "[{'type':'message','role':'system','content':'s'},"
                  "{'type':'message','role':'system','content':'t'},"
                  "{'type':'message','role':'user','content':'a'},"
                  "{'type':'message','role':'assistant','content':'b'},"
                  "{'type':'message','role':'user','content':'c'}]");
    assert_member(&anthropic_dialect,
                  ASKING(instructed, .system = STR("own"), .model = STR("claude-sonnet-4-5")),
                  "system",
                  "[{'type':'text','text':'own'},{'type':'text','text':'s'},{'type':'text',"
                  "'text':'t','cache_control':{'type':'ephemeral'}}]");
    assert_member(&gemini_dialect,
                  ASKING(instructed, .system = STR("own"), .model = STR("gemini-2.5-flash")),
                  "systemInstruction", "{'parts':[{'text':'own'},{'text':'s'},{'text':'t'}]}");
}

static void a_later_system_message_is_sent_or_refused_with_its_place(void **state) {
    (void)state;
    assert_member(&openai_dialect, ASKING(between), "messages",
                  "[{'role':'system','content':'s'},{'role':'user','content':'a'},"
                  "{'role':'assistant','content':'b'},{'role':'system','content':'t'},"
                  "{'role':'user','content':'c'}]");
    assert_cannot(
        &anthropic_dialect, ASKING(between, .model = STR("claude-sonnet-4-5")),
        "messages[3]: Anthropic's models take system messages before all others only");
    assert_cannot(&gemini_dialect, ASKING(between, .model = STR("gemini-2.5-flash")),
                  "messages[3]: Google's models take system messages before all others only");
}

static void a_system_message_that_is_said_again_needs_no_place(void **state) {
    (void)state;
    assert_member(&anthropic_dialect, ASKING(again, .model = STR("claude-sonnet-4-5")),
                  "messages",
                  "[{'role':'user','content':[{'type':'text','text':'a'}]},"
                  "{'role':'assistant','content':[{'type':'text','text':'b'}]},"
                  "{'role':'user','content':[{'type':'text','text':'c','cache_control':"
                  "{'type':'ephemeral'}}]}]");
    assert_member(&gemini_dialect, ASKING(again, .model = STR("gemini-2.5-flash")), "contents",
                  "[{'role':'user','parts':[{'text':'a'}]},{'role':'model','parts':[{'text':"
                  "'b'}]},{'role':'user','parts':[{'text':'c'}]}]");
}

/* --- a reply that is begun ---------------------------------------------------------------- */

static const struct message begun[] = {M_USER("a"), M_SAID("", "b")};

static void a_begun_reply_is_sent_where_it_is_gone_on_with(void **state) {
    (void)state;
    static const struct dialect_settings local = {.base_url =
                                                      STR_INIT("http://127.0.0.1:8000/v1")};
    struct buf body;
    struct err e;
    buf_init(&body, BODY_MAX_BYTES);
    assert_true(openai_dialect.body(&local, ASKING(begun, .model = STR("m")), &body, &e));
    assert_true(str_find(buf_str(&body), STR("{\"role\":\"assistant\",\"content\":\"b\"}]")) <
                body.len);
    buf_done(&body);
    assert_member(&anthropic_dialect,
                  ASKING(begun, .model = STR("claude-sonnet-4-5"),
                         .options = &(const struct model_options){.temperature = -1,
                                                                  .top_p = -1,
                                                                  .thinking_tokens = 2048}),
                  "messages",
                  "[{'role':'user','content':[{'type':'text','text':'a'}]},"
                  "{'role':'assistant','content':[{'type':'text','text':'b'}]}]");
    assert_member(&anthropic_dialect,
                  ASKING(begun, .model = STR("claude-sonnet-4-5"),
                         .options = &(const struct model_options){.temperature = -1,
                                                                  .top_p = -1,
                                                                  .thinking_tokens = 2048}),
                  "thinking", "");
}

static void a_begun_reply_is_refused_where_it_is_not(void **state) {
    (void)state;
    assert_cannot(&openai_dialect, ASKING(begun, .model = STR("gpt-5")),
                  "messages[1]: OpenAI's models do not go on with an assistant's message; let "
                  "the last one be a user's");
    assert_cannot(&responses_dialect, ASKING(begun, .model = STR("gpt-5")),
                  "messages[1]: this API does not go on with an assistant's message; let the "
                  "last one be a user's");
    assert_cannot(
        &anthropic_dialect, ASKING(begun, .model = STR("claude-opus-4-6")),
        "messages[1]: claude-opus-4-6 does not go on with an assistant's message; let "
        "the last one be a user's");
    assert_cannot(&gemini_dialect, ASKING(begun, .model = STR("gemini-2.5-flash")),
                  "messages[1]: Google's models do not go on with an assistant's message; let "
                  "the last one be a user's");
}

/* --- what a request holds begins the next one --------------------------------------------- */

#define UNITS_MAX 4096
#define MARK STR(",\"cache_control\":{\"type\":\"ephemeral\"}")

/* The messages of a body, or their blocks where a message has several, each as text. */
struct units {
    struct str at[UNITS_MAX];
    size_t count;
    struct buf bytes;
};

static void add_unit(struct units *units, struct str role, struct str raw) {
    size_t from = units->bytes.len, mark = str_find(raw, MARK);
    buf_append(&units->bytes, role);
    buf_append(&units->bytes, str_head(raw, mark));
    buf_append(&units->bytes, str_skip(raw, mark + MARK.len));
    assert_true(buf_ok(&units->bytes) && units->count < UNITS_MAX);
    units->at[units->count++] = str_of((void *)(uintptr_t)from, units->bytes.len - from);
}

static void units_of(const struct dialect *dialect, const char *list, const char *blocks,
                     const struct provider_request *request, struct units *units) {
    struct buf body;
    struct json json, message, block;
    struct err e;
    buf_init(&body, 8 * MIB);
    buf_init(&units->bytes, 8 * MIB);
    units->count = 0;
    if (!write_body_of(dialect, request, &body, &e)) fail_msg("%s", e.text);
    assert_true(json_read(buf_str(&body), &json, &e));
    struct json_reader messages = json_enter(json_find(json, str_from(list)));
    while (json_next_item(&messages, &message)) {
        struct json inside = blocks ? json_find(message, str_from(blocks)) : (struct json){0};
        struct str role = json_find(message, STR("role")).raw;
        struct json_reader at = json_enter(inside);
        if (inside.kind != JSON_ARRAY) add_unit(units, STR_EMPTY, message.raw);
        while (json_next_item(&at, &block)) add_unit(units, role, block.raw);
    }
    for (size_t i = 0; i < units->count; i++)
        units->at[i].at = units->bytes.at + (uintptr_t)units->at[i].at;
    buf_done(&body);
}

static uint32_t next_random(uint32_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* One more step of a conversation; false: the agent cannot be asked after it. */
static bool add_step(struct message *messages, size_t *count, uint32_t *seed, struct str id) {
    static const struct message say[] = {M_SAID("ann", "I look"), M_SAID("wally", "found"),
                                         M_SAID("", "brought")};
    static const struct message users[] = {
        M_USER("hello"), M_USER(""), M_USER("and?"),
        M_PARTS("see", "[" TEXT("see") "," BYTES("image/png") "]")};
    uint32_t what = next_random(seed) % 8;
    if (what < 4) {
        messages[(*count)++] = users[what];
        return true;
    }
    if (what < 6) {
        messages[(*count)++] = say[what - 4];
        if (what == 5) messages[(*count)++] = users[2];
        return what == 5;
    }
    if (what == 7) messages[(*count)++] = say[0];
    for (int i = 0; i < 2; i++)
        messages[(*count)++] = (struct message){.role = MESSAGE_TOOL_CALL,
                                                .agent = STR("ann"),
                                                .call_id = i ? STR("x") : id,
                                                .tool = STR("f"),
                                                .text = STR("{}")};
    for (int i = 0; i < 2; i++)
        messages[(*count)++] = (struct message){.role = MESSAGE_TOOL_RESULT,
                                                .call_id = i ? STR("x") : id,
                                                .tool = STR("f"),
                                                .text = STR("{\"r\":1}")};
    return true;
}

static void grow(const struct dialect *dialect, const char *model, const char *list,
                 const char *blocks, uint32_t seed) {
    static struct units before, after;
    struct message messages[128] = {M_SYSTEM("s"), M_USER("go")};
    size_t count = 2;
    char ids[16][8];
    before.count = 0;
    buf_init(&before.bytes, 1);
    for (size_t step = 0; step < 16; step++) {
        snprintf(ids[step], sizeof ids[step], "c%zu", step);
        bool asks = add_step(messages, &count, &seed, str_from(ids[step]));
        if (!asks) continue;
        struct provider_request request = {.agent = STR("ann"),
                                           .model = str_from(model),
                                           .messages = messages,
                                           .message_count = count};
        units_of(dialect, list, blocks, &request, &after);
        assert_true(after.count >= before.count);
        for (size_t i = 0; i < before.count; i++)
            assert_true(str_equal(before.at[i], after.at[i]));
        buf_done(&before.bytes);
        before = after;
    }
    buf_done(&before.bytes);
}

static void a_request_begins_with_the_one_before_it(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 100; seed++) {
        grow(&openai_dialect, "m", "messages", NULL, seed);
        grow(&responses_dialect, "m", "input", NULL, seed);
        grow(&anthropic_dialect, "claude-sonnet-4-5", "messages", "content", seed);
        grow(&gemini_dialect, "gemini-2.5-flash", "contents", "parts", seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_texts_and_images_are_parts),
        cmocka_unit_test(every_dialect_sends_pictures_in_their_place),
        cmocka_unit_test(a_picture_that_a_vendor_does_not_take_is_refused_with_its_place),
        cmocka_unit_test(leading_system_messages_stand_where_the_vendor_wants_them),
        cmocka_unit_test(a_later_system_message_is_sent_or_refused_with_its_place),
        cmocka_unit_test(a_system_message_that_is_said_again_needs_no_place),
        cmocka_unit_test(a_begun_reply_is_sent_where_it_is_gone_on_with),
        cmocka_unit_test(a_begun_reply_is_refused_where_it_is_not),
        cmocka_unit_test(a_request_begins_with_the_one_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
