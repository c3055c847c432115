#include "tape/call.h"

#include "helper/assert_str.h"

static const struct mask no_secrets = {NULL, 0};

static const struct event_usage usage = {.model = STR_INIT("m-1"),
                                         .prompt = 5,
                                         .completion = 2,
                                         .total = 7,
                                         .tool_use = TOKENS_UNKNOWN,
                                         .thoughts = TOKENS_UNKNOWN,
                                         .cached = 0,
                                         .cost_nano = TOKENS_UNKNOWN};

/* Every kind of event that a model has. */
static const struct tape_event events[] = {
    {1, {REPLY_THINKING, .text = STR_INIT("hm")}},
    {2, {REPLY_TEXT, .text = STR_INIT("d\xC3")}}, /* a character cut in two */
    {3, {REPLY_TEXT, .text = STR_INIT("\xA9j\xC3\xA0 \"vu\"\n")}},
    {4, {REPLY_TEXT, .text = STR_INIT("")}},
    {5,
     {REPLY_TOOL_CALL, .call_id = STR_INIT("c-1"), .tool = STR_INIT("look"),
      .args = STR_INIT("{\"a\":[1,2.50,{\"b\":\"\\u00e9\"}]}")}},
    {5,
     {REPLY_TOOL_CALL, .call_id = STR_INIT(""), .tool = STR_INIT("look"),
      .args = STR_INIT("{ \"spaced\" : 1 }")}},
    {5,
     {REPLY_TOOL_CALL, .call_id = STR_INIT("c-3"), .tool = STR_INIT("look"),
      .args = STR_INIT("no JSON {")}},
    {6, {REPLY_TEXT, .text = STR_INIT("no \xFF text")}},
    {7, {REPLY_OPAQUE, .dialect = STR_INIT("anthropic"), .text = STR_INIT("[{\"s\":\"x\"}]")}},
    {8, {REPLY_NOTE, .text = STR_INIT("asking another")}},
    {8, {REPLY_NOTE, .text = STR_INIT("looked"), .args = STR_INIT("{\"found\":2}")}},
    {8,
     {REPLY_OWN_CALL, .call_id = STR_INIT("its-1"), .tool = STR_INIT("look"),
      .args = STR_INIT("{\"where\":\"here\"}")}},
    {8,
     {REPLY_OWN_RESULT, .call_id = STR_INIT("its-1"), .text = STR_INIT("{\"none\":true}"),
      .reason = STR_INIT("nothing was there")}},
    {9,
     {REPLY_APPROVAL, .call_id = STR_INIT("c-4"), .tool = STR_INIT("t"),
      .text = STR_INIT("May I?"), .args = STR_INIT("{}")}},
    {10, {REPLY_USAGE, .usage = &usage}},
    {11, {REPLY_DONE, .model = STR_INIT("m-1-long")}},
};

static const struct tape_call call = {
    .kind = TAPE_MODEL,
    .started_us = 1790000000000000,
    .request =
        STR_INIT("{\"agent\":\"a\",\"messages\":[{\"text\":\"hi\"}],\"none\":[],\"n\":{}}"),
    .who = STR_INIT("{\"user\":\"u\"}"),
    .events = events,
    .event_count = sizeof(events) / sizeof(events[0]),
};

static struct str encode(const struct tape_call *from, const struct mask *mask,
                         struct buf *out) {
    buf_init(out, MIB);
    assert_true(tape_call_encode(from, mask, out));
    return buf_str(out);
}

static void same_event(const struct tape_event *one, const struct tape_event *other) {
    const struct reply_event *a = &one->reply, *b = &other->reply;
    assert_int_equal(one->at_ms, other->at_ms);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->code, b->code);
    assert_true(str_equal(a->call_id, b->call_id));
    assert_true(str_equal(a->name, b->name));
    assert_true(str_equal(a->text, b->text));
    assert_true(str_equal(a->args, b->args));
    assert_int_equal(!a->usage, !b->usage);
    if (!a->usage) return;
    assert_true(str_equal(a->usage->model, b->usage->model));
    assert_int_equal(a->usage->prompt, b->usage->prompt);
    assert_int_equal(a->usage->completion, b->usage->completion);
    assert_int_equal(a->usage->total, b->usage->total);
    assert_int_equal(a->usage->cached, b->usage->cached);
    assert_int_equal(a->usage->tool_use, b->usage->tool_use);
    assert_int_equal(a->usage->cost_nano, b->usage->cost_nano);
}

