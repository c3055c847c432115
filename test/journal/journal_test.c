#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"

#include "journal/inner.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- marks -------------------------------------------------------------------------------- */

static void text_is_visible_at_the_end_of_its_turn(void **state) {
    struct fixture *f = *state;
    struct reader reader;
    reader_open(&reader, f->journal, f->loop, 0);
    say(f, EVENT_TEXT, "one ");
    say(f, EVENT_TEXT, "two");
    assert_marks(f->journal, 2, 0, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 2, 2, 0);
    assert_int_equal(reader.rings, 1);
    assert_str(buf_str(&reader.text), "one two");
    loop_turn(f->loop);
    assert_int_equal(reader.rings, 1);
    reader_close(&reader);
}

static void an_effect_and_all_after_it_hide_until_it_is_on_disk(void **state) {
    struct fixture *f = *state;
    struct reader reader;
    reader_open(&reader, f->journal, f->loop, 0);
    say(f, EVENT_TEXT, "before ");
    say(f, EVENT_TOOL_CALL, "c1");
    say(f, EVENT_TEXT, "after");
    loop_turn(f->loop);
    assert_marks(f->journal, 3, 1, 0);
    assert_int_equal(fake_store_writes(f->store), 1);
    say(f, EVENT_TEXT, " more");
    loop_turn(f->loop);
    assert_marks(f->journal, 4, 1, 0);
    assert_str(buf_str(&reader.text), "before ");
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 4, 4, 3); /* the last word rides a later commit */
    assert_int_equal(f->durable, 3);
    assert_str(buf_str(&reader.text), "before after more");
    reader_close(&reader);
}

static void each_gate_opens_with_its_own_commit(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_STARTED, "");
    say(f, EVENT_TOOL_CALL, "c1");
    loop_turn(f->loop);
    say(f, EVENT_TEXT, "between");
    say(f, EVENT_TOOL_CALL, "c2");
    say(f, EVENT_DONE, "");
    loop_turn(f->loop);
    assert_int_equal(fake_store_writes(f->store), 1); /* one at a time */
    assert_marks(f->journal, 5, 1, 0);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 5, 3, 2);
    assert_int_equal(fake_store_writes(f->store), 1);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 5, 5, 5);
}

static void several_gates_of_one_turn_open_together(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < 3; i++) say(f, EVENT_TOOL_CALL, "c");
    loop_turn(f->loop);
    assert_marks(f->journal, 3, 0, 0);
    assert_int_equal(fake_store_writes(f->store), 1);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 3, 3, 3);
    assert_int_equal(fake_store_sent(f->store), 1);
}

/* Its kind does not decide: the code that appends it says so. */
static void any_event_can_be_made_to_wait_for_the_disk(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_STARTED, "");
    loop_turn(f->loop);
    assert_marks(f->journal, 1, 1, 0);
    say(f, EVENT_TEXT, "one");
    journal_gate(f->journal);
    say(f, EVENT_TEXT, "behind it");
    loop_turn(f->loop);
    assert_marks(f->journal, 3, 1, 0);
    say(f, EVENT_TEXT, "two"); /* while the first is on its way */
    journal_gate(f->journal);
    loop_turn(f->loop);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 4, 3, 3);
    say(f, EVENT_TOOL_CALL, "c1");
    loop_turn(f->loop);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 5, 4, 4);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 5, 5, 5);
}

static void an_event_that_was_made_to_wait_can_be_lost(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_TEXT, "said");
    loop_turn(f->loop);
    say(f, EVENT_TEXT, "not said");
    journal_gate(f->journal);
    loop_turn(f->loop);
    fake_store_lose(f->store, 0, ERR_UNAVAILABLE);
    loop_turn(f->loop);
    assert_int_equal(f->lost, 1);
    assert_int_equal(journal_retract(f->journal), 1);
    say(f, EVENT_FAILED, "");
    loop_turn(f->loop);
    assert_marks(f->journal, 2, 2, 0);
}

/* Appended ≥ visible, and nothing after an effect that is not on disk is visible, whatever the
 * order of appends, turns and commits. */
