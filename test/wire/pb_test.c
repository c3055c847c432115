#include "wire/pb.h"

#include "helper/assert_str.h"
#include "proto/memory.pb.h"
#include "proto/runtime.pb.h"
#include "test/kitchen.pb.h"
#include "wire/pb_descriptor.h"

#include <math.h>
#include <stdalign.h>

#define ROOM (64 * KIB)

/* What one test needs: an arena for what it decodes and buffers for what it makes. */
struct bench {
    struct arena *arena;
    struct buf bytes, again;
    struct err e;
};

static int set_up(void **state) {
    struct bench *bench = calloc(1, sizeof(*bench));
    if (!bench) abort();
    bench->arena = arena_new(16 * MIB);
    buf_init(&bench->bytes, 16 * MIB);
    buf_init(&bench->again, 16 * MIB);
    *state = bench;
    return 0;
}

static int tear_down(void **state) {
    struct bench *bench = *state;
    arena_free(bench->arena);
    buf_done(&bench->bytes);
    buf_done(&bench->again);
    free(bench);
    return 0;
}

/* Decode from a copy of exactly its size. The copy lives as long as the arena, since text
 * borrows it. */
static bool decode(struct bench *bench, const struct pb_message *type, struct str bytes,
                   void *ret) {
    struct str copy;
    assert_true(arena_str(bench->arena, bytes, &copy));
    return pb_decode_view(type, copy, bench->arena, ret, &bench->e);
}

static void assert_accepted(struct bench *bench, const struct pb_message *type,
                            struct str bytes, void *ret) {
    if (decode(bench, type, bytes, ret)) return;
    print_error("%s\n", bench->e.text);
    fail();
}

static void assert_refused(struct bench *bench, const struct pb_message *type,
                           struct str bytes) {
    alignas(max_align_t) char ret[1024];
    assert_true(type->size <= sizeof(ret));
    assert_false(decode(bench, type, bytes, ret));
    assert_int_equal(bench->e.code, ERR_MALFORMED);
    for (size_t i = 0; i < type->size; i++) assert_int_equal(ret[i], 0);
}

static struct str encode(struct bench *bench, const struct pb_message *type,
                         const void *message) {
    buf_clear(&bench->again);
    assert_true(pb_encode(type, message, &bench->again));
    assert_int_equal(bench->again.len, pb_encoded_len(type, message));
    return buf_str(&bench->again);
}

static void assert_bytes(struct str got, struct str expected) {
    assert_int_equal(got.len, expected.len);
    if (got.len) assert_memory_equal(got.at, expected.at, got.len);
}

static struct str from_hex(struct bench *bench, const char *hex) {
    buf_clear(&bench->bytes);
    for (; *hex; hex += 2) {
        char digits[3] = {hex[0], hex[1], '\0'};
        buf_append_byte(&bench->bytes, (char)strtoul(digits, NULL, 16));
    }
    return buf_str(&bench->bytes);
}

/* --- golden frames ------------------------------------------------------------------------ */

#define TEXT(literal) STR_INIT(literal)
#define EVENT(name, which, member)                                                             \
    static const struct crawbl_converse_event name = {.which_event = which, member}

static const struct crawbl_converse_request golden_request = {.session_id = TEXT("c1"),
                                                              .message = TEXT("hi"),
                                                              .workspace_id = TEXT("w1"),
                                                              .user_id = TEXT("u1")};

static const struct crawbl_chunk_event chunk = {.agent_id = TEXT("wally"), .text = TEXT("Hi")};
EVENT(golden_chunk, CRAWBL_CONVERSE_EVENT_CHUNK, .chunk = &chunk);

static const struct crawbl_tool_call_event call = {
    .agent_id = TEXT("manager"),
    .tool = TEXT("transfer_to_agent"),
    .args_json = TEXT("{\"agent_name\":\"wally\"}"),
    .call_id = TEXT("call-1"),
};
EVENT(golden_call, CRAWBL_CONVERSE_EVENT_TOOL_CALL, .tool_call = &call);

static const struct crawbl_tool_result_event result = {.call_id = TEXT("call-1"),
                                                       .result_json = TEXT("{}")};
EVENT(golden_result, CRAWBL_CONVERSE_EVENT_TOOL_RESULT, .tool_result = &result);

static const struct crawbl_tool_result_event broken = {
    .call_id = TEXT("call-2"),
    .result_json = TEXT("{\"error\":\"boom\"}"),
    .error = true,
    .error_message = TEXT("boom"),
};
EVENT(golden_broken, CRAWBL_CONVERSE_EVENT_TOOL_RESULT, .tool_result = &broken);

static const struct crawbl_usage_event usage = {
    .agent_id = TEXT("wally"),
    .model = TEXT("gpt-4o"),
    .prompt_tokens = 1250,
    .completion_tokens = 340,
    .total_tokens = 1590,
    .tool_use_prompt_tokens = 200,
    .cached_tokens = 800,
};
EVENT(golden_usage, CRAWBL_CONVERSE_EVENT_USAGE, .usage = &usage);