static void what_is_written_is_read_back_event_by_event(void **state) {
    (void)state;
    struct buf file;
    struct err e;
    struct tape_call back;
    struct arena *arena = arena_new(MIB);
    struct str copy = exact_copy(encode(&call, &no_secrets, &file));
    assert_true(tape_call_decode(copy, arena, &back, &e));
    free((void *)(uintptr_t)copy.at); /* it keeps nothing of the text */
    assert_int_equal(back.kind, TAPE_MODEL);
    assert_int_equal(back.started_us, call.started_us);
    assert_true(str_equal(back.request, call.request));
    assert_true(str_equal(back.who, call.who));
    assert_int_equal(back.event_count, call.event_count);
    for (size_t i = 0; i < call.event_count; i++) same_event(&back.events[i], &events[i]);
    arena_free(arena);
    buf_done(&file);
}

static void a_tools_call_has_one_event_and_it_is_the_ending(void **state) {
    (void)state;
    static const struct tape_event results[] = {
        {4, {REPLY_RESULT, .text = STR_INIT("{\"found\":\"it\"}")}},
        {0,
         {REPLY_FAILED, .code = ERR_UNAVAILABLE, .reason = STR_INIT("UNAVAILABLE"),
          .text = STR_INIT("nobody there")}},
    };
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        struct buf file;
        struct err e;
        struct tape_call back, tool = {.kind = TAPE_TOOL,
                                       .request = STR_INIT("{}"),
                                       .events = &results[i],
                                       .event_count = 1};
        struct arena *arena = arena_new(MIB);
        assert_true(tape_call_decode(encode(&tool, &no_secrets, &file), arena, &back, &e));
        assert_int_equal(back.event_count, 1);
        same_event(&back.events[0], &results[i]);
        arena_free(arena);
        buf_done(&file);
    }
}