static void the_marks_keep_their_order_in_any_order_of_things(void **state) {
    (void)state;
    uint64_t dice = 1;
    for (size_t life = 0; life < 400; life++) {
        struct fixture f;
        fixture_init(&f);
        uint64_t gates[64];
        size_t gate_count = 0;
        uint64_t visible = 0, durable = 0;
        for (size_t i = 0; i < 60; i++) {
            dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            switch (dice >> 60) {
            case 0:
            case 1:
                say(&f, EVENT_TOOL_CALL, "c");
                gates[gate_count++] = journal_appended(f.journal);
                break;
            case 2: say_long(&f, 5000); break;
            case 3:
            case 4:
            case 5:
            case 6: say(&f, EVENT_TEXT, "t"); break;
            case 7: loop_advance(f.loop, 100); break;
            case 8:
            case 9:
                if (fake_store_writes(f.store)) fake_store_commit(f.store, 0);
                break;
            default: loop_turn(f.loop);
            }
            assert_true(journal_visible(f.journal) >= visible);
            assert_true(journal_durable(f.journal) >= durable);
            visible = journal_visible(f.journal);
            durable = journal_durable(f.journal);
            assert_true(journal_appended(f.journal) >= visible);
            assert_true(fake_store_writes(f.store) <= 1);
            for (size_t g = 0; g < gate_count; g++) {
                if (gates[g] > durable) assert_true(visible < gates[g]);
            }
        }
        fixture_done(&f);
    }
}

/* --- chunks ------------------------------------------------------------------------------- */

static void events_of_every_size_are_read_whole(void **state) {
    struct fixture *f = *state;
    struct reader reader;
    reader_open(&reader, f->journal, f->loop, 0);
    static const size_t sizes[] = {1,     4070,  4080,   4096, 4097, 16 * KIB - 20,
                                   16384, 16385, 100000, 2,    MIB,  3};
    uint64_t bytes = 0;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        say_long(f, sizes[i]);
        bytes += sizes[i];
        if (i % 2) loop_turn(f->loop);
    }
    loop_turn(f->loop);
    assert_int_equal(reader.bytes, bytes);
    assert_int_equal(reader.events, ARRAY_LEN(sizes));
    reader_close(&reader);
}

/* Every fill of the first chunk, to the byte. */
static void a_chunk_is_filled_to_its_last_byte(void **state) {
    (void)state;
    for (size_t len = 4 * KIB - 40; len < 4 * KIB + 8; len++) {
        struct fixture f;
        fixture_init_memory(&f, MIB);
        say_long(&f, len);
        say(&f, EVENT_TEXT, "t");
        say(&f, EVENT_TEXT, "u");
        loop_turn(f.loop);
        struct reader reader;
        reader_open(&reader, f.journal, f.loop, 0);
        loop_turn(f.loop);
        assert_int_equal(reader.bytes, len + 2);
        reader_close(&reader);
        fixture_done(&f);
    }
}

static void a_reader_may_come_late_at_any_place(void **state) {
    (void)state;
    struct fixture f;
    fixture_init_memory(&f, MIB);
    for (size_t i = 0; i < 200; i++) say_long(&f, 100 + i);
    loop_turn(f.loop);
    for (uint64_t after = 0; after <= 200; after++) {
        struct reader reader;
        reader_open(&reader, f.journal, f.loop, after);
        loop_turn(f.loop);
        assert_int_equal(reader.events, 200 - after);
        assert_int_equal(cursor_seq(reader.cursor), 200);
        reader_close(&reader);
    }
    fixture_done(&f);
}

static void a_reader_beyond_the_end_waits_for_what_comes(void **state) {
    (void)state;
    struct fixture f;
    fixture_init_memory(&f, MIB);
    say(&f, EVENT_TEXT, "a");
    loop_turn(f.loop);
    struct reader reader;
    reader_open(&reader, f.journal, f.loop, 3);
    for (const char *c = "bcde"; *c; c++) say_to(f.journal, EVENT_TEXT, str_of(c, 1));
    loop_turn(f.loop);
    assert_str(buf_str(&reader.text), "de");
    reader_close(&reader);
    fixture_done(&f);
}

/* --- the window --------------------------------------------------------------------------- */

static void an_event_before_the_window_is_out_of_range(void **state) {
    (void)state;
    struct fixture f;
    fixture_init_memory(&f, 64 * KIB);
    for (size_t i = 0; i < 400; i++) {
        say_long(&f, 1000);
        loop_turn(f.loop);
    }
    struct cursor *cursor;
    struct err e;
    static const uint64_t gone[] = {0, 1, 300};
    for (size_t i = 0; i < 3; i++) {
        assert_false(cursor_open(f.journal, gone[i], f.loop, reader_ready, NULL, &cursor, &e));
        assert_int_equal(e.code, ERR_OUT_OF_RANGE);
    }
    struct reader reader;
    reader_open(&reader, f.journal, f.loop, 390);
    loop_turn(f.loop);
    assert_int_equal(reader.events, 10);
    reader_close(&reader);
    reader_open(&reader, f.journal, f.loop, UINT64_MAX);
    loop_turn(f.loop);
    assert_int_equal(reader.events, 0);
    reader_close(&reader);
    fixture_done(&f);
}

