/* Rows stored with their text once: a shortened row is restored byte for byte; others are left
 * alone. */
#include "store/look.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* --- rows --------------------------------------------------------------------------------- */

struct made {
    struct buf row, events, turns;
    uint64_t seq;
};

static void begin(struct made *made) {
    *made = (struct made){.seq = 1};
    buf_init(&made->row, MIB);
    buf_init(&made->events, MIB);
    buf_init(&made->turns, MIB);
}

static void end(struct made *made) {
    buf_done(&made->row);
    buf_done(&made->events);
    buf_done(&made->turns);
}

static void add(struct made *made, struct event event) {
    assert_true(event_encode(&event, &made->events));
}

static void say(struct made *made, const char *agent, int64_t at_ms, const char *text) {
    add(made, (struct event){.kind = EVENT_TEXT,
                             .agent = str_from(agent),
                             .at_ms = at_ms,
                             .text.text = str_from(text)});
}

static void reply(struct made *made, const char *agent, const char *text) {
    assert_true(event_turn_append(&made->turns, str_from(agent), str_from(text)));
}

static void close_section(struct made *made) {
    assert_true(store_section_append(&made->row, 7, made->seq, buf_str(&made->events)));
    made->seq += 100;
    buf_clear(&made->events);
}

/* Who looks at a row while it is written finds the same end as who reads it for that alone. */
static void assert_look_finds(struct str bytes) {
    struct database db = {.path = (char[]){"test"}};
    struct project project = {.db = &db};
    struct session_filter *known = session_filter_new();
    const struct look look = {&project, NULL, known};
    const struct row row = {.run = 0, .bytes = bytes};
    const struct shorten_end found = shorten_find(bytes);
    struct shorten_end seen;
    struct err e;
    assert_true(look_at(&look, &row, &seen, &e));
    assert_int_equal(seen.tail, found.tail);
    assert_int_equal(seen.turns.len, found.turns.len);
    session_filter_free(known);
}

static void finish(struct made *made) {
    add(made, (struct event){.kind = EVENT_USAGE, .usage.model = STR("m"), .usage.prompt = 3});
    add(made, (struct event){.kind = EVENT_DONE,
                             .at_ms = 9,
                             .agent = STR("manager"),
                             .done = {STR("m"), buf_str(&made->turns)}});
    close_section(made);
    assert_look_finds(buf_str(&made->row));
}

/* Whether it was shortened; if so it must come back as it was. */
static bool shortens(const struct buf *row, size_t *ret_len) {
    struct buf shorter, again;
    struct err e;
    buf_init(&shorter, MIB);
    buf_init(&again, MIB);
    const struct shorten_end found = shorten_find(buf_str(row));
    bool did = shorten_row(buf_str(row), &found, &shorter);
    *ret_len = shorter.len;
    if (did) {
        assert_true(shorten_did(buf_str(&shorter)));
        assert_true(shorter.len < row->len);
        assert_true(shorten_undo(buf_str(&shorter), &again, &e));
        assert_true(str_equal(buf_str(&again), buf_str(row)));
    }
    buf_done(&shorter);
    buf_done(&again);
    return did;
}

/* A turn of many pieces, as the scripted model gives them. */
static void make_turn(struct made *made) {
    static const char piece[] =
        "0000000 the water goes on over the weir, to the mill, to sea.. ";
    begin(made);
    add(made, (struct event){.kind = EVENT_STARTED,
                             .agent = STR("manager"),
                             .started = {.workspace = STR("w"), .session = STR("s")}});
    struct buf all;
    buf_init(&all, MIB);
    for (int i = 0; i < 64; i++) {
        say(made, "manager", i / 3, piece);
        buf_append(&all, str_from(piece));
        if (i % 20 == 19) close_section(made);
    }
    assert_true(event_turn_append(&made->turns, STR("manager"), buf_str(&all)));
    buf_done(&all);
    finish(made);
}

/* --- tests -------------------------------------------------------------------------------- */