static const struct crawbl_turn turn = {.agent_id = TEXT("wally"), .text = TEXT("Hi")};
static const struct crawbl_done_event done = {
    .model = TEXT("gpt-4o"), .turns = &turn, .turns_count = 1};
EVENT(golden_done, CRAWBL_CONVERSE_EVENT_DONE, .done = &done);

static const struct crawbl_done_event failed = {
    .model = TEXT("ERROR: INTERNAL: runner: context deadline exceeded")};
EVENT(golden_failed, CRAWBL_CONVERSE_EVENT_DONE, .done = &failed);

static const struct crawbl_list_memories_request golden_list = {.workspace_id = TEXT("w1")};

/* As published, with the five bytes that gRPC puts in front. */
static const struct golden {
    const struct pb_message *type;
    const void *message;
    const char *hex;
} goldens[] = {
    {&crawbl_converse_request_table, &golden_request,
     "00000000100a026331120268692a02773132027531"},
    {&crawbl_converse_event_table, &golden_chunk, "000000000d0a0b0a0577616c6c7912024869"},
    {&crawbl_converse_event_table, &golden_call,
     "000000003e1a3c0a076d616e6167657212117472616e736665725f746f5f6167656e741a167b226167656e74"
     "5f6e616d65223a2277616c6c79227d220663616c6c2d31"},
    {&crawbl_converse_event_table, &golden_result, "000000000e220c0a0663616c6c2d3112027b7d"},
    {&crawbl_converse_event_table, &golden_broken,
     "000000002422220a0663616c6c2d3212107b226572726f72223a22626f6f6d227d18012204626f6f6d"},
    {&crawbl_converse_event_table, &golden_usage,
     "0000000020321e0a0577616c6c7912066770742d346f18e20920d40228b60c30c80140a006"},
    {&crawbl_converse_event_table, &golden_done,
     "00000000172a150a066770742d346f120b0a0577616c6c7912024869"},
    {&crawbl_converse_event_table, &golden_failed,
     "00000000362a340a324552524f523a20494e5445524e414c3a2072756e6e65723a20636f6e74657874206465"
     "61646c696e65206578636565646564"},
    {&crawbl_list_memories_request_table, &golden_list, "00000000040a027731"},
};

/* The message of a golden frame, whose prefix must say its length. */
static struct str golden_bytes(struct bench *bench, const struct golden *golden) {
    struct str frame = from_hex(bench, golden->hex);
    struct str message = str_skip(frame, 5);
    assert_true(frame.len > 5 && frame.len < 256);
    assert_bytes(str_head(frame, 5), str_of((const char[]){0, 0, 0, 0, (char)message.len}, 5));
    return message;
}

static void golden_frames_are_what_we_encode(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        struct str expected = golden_bytes(*state, &goldens[i]);
        assert_bytes(encode(*state, goldens[i].type, goldens[i].message), expected);
    }
}

static void golden_frames_decode_and_encode_to_themselves(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        alignas(max_align_t) char message[256];
        struct str bytes = golden_bytes(*state, &goldens[i]);
        assert_accepted(*state, goldens[i].type, bytes, message);
        assert_bytes(encode(*state, goldens[i].type, message), bytes);
    }
}

static void golden_frames_hold_what_they_should(void **state) {
    struct crawbl_converse_request request;
    struct str bytes = golden_bytes(*state, &goldens[0]);
    assert_accepted(*state, &crawbl_converse_request_table, bytes, &request);
    assert_str(request.session_id, "c1");
    assert_str(request.message, "hi");
    assert_str(request.agent_id, "");
    assert_str(request.workspace_id, "w1");
    assert_str(request.user_id, "u1");

    struct crawbl_converse_event event;
    bytes = golden_bytes(*state, &goldens[5]);
    assert_accepted(*state, &crawbl_converse_event_table, bytes, &event);
    assert_int_equal(event.which_event, CRAWBL_CONVERSE_EVENT_USAGE);
    assert_str(event.usage->model, "gpt-4o");
    assert_int_equal(event.usage->total_tokens, 1590);
    assert_int_equal(event.usage->cached_tokens, 800);

    bytes = golden_bytes(*state, &goldens[6]);
    assert_accepted(*state, &crawbl_converse_event_table, bytes, &event);
    assert_int_equal(event.done->turns_count, 1);
    assert_str(event.done->turns[0].text, "Hi");
}

/* An event is one field, so no shorter piece of it is an event too. */
static void every_truncation_of_an_event_is_refused(void **state) {
    for (size_t i = 1; i < ARRAY_LEN(goldens) - 1; i++) {
        struct str bytes = golden_bytes(*state, &goldens[i]);
        for (size_t len = 1; len < bytes.len; len++)
            assert_refused(*state, goldens[i].type, str_head(bytes, len));
    }
}

