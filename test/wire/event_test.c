#include "wire/event.h"

#include "base/mem.h"
#include "helper/assert_str.h"

/* One of each kind, with every field filled. */
static const struct event events[] = {
    {.kind = EVENT_STARTED,
     .agent = STR_INIT("manager"),
     .started = {STR_INIT("w"), STR_INIT("u"), STR_INIT("s"), STR_INIT("hello"),
                 STR_INIT("crawbl"), UINT64_C(0xFFFFFFFFFFFFFFFF), INT64_C(1767225600000),
                 STR_INIT("k-1"), STR_INIT("\0\xFFp"), STR_INIT("{\"config\":{}}"),
                 STR_INIT("00-t a=1"), STR_INIT("{\"top_k\":1}")}},
    {.kind = EVENT_TEXT, .at_ms = 1, .agent = STR_INIT("a"), .text = {STR_INIT("text")}},
    {.kind = EVENT_THINKING, .at_ms = 200, .agent = STR_INIT("a"), .thinking = {STR_INIT("t")}},
    {.kind = EVENT_TOOL_CALL,
     .at_ms = 70000,
     .agent = STR_INIT("a"),
     .tool_call = {STR_INIT("id"), STR_INIT("search"), STR_INIT("{\"q\":1}"), true, true,
                   STR_INIT("so"), true}},
    {.kind = EVENT_TOOL_RESULT,
     .agent = STR_INIT(""),
     .tool_result = {STR_INIT("id"), STR_INIT("{}"), true, STR_INIT("broken")}},
    {.kind = EVENT_USAGE,
     .agent = STR_INIT("a"),
     .usage = {STR_INIT("m"), 1, INT64_MAX, 3, TOKENS_UNKNOWN, 0, INT64_MIN, 7, 12, 5,
               INT64_MAX, true, 4, INT64_MAX, TOKENS_UNKNOWN}},
    {.kind = EVENT_STEP, .agent = STR_INIT("a"), .step = {STR_INIT("d"), STR_INIT("r")}},
    {.kind = EVENT_AUDIO,
     .agent = STR_INIT("a"),
     .audio = {STR_INIT("audio/x"), STR_INIT("b")}},
    {.kind = EVENT_APPROVAL,
     .agent = STR_INIT("a"),
     .approval = {STR_INIT("i"), STR_INIT("may I?"), STR_INIT("t"), STR_INIT("{}"),
                  STR_INIT("c"), STR_INIT("so")}},
    {.kind = EVENT_ITEM, .agent = STR_INIT("a"), .item = {STR_INIT("x.Y"), STR_INIT("\0\1")}},
    {.kind = EVENT_DONE, .agent = STR_INIT("a"), .done = {STR_INIT("m"), STR_INIT("\1a\1b")}},
    {.kind = EVENT_FAILED,
     .at_ms = -5,
     .agent = STR_INIT("a"),
     .failed = {ERR_TOO_LARGE, STR_INIT("WHY"), STR_INIT("too large"), true, STR_INIT("so")}},
    {.kind = EVENT_CANCELLED,
     .agent = STR_INIT("a"),
     .cancelled = {STR_INIT("left"), true, true, STR_INIT("so")}},
};

static struct str encoded(const struct event *event, struct buf *room) {
    buf_init(room, 4 * KIB);
    assert_true(event_encode(event, room));
    size_t body;
    assert_int_equal(room->len, event_encoded_len(event, &body));
    return buf_str(room);
}

static void assert_same(const struct event *a, const struct event *b) {
    struct buf left, right;
    assert_true(str_equal(encoded(a, &left), encoded(b, &right)));
    buf_done(&left);
    buf_done(&right);
}