static void a_whole_turn_takes_half_the_room_and_comes_back(void **state) {
    (void)state;
    struct made made;
    size_t len;
    make_turn(&made);
    assert_true(shortens(&made.row, &len));
    assert_true(len < made.row.len * 6 / 10);
    end(&made);
}

static void several_replies_of_several_agents_come_back(void **state) {
    (void)state;
    struct made made;
    size_t len;
    begin(&made);
    say(&made, "writer", 1, "one two three four ");
    say(&made, "writer", 1, "five");
    say(&made, "manager", 300, "the words of another agent");
    add(&made, (struct event){.kind = EVENT_THINKING, .thinking.text = STR("the words of")});
    say(&made, "manager", 300, " and their end");
    reply(&made, "writer", "one two three four five");
    reply(&made, "empty", "");
    reply(&made, "manager", "the words of another agent and their end");
    finish(&made);
    assert_true(shortens(&made.row, &len));
    end(&made);
}

/* Six pieces of one length; `other` is a byte of the fourth that the reply does not have. */
static void make_pieces(struct made *made, const char *agent, size_t piece, size_t other) {
    struct buf said;
    begin(made);
    buf_init(&said, KIB);
    for (size_t i = 0; i < 6 * piece; i++) buf_append_byte(&said, (char)('a' + i * 7 % 23));
    assert_true(event_turn_append(&made->turns, str_from(agent), buf_str(&said)));
    if (other < piece) said.at[3 * piece + other] = '!';
    for (size_t i = 0; i < 6; i++)
        add(made, (struct event){.kind = EVENT_TEXT,
                                 .agent = str_from(agent),
                                 .at_ms = i == 5 ? 2 : 1,
                                 .text.text = str_of(said.at + i * piece, piece)});
    buf_done(&said);
    finish(made);
}

static void pieces_of_any_one_length_come_back(void **state) {
    (void)state;
    static const char *const agents[] = {"", "m", "manager", "an agent of 13",
                                         "one of 20 characters"};
    for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
        for (size_t piece = 1; piece < 140; piece++) {
            size_t whole, without, step = piece < 70 ? 1 : 13;
            struct made made;
            make_pieces(&made, agents[i], piece, SIZE_MAX);
            bool did = shortens(&made.row, &whole);
            end(&made);
            assert_true(did || piece < 16);
            for (size_t other = 0; other < piece; other += step) {
                make_pieces(&made, agents[i], piece, other);
                if (shortens(&made.row, &without) && did) assert_true(without > whole);
                end(&made);
            }
        }
    }
}

static void texts_that_the_replies_do_not_say_stay_where_they_are(void **state) {
    (void)state;
    struct made made;
    size_t len;
    begin(&made);
    say(&made, "manager", 1, "said before a tool was asked");
    say(&made, "manager", 2, "the reply as it came, first part, ");
    say(&made, "manager", 3, "something else");
    say(&made, "manager", 4, "second part and then the end of it");
    say(&made, "manager", 5, "and more than the reply has");
    reply(&made, "manager",
          "the reply as it came, first part, second part and then the end of it");
    finish(&made);
    assert_true(shortens(&made.row, &len));
    end(&made);
}

static void a_row_of_another_kind_is_left_alone(void **state) {
    (void)state;
    struct made made;
    size_t len;
    begin(&made);
    assert_false(shortens(&made.row, &len)); /* empty */
    say(&made, "manager", 1, "a text without an end");
    close_section(&made);
    assert_false(shortens(&made.row, &len));
    finish(&made); /* no replies */
    assert_false(shortens(&made.row, &len));
    end(&made);
    begin(&made);
    reply(&made, "manager", "streamed in rows before this one");
    finish(&made);
    assert_false(shortens(&made.row, &len));
    say(&made, "manager", 1, "streamed in rows before this one");
    close_section(&made); /* after the end */
    assert_false(shortens(&made.row, &len));
    end(&made);
    begin(&made);
    say(&made, "m", 1, "x");
    reply(&made, "m", "x");
    finish(&made); /* nothing to win */
    assert_false(shortens(&made.row, &len));
    end(&made);
}