/* --- whose memory it is ------------------------------------------------------------------- */

static void what_is_decoded_lives_as_long_as_its_arena(void **state) {
    struct bench *bench = *state;
    char frame[64];
    struct crawbl_converse_request request;
    struct str bytes = golden_bytes(bench, &goldens[0]);
    assert_true(bytes.len <= sizeof(frame));
    memcpy(frame, bytes.at, bytes.len);
    struct text block;
    struct lent lent = lent_begin(str_of(frame, bytes.len), &block);
    assert_true(
        pb_decode(&crawbl_converse_request_table, lent, bench->arena, &request, &bench->e));
    lent_end(&block);
    memset(frame, '?', sizeof(frame)); /* the next frame */
    assert_str(request.session_id, "c1");
    assert_str(request.message, "hi");
    assert_str(request.workspace_id, "w1");
    assert_str(request.user_id, "u1");
}

static void a_message_that_its_arena_cannot_hold_is_refused(void **state) {
    struct bench *bench = *state;
    struct crawbl_converse_request request = golden_request;
    struct str bytes = golden_bytes(bench, &goldens[0]);
    struct arena *arena = arena_new(bytes.len);
    assert_false(
        pb_decode(&crawbl_converse_request_table, lent_of(bytes), arena, &request, &bench->e));
    assert_int_equal(bench->e.code, ERR_TOO_LARGE);
    assert_int_equal(request.message.len, 0);
    arena_free(arena);
}

/* --- what is accepted and what is not
 * --------------------------------------------------------- */

static void text_that_is_not_utf8_is_refused(void **state) {
    struct str broken_texts[] = {STR("\x0a\x01\xff"), STR("\x0a\x02\xc3("),
                                 STR("\x0a\x03\xed\xa0\x80"), STR("\x0a\x02\xc0\x80")};
    for (size_t i = 0; i < ARRAY_LEN(broken_texts); i++)
        assert_refused(*state, &crawbl_converse_request_table, broken_texts[i]);
    assert_str(err_text(&((struct bench *)*state)->e),
               "not a crawbl.agentruntime.v1.ConverseRequest: string field 'session_id' is not "
               "UTF-8");

    struct kitchen_sink sink; /* bytes may hold anything */
    assert_accepted(*state, &kitchen_sink_table, STR("\x82\x01\x01\xff"), &sink);
    assert_str(sink.some_bytes, "\xff");
}

static void text_may_hold_nul(void **state) {
    struct crawbl_turn got;
    assert_accepted(*state, &crawbl_turn_table,
                    STR("\x0a\x03"
                        "a\0b"),
                    &got);
    assert_bytes(got.agent_id, STR("a\0b"));
}

static void a_wrong_wire_type_is_an_unknown_field(void **state) {
    struct crawbl_turn got;
    struct str odd = STR("\x08\x01"                             /* 1 as a varint */
                         "\x09\x01\x02\x03\x04\x05\x06\x07\x08" /* as 64 bits */
                         "\x0d\x01\x02\x03\x04"                 /* as 32 bits */
                         "\x0b\x10\x01\x0c"                     /* as a group */
                         "\x12\x02ok");
    assert_accepted(*state, &crawbl_turn_table, odd, &got);
    assert_str(got.agent_id, "");
    assert_str(got.text, "ok");

    struct crawbl_list_memories_request list;
    assert_accepted(*state, &crawbl_list_memories_request_table, STR("\x1a\x01\x05"), &list);
    assert_int_equal(list.limit, 0);
}

static void unknown_fields_are_skipped(void **state) {
    struct crawbl_turn got;
    struct str odd = STR("\xf8\x06\x01" /* 111, a varint */
                         "\xfa\x06\x03"
                         "abc"                              /* 111, bytes */
                         "\xfb\x06\x1b\x08\x01\x1c\xfc\x06" /* 111, a group with a group */
                         "\xf8\xff\xff\xff\x0f\x01"         /* the largest number there is */
                         "\x12\x02ok");
    assert_accepted(*state, &crawbl_turn_table, odd, &got);
    assert_str(got.text, "ok");
    assert_bytes(encode(*state, &crawbl_turn_table, &got), STR("\x12\x02ok"));
}