static void events_not_yet_on_disk_stay_in_the_window(void **state) {
    struct fixture *f = *state;
    journal_leave(f->journal);
    journal_unref(f->journal);
    f->journal = fixture_journal(f, 8, 32 * KIB);
    for (size_t i = 0; i < 200; i++) say_long(f, 1000);
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_int_equal(fake_store_writes(f->store), 1);
    struct reader reader;
    reader_open(&reader, f->journal, f->loop, 0); /* still there */
    reader.lazy = true;
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_int_equal(journal_durable(f->journal), 200);
    struct cursor *cursor;
    struct err e;
    assert_false(cursor_open(f->journal, 0, f->loop, reader_ready, NULL, &cursor, &e));
    read_some(&reader, SIZE_MAX); /* it holds what it has not read */
    assert_int_equal(reader.events, 200);
    for (size_t i = 0; i < 200; i++) say_long(f, 1000);
    loop_advance(f->loop, KEEPER_TICK_MS);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_int_equal(journal_durable(f->journal), 400);
    reader_close(&reader);
}

static size_t bytes_held(const struct journal *journal) {
    size_t bytes = 0;
    for (const struct chunk *chunk = journal->oldest; chunk;
         chunk = atomic_load_explicit(&chunk->next, memory_order_relaxed))
        bytes += sizeof(*chunk) + chunk->room;
    return bytes;
}

/* A window of one chunk: what is on disk is given back, and what is not stays, however long it
 * waits. */
static void a_small_window_holds_what_is_not_on_disk_and_a_chunk(void **state) {
    struct fixture *f = *state;
    journal_leave(f->journal);
    journal_unref(f->journal);
    f->journal = fixture_journal(f, 8, CHUNK_BYTES);
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 0; i < 100; i++)
            say_to(f->journal, EVENT_TEXT, STR("a token of a model"));
        loop_advance(f->loop, KEEPER_TICK_MS);
        assert_true(bytes_held(f->journal) >= 100 * STR("a token of a model").len);
        assert_int_equal(fake_store_writes(f->store), 1);
        fake_store_commit(f->store, 0);
        loop_turn(f->loop);
        assert_int_equal(journal_durable(f->journal), (round + 1) * 100);
        assert_true(bytes_held(f->journal) <= 2 * (sizeof(struct chunk) + CHUNK_BYTES));
    }
    struct reader reader;
    reader_open(&reader, f->journal, f->loop, 1999);
    loop_turn(f->loop);
    assert_int_equal(reader.events, 1);
    reader_close(&reader);
}

/* Texts that come at once lie in larger chunks than those that come one by one. */
static void a_burst_lies_in_few_chunks(void **state) {
    (void)state;
    static char letters[64 * KIB];
    static uint32_t lens[ARRAY_LEN(letters) / 64];
    struct fixture f;
    fixture_init_memory(&f, SIZE_MAX);
    memset(letters, 'x', sizeof(letters));
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) lens[i] = 64;
    struct event_texts texts = {
        .text = str_of(letters, sizeof(letters)), .lens = lens, .count = ARRAY_LEN(lens)};
    journal_append_texts(f.journal, &texts);
    size_t chunks = 0;
    for (const struct chunk *chunk = f.journal->oldest; chunk;
         chunk = atomic_load_explicit(&chunk->next, memory_order_relaxed))
        chunks++;
    assert_true(chunks <= 2 + bytes_held(f.journal) / CHUNK_BURST_BYTES);
    loop_turn(f.loop);
    struct reader reader;
    reader_open(&reader, f.journal, f.loop, 0);
    loop_turn(f.loop);
    assert_int_equal(reader.events, ARRAY_LEN(lens));
    reader_close(&reader);
    fixture_done(&f);
}

static void a_slow_reader_keeps_what_it_has_not_read(void **state) {
    (void)state;
    struct fixture f;
    fixture_init_memory(&f, 32 * KIB);
    struct reader slow;
    reader_open(&slow, f.journal, f.loop, 0);
    slow.lazy = true;
    for (size_t i = 0; i < 500; i++) {
        say_long(&f, 1000);
        loop_turn(f.loop);
        if (i % 7 == 0) read_some(&slow, 3);
    }
    read_some(&slow, SIZE_MAX);
    assert_int_equal(slow.events, 500);
    assert_int_equal(slow.bytes, 500000);
    reader_close(&slow);
    fixture_done(&f);
}

/* --- pacing ------------------------------------------------------------------------------- */

/* B1 */
static void a_lagging_pacer_holds_the_source_and_lets_it_go_at_half(void **state) {
    (void)state;
    struct fixture f;
    fixture_init_memory(&f, 64 * KIB);
    struct reader reader;
    reader_open(&reader, f.journal, f.loop, 0);
    reader.lazy = true;
    cursor_pace(reader.cursor);
    size_t said = 0;
    while (!f.held) {
        say_long(&f, 1000);
        loop_turn(f.loop);
        said++;
    }
    assert_in_range(said, 255, 262); /* 256 KiB of events */
    while (f.held) {
        read_some(&reader, 1);
        loop_turn(f.loop);
    }
    assert_in_range(reader.events, said / 2 - 2, said / 2 + 2);
    assert_int_equal(f.holds, 1);
    reader_close(&reader);
    fixture_done(&f);
}