static void bytes_that_are_no_events_are_left_alone(void **state) {
    (void)state;
    struct made made;
    size_t len;
    make_turn(&made);
    for (size_t cut = 0; cut < made.row.len; cut++) {
        char *copy = malloc(cut ? cut : 1);
        memcpy(copy, made.row.at, cut);
        struct buf row = {.at = copy, .len = cut};
        assert_false(shortens(&row, &len));
        free(copy);
    }
    for (size_t i = 0; i < made.row.len; i += 3) {
        char byte = made.row.at[i];
        made.row.at[i] = (char)(byte ^ 0x41);
        shortens(&made.row, &len);
        made.row.at[i] = byte;
    }
    end(&made);
}

static void no_truncation_of_a_shortened_row_reads_as_the_row(void **state) {
    (void)state;
    struct made made;
    struct buf shorter, again;
    struct err e;
    make_turn(&made);
    buf_init(&shorter, MIB);
    buf_init(&again, MIB);
    const struct shorten_end found = shorten_find(buf_str(&made.row));
    assert_true(shorten_row(buf_str(&made.row), &found, &shorter));
    for (size_t cut = 0; cut < shorter.len; cut++) {
        char *copy = malloc(cut ? cut : 1);
        memcpy(copy, shorter.at, cut);
        buf_clear(&again);
        /* Its tail would have to be longer than what is there. */
        bool whole = shorten_undo(str_of(copy, cut), &again, &e);
        assert_true(!whole || !str_equal(buf_str(&again), buf_str(&made.row)));
        if (!whole) assert_int_equal(e.code, ERR_DATA_LOSS);
        free(copy);
    }
    buf_done(&shorter);
    buf_done(&again);
    end(&made);
}

static void what_was_never_shortened_is_refused(void **state) {
    (void)state;
    static const struct str rows[] = {
        STR_INIT(""),
        STR_INIT("\x01\x01\x01x"),   /* a plain row */
        STR_INIT("\x00\x05"),        /* no length of the tail */
        STR_INIT("\x00\x02\x03xyz"), /* a tail longer than the row */
        STR_INIT("\x00\x05\x03xyz"), /* two bytes are missing */
        STR_INIT("\x00\x05\x03\x02"
                 "ab\x04xyz"), /* longer than it says */
        STR_INIT("\x00\x08\x03\x01"
                 "a\x08xyz"), /* copies more than the tail */
        STR_INIT("\x00\x08\x03\x01"
                 "a\x05\x02xyz"),            /* skips too far */
        STR_INIT("\x00\x05\x03\x00\x00xyz"), /* a step of nothing */
        STR_INIT("\x00\x05\x03\x09"
                 "a\x02xyz"), /* a literal longer than the steps */
        STR_INIT("\x00\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F\x03xyz"), /* more than there may be */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out;
        struct err e;
        buf_init(&out, KIB);
        assert_false(shorten_undo(rows[i], &out, &e));
        assert_int_equal(e.code, ERR_DATA_LOSS);
        buf_done(&out);
    }
    struct buf out;
    struct err e;
    buf_init(&out, KIB);
    assert_true(shorten_undo(STR("\x00\x09\x03\x01"
                                 "a\x03\x01\x00\x02xyz"),
                             &out, &e) == false);
    buf_clear(&out);
    assert_true(shorten_undo(STR("\x00\x07\x03\x01"
                                 "a\x03\x01\x00\x02xyz"),
                             &out, &e));
    assert_true(str_equal(buf_str(&out), STR("ayazxyz")));
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_turn_takes_half_the_room_and_comes_back),
        cmocka_unit_test(several_replies_of_several_agents_come_back),
        cmocka_unit_test(pieces_of_any_one_length_come_back),
        cmocka_unit_test(texts_that_the_replies_do_not_say_stay_where_they_are),
        cmocka_unit_test(a_row_of_another_kind_is_left_alone),
        cmocka_unit_test(bytes_that_are_no_events_are_left_alone),
        cmocka_unit_test(no_truncation_of_a_shortened_row_reads_as_the_row),
        cmocka_unit_test(what_was_never_shortened_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