static void a_malformed_message_is_refused(void **state) {
    static const struct str cases[] = {
        STR_INIT("\x00\x01"),         /* field number 0 */
        STR_INIT("\x1b\x00\x01\x1c"), /* the same inside a group */
        STR_INIT("\x0e"),
        STR_INIT("\x0f"), /* wire types 6 and 7 */
        STR_INIT("\x0c"), /* the end of no group */
        STR_INIT("\x1b"),
        STR_INIT("\x1b\x24"), /* groups that do not end */
        STR_INIT("\x0a"),
        STR_INIT("\x0a\x05hi"),                   /* bytes that are not there */
        STR_INIT("\x0a\xff\xff\xff\xff\x0f"),     /* 4 GiB of them */
        STR_INIT("\x0a\x80\x80\x80\x80\x80\x00"), /* a length of six bytes */
        STR_INIT("\xf8\xff\xff\xff\x1f\x01"),     /* a tag of 33 bits */
        STR_INIT("\x88\x80\x80\x80\x80\x00\x01"), /* a tag of six bytes */
        STR_INIT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* 11 bytes of varint */
        STR_INIT("\x08\x80"),
        STR_INIT("\x09\x01\x02"),
        STR_INIT("\x0d\x01"),
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_refused(*state, &crawbl_turn_table, cases[i]);
}

static void the_last_of_a_repeated_scalar_wins(void **state) {
    struct crawbl_list_memories_request list;
    struct str bytes = STR("\x0a\x01"
                           "a\x18\x05\x0a\x01"
                           "b\x18\x07");
    assert_accepted(*state, &crawbl_list_memories_request_table, bytes, &list);
    assert_str(list.workspace_id, "b");
    assert_int_equal(list.limit, 7);
}

static void a_message_given_twice_is_merged(void **state) {
    struct crawbl_converse_event event;
    struct str bytes = STR("\x0a\x07\x0a\x05wally\x0a\x04\x12\x02Hi");
    assert_accepted(*state, &crawbl_converse_event_table, bytes, &event);
    assert_str(event.chunk->agent_id, "wally");
    assert_str(event.chunk->text, "Hi");
}

static void the_last_member_of_a_oneof_wins(void **state) {
    struct crawbl_converse_event event;
    struct str bytes = STR("\x0a\x03\x12\x01x\x12\x03\x12\x01y\x0a\x03\x0a\x01z");
    assert_accepted(*state, &crawbl_converse_event_table, bytes, &event);
    assert_int_equal(event.which_event, CRAWBL_CONVERSE_EVENT_CHUNK);
    assert_str(event.chunk->agent_id, "z"); /* the first chunk went when thinking came */
    assert_str(event.chunk->text, "");
}

static void numbers_are_cut_to_their_size(void **state) {
    struct kitchen_sink sink;
    struct str bytes = STR("\x08\x80\x80\x80\x80\x80\x01"                 /* a_bool = 2^35 */
                           "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* an_int32 = -1 */
                           "\x20\x81\x80\x80\x80\x10" /* a_uint32 = 2^32+1 */
                           "\x30\x03"                 /* a_sint32 = -2 */
                           "\x70\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    assert_accepted(*state, &kitchen_sink_table, bytes, &sink);
    assert_true(sink.a_bool);
    assert_int_equal(sink.an_int32, -1);
    assert_int_equal(sink.a_uint32, 1);
    assert_int_equal(sink.a_sint32, -2);
    assert_int_equal(sink.a_color, KITCHEN_COLOR_NEGATIVE);
}

static void packed_and_loose_numbers_may_be_mixed(void **state) {
    struct kitchen_sink sink;
    struct str bytes = STR("\xfa\x01\x02\x01\x02"     /* int32s packed */
                           "\xf8\x01\x03"             /* loose */
                           "\xfa\x01\x03\x04\xac\x02" /* packed */
                           "\xfa\x01\x00"             /* packed, none */
                           "\xfa\x02\x02\x07\x08");   /* loose_int32s packed */
    assert_accepted(*state, &kitchen_sink_table, bytes, &sink);
    assert_int_equal(sink.int32s_count, 5);
    for (int32_t i = 0; i < 4; i++) assert_int_equal(sink.int32s[i], i + 1);
    assert_int_equal(sink.int32s[4], 300);
    assert_int_equal(sink.loose_int32s_count, 2);
    assert_bytes(encode(*state, &kitchen_sink_table, &sink),
                 STR("\xfa\x01\x06\x01\x02\x03\x04\xac\x02\xf8\x02\x07\xf8\x02\x08"));

    assert_refused(*state, &kitchen_sink_table, STR("\xfa\x01\x02\x01\x80"));
    assert_refused(*state, &kitchen_sink_table, STR("\xaa\x02\x03\x01\x02\x03"));
}

static void a_map_entry_with_an_unknown_field_is_unknown(void **state) {
    struct kitchen_sink sink;
    struct str bytes = STR("\xe2\x03\x05\x0a\x01"
                           "a\x10\x01"
                           "\xe2\x03\x07\x0a\x01"
                           "b\x10\x02\x18\x03"
                           "\xe2\x03\x03\x0a\x01"
                           "c");
    assert_accepted(*state, &kitchen_sink_table, bytes, &sink);
    assert_int_equal(sink.map_string_int32_count, 2);
    assert_str(sink.map_string_int32[0].key, "a");
    assert_int_equal(sink.map_string_int32[0].value, 1);
    assert_str(sink.map_string_int32[1].key, "c");
    assert_int_equal(sink.map_string_int32[1].value, 0);
}

/* `depth` messages, each the only field of the one around it. */
static struct str nested_sinks(struct buf *buf, size_t depth) {
    struct buf outer;
    buf_init(&outer, ROOM);
    buf_clear(buf);
    for (size_t i = 0; i < depth; i++) {
        char head[16];
        char *end = pb_put_head(head, 17, buf->len);
        buf_clear(&outer);
        buf_append(&outer, str_of(head, (size_t)(end - head)));
        buf_append(&outer, buf_str(buf));
        buf_clear(buf);
        buf_append(buf, buf_str(&outer));
    }
    buf_done(&outer);
    return buf_str(buf);
}

static void nesting_ends_at_a_hundred(void **state) {
    struct bench *bench = *state;
    struct kitchen_sink sink;
    assert_accepted(bench, &kitchen_sink_table, nested_sinks(&bench->bytes, PB_DEPTH_MAX),
                    &sink);
    assert_bytes(encode(bench, &kitchen_sink_table, &sink), buf_str(&bench->bytes));
    assert_refused(bench, &kitchen_sink_table, nested_sinks(&bench->bytes, PB_DEPTH_MAX + 1));
    assert_refused(bench, &kitchen_sink_table, nested_sinks(&bench->bytes, 10000));
}

static void groups_count_as_nesting(void **state) {
    struct kitchen_sink sink;
    char groups[2 * (PB_DEPTH_MAX + 1)];
    memset(groups, 0x7b, PB_DEPTH_MAX + 1);
    memset(groups + PB_DEPTH_MAX + 1, 0x7c, PB_DEPTH_MAX + 1);
    assert_refused(*state, &kitchen_sink_table, str_of(groups, sizeof(groups)));
    assert_accepted(*state, &kitchen_sink_table, str_of(groups + 1, sizeof(groups) - 2), &sink);
}

/* --- every kind of field ------------------------------------------------------------------ */

static const struct kitchen_sink_leaf leaves[] = {
    {.text = TEXT("first"), .number = -1},
    {.packed = (const int32_t[]){1, -2, 300}, .packed_count = 3, .default_ = TEXT("word")},
    {.mood = KITCHEN_SINK_LEAF_MOOD_GOOD, .int_ = true},
};

static const struct kitchen_sink_map_string_leaf_entry leaf_entries[] = {
    {.key = TEXT("leaf"), .value = &leaves[2]},
    {.key = TEXT("none")},
};

static const struct kitchen_sink inner = {
    .a_bool = true, .choice_bool = false, .which_choice = KITCHEN_SINK_CHOICE_BOOL};

/* Name, smallest and largest of each repeated number: both ends of what the wire can say. */
#define BOTH(name, type, low, high) .name = (const type[]){low, high}, .name##_count = 2

static const struct kitchen_sink full = {
    .a_bool = true,
    .an_int32 = INT32_MIN,
    .an_int64 = INT64_MIN,
    .a_uint32 = UINT32_MAX,
    .a_uint64 = UINT64_MAX,
    .a_sint32 = INT32_MIN,
    .a_sint64 = INT64_MIN,
    .a_fixed32 = UINT32_MAX,
    .a_fixed64 = UINT64_MAX,
    .a_sfixed32 = INT32_MIN,
    .a_sfixed64 = INT64_MIN,
    .a_float = -1.5f,
    .a_double = 1e300,
    .a_color = KITCHEN_COLOR_NEGATIVE,
    .a_string = TEXT("gr\xc3\xbc\xc3\x9f"),
    .some_bytes = TEXT("\xff\0\x80"),
    .a_sink = &inner,
    .has_maybe_bool = true,
    .has_maybe_int32 = true,
    .has_maybe_double = true,
    .has_maybe_color = true,
    .has_maybe_string = true,
    .has_maybe_bytes = true,
    .maybe_leaf = &leaves[0],
    BOTH(bools, bool, false, true),
    BOTH(int32s, int32_t, INT32_MIN, INT32_MAX),
    BOTH(int64s, int64_t, INT64_MIN, INT64_MAX),
    BOTH(uint32s, uint32_t, 0, UINT32_MAX),
    BOTH(uint64s, uint64_t, 0, UINT64_MAX),
    BOTH(sint32s, int32_t, INT32_MIN, INT32_MAX),
    BOTH(sint64s, int64_t, INT64_MIN, INT64_MAX),
    BOTH(fixed32s, uint32_t, 0, UINT32_MAX),
    BOTH(fixed64s, uint64_t, 0, UINT64_MAX),
    BOTH(sfixed32s, int32_t, INT32_MIN, INT32_MAX),
    BOTH(sfixed64s, int64_t, INT64_MIN, INT64_MAX),
    BOTH(floats, float, -0.0f, 3.5f),
    BOTH(doubles, double, -0.0, 3.5),
    BOTH(colors, int32_t, KITCHEN_COLOR_NEGATIVE, 1000),
    BOTH(strings, struct str, STR_INIT(""), STR_INIT("x")),
    BOTH(bytess, struct str, STR_INIT("\xff"), STR_INIT("")),
    .leaves = leaves,
    .leaves_count = ARRAY_LEN(leaves),
    BOTH(loose_int32s, int32_t, -1, 0),
    BOTH(loose_doubles, double, 0.5, 0),
    .which_choice = KITCHEN_SINK_CHOICE_LEAF,
    .choice_leaf = &leaves[1],
    BOTH(map_string_int32, struct kitchen_sink_map_string_int32_entry, {.key = STR_INIT("k")},
         {.value = 7}),
    BOTH(map_int32_string, struct kitchen_sink_map_int32_string_entry, {.key = -5},
         {.value = STR_INIT("v")}),
    .map_string_leaf = leaf_entries,
    .map_string_leaf_count = ARRAY_LEN(leaf_entries),
    BOTH(map_bool_bytes, struct kitchen_sink_map_bool_bytes_entry, {.key = true},
         {.value = STR_INIT("\xfe")}),
    .at = &(const struct google_timestamp){.seconds = -1, .nanos = 999999999},
    .took = &(const struct google_duration){.seconds = 60},
    .far = TEXT("away"),
    .farthest = 1,
};

static void every_kind_of_field_survives_the_way_there_and_back(void **state) {
    struct bench *bench = *state;
    struct kitchen_sink sink;
    assert_true(pb_encode(&kitchen_sink_table, &full, &bench->bytes));
    assert_accepted(bench, &kitchen_sink_table, buf_str(&bench->bytes), &sink);
    assert_bytes(encode(bench, &kitchen_sink_table, &sink), buf_str(&bench->bytes));

    assert_int_equal(sink.a_sint64, INT64_MIN);
    assert_int_equal(sink.a_uint64, UINT64_MAX);
    assert_true(sink.a_float == -1.5f && sink.a_double == 1e300);
    assert_true(sink.a_sink->a_bool);
    assert_int_equal(sink.a_sink->which_choice, KITCHEN_SINK_CHOICE_BOOL);
    assert_true(sink.has_maybe_string && sink.maybe_string.len == 0);
    assert_true(signbit(sink.doubles[0]) && sink.doubles[1] == 3.5);
    assert_int_equal(sink.sint32s[0], INT32_MIN);
    assert_int_equal(sink.colors[1], 1000); /* enums are open */
    assert_int_equal(sink.strings_count, 2);
    assert_int_equal(sink.leaves_count, 3);
    assert_str(sink.leaves[1].default_, "word");
    assert_int_equal(sink.leaves[1].packed[2], 300);
    assert_int_equal(sink.choice_leaf->packed_count, 3);
    assert_str(sink.map_string_leaf[0].key, "leaf");
    assert_true(sink.map_string_leaf[0].value->int_);
    assert_null(sink.map_string_leaf[1].value);
    assert_int_equal(sink.at->nanos, 999999999);
    assert_int_equal(sink.farthest, 1);
}

static void an_empty_struct_is_no_bytes_and_back(void **state) {
    struct kitchen_sink sink = {0};
    assert_int_equal(encode(*state, &kitchen_sink_table, &sink).len, 0);
    assert_accepted(*state, &kitchen_sink_table, (struct str){NULL, 0}, &sink);
    assert_int_equal(encode(*state, &kitchen_sink_table, &sink).len, 0);

    struct kitchen_nothing nothing;
    assert_accepted(*state, &kitchen_nothing_table, STR("\x08\x01"), &nothing);
    assert_int_equal(encode(*state, &kitchen_nothing_table, &nothing).len, 0);
}

static void presence_is_distinguished_from_zero(void **state) {
    struct kitchen_sink sink = {
        .has_maybe_int32 = true, .a_double = -0.0, .which_choice = KITCHEN_SINK_CHOICE_STRING};
    struct str bytes = encode(*state, &kitchen_sink_table, &sink);
    assert_bytes(bytes, STR("\x69\0\0\0\0\0\0\0\x80\xa8\x01\0\x9a\x03\0"));
    assert_accepted(*state, &kitchen_sink_table, bytes, &sink);
    assert_true(sink.has_maybe_int32 && !sink.has_maybe_bool);
    assert_int_equal(sink.which_choice, KITCHEN_SINK_CHOICE_STRING);
    assert_true(signbit(sink.a_double));
}

static void a_oneof_that_points_nowhere_is_an_empty_message(void **state) {
    struct crawbl_converse_event event = {.which_event = CRAWBL_CONVERSE_EVENT_DONE};
    assert_bytes(encode(*state, &crawbl_converse_event_table, &event), STR("\x2a\0"));
}

static void a_plan_of_many_steps_leaves_the_stack(void **state) {
    struct crawbl_turn turns[500];
    char text[300];
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < ARRAY_LEN(turns); i++)
        turns[i] = (struct crawbl_turn){.text = str_of(text, i % sizeof(text))};
    struct crawbl_done_event many = {.turns = turns, .turns_count = ARRAY_LEN(turns)};
    struct crawbl_converse_event event = {.which_event = CRAWBL_CONVERSE_EVENT_DONE,
                                          .done = &many};
    struct crawbl_converse_event got;
    struct str bytes = encode(*state, &crawbl_converse_event_table, &event);
    assert_accepted(*state, &crawbl_converse_event_table, bytes, &got);
    assert_int_equal(got.done->turns_count, ARRAY_LEN(turns));
    for (size_t i = 0; i < ARRAY_LEN(turns); i++)
        assert_int_equal(got.done->turns[i].text.len, i % sizeof(text));
}

/* --- limits ------------------------------------------------------------------------------- */

static void a_small_arena_is_a_refusal_at_every_size(void **state) {
    struct bench *bench = *state;
    struct kitchen_sink sink;
    assert_true(pb_encode(&kitchen_sink_table, &full, &bench->bytes));
    size_t max_bytes = 0;
    for (bool decoded = false; !decoded; max_bytes += 8) {
        struct arena *arena = arena_new(max_bytes);
        decoded = pb_decode_view(&kitchen_sink_table, buf_str(&bench->bytes), arena, &sink,
                                 &bench->e);
        if (!decoded) {
            assert_int_equal(bench->e.code, ERR_TOO_LARGE);
            assert_int_equal(encode(bench, &kitchen_sink_table, &sink).len, 0);
        }
        arena_free(arena);
    }
    assert_true(max_bytes > sizeof(struct kitchen_sink));
}

static void a_full_buffer_gets_nothing(void **state) {
    struct bench *bench = *state;
    size_t len = pb_encoded_len(&crawbl_converse_event_table, &golden_call);
    for (size_t max_bytes = 0; max_bytes <= len; max_bytes++) {
        struct buf out;
        buf_init(&out, max_bytes);
        bool fits = pb_encode(&crawbl_converse_event_table, &golden_call, &out);
        assert_int_equal(fits, max_bytes == len);
        assert_int_equal(out.len, fits ? len : 0);
        assert_int_equal(buf_ok(&out), fits);
        buf_done(&out);
    }
    assert_bytes(encode(bench, &crawbl_converse_event_table, &golden_call),
                 golden_bytes(bench, &goldens[2]));
}

static void a_member_is_its_tag_its_length_and_the_message(void **state) {
    (void)state;
    static const uint32_t numbers[] = {1, 15, 16, 3000};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char head[16];
        struct buf whole, parts;
        size_t len = pb_encoded_len(&crawbl_converse_event_table, &golden_call);
        buf_init(&whole, KIB);
        buf_init(&parts, KIB);
        size_t head_len = (size_t)(pb_put_head(head, numbers[i], len) - head);
        assert_true(buf_append(&parts, str_of(head, head_len)));
        assert_true(pb_encode(&crawbl_converse_event_table, &golden_call, &parts));
        assert_true(
            pb_encode_member(numbers[i], &crawbl_converse_event_table, &golden_call, &whole));
        assert_true(str_equal(buf_str(&whole), buf_str(&parts)));
        struct buf tight;
        buf_init(&tight, whole.len - 1);
        assert_false(
            pb_encode_member(numbers[i], &crawbl_converse_event_table, &golden_call, &tight));
        assert_int_equal(tight.len, 0);
        buf_done(&tight);
        buf_done(&whole);
        buf_done(&parts);
    }
}