static void a_file_that_is_cut_anywhere_is_refused(void **state) {
    (void)state;
    struct buf file;
    struct str whole = str_trim(encode(&call, &no_secrets, &file));
    for (size_t cut = 0; cut < whole.len; cut++) {
        struct err e;
        struct tape_call back;
        struct arena *arena = arena_new(MIB);
        struct str part = exact_copy(str_head(whole, cut));
        assert_false(tape_call_decode(part, arena, &back, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
        free((void *)(uintptr_t)part.at);
        arena_free(arena);
    }
    buf_done(&file);
}

static void memory_that_ends_anywhere_is_an_error(void **state) {
    (void)state;
    struct buf file;
    struct err e;
    struct tape_call back;
    struct str whole = encode(&call, &no_secrets, &file);
    size_t room = 0;
    for (bool done = false; !done; room++) {
        struct arena *arena = arena_new(room * 16);
        done = tape_call_decode(whole, arena, &back, &e);
        if (!done) assert_int_equal(e.code, ERR_TOO_LARGE);
        arena_free(arena);
    }
    assert_true(room > 10);
    buf_done(&file);
}

#define HEAD "\"weir_tape\":1,\"kind\":\"model\",\"started_us\":1,\"request\":{},"
#define DONE "{\"at_ms\":1,\"kind\":\"done\",\"model\":\"m\"}"
#define TEXT(rest) "{" HEAD "\"heard\":[{\"at_ms\":1,\"kind\":\"text\"," rest "}," DONE "]}"

static void a_folder_that_is_not_a_recording_is_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
        enum err_code code;
    } cases[] = {
        {"[]", "it is no JSON object", ERR_MALFORMED},
        {"{}", "it has no 'weir_tape'", ERR_MALFORMED},
        {"{\"weir_tape\":2}", "has format 2 and this weir reads format 1",
         ERR_FAILED_PRECONDITION},
        {"{\"weir_tape\":1}", "its 'kind' is neither", ERR_MALFORMED},
        {"{\"weir_tape\":1,\"kind\":\"model\"}", "no 'started_us'", ERR_MALFORMED},
        {"{\"weir_tape\":1,\"kind\":\"tool\",\"started_us\":1}", "no 'request'", ERR_MALFORMED},
        {"{" HEAD "\"x\":1}", "no 'heard'", ERR_MALFORMED},
        {"{" HEAD "\"heard\":[]}", "one ending", ERR_MALFORMED},
        {"{" HEAD "\"heard\":[" DONE "," DONE "]}", "one ending", ERR_MALFORMED},
        {"{" HEAD "\"heard\":[1]}", "not an object", ERR_MALFORMED},
        {"{" HEAD "\"heard\":[{\"at_ms\":1,\"kind\":\"song\"}]}", "of an unknown 'kind'",
         ERR_MALFORMED},
        {"{" HEAD "\"heard\":[{\"at_ms\":1,\"kind\":\"result\",\"result\":{}}]}",
         "of an unknown 'kind'", ERR_MALFORMED},
        {"{" HEAD "\"heard\":[{\"at_ms\":-1,\"kind\":\"done\",\"model\":\"m\"}]}", "0 or more",
         ERR_MALFORMED},
        {"{" HEAD "\"heard\":[{\"at_ms\":1,\"kind\":\"done\"}]}", "a text is missing",
         ERR_MALFORMED},
        {TEXT("\"text\":\"ab\",\"pieces\":[[1,1]]"), "shorter than their text", ERR_MALFORMED},
        {TEXT("\"text\":\"ab\",\"pieces\":[[1,3]]"), "longer than their text", ERR_MALFORMED},
        {TEXT("\"base64\":\"?\",\"pieces\":[[1,3]]"), "'base64' is not base64", ERR_MALFORMED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct tape_call back;
        struct arena *arena = arena_new(MIB);
        assert_false(tape_call_decode(str_from(cases[i].text), arena, &back, &e));
        if (str_find(err_text(&e), str_from(cases[i].why)) == err_text(&e).len)
            fail_msg("case %zu: %s", i, e.text);
        assert_int_equal(e.code, cases[i].code);
        arena_free(arena);
    }
}

static void a_hand_written_recording_need_not_count_pieces(void **state) {
    (void)state;
    struct err e;
    struct tape_call back;
    struct arena *arena = arena_new(MIB);
    assert_true(tape_call_decode(str_from(TEXT("\"text\":\"ab\"")), arena, &back, &e));
    assert_int_equal(back.event_count, 2);
    assert_str(back.events[0].reply.text, "ab");
    arena_free(arena);
}

/* --- secrets ------------------------------------------------------------------------------ */

static void a_secret_that_came_in_pieces_is_hidden_and_the_pieces_still_fit(void **state) {
    (void)state;
    static const struct str known[] = {STR_INIT("correct-horse-battery")};
    const struct mask mask = {known, 1};
    static const struct tape_event said[] = {
        {1, {REPLY_TEXT, .text = STR_INIT("It is correct-ho")}},
        {2, {REPLY_TEXT, .text = STR_INIT("rse-bat")}},
        {3, {REPLY_TEXT, .text = STR_INIT("tery, sk-abc")}},
        {4, {REPLY_TEXT, .text = STR_INIT("defgh.")}},
        {0, {REPLY_DONE, .model = STR_INIT("m")}},
    };
    static const char *const expected[] = {"It is ***", "", ", ***", "."};
    struct tape_call from = call, back;
    struct buf file;
    struct err e;
    struct arena *arena = arena_new(MIB);
    from.events = said;
    from.event_count = ARRAY_LEN(said);
    struct str text = encode(&from, &mask, &file);
    assert_int_equal(str_find(text, STR("horse")), text.len);
    assert_true(tape_call_decode(text, arena, &back, &e));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        assert_str(back.events[i].reply.text, expected[i]);
    arena_free(arena);
    buf_done(&file);
}

#define CANARY "canary-4711-sings-loud"

/* In every place of a call that people or models fill. */
static void a_secret_stands_nowhere_in_a_file(void **state) {
    (void)state;
    static const struct str known[] = {STR_INIT(CANARY)};
    const struct mask mask = {known, 1};
    static const struct event_usage count = {.model = STR_INIT("m " CANARY)};
    static const struct tape_event said[] = {
        {0, {REPLY_TEXT, .text = STR_INIT("t " CANARY)}},
        {0, {REPLY_THINKING, .text = STR_INIT(CANARY "\xFF")}},
        {0, {REPLY_TOOL_CALL, .args = STR_INIT("{\"" CANARY "\":[{\"x\":\"" CANARY "\"}]}")}},
        {0, {REPLY_TOOL_CALL, .args = STR_INIT("{\"x\": \"canary-\\u0034711-sings-loud\"}")}},
        {0, {REPLY_TOOL_CALL, .args = STR_INIT("{\"Authorization\":\"short\"}")}},
        {0, {REPLY_TOOL_CALL, .args = STR_INIT("no JSON " CANARY)}},
        {0, {REPLY_OPAQUE, .text = STR_INIT("[\"" CANARY "\"]")}},
        {0, {REPLY_NOTE, .text = STR_INIT("n " CANARY)}},
        {0,
         {REPLY_APPROVAL, .text = STR_INIT("? " CANARY),
          .args = STR_INIT("{\"a\":\"" CANARY "\"}")}},
        {0, {REPLY_USAGE, .usage = &count}},
        {0, {REPLY_FAILED, .code = ERR_UNAVAILABLE, .text = STR_INIT("f " CANARY)}},
    };
    struct tape_call from = call;
    struct buf file;
    from.request = STR("{\"system\":\"" CANARY "\",\"headers\":{\"api-key\":\"short\"}}");
    from.who = STR("{\"user\":\"" CANARY "\"}");
    from.events = said;
    from.event_count = ARRAY_LEN(said);
    struct str text = encode(&from, &mask, &file);
    for (size_t i = 0; i + 12 <= strlen(CANARY); i++)
        assert_int_equal(str_find(text, str_of(&CANARY[i], 12)), text.len);
    assert_int_equal(str_find(text, STR("short")), text.len);
    assert_int_equal(str_find(text, STR("0034711")), text.len);
    buf_done(&file);
}

static void masking_twice_is_masking_once(void **state) {
    (void)state;
    static const struct str known[] = {STR_INIT("ABCDEFGHIJKLMNOP")};
    const struct mask mask = {known, 1};
    static const char *const texts[] = {
        "foo-sk-abcdefgh and key=abc;x",
        "Bearer abcdefgh, https://me:youTAPE_host/x",
        "ABCDEFGHIJKLMNOPsk-abcdefgh-***-hf_aaaaaaa",
        "a***b token=1",
        "***sk-aaaa***",
        "0123456789abcdef0123456789abcdef.",
        "sk-aaaaaaaa.sk-bbbbbbbb...",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct buf once, twice;
        buf_init(&once, KIB);
        buf_init(&twice, KIB);
        assert_true(mask_text(&mask, str_from(texts[i]), &once, NULL, 0));
        assert_true(mask_text(&mask, buf_str(&once), &twice, NULL, 0));
        assert_true(str_equal(buf_str(&once), buf_str(&twice)));
        assert_true(str_find(buf_str(&once), STR("***")) < once.len);
        buf_done(&once);
        buf_done(&twice);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back_event_by_event),
        cmocka_unit_test(a_tools_call_has_one_event_and_it_is_the_ending),
        cmocka_unit_test(a_file_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(memory_that_ends_anywhere_is_an_error),
        cmocka_unit_test(a_folder_that_is_not_a_recording_is_refused_with_the_reason),
        cmocka_unit_test(a_hand_written_recording_need_not_count_pieces),
        cmocka_unit_test(a_secret_that_came_in_pieces_is_hidden_and_the_pieces_still_fit),
        cmocka_unit_test(a_secret_stands_nowhere_in_a_file),
        cmocka_unit_test(masking_twice_is_masking_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