static void a_pacer_that_goes_lets_the_source_go_on(void **state) {
    (void)state;
    struct fixture f;
    fixture_init_memory(&f, 64 * KIB);
    struct reader reader;
    reader_open(&reader, f.journal, f.loop, 0);
    reader.lazy = true;
    cursor_pace(reader.cursor);
    say_long(&f, 300 * KIB);
    loop_turn(f.loop);
    assert_true(f.held);
    reader_close(&reader);
    loop_turn(f.loop);
    assert_false(f.held);
    fixture_done(&f);
}

static void an_observer_never_paces(void **state) {
    (void)state;
    struct fixture f;
    fixture_init_memory(&f, 64 * KIB);
    struct reader reader;
    reader_open(&reader, f.journal, f.loop, 0);
    reader.lazy = true;
    say_long(&f, MIB);
    loop_turn(f.loop);
    assert_int_equal(f.holds, 0);
    reader_close(&reader);
    fixture_done(&f);
}

/* Nothing may be shown yet, so there is no reader: text that comes meanwhile has a bound, too. */
static void a_source_waits_for_the_disk_before_it_is_far_ahead(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_TOOL_CALL, "c1");
    say_long(f, 100 * KIB);
    loop_turn(f->loop);
    assert_false(f->held);
    say_long(f, 200 * KIB);
    loop_turn(f->loop);
    assert_true(f->held);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_false(f->held);
    say_long(f, MIB); /* it is shown: from now on only a reader sets the pace */
    loop_turn(f->loop);
    assert_false(f->held);
    fake_store_always_commit(f->store);
}

/* Memory that the disk has can be released. So while it is scarce nothing gets far ahead of the
 * disk, also what is read at once or by nobody. */
static void a_source_waits_for_the_disk_while_memory_is_scarce(void **state) {
    (void)state;
    for (int read = 0; read < 2; read++) {
        struct fixture f;
        struct reader reader;
        fixture_init(&f);
        if (read) {
            reader_open(&reader, f.journal, f.loop, 0);
            cursor_pace(reader.cursor);
        }
        say_long(&f, 300 * KIB);
        loop_turn(f.loop);
        assert_false(f.held); /* there is memory */
        mem_limit(mem_counted());
        say_long(&f, 1 * KIB);
        loop_turn(f.loop);
        assert_true(f.held);
        fake_store_commit(f.store, 0);
        loop_turn(f.loop);
        assert_false(f.held);
        say_long(&f, 200 * KIB);
        loop_turn(f.loop);
        assert_false(f.held); /* it is not far ahead */
        mem_limit(0);
        if (read) reader_close(&reader);
        fake_store_always_commit(f.store);
        fixture_done(&f);
    }
}

/* What is in memory alone has no disk to wait for. */
static void scarce_memory_holds_no_source_without_a_disk(void **state) {
    (void)state;
    struct fixture f;
    fixture_init_memory(&f, 64 * KIB);
    mem_limit(mem_counted());
    say_long(&f, MIB);
    loop_turn(f.loop);
    assert_false(f.held);
    mem_limit(0);
    fixture_done(&f);
}

/* --- losing ------------------------------------------------------------------------------- */

/* T1 */
static void a_lost_effect_is_taken_back_and_said_otherwise(void **state) {
    struct fixture *f = *state;
    struct reader reader;
    reader_open(&reader, f->journal, f->loop, 0);
    say(f, EVENT_TEXT, "said ");
    loop_turn(f->loop);
    say(f, EVENT_TEXT, "and heard ");
    say(f, EVENT_TOOL_CALL, "c1");
    for (size_t i = 0; i < 20; i++) say_long(f, 3000); /* into further chunks */
    loop_turn(f->loop);
    fake_store_lose(f->store, 0, ERR_UNAVAILABLE);
    loop_turn(f->loop);
    assert_int_equal(f->lost, 1);
    assert_int_equal(journal_visible(f->journal), 2);
    assert_int_equal(journal_retract(f->journal), 2);
    say(f, EVENT_TEXT, "sorry");
    say(f, EVENT_FAILED, "");
    loop_turn(f->loop);
    assert_marks(f->journal, 4, 4, 0);
    assert_str(buf_str(&reader.text), "said and heard sorry");
    assert_int_equal(reader.events, 4);
    reader_close(&reader);
    reader_open(&reader, f->journal, f->loop, 2); /* a late one sees the same */
    loop_turn(f->loop);
    assert_int_equal(reader.events, 2);
    reader_close(&reader);
}