/* --- the parts for projections by hand ---------------------------------------------------- */

static void a_varint_is_as_long_as_it_says(void **state) {
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++)
        for (int step = -1; step <= 1; step++) {
            char bytes[10];
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)step;
            assert_int_equal(pb_put_varint(bytes, value) - bytes, pb_varint_len(value));
        }
}

static void a_projection_by_hand_writes_the_same_bytes(void **state) {
    struct bench *bench = *state;
    size_t inner_len = pb_str_len(1, chunk.agent_id) + pb_str_len(2, chunk.text);
    size_t len = pb_bytes_len(1, inner_len);
    char *room = buf_room(&bench->bytes, len);
    char *end = pb_put_head(room, 1, inner_len);
    end = pb_put_str(end, 1, chunk.agent_id);
    end = pb_put_str(end, 2, chunk.text);
    assert_ptr_equal(end, room + len);
    buf_grew(&bench->bytes, len);
    assert_bytes(buf_str(&bench->bytes),
                 encode(bench, &crawbl_converse_event_table, &golden_chunk));

    int32_t numbers[] = {0, 1, 127, 128, INT32_MAX, -1, INT32_MIN};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char bytes[16];
        struct crawbl_list_memories_request list = {.limit = numbers[i]};
        end = pb_put_int(bytes, 3, numbers[i]);
        assert_int_equal(end - bytes, pb_int_len(3, numbers[i]));
        assert_bytes(str_of(bytes, (size_t)(end - bytes)),
                     encode(bench, &crawbl_list_memories_request_table, &list));
    }
}