static void every_kind_reads_back_as_it_was_written(void **state) {
    (void)state;
    assert_int_equal(ARRAY_LEN(events), EVENT_KIND_COUNT - 1);
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct buf room;
        struct str bytes = encoded(&events[i], &room);
        struct event event = {.seq = 42};
        struct err e;
        assert_true(event_decode(&bytes, &event, &e));
        assert_int_equal(bytes.len, 0);
        assert_int_equal(event.seq, 42);
        assert_int_equal(event.kind, i + 1);
        assert_int_equal(event.at_ms, events[i].at_ms);
        assert_true(str_equal(event.agent, events[i].agent));
        assert_same(&event, &events[i]);
        buf_done(&room);
    }
}

static void the_fields_of_a_read_event_are_where_they_belong(void **state) {
    (void)state;
    struct event event;
    struct err e;
    struct buf room;
    struct str bytes = encoded(&events[EVENT_STARTED - 1], &room);
    assert_true(event_decode(&bytes, &event, &e));
    assert_str(event.started.session, "s");
    assert_true(event.started.parent == UINT64_MAX);
    assert_int_equal(event.started.unix_ms, INT64_C(1767225600000));
    assert_str(event.started.key, "k-1");
    assert_int_equal(event.started.print.len, 3);
    buf_done(&room);
    bytes = encoded(&events[EVENT_USAGE - 1], &room);
    assert_true(event_decode(&bytes, &event, &e));
    assert_true(event.usage.cached == INT64_MIN && event.usage.completion == INT64_MAX);
    assert_true(event.usage.tool_use == TOKENS_UNKNOWN && event.usage.call_sequence == 7);
    assert_true(event.usage.cache_write == 5 && event.usage.cache_write_hour == INT64_MAX);
    buf_done(&room);
    bytes = encoded(&events[EVENT_FAILED - 1], &room);
    assert_true(event_decode(&bytes, &event, &e));
    assert_int_equal(event.failed.code, ERR_TOO_LARGE);
    assert_int_equal(event.at_ms, -5);
    buf_done(&room);
    bytes = encoded(&events[EVENT_CANCELLED - 1], &room);
    assert_true(event_decode(&bytes, &event, &e));
    assert_true(event.cancelled.left);
    buf_done(&room);
}

static void a_text_at_the_end_is_left_out_only_with_those_after_it(void **state) {
    (void)state;
    static const struct str texts[] = {STR_INIT(""), STR_INIT("{}"), STR_INIT("00-t")};
    size_t plain = 0;
    for (size_t i = 0; i < 27; i++) {
        struct event event = events[EVENT_STARTED - 1], again;
        struct err e;
        struct buf room;
        event.started.extras = texts[i % 3];
        event.started.trace = texts[i / 3 % 3];
        event.started.options = texts[i / 9];
        struct str bytes = encoded(&event, &room);
        if (i == 0) plain = bytes.len;
        if (i < 3) assert_int_equal(bytes.len - plain, i ? texts[i].len + 1 : 0);
        assert_true(event_decode(&bytes, &again, &e));
        assert_true(str_equal(again.started.extras, texts[i % 3]));
        assert_true(str_equal(again.started.trace, texts[i / 3 % 3]));
        assert_true(str_equal(again.started.options, texts[i / 9]));
        buf_done(&room);
    }
}

static void an_event_cut_at_any_byte_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct buf room;
        struct str whole = encoded(&events[i], &room);
        for (size_t cut = 0; cut < whole.len; cut++) {
            struct str copy = exact_copy(str_head(whole, cut)), bytes = copy;
            struct event event = {0};
            struct err e;
            assert_false(event_decode(&bytes, &event, &e));
            assert_int_equal(e.code, ERR_DATA_LOSS);
            assert_int_equal(bytes.len, cut); /* nothing taken */
            assert_false(event_skip(&bytes));
            assert_int_equal(bytes.len, cut);
            free((char *)(uintptr_t)copy.at);
        }
        assert_true(event_skip(&whole));
        assert_int_equal(whole.len, 0);
        buf_done(&room);
    }
}

/* kind, length of the body, body */
static struct str framed(char *room, enum event_kind kind, struct str body) {
    assert_true(body.len < 0x80);
    room[0] = (char)kind;
    room[1] = (char)body.len;
    memcpy(room + 2, body.at, body.len);
    return str_of(room, body.len + 2);
}