static void a_reader_that_waits_beyond_a_retract_sees_what_is_said_instead(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_TEXT, "a");
    say(f, EVENT_TOOL_CALL, "c1");
    for (size_t i = 0; i < 10; i++) say_long(f, 5000);
    loop_turn(f->loop);
    struct reader reader;
    reader_open(&reader, f->journal, f->loop, 9); /* in what is hidden still */
    fake_store_lose(f->store, 0, ERR_UNAVAILABLE);
    loop_turn(f->loop);
    journal_retract(f->journal);
    for (const char *c = "bcdefghijkl"; *c; c++) say_to(f->journal, EVENT_TEXT, str_of(c, 1));
    loop_turn(f->loop);
    assert_str(buf_str(&reader.text), "jkl");
    reader_close(&reader);
}

static void a_terminal_event_that_is_lost_can_be_said_again(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_DONE, "");
    loop_turn(f->loop);
    assert_marks(f->journal, 1, 0, 0);
    fake_store_lose(f->store, 0, ERR_UNAVAILABLE);
    loop_turn(f->loop);
    assert_int_equal(journal_retract(f->journal), 0);
    assert_int_equal(journal_retract(f->journal), 0);
    say(f, EVENT_FAILED, "");
    loop_turn(f->loop);
    assert_marks(f->journal, 1, 1, 0);
    assert_int_equal(fake_store_writes(f->store), 0);
}

static void an_orphan_that_is_lost_takes_itself_back(void **state) {
    struct fixture *f = *state;
    struct journal *journal = journal_ref(f->journal);
    say(f, EVENT_TEXT, "a");
    say(f, EVENT_DONE, "");
    journal_leave(f->journal);
    loop_turn(f->loop);
    fake_store_lose(f->store, 0, ERR_UNAVAILABLE);
    loop_turn(f->loop);
    assert_marks(journal, 1, 1, 0);
    assert_int_equal(f->lost, 0);
    journal_unref(journal);
}

/* --- threads ------------------------------------------------------------------------------ */

#define LINES 20000
#define FOLLOWERS 4

struct far {
    struct loop *loop;
    struct journal *journal;
    struct mail start;
    struct reader readers[FOLLOWERS];
    size_t closed;
};

static void far_ready(void *ctx) {
    struct reader *reader = ctx;
    struct event event = {0};
    while (cursor_next(reader->cursor, &event)) {
        reader->events++;
        assert_true(event.seq == reader->events);
        if (event.kind == EVENT_TEXT) assert_true(event.text.text.len == event.seq % 300 + 1);
        if (event.kind != EVENT_DONE) continue;
        struct far *far = (struct far *)(uintptr_t)reader->bytes; /* lent for this */
        cursor_close(reader->cursor);
        if (++far->closed == FOLLOWERS) loop_stop(far->loop);
        return;
    }
}

static void far_start(void *ctx) {
    struct far *far = ctx;
    for (size_t i = 0; i < FOLLOWERS; i++) {
        struct reader *reader = &far->readers[i];
        struct err e;
        *reader = (struct reader){.bytes = (uint64_t)(uintptr_t)far};
        assert_true(
            cursor_open(far->journal, 0, far->loop, far_ready, reader, &reader->cursor, &e));
    }
}

static void *far_run(void *ctx) {
    loop_run(((struct far *)ctx)->loop);
    return NULL;
}

struct writer {
    struct loop *loop;
    struct journal *journal;
    struct timer timer;
    size_t lines;
};

static void write_more(void *ctx) {
    struct writer *writer = ctx;
    char text[300];
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < 200 && writer->lines < LINES; i++) {
        writer->lines++;
        say_to(writer->journal, EVENT_TEXT, str_of(text, (writer->lines % 300) + 1));
    }
    if (writer->lines < LINES) {
        timer_start(&writer->timer, 0);
        return;
    }
    say_to(writer->journal, EVENT_DONE, STR_EMPTY);
    loop_stop(writer->loop);
}

static void stop_far(void *ctx) {
    loop_stop(ctx);
}

/* Mail to cursors that are closed may still lie in its box. */
static void free_far_loop(struct loop *loop) {
    struct timer last;
    timer_init(&last, loop, stop_far, loop);
    timer_start(&last, 0);
    loop_run(loop);
    loop_free(loop);
}

