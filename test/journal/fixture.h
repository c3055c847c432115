/* fixture: a journal whose store the test answers, and readers that record what they see.
 */
#ifndef WEIR_TEST_JOURNAL_FIXTURE_H
#define WEIR_TEST_JOURNAL_FIXTURE_H

#include "base/mem.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "journal/journal.h"
#include "journal/keeper.h"

#include <stdlib.h>

#define FRESH __attribute__((unused)) static

struct fixture {
    struct loop *loop;
    struct store *store;
    struct keeper *keeper;
    struct journal *journal;
    /* What was reported to the owner. */
    uint64_t durable;
    size_t lost, holds, releases;
    bool held;
};

FRESH void note_durable(uint64_t seq, void *ctx) {
    struct fixture *f = ctx;
    assert_true(seq > f->durable);
    f->durable = seq;
}

FRESH void note_lost(const struct err *why, void *ctx) {
    struct fixture *f = ctx;
    assert_int_equal(err_kinds[why->code].grpc_status, 14); /* UNAVAILABLE */
    f->lost++;
}

FRESH void note_pace(bool hold, void *ctx) {
    struct fixture *f = ctx;
    assert_int_not_equal(f->held, hold);
    f->held = hold;
    f->holds += hold;
    f->releases += !hold;
}

FRESH struct journal *fixture_journal(struct fixture *f, uint64_t run, size_t window) {
    return journal_new(&(struct journal_options){.loop = f->loop,
                                                 .keeper = f->keeper,
                                                 .run = run,
                                                 .window_max_bytes = window,
                                                 .pace_max_bytes = 256 * KIB,
                                                 .on_durable = note_durable,
                                                 .on_lost = note_lost,
                                                 .on_pace = note_pace,
                                                 .ctx = f});
}

FRESH void fixture_init(struct fixture *f) {
    *f = (struct fixture){.loop = loop_new_fake(), .store = fake_store_new()};
    f->keeper = keeper_new(f->loop, f->store);
    f->journal = fixture_journal(f, 7, 512 * KIB);
}

/* Without a store. */
FRESH void fixture_init_memory(struct fixture *f, size_t window) {
    *f = (struct fixture){.loop = loop_new_fake()};
    f->journal = fixture_journal(f, 7, window);
}

FRESH void fixture_kept(void *ctx) {
    *(bool *)ctx = true;
}

FRESH void fixture_done(struct fixture *f) {
    if (f->keeper) {
        bool kept = false;
        fake_store_always_commit(f->store);
        while (fake_store_writes(f->store)) fake_store_commit(f->store, 0);
        keeper_flush(f->keeper, fixture_kept, &kept);
        for (size_t i = 0; i < 8 && !kept; i++) loop_turn(f->loop);
        assert_true(kept);
    }
    loop_turn(f->loop);
    if (f->journal) journal_leave(f->journal);
    journal_unref(f->journal);
    keeper_free(f->keeper);
    fake_store_free(f->store);
    loop_turn(f->loop);
    loop_free(f->loop);
}

#include "helper/heap_fixture.h"

/* --- writing ------------------------------------------------------------------------------ */

FRESH void say_to(struct journal *journal, enum event_kind kind, struct str text) {
    struct event event = {.kind = kind, .agent = STR("a")};
    if (kind == EVENT_TEXT) event.text.text = text;
    if (kind == EVENT_TOOL_CALL) event.tool_call.call_id = text;
    journal_append(journal, &event);
}

FRESH void say(struct fixture *f, enum event_kind kind, const char *text) {
    say_to(f->journal, kind, str_from(text));
}

/* One text of `len` bytes. */
FRESH void say_long(struct fixture *f, size_t len) {
    char *text = mem_alloc(len);
    memset(text, 'x', len);
    say_to(f->journal, EVENT_TEXT, str_of(text, len));
    free(text);
}

FRESH void assert_marks(const struct journal *journal, uint64_t appended, uint64_t visible,
                        uint64_t durable) {
    assert_int_equal(journal_appended(journal), appended);
    assert_int_equal(journal_visible(journal), visible);
    assert_int_equal(journal_durable(journal), durable);
}

/* --- reading ------------------------------------------------------------------------------ */

struct reader {
    struct cursor *cursor;
    size_t rings, events;
    uint64_t bytes;
    bool lazy; /* reads nothing when it rings */
    struct buf text;
};

FRESH void read_some(struct reader *reader, size_t count) {
    struct event event = {0};
    uint64_t before = cursor_seq(reader->cursor);
    while (count-- > 0 && cursor_next(reader->cursor, &event)) {
        assert_int_equal(event.seq, ++before);
        reader->events++;
        if (event.kind != EVENT_TEXT) continue;
        reader->bytes += event.text.text.len;
        if (event.text.text.len < 64) buf_append(&reader->text, event.text.text);
    }
}

FRESH void reader_ready(void *ctx) {
    struct reader *reader = ctx;
    reader->rings++;
    if (!reader->lazy) read_some(reader, SIZE_MAX);
}

FRESH void reader_open(struct reader *reader, struct journal *journal, struct loop *loop,
                       uint64_t after) {
    struct err e;
    *reader = (struct reader){0};
    buf_init(&reader->text, MIB);
    assert_true(cursor_open(journal, after, loop, reader_ready, reader, &reader->cursor, &e));
}

FRESH void reader_close(struct reader *reader) {
    cursor_close(reader->cursor);
    buf_done(&reader->text);
}

#endif