static void a_body_cut_at_any_byte_lacks_fields_or_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct buf whole;
        struct str body = str_skip(encoded(&events[i], &whole), 2);
        for (size_t cut = 0; cut <= body.len; cut++) {
            char room[160];
            struct str bytes = framed(room, events[i].kind, str_head(body, cut));
            struct event event = {0};
            struct err e;
            if (!event_decode(&bytes, &event, &e)) {
                assert_int_equal(e.code, ERR_DATA_LOSS);
                continue;
            }
            assert_int_equal(bytes.len, 0);
            struct buf again;
            encoded(&event, &again); /* whatever was missing has a value */
            buf_done(&again);
        }
        buf_done(&whole);
    }
}

static void missing_fields_are_empty_zero_or_unknown(void **state) {
    (void)state;
    struct err e;
    char room[160];
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct str bytes = framed(room, events[i].kind, STR("\1a\2")); /* agent, at_ms = 1 */
        struct event event = {0};
        assert_true(event_decode(&bytes, &event, &e));
        assert_int_equal(event.at_ms, 1);
        if (event.kind == EVENT_USAGE) {
            assert_true(event.usage.prompt == TOKENS_UNKNOWN);
            assert_true(event.usage.cached == TOKENS_UNKNOWN);
            assert_int_equal(event.usage.call_sequence, 0);
            assert_str(event.usage.model, "");
        }
        if (event.kind == EVENT_TOOL_RESULT) assert_false(event.tool_result.error);
        if (event.kind == EVENT_FAILED) assert_int_equal(event.failed.code, ERR_NONE);
        if (event.kind == EVENT_STARTED) assert_str(event.started.text, "");
    }
}

static void bytes_after_the_last_known_field_are_skipped(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct buf whole, longer;
        struct str body = str_skip(encoded(&events[i], &whole), 2);
        char room[160];
        buf_init(&longer, 160);
        buf_append(&longer, body);
        buf_append(&longer, STR("\xFF\xFF what a later version knows"));
        buf_append(&longer, STR_EMPTY);
        struct buf two;
        buf_init(&two, 320);
        buf_append(&two, framed(room, events[i].kind, buf_str(&longer)));
        buf_append(&two, STR("\2\3\1a\0")); /* and an event after it */
        struct str bytes = buf_str(&two);
        struct event event = {0};
        struct err e;
        assert_true(event_decode(&bytes, &event, &e));
        assert_same(&event, &events[i]);
        assert_true(event_decode(&bytes, &event, &e));
        assert_int_equal(event.kind, EVENT_TEXT);
        assert_int_equal(bytes.len, 0);
        buf_done(&two);
        buf_done(&longer);
        buf_done(&whole);
    }
}