static void readers_on_another_loop_see_every_event_once(void **state) {
    (void)state;
    struct loop *here = loop_new(), *there = loop_new();
    struct journal *journal = journal_new(&(struct journal_options){
        .loop = here, .run = 1, .window_max_bytes = SIZE_MAX, .pace_max_bytes = SIZE_MAX});
    struct far far = {.loop = there, .journal = journal_ref(journal)};
    struct writer writer = {.loop = here, .journal = journal};
    timer_init(&writer.timer, here, write_more, &writer);
    timer_start(&writer.timer, 0);
    pthread_t thread;
    loop_post(there, &far.start, far_start, &far);
    assert_int_equal(pthread_create(&thread, NULL, far_run, &far), 0);
    loop_run(here);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        assert_int_equal(far.readers[i].events, LINES + 1);
    }
    journal_unref(far.journal);
    journal_unref(journal);
    loop_free(here);
    free_far_loop(there);
}

/* Cursors come and go on one thread while another writes, trims and goes away. */
static void churn(void *ctx) {
    struct far *far = ctx;
    for (size_t i = 0; i < 300; i++) {
        struct reader reader = {.lazy = true};
        struct event event = {0};
        struct err e;
        uint64_t after = journal_visible(far->journal);
        after = after > 20 ? after - 20 : 0;
        if (!cursor_open(far->journal, after, far->loop, reader_ready, &reader, &reader.cursor,
                         &e)) {
            continue;
        }
        for (size_t n = 0; n < 30 && cursor_next(reader.cursor, &event); n++) {
            assert_true(event.seq > after);
        }
        cursor_close(reader.cursor);
    }
    journal_unref(far->journal);
    loop_stop(far->loop);
}

static void cursors_come_and_go_while_the_window_moves(void **state) {
    (void)state;
    struct loop *here = loop_new(), *there = loop_new();
    struct journal *journal = journal_new(&(struct journal_options){
        .loop = here, .run = 1, .window_max_bytes = 32 * KIB, .pace_max_bytes = SIZE_MAX});
    struct far far = {.loop = there, .journal = journal_ref(journal)};
    struct writer writer = {.loop = here, .journal = journal};
    timer_init(&writer.timer, here, write_more, &writer);
    timer_start(&writer.timer, 0);
    pthread_t thread;
    loop_post(there, &far.start, churn, &far);
    assert_int_equal(pthread_create(&thread, NULL, far_run, &far), 0);
    loop_run(here);
    pthread_join(thread, NULL);
    journal_unref(journal);
    loop_free(here);
    free_far_loop(there);
}

/* --- texts in stretches ------------------------------------------------------------------- */

#define MIXED_EVENTS 600

/* Three of four are text, some longer than a chunk. */
static enum event_kind mixed_kind(uint64_t seq) {
    return seq % 4 == 1 ? EVENT_THINKING : EVENT_TEXT;
}

static size_t mixed_len(uint64_t seq) {
    return seq % 97 == 0 ? 20000 : seq * 7 % 130;
}

static void assert_stretch(struct str texts, size_t count, size_t max_bytes, uint64_t *seq) {
    struct str agent, text, all = texts;
    assert_true(count == 1 || all.len <= max_bytes);
    for (size_t i = 0; i < count; i++) {
        assert_true(event_take_text(&texts, &agent, &text));
        ++*seq;
        assert_int_equal(mixed_kind(*seq), EVENT_TEXT);
        assert_int_equal(text.len, mixed_len(*seq));
    }
    assert_int_equal(texts.len, 0);
}

static void texts_come_in_stretches_however_much_is_asked_for(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 64, 1000, 8 * KIB, SIZE_MAX};
    static const uint64_t from[] = {0, 1, 2, 97, 300, MIXED_EVENTS};
    static char letters[20000];
    struct fixture f;
    fixture_init_memory(&f, SIZE_MAX);
    for (uint64_t seq = 1; seq <= MIXED_EVENTS; seq++)
        say_to(f.journal, mixed_kind(seq), str_of(letters, mixed_len(seq)));
    loop_turn(f.loop);
    for (size_t i = 0; i < ARRAY_LEN(sizes) * ARRAY_LEN(from); i++) {
        size_t max_bytes = sizes[i % ARRAY_LEN(sizes)], count;
        uint64_t seq = from[i / ARRAY_LEN(sizes)];
        struct cursor *cursor;
        struct event event;
        struct err e;
        assert_true(cursor_open(f.journal, seq, f.loop, NULL, NULL, &cursor, &e));
        for (;;) {
            struct str texts = cursor_texts(cursor, max_bytes, &count);
            assert_stretch(texts, count, max_bytes, &seq);
            assert_int_equal(cursor_seq(cursor), seq);
            if (count) continue;
            if (!cursor_next(cursor, &event)) break;
            assert_int_equal(event.seq, ++seq);
        }
        assert_int_equal(seq, MIXED_EVENTS);
        cursor_close(cursor);
    }
    fixture_done(&f);
}