/* --- what the generator wrote
 * ----------------------------------------------------------------- */

static void a_table_is_sorted_and_knows_its_dense_part(void **state) {
    (void)state;
    static const struct pb_message *const tables[] = {
        &crawbl_converse_request_table,
        &crawbl_converse_event_table,
        &crawbl_usage_event_table,
        &crawbl_memory_entry_table,
        &kitchen_sink_table,
        &kitchen_sink_leaf_table,
        &google_struct_table,
        &pb_file_descriptor_table,
        &pb_message_descriptor_table,
    };
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        const struct pb_message *table = tables[t];
        assert_true(table->dense <= table->field_count);
        for (size_t i = 0; i < table->field_count; i++) {
            const struct pb_field *field = &table->fields[i];
            if (i > 0) assert_true(field->number > table->fields[i - 1].number);
            assert_int_equal(i < table->dense, field->number == i + 1);
            assert_int_equal(field->kind == PB_MESSAGE, field->sub != NULL);
            assert_true(field->at < table->size && field->mark < table->size);
        }
    }
    assert_true(kitchen_sink_map_string_int32_entry_table.map_entry);
    assert_false(kitchen_sink_leaf_table.map_entry);
}

static void the_descriptors_of_a_service_are_built_in(void **state) {
    struct pb_file_set set;
    struct pb_file_set_raw raw;
    assert_accepted(*state, &pb_file_set_table, crawbl_memory_descriptor, &set);
    assert_int_equal(set.file_count, 2); /* imports come first */
    assert_str(set.file[0].name, "google/protobuf/timestamp.proto");
    const struct pb_file_descriptor *file = &set.file[1];
    assert_str(file->package, "crawbl.agentruntime.v1");
    assert_str(file->dependency[0], "google/protobuf/timestamp.proto");
    assert_str(file->service[0].name, "Memory");
    assert_str(file->service[0].method[2].input_type,
               ".crawbl.agentruntime.v1.DeleteMemoryRequest");

    assert_accepted(*state, &pb_file_set_raw_table, crawbl_memory_descriptor, &raw);
    assert_bytes(encode(*state, &pb_file_set_raw_table, &raw), crawbl_memory_descriptor);

    assert_accepted(*state, &pb_file_set_table, crawbl_runtime_descriptor, &set);
    assert_true(set.file[0].service[0].method[0].client_streaming);
    assert_true(set.file[0].service[0].method[0].server_streaming);
}