static void unknown_kinds_and_numbers_that_do_not_end_are_refused(void **state) {
    (void)state;
    static const struct str bad[] = {
        STR_INIT(""),
        STR_INIT("\0\0"),
        STR_INIT("\16\0"),
        STR_INIT("\xFF\0"),
        STR_INIT("\2\x80"),
        STR_INIT("\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), /* a length beyond the end */
        STR_INIT("\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"), /* more than 64 bits */
        STR_INIT("\2\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct str bytes = bad[i];
        struct event event = {0};
        struct err e;
        assert_false(event_decode(&bytes, &event, &e));
        assert_int_equal(e.code, ERR_DATA_LOSS);
    }
}

static void a_code_from_the_future_reads_as_unknown(void **state) {
    (void)state;
    struct str bytes = STR("\14\4\0\0\xFE\1");
    struct event event = {0};
    struct err e;
    assert_true(event_decode(&bytes, &event, &e));
    assert_int_equal(event.failed.code, ERR_UNKNOWN);
}

static void an_event_that_does_not_fit_leaves_no_half(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct buf room;
        size_t body;
        buf_init(&room, event_encoded_len(&events[i], &body) - 1);
        assert_false(event_encode(&events[i], &room));
        assert_int_equal(room.len, 0);
        buf_done(&room);
    }
}

static void turns_are_walked_as_they_were_appended(void **state) {
    (void)state;
    struct buf turns;
    buf_init(&turns, 16);
    assert_true(event_turn_append(&turns, STR("wally"), STR("hi")));
    assert_true(event_turn_append(&turns, STR(""), STR("")));
    assert_false(event_turn_append(&turns, STR("eve"), STR("too long")));
    struct str rest = buf_str(&turns);
    struct event_turn turn;
    assert_true(event_turn_next(&rest, &turn));
    assert_str(turn.agent, "wally");
    assert_str(turn.text, "hi");
    assert_true(event_turn_next(&rest, &turn));
    assert_str(turn.agent, "");
    assert_false(event_turn_next(&rest, &turn));
    buf_done(&turns);
    rest = STR("\5wal");
    assert_false(event_turn_next(&rest, &turn));
}

static void what_ends_a_run_and_what_waits_for_the_disk(void **state) {
    (void)state;
    assert_true(event_is_terminal(EVENT_DONE) && event_is_terminal(EVENT_FAILED));
    assert_true(event_is_terminal(EVENT_CANCELLED) && !event_is_terminal(EVENT_APPROVAL));
    for (enum event_kind kind = EVENT_STARTED; kind < EVENT_KIND_COUNT; kind++) {
        bool waits = event_is_terminal(kind) || kind == EVENT_TOOL_CALL;
        assert_int_equal(event_needs_disk(kind), waits || kind == EVENT_APPROVAL);
    }
    assert_str(event_kind_name(EVENT_TOOL_CALL), "tool_call");
}

static void texts_are_skipped_as_they_are_read_and_nothing_else_is(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct buf room;
        struct str bytes = encoded(&events[i], &room);
        size_t texts = events[i].kind == EVENT_TEXT;
        for (size_t cut = 0; cut <= bytes.len; cut++) {
            struct str rest = str_head(bytes, cut);
            size_t whole = cut == bytes.len ? texts : 0;
            assert_int_equal(event_skip_texts(&rest, 9), whole);
            assert_int_equal(rest.len, whole ? 0 : cut);
        }
        buf_done(&room);
    }
}

static void skipping_stops_at_the_first_event_that_is_no_text(void **state) {
    (void)state;
    struct event text = {.kind = EVENT_TEXT, .agent = STR("a"), .text.text = STR("hello")};
    struct event thought = {.kind = EVENT_THINKING, .agent = STR("a"), .text.text = STR("hm")};
    struct buf room;
    buf_init(&room, KIB);
    for (int i = 0; i < 3; i++) assert_true(event_encode(&text, &room));
    size_t texts = room.len;
    assert_true(event_encode(&thought, &room) && event_encode(&text, &room));
    struct str rest = buf_str(&room);
    assert_int_equal(event_skip_texts(&rest, 0), 0);
    assert_int_equal(event_skip_texts(&rest, 2), 2);
    assert_int_equal(rest.len, room.len - texts / 3 * 2);
    assert_int_equal(event_skip_texts(&rest, 9), 1);
    assert_int_equal(rest.len, room.len - texts);
    assert_int_equal(event_skip_texts(&rest, 9), 0);
    buf_done(&room);
}

/* As many as are read one by one, wherever the bytes end and however many are wanted. */
static void texts_of_one_length_or_of_several_are_skipped_alike(void **state) {
    (void)state;
    static const size_t lens[] = {3, 3, 3, 0, 0, 5, 3, 120, 120, 130, 130, 3, 3};
    static const char said[130] = "none of it is looked at";
    struct buf room;
    buf_init(&room, 2 * KIB);
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        struct event text = {
            .kind = EVENT_TEXT, .agent = STR("a"), .text.text = str_of(said, lens[i])};
        assert_true(event_encode(&text, &room));
    }
    for (size_t cut = 0; cut <= room.len; cut++) {
        for (size_t max = 0; max <= ARRAY_LEN(lens); max++) {
            struct str bytes = str_head(buf_str(&room), cut), rest = bytes;
            size_t count = 0;
            while (count < max && event_skip(&bytes)) count++;
            assert_int_equal(event_skip_texts(&rest, max), count);
            assert_int_equal(rest.len, bytes.len);
        }
    }
    buf_done(&room);
}