/* The same bytes and marks as if each text had been appended by itself, at any place in a chunk. */
static void texts_appended_at_once_are_events_of_their_own(void **state) {
    (void)state;
    static char letters[100000];
    static const uint32_t lens[] = {64, 64, 0,    1,    200,  5000, 30000,
                                    64, 64, 2000, 8192, 4096, 7};
    size_t all = 0;
    for (size_t i = 0; i < sizeof(letters); i++) letters[i] = (char)('a' + i % 26);
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) all += lens[i];
    for (size_t before = 0; before < 5000; before += 37) {
        struct fixture f;
        struct err e;
        fixture_init_memory(&f, SIZE_MAX);
        say_to(f.journal, EVENT_TEXT, str_of(letters, before));
        struct event_texts texts = {.agent = STR("a"),
                                    .text = str_of(letters, all),
                                    .lens = lens,
                                    .count = ARRAY_LEN(lens)};
        assert_int_equal(journal_append_texts(f.journal, &texts), 2);
        assert_int_equal(journal_appended(f.journal), 1 + ARRAY_LEN(lens));
        say_to(f.journal, EVENT_TEXT, STR("after"));
        loop_turn(f.loop);
        struct cursor *cursor;
        struct event event;
        struct str rest = str_of(letters, all);
        assert_true(cursor_open(f.journal, 1, f.loop, NULL, NULL, &cursor, &e));
        for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
            assert_true(cursor_next(cursor, &event));
            assert_int_equal(event.seq, i + 2);
            assert_true(str_equal(event.text.text, str_head(rest, lens[i])));
            rest = str_skip(rest, lens[i]);
        }
        assert_true(cursor_next(cursor, &event));
        assert_str(event.text.text, "after");
        assert_false(cursor_next(cursor, &event));
        cursor_close(cursor);
        fixture_done(&f);
    }
}

static void a_stretch_ends_where_the_disk_is_waited_for(void **state) {
    struct fixture *f = *state;
    struct cursor *cursor;
    struct event event;
    struct err e;
    size_t count;
    say(f, EVENT_TEXT, "before ");
    say(f, EVENT_TEXT, "it ");
    journal_gate(f->journal);
    say(f, EVENT_TEXT, "after");
    loop_turn(f->loop);
    assert_true(cursor_open(f->journal, 0, f->loop, NULL, NULL, &cursor, &e));
    cursor_texts(cursor, SIZE_MAX, &count);
    assert_int_equal(count, 1);
    cursor_texts(cursor, SIZE_MAX, &count);
    assert_int_equal(count, 0);
    assert_false(cursor_next(cursor, &event));
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    cursor_texts(cursor, SIZE_MAX, &count);
    assert_int_equal(count, 2);
    cursor_close(cursor);
}

/* A chunk is used again: after its last event it may hold whole events of another run. */
static void a_stretch_ends_where_its_chunk_ends(void **state) {
    (void)state;
    static char letters[CHUNK_BYTES];
    struct fixture f;
    struct err e;
    fixture_init_memory(&f, SIZE_MAX);
    say_to(f.journal, EVENT_TEXT, STR("mine"));
    struct chunk *chunk = f.journal->tail;
    struct event foreign = {.kind = EVENT_TEXT, .text.text = STR("of somebody else")};
    size_t body, len = event_encoded_len(&foreign, &body);
    for (size_t at = chunk->used; at + len <= chunk->room; at += len)
        event_put(&foreign, body, chunk->bytes + at);
    say_to(f.journal, EVENT_TEXT, str_of(letters, chunk->room));
    say_to(f.journal, EVENT_TEXT, STR("last"));
    assert_ptr_not_equal(chunk, f.journal->tail);
    loop_turn(f.loop);
    struct cursor *cursor;
    static const size_t lens[] = {4, 0, 4};
    uint64_t seq = 0;
    assert_true(cursor_open(f.journal, 0, f.loop, NULL, NULL, &cursor, &e));
    while (cursor_seq(cursor) < ARRAY_LEN(lens)) {
        size_t count;
        struct str agent, text, texts = cursor_texts(cursor, SIZE_MAX, &count);
        assert_true(count > 0);
        for (; count; count--, seq++) {
            assert_true(event_take_text(&texts, &agent, &text));
            assert_int_equal(text.len, seq == 1 ? chunk->room : lens[seq]);
        }
        assert_int_equal(texts.len, 0);
        assert_int_equal(cursor_seq(cursor), seq);
    }
    cursor_close(cursor);
    fixture_done(&f);
}

/* Readers stand at the very end of what is visible while what is hidden is dropped. */
#define LOST_JOURNALS 200

struct spinner {
    struct loop *loop;
    struct journal *journals[LOST_JOURNALS];
    struct mail start;
    atomic_bool stop;
};

