/* Bytes that are already complete, read in pieces. */
#include "journal/feed.h"

#include "base/buf.h"
#include "base/mem.h"
#include "helper/assert_str.h"

#include <stdlib.h>

#define PACE_BYTES (256 * KIB)

struct listener {
    struct loop *loop;
    struct feed *feed;
    struct cursor *cursor;
    struct buf bytes;
    size_t pieces, longest, terminals, emptied;
    bool reads;
};

static void read_on(struct listener *l) {
    struct event event = {0};
    while (l->reads && cursor_next(l->cursor, &event)) {
        l->terminals += event_is_terminal(event.kind);
        if (event.kind != EVENT_AUDIO) continue;
        assert_str(event.audio.type, "audio/wav");
        assert_int_equal(l->terminals, 0);
        buf_append(&l->bytes, event.audio.bytes);
        l->pieces++;
        if (event.audio.bytes.len > l->longest) l->longest = event.audio.bytes.len;
    }
}

static void on_ready(void *ctx) {
    read_on(ctx);
}

static void on_empty(void *ctx) {
    struct listener *l = ctx;
    l->emptied++;
    feed_append(l->feed, &(struct event){.kind = EVENT_DONE});
}

static void listen(struct listener *l) {
    struct err e;
    *l = (struct listener){.loop = loop_new_fake(), .reads = true};
    buf_init(&l->bytes, 32 * MIB);
    l->feed = feed_new(&(struct feed_options){.loop = l->loop,
                                              .pace_max_bytes = PACE_BYTES,
                                              .put_max_bytes = 16 * MIB,
                                              .on_empty = on_empty,
                                              .ctx = l});
    assert_true(cursor_open(feed_journal(l->feed), 0, l->loop, on_ready, l, &l->cursor, &e));
    cursor_pace(l->cursor);
}

static void leave(struct listener *l) {
    cursor_close(l->cursor);
    feed_free(l->feed);
    loop_turn(l->loop);
    buf_done(&l->bytes);
    loop_free(l->loop);
}

static struct str noise(size_t len) {
    char *at = mem_alloc(len);
    for (size_t i = 0; i < len; i++) at[i] = (char)(i * 7 + i / 251);
    return str_of(at, len);
}

static void put(struct listener *l, struct str bytes) {
    struct err e;
    assert_true(feed_put(l->feed, STR("audio/wav"), bytes, &e));
}

static void turns(struct listener *l) {
    for (size_t i = 0; i < 4; i++) loop_turn(l->loop);
}

static void everything_arrives_in_pieces_and_then_it_is_empty(void **state) {
    (void)state;
    struct listener l;
    struct str sound = noise(100000);
    listen(&l);
    put(&l, sound);
    assert_false(feed_is_empty(l.feed));
    turns(&l);
    assert_true(feed_is_empty(l.feed));
    assert_int_equal(l.pieces, 4);
    assert_int_equal(l.longest, FEED_PIECE_BYTES);
    assert_true(str_equal(buf_str(&l.bytes), sound));
    assert_int_equal(l.emptied, 1);
    assert_int_equal(l.terminals, 1);
    leave(&l);
    free((char *)(uintptr_t)sound.at);
}

/* B1, with the longest audio there is. */
static void a_reader_that_stands_still_holds_sixteen_mebibytes_back(void **state) {
    (void)state;
    struct listener l;
    struct str sound = noise(16 * MIB);
    listen(&l);
    l.reads = false;
    put(&l, sound);
    turns(&l);
    uint64_t ahead = journal_appended(feed_journal(l.feed));
    assert_true(ahead * FEED_PIECE_BYTES >= PACE_BYTES);
    assert_true(ahead * FEED_PIECE_BYTES <= PACE_BYTES + FEED_PIECE_BYTES);
    assert_int_equal(l.emptied, 0);
    l.reads = true;
    for (size_t i = 0; i < 200 && !l.terminals; i++) {
        uint64_t before = cursor_seq(l.cursor);
        read_on(&l);
        assert_true(cursor_seq(l.cursor) - before <= PACE_BYTES / FEED_PIECE_BYTES + 2 ||
                    l.terminals);
        l.reads = i % 3 != 0; /* it stops now and then */
        turns(&l);
        l.reads = true;
    }
    assert_int_equal(l.terminals, 1);
    assert_true(str_equal(buf_str(&l.bytes), sound));
    leave(&l);
    free((char *)(uintptr_t)sound.at);
}

static void more_than_may_wait_is_refused(void **state) {
    (void)state;
    struct listener l;
    struct err e;
    struct str sound = noise(16 * MIB);
    listen(&l);
    l.reads = false;
    put(&l, sound);
    assert_false(feed_put(l.feed, STR("audio/wav"), STR("x"), &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    leave(&l);
    free((char *)(uintptr_t)sound.at);
}

static void a_terminal_event_drops_what_waits(void **state) {
    (void)state;
    struct listener l;
    struct str sound = noise(MIB);
    listen(&l);
    l.reads = false;
    put(&l, sound);
    turns(&l);
    feed_append(l.feed,
                &(struct event){.kind = EVENT_FAILED, .failed = {.code = ERR_INTERNAL}});
    assert_true(feed_is_empty(l.feed));
    l.reads = true;
    turns(&l);
    read_on(&l);
    assert_int_equal(l.terminals, 1);
    assert_int_equal(l.emptied, 0);
    assert_true(l.bytes.len >= PACE_BYTES && l.bytes.len < MIB);
    leave(&l);
    free((char *)(uintptr_t)sound.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_arrives_in_pieces_and_then_it_is_empty),
        cmocka_unit_test(a_reader_that_stands_still_holds_sixteen_mebibytes_back),
        cmocka_unit_test(more_than_may_wait_is_refused),
        cmocka_unit_test(a_terminal_event_drops_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