static void only_a_text_that_ends_its_event_is_taken(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct buf room;
        struct str bytes = encoded(&events[i], &room), agent, text;
        for (size_t cut = 0; cut <= bytes.len; cut++) {
            struct str rest = str_head(bytes, cut);
            bool taken = event_take_text(&rest, &agent, &text);
            assert_int_equal(taken, events[i].kind == EVENT_TEXT && cut == bytes.len);
            assert_int_equal(rest.len, taken ? 0 : cut);
            if (!taken) continue;
            assert_true(str_equal(agent, events[i].agent));
            assert_true(str_equal(text, events[i].text.text));
        }
        buf_done(&room);
    }
    /* One byte more than the fields we know: read all the same, but not taken. */
    struct str longer = STR("\x02\x05\x01m\x02\x00!"), agent, text;
    struct event event = {0};
    struct err e;
    assert_false(event_take_text(&longer, &agent, &text));
    assert_int_equal(longer.len, 7);
    assert_true(event_decode(&longer, &event, &e));
}

/* Encode texts of `lens` one by one, and all at once in rooms of `room` bytes. */
static void assert_same_texts(const char *agent, int64_t at_ms, const uint32_t *lens,
                              size_t count, size_t room) {
    static char letters[400], at_once[8 * KIB];
    struct buf apart;
    struct event_texts texts = {
        .agent = str_from(agent), .at_ms = at_ms, .lens = lens, .count = count};
    buf_init(&apart, sizeof(at_once));
    for (size_t i = 0; i < sizeof(letters); i++) letters[i] = (char)('a' + i % 26);
    for (size_t i = 0, at = 0; i < count; at += lens[i++]) {
        struct event event = {.kind = EVENT_TEXT, .agent = texts.agent, .at_ms = at_ms};
        event.text.text = str_of(letters + at, lens[i]);
        texts.text = str_of(letters, at + lens[i]);
        assert_true(event_encode(&event, &apart));
    }
    size_t len = 0;
    while (texts.count) {
        memset(at_once + len, '!', room + 1);
        size_t more = event_put_texts(&texts, at_once + len, room);
        assert_int_equal(at_once[len + room], '!');
        if (more == 0) break;
        len += more;
        assert_true(str_equal(str_of(at_once, len), str_head(buf_str(&apart), len)));
    }
    if (texts.count == 0) assert_int_equal(len, apart.len);
    if (room >= 200) assert_int_equal(texts.count, 0);
    buf_done(&apart);
}

static void texts_at_once_are_the_bytes_of_each(void **state) {
    (void)state;
    static const uint32_t lens[] = {3, 0, 1, 130, 7, 7, 7, 127, 1};
    static const char *const agents[] = {"", "a", "manager",
                                         "an-agent-whose-name-does-not-fit-anywhere-much"};
    static const int64_t moments[] = {0, 63, 64, 1000000, -5};
    for (size_t room = 0; room < 700; room++) {
        for (size_t i = 0; i < ARRAY_LEN(agents) * ARRAY_LEN(moments); i++) {
            assert_same_texts(agents[i % ARRAY_LEN(agents)], moments[i / ARRAY_LEN(agents)],
                              lens, ARRAY_LEN(lens), room);
        }
    }
}