static void spin(void *ctx) {
    struct spinner *spinner = ctx;
    do {
        for (size_t i = 0; i < LOST_JOURNALS; i++) {
            struct reader reader = {.lazy = true};
            struct event event = {0};
            struct err e;
            uint64_t seen = 0;
            assert_true(cursor_open(spinner->journals[i], 0, spinner->loop, reader_ready,
                                    &reader, &reader.cursor, &e));
            while (cursor_next(reader.cursor, &event)) assert_true(event.seq == ++seen);
            cursor_close(reader.cursor);
        }
    } while (!atomic_load(&spinner->stop));
    loop_stop(spinner->loop);
}

static void *spin_run(void *ctx) {
    loop_run(((struct spinner *)ctx)->loop);
    return NULL;
}

static void events_may_be_dropped_while_readers_read(void **state) {
    struct fixture *f = *state;
    struct spinner spinner = {.loop = loop_new()};
    for (size_t i = 0; i < LOST_JOURNALS; i++) {
        spinner.journals[i] = fixture_journal(f, 100 + i, MIB);
        journal_leave(spinner.journals[i]); /* a loss makes it take itself back */
        say_to(spinner.journals[i], EVENT_TEXT, STR("said"));
    }
    loop_turn(f->loop);
    pthread_t thread;
    loop_post(spinner.loop, &spinner.start, spin, &spinner);
    assert_int_equal(pthread_create(&thread, NULL, spin_run, &spinner), 0);
    char text[3000];
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < LOST_JOURNALS; i++) {
        struct journal *journal = spinner.journals[i];
        say_to(journal, EVENT_TOOL_CALL, STR("c"));
        for (size_t n = 0; n < 10; n++) say_to(journal, EVENT_TEXT, str_of(text, sizeof(text)));
        loop_turn(f->loop);
        fake_store_lose(f->store, 0, ERR_UNAVAILABLE);
        loop_turn(f->loop);
        for (size_t n = 0; n < 10; n++) say_to(journal, EVENT_TEXT, str_of(text, sizeof(text)));
        loop_turn(f->loop);
        assert_marks(journal, 11, 11, 0);
    }
    atomic_store(&spinner.stop, true);
    pthread_join(thread, NULL);
    free_far_loop(spinner.loop);
    for (size_t i = 0; i < LOST_JOURNALS; i++) journal_unref(spinner.journals[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(text_is_visible_at_the_end_of_its_turn),
        TEST(an_effect_and_all_after_it_hide_until_it_is_on_disk),
        TEST(each_gate_opens_with_its_own_commit),
        TEST(several_gates_of_one_turn_open_together),
        TEST(any_event_can_be_made_to_wait_for_the_disk),
        TEST(an_event_that_was_made_to_wait_can_be_lost),
        cmocka_unit_test(the_marks_keep_their_order_in_any_order_of_things),
        TEST(events_of_every_size_are_read_whole),
        cmocka_unit_test(a_chunk_is_filled_to_its_last_byte),
        cmocka_unit_test(a_reader_may_come_late_at_any_place),
        cmocka_unit_test(a_reader_beyond_the_end_waits_for_what_comes),
        cmocka_unit_test(an_event_before_the_window_is_out_of_range),
        TEST(events_not_yet_on_disk_stay_in_the_window),
        TEST(a_small_window_holds_what_is_not_on_disk_and_a_chunk),
        cmocka_unit_test(a_burst_lies_in_few_chunks),
        cmocka_unit_test(a_slow_reader_keeps_what_it_has_not_read),
        cmocka_unit_test(a_lagging_pacer_holds_the_source_and_lets_it_go_at_half),
        cmocka_unit_test(a_pacer_that_goes_lets_the_source_go_on),
        cmocka_unit_test(an_observer_never_paces),
        cmocka_unit_test(a_source_waits_for_the_disk_while_memory_is_scarce),
        cmocka_unit_test(scarce_memory_holds_no_source_without_a_disk),
        TEST(a_source_waits_for_the_disk_before_it_is_far_ahead),
        TEST(a_lost_effect_is_taken_back_and_said_otherwise),
        TEST(a_reader_that_waits_beyond_a_retract_sees_what_is_said_instead),
        TEST(a_terminal_event_that_is_lost_can_be_said_again),
        TEST(an_orphan_that_is_lost_takes_itself_back),
        cmocka_unit_test(readers_on_another_loop_see_every_event_once),
        cmocka_unit_test(cursors_come_and_go_while_the_window_moves),
        cmocka_unit_test(texts_come_in_stretches_however_much_is_asked_for),
        cmocka_unit_test(texts_appended_at_once_are_events_of_their_own),
        cmocka_unit_test(a_stretch_ends_where_its_chunk_ends),
        TEST(a_stretch_ends_where_the_disk_is_waited_for),
        TEST(events_may_be_dropped_while_readers_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