#define SENTENCE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        SENTENCE(golden_frames_are_what_we_encode),
        SENTENCE(golden_frames_decode_and_encode_to_themselves),
        SENTENCE(golden_frames_hold_what_they_should),
        SENTENCE(what_is_decoded_lives_as_long_as_its_arena),
        SENTENCE(a_message_that_its_arena_cannot_hold_is_refused),
        SENTENCE(every_truncation_of_an_event_is_refused),
        SENTENCE(text_that_is_not_utf8_is_refused),
        SENTENCE(text_may_hold_nul),
        SENTENCE(a_wrong_wire_type_is_an_unknown_field),
        SENTENCE(unknown_fields_are_skipped),
        SENTENCE(a_malformed_message_is_refused),
        SENTENCE(the_last_of_a_repeated_scalar_wins),
        SENTENCE(a_message_given_twice_is_merged),
        SENTENCE(the_last_member_of_a_oneof_wins),
        SENTENCE(numbers_are_cut_to_their_size),
        SENTENCE(packed_and_loose_numbers_may_be_mixed),
        SENTENCE(a_map_entry_with_an_unknown_field_is_unknown),
        SENTENCE(nesting_ends_at_a_hundred),
        SENTENCE(groups_count_as_nesting),
        SENTENCE(every_kind_of_field_survives_the_way_there_and_back),
        SENTENCE(an_empty_struct_is_no_bytes_and_back),
        SENTENCE(presence_is_distinguished_from_zero),
        SENTENCE(a_oneof_that_points_nowhere_is_an_empty_message),
        SENTENCE(a_plan_of_many_steps_leaves_the_stack),
        SENTENCE(a_small_arena_is_a_refusal_at_every_size),
        SENTENCE(a_full_buffer_gets_nothing),
        SENTENCE(a_member_is_its_tag_its_length_and_the_message),
        SENTENCE(a_varint_is_as_long_as_it_says),
        SENTENCE(a_projection_by_hand_writes_the_same_bytes),
        SENTENCE(a_table_is_sorted_and_knows_its_dense_part),
        SENTENCE(the_descriptors_of_a_service_are_built_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