/* Both ways to take a text agree, whatever the bytes are. */
static void assert_taken_alike(struct str bytes) {
    struct str one = bytes, other = bytes, agents[2], texts[2];
    bool taken = event_take_text(&one, &agents[0], &texts[0]);
    assert_int_equal(event_next_text(&other, &agents[1], &texts[1]), taken);
    assert_ptr_equal(one.at, other.at);
    assert_int_equal(one.len, other.len);
    if (!taken) return;
    assert_true(str_equal(agents[0], agents[1]));
    assert_true(str_equal(texts[0], texts[1]));
    assert_int_equal(texts[0].len, texts[1].len);
}

static void the_quick_way_to_take_a_text_takes_the_same(void **state) {
    (void)state;
    static char letters[300];
    memset(letters, 'x', sizeof(letters));
    for (size_t len = 0; len < sizeof(letters); len++) {
        struct event event = {
            .kind = EVENT_TEXT, .agent = STR("manager"), .at_ms = (int64_t)(len * len * len)};
        struct buf room;
        event.text.text = str_of(letters, len);
        struct str bytes = encoded(&event, &room);
        for (size_t cut = 0; cut <= bytes.len; cut++) assert_taken_alike(str_head(bytes, cut));
        for (size_t i = 0; i < bytes.len && i < 16; i++) {
            for (int byte = 0; byte < 256; byte += 5) { /* damaged */
                char was = room.at[i];
                room.at[i] = (char)byte;
                assert_taken_alike(bytes);
                room.at[i] = was;
            }
        }
        buf_done(&room);
    }
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct buf room;
        assert_taken_alike(encoded(&events[i], &room));
        buf_done(&room);
    }
}

static void lengths_around_a_longer_prefix_are_written_right(void **state) {
    (void)state;
    static char letters[70000];
    memset(letters, 'x', sizeof(letters));
    static const size_t around[] = {110, 128, 16370, 16384, 65500};
    for (size_t i = 0; i < ARRAY_LEN(around); i++) {
        for (size_t len = around[i]; len < around[i] + 30; len++) {
            struct event event = {.kind = EVENT_TEXT, .agent = STR("a")}, again = {0};
            struct buf room;
            struct err e;
            event.text.text = str_of(letters, len);
            buf_init(&room, sizeof(letters));
            assert_true(event_encode(&event, &room));
            size_t body;
            assert_int_equal(room.len, event_encoded_len(&event, &body));
            struct str bytes = buf_str(&room);
            assert_true(event_decode(&bytes, &again, &e));
            assert_int_equal(again.text.text.len, len);
            assert_int_equal(bytes.len, 0);
            buf_done(&room);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_reads_back_as_it_was_written),
        cmocka_unit_test(the_fields_of_a_read_event_are_where_they_belong),
        cmocka_unit_test(a_text_at_the_end_is_left_out_only_with_those_after_it),
        cmocka_unit_test(an_event_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_body_cut_at_any_byte_lacks_fields_or_is_refused),
        cmocka_unit_test(missing_fields_are_empty_zero_or_unknown),
        cmocka_unit_test(bytes_after_the_last_known_field_are_skipped),
        cmocka_unit_test(unknown_kinds_and_numbers_that_do_not_end_are_refused),
        cmocka_unit_test(a_code_from_the_future_reads_as_unknown),
        cmocka_unit_test(an_event_that_does_not_fit_leaves_no_half),
        cmocka_unit_test(turns_are_walked_as_they_were_appended),
        cmocka_unit_test(what_ends_a_run_and_what_waits_for_the_disk),
        cmocka_unit_test(texts_are_skipped_as_they_are_read_and_nothing_else_is),
        cmocka_unit_test(only_a_text_that_ends_its_event_is_taken),
        cmocka_unit_test(texts_of_one_length_or_of_several_are_skipped_alike),
        cmocka_unit_test(skipping_stops_at_the_first_event_that_is_no_text),
        cmocka_unit_test(texts_at_once_are_the_bytes_of_each),
        cmocka_unit_test(the_quick_way_to_take_a_text_takes_the_same),
        cmocka_unit_test(lengths_around_a_longer_prefix_are_written_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
