#include "stream/stream.h"

#include "base/clock.h"
#include "base/mem.h"
#include "helper/assert_str.h"

#include <stdio.h>

/* --- a transport that writes down its calls ----------------------------------------------- */

/* A stream on a memory journal, and the promises of its mode, checked at every call. */
struct view {
    struct loop *loop;
    struct journal *journal;
    struct stream *stream;
    enum close_mode mode;
    /* The transport. */
    size_t queued, low;
    bool wants_low;
    uint64_t stuck_since_ms;
    bool frees; /* the stream, from inside ended() */
    /* What came. */
    size_t data, lasts, ended, heartbeats, stretches, left_now;
    size_t projected, gathered_from; /* calls of project() and project_texts() */
    bool gathers; /* between gather() and leave_now(), which stand around one of them */
    uint64_t last_seq;
    enum close_frame last;
    struct close_ending ending;
    enum close_cause cause;
    bool ended_by_event;
    enum event_kind ended_by;
    size_t bytes_each; /* what one frame adds to the queue */
};

static void project(const struct event *event, enum close_frame frame, void *ctx) {
    struct view *view = ctx;
    view->projected++;
    assert_false(view->gathers && frame != FRAME_DATA);
    assert_int_equal(view->ended, 0);
    assert_int_equal(view->lasts, 0); /* nothing follows a last frame */
    assert_int_equal(event->seq, view->last_seq + 1);
    view->last_seq = event->seq;
    if (frame == FRAME_NONE) {
        assert_int_equal(view->mode, CLOSE_SINGLE);
    } else if (frame == FRAME_DATA) {
        assert_int_not_equal(view->mode, CLOSE_SINGLE);
        view->data++;
        view->queued += view->bytes_each;
    } else {
        view->lasts++;
        view->last = frame;
    }
}

static void project_texts(struct str texts, size_t count, void *ctx) {
    struct view *view = ctx;
    struct str agent, text;
    assert_true(count > 0 && view->lasts == 0 && view->mode != CLOSE_SINGLE);
    view->projected++;
    view->stretches++;
    view->data += count;
    view->queued += count * view->bytes_each;
    view->last_seq += count;
    for (; count > 0; count--) assert_true(event_take_text(&texts, &agent, &text));
    assert_int_equal(texts.len, 0);
}

static void gather(void *ctx) {
    struct view *view = ctx;
    assert_false(view->gathers);
    view->gathers = true;
    view->gathered_from = view->projected;
}

static void leave_now(void *ctx) {
    struct view *view = ctx;
    assert_true(view->gathers);
    assert_int_equal(view->projected, view->gathered_from + 1);
    view->gathers = false;
    view->left_now++;
}

static size_t queued(void *ctx) {
    return ((struct view *)ctx)->queued;
}

static void wake_at(size_t low, void *ctx) {
    struct view *view = ctx;
    if (!view->wants_low) view->stuck_since_ms = loop_now_ms(view->loop);
    view->low = low;
    view->wants_low = true;
}

static uint64_t stalled_ms(void *ctx) {
    struct view *view = ctx;
    return loop_now_ms(view->loop) - view->stuck_since_ms;
}

static void heartbeat(void *ctx) {
    struct view *view = ctx;
    assert_int_equal(view->ended, 0);
    view->heartbeats++;
}

static void ended(struct close_ending ending, enum close_cause cause, const struct event *last,
                  void *ctx) {
    struct view *view = ctx;
    assert_false(view->gathers);
    view->ended++;
    view->ending = ending;
    view->cause = cause;
    view->ended_by_event = last != NULL;
    if (last) view->ended_by = last->kind;
    if (!view->frees) return;
    stream_free(view->stream);
    view->stream = NULL;
}

static const struct stream_wire wire = {.project = project,
                                        .queued = queued,
                                        .wake_at = wake_at,
                                        .stalled_ms = stalled_ms,
                                        .ended = ended};

static const struct stream_wire beating = {.project = project,
                                           .queued = queued,
                                           .wake_at = wake_at,
                                           .stalled_ms = stalled_ms,
                                           .heartbeat = heartbeat,
                                           .ended = ended};

static const struct stream_wire by_stretch = {.project = project,
                                              .project_texts = project_texts,
                                              .queued = queued,
                                              .wake_at = wake_at,
                                              .stalled_ms = stalled_ms,
                                              .ended = ended};

static const struct stream_wire by_last_stretch = {.project = project,
                                                   .project_texts = project_texts,
                                                   .gather = gather,
                                                   .leave_now = leave_now,
                                                   .queued = queued,
                                                   .wake_at = wake_at,
                                                   .stalled_ms = stalled_ms,
                                                   .ended = ended};

static void view_on(struct view *view, struct loop *loop, struct journal *journal,
                    enum close_mode mode, uint64_t after, const struct stream_wire *with) {
    *view = (struct view){
        .loop = loop, .journal = journal, .mode = mode, .last_seq = after, .bytes_each = 10};
    struct stream_options options = {.loop = loop,
                                     .journal = journal,
                                     .after_seq = after,
                                     .mode = mode,
                                     .wire = with,
                                     .ctx = view};
    struct err e;
    assert_true(stream_open(&options, &view->stream, &e));
}

static struct journal *new_journal(struct loop *loop) {
    return journal_new(&(struct journal_options){
        .loop = loop, .run = 1, .window_max_bytes = 512 * KIB, .pace_max_bytes = 256 * KIB});
}

static void say(struct journal *journal, enum event_kind kind) {
    struct event event = {.kind = kind, .agent = STR("a")};
    if (kind == EVENT_TEXT) event.text.text = STR("word");
    if (kind == EVENT_FAILED) event.failed.code = ERR_NOT_FOUND;
    journal_append(journal, &event);
}

/* Let the peer read everything. */
static void read_all(struct view *view) {
    view->queued = 0;
    if (!view->wants_low) return;
    view->wants_low = false;
    if (view->stream) stream_drained(view->stream);
}

static void close_view(struct view *view) {
    stream_free(view->stream);
    view->stream = NULL;
}

/* --- tests -------------------------------------------------------------------------------- */

static void events_become_frames_in_order_and_one_last_frame(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, CLOSE_DONE, 0, &wire);
    say(journal, EVENT_STARTED);
    say(journal, EVENT_TEXT);
    loop_turn(loop);
    assert_int_equal(view.data, 2);
    assert_int_equal(view.last_seq, 2);
    say(journal, EVENT_DONE);
    loop_turn(loop);
    assert_int_equal(view.lasts, 1);
    assert_int_equal(view.last, FRAME_DONE);
    assert_int_equal(view.ended, 1);
    assert_int_equal(view.ending.status, ERR_NONE);
    assert_int_equal(view.ended_by, EVENT_DONE);
    stream_end(view.stream, CAUSE_LEFT); /* too late: nothing happens */
    assert_int_equal(view.ended, 1);
    close_view(&view);
    journal_unref(journal);
    loop_free(loop);
}

/* In mode SINGLE nothing may be sent before the end, so nothing comes by stretches. */
static void texts_go_to_the_wire_together_with_nothing_lost_between(void **state) {
    (void)state;
    static const enum close_mode modes[] = {CLOSE_DONE, CLOSE_TERMINAL, CLOSE_SINGLE};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct loop *loop = loop_new_fake();
        struct journal *journal = new_journal(loop);
        struct view view;
        view_on(&view, loop, journal, modes[i], 0, &by_stretch);
        say(journal, EVENT_STARTED);
        for (size_t n = 0; n < 40; n++) say(journal, EVENT_TEXT); /* all of them in one chunk */
        say(journal, EVENT_USAGE);
        for (size_t n = 0; n < 20; n++) say(journal, EVENT_TEXT);
        say(journal, EVENT_DONE);
        loop_turn(loop);
        bool single = modes[i] == CLOSE_SINGLE;
        assert_int_equal(view.stretches, single ? 0 : 2);
        assert_int_equal(view.data, single ? 0 : 62);
        assert_int_equal(view.last_seq, 63);
        assert_int_equal(view.ended, 1);
        close_view(&view);
        journal_unref(journal);
        loop_free(loop);
    }
}

static void what_nothing_follows_yet_is_known_to_the_wire(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, CLOSE_DONE, 0, &by_last_stretch);
    say(journal, EVENT_STARTED);
    say(journal, EVENT_TEXT);
    loop_turn(loop);
    assert_int_equal(view.left_now, 1);
    for (size_t n = 0; n < 3; n++) say(journal, EVENT_TEXT);
    loop_turn(loop);
    assert_int_equal(view.left_now, 2);
    say(journal, EVENT_TEXT); /* something follows */
    say(journal, EVENT_USAGE);
    loop_turn(loop);
    assert_int_equal(view.left_now, 3);
    assert_int_equal(view.stretches, 3);
    say(journal, EVENT_TEXT);
    say(journal, EVENT_DONE); /* the end joins the text before it */
    loop_turn(loop);
    assert_int_equal(view.left_now, 3);
    assert_int_equal(view.stretches, 4);
    assert_int_equal(view.last_seq, 9);
    assert_int_equal(view.ended, 1);
    close_view(&view);
    journal_unref(journal);
    loop_free(loop);
}

/* A text, a call and a text are three parts in order, however they come together. */
static void what_leaves_now_keeps_its_order_with_all_else(void **state) {
    (void)state;
    for (unsigned cuts = 0; cuts < 16; cuts++) {
        static const enum event_kind kinds[] = {EVENT_TEXT, EVENT_TOOL_CALL, EVENT_TEXT,
                                                EVENT_TEXT, EVENT_DONE};
        struct loop *loop = loop_new_fake();
        struct journal *journal = new_journal(loop);
        struct view view;
        view_on(&view, loop, journal, CLOSE_DONE, 0, &by_last_stretch);
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            say(journal, kinds[i]);
            if (cuts >> i & 1) loop_turn(loop);
        }
        loop_turn(loop);
        loop_turn(loop);
        assert_int_equal(view.last_seq, ARRAY_LEN(kinds)); /* project() checks each step */
        assert_int_equal(view.left_now, __builtin_popcount(cuts)); /* the end joins all else */
        assert_int_equal(view.ended, 1);
        close_view(&view);
        journal_unref(journal);
        loop_free(loop);
    }
}

/* Texts that stop at a full transport are followed by others; the last ones may leave at once. */
static void texts_in_front_of_a_full_transport_do_not_leave_at_once(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, CLOSE_DONE, 0, &by_last_stretch);
    view.bytes_each = STREAM_HIGH_BYTES;
    say(journal, EVENT_TEXT);
    loop_turn(loop);
    assert_int_equal(view.left_now, 1);
    for (size_t n = 0; n < 3; n++) say(journal, EVENT_TEXT);
    loop_turn(loop);
    assert_int_equal(view.last_seq, 1);
    assert_true(view.wants_low);
    view.queued = STREAM_HIGH_BYTES - 1; /* room for one event */
    stream_drained(view.stream);
    assert_int_equal(view.left_now, 1);
    assert_int_equal(view.last_seq, 2);
    view.queued = 0;
    stream_drained(view.stream);
    assert_int_equal(view.left_now, 2);
    assert_int_equal(view.last_seq, 4);
    stream_end(view.stream, CAUSE_LEFT);
    assert_int_equal(view.ended, 1);
    close_view(&view);
    journal_unref(journal);
    loop_free(loop);
}

/* K19 */
static void a_late_stream_reads_from_where_it_says(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    for (size_t i = 0; i < 9; i++) say(journal, EVENT_TEXT);
    say(journal, EVENT_DONE);
    loop_turn(loop);
    for (uint64_t after = 0; after < 10; after++) {
        struct view view;
        view_on(&view, loop, journal, CLOSE_TERMINAL, after, &wire);
        assert_int_equal(view.data, 0); /* no callback before it returned */
        loop_turn(loop);
        assert_int_equal(view.data, 9 - after);
        assert_int_equal(view.last, FRAME_TERMINAL);
        assert_int_equal(view.ended, 1);
        close_view(&view);
    }
    journal_unref(journal);
    loop_free(loop);
}

/* B1 */
static void a_full_transport_holds_the_cursor_until_it_drains(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, CLOSE_DONE, 0, &wire);
    view.bytes_each = STREAM_HIGH_BYTES / 4;
    for (size_t i = 0; i < 20; i++) say(journal, EVENT_TEXT);
    loop_turn(loop);
    assert_int_equal(view.data, 4);
    assert_true(view.wants_low);
    assert_int_equal(view.low, STREAM_LOW_BYTES);
    loop_turn(loop);
    assert_int_equal(view.data, 4);
    read_all(&view);
    assert_int_equal(view.data, 8);
    loop_advance(loop, STREAM_STALL_MS - 1);
    assert_int_equal(view.ended, 0);
    loop_advance(loop, 1);
    assert_int_equal(view.ended, 1);
    assert_int_equal(view.cause, CAUSE_STALLED);
    assert_int_equal(view.ending.status, ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(view.lasts, 0);
    close_view(&view);
    journal_unref(journal);
    loop_free(loop);
}

static void a_peer_that_reads_a_little_is_not_stalled(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, CLOSE_DONE, 0, &wire);
    view.bytes_each = STREAM_HIGH_BYTES;
    for (size_t i = 0; i < 20; i++) say(journal, EVENT_TEXT);
    loop_turn(loop);
    for (size_t i = 0; i < 10; i++) {
        loop_advance(loop, STREAM_STALL_MS - 1);
        view.stuck_since_ms = loop_now_ms(loop); /* it took some, but not down to the mark */
        assert_int_equal(view.ended, 0);
    }
    loop_advance(loop, STREAM_STALL_MS);
    assert_int_equal(view.ended, 1);
    close_view(&view);
    journal_unref(journal);
    loop_free(loop);
}

/* S5 */
static void a_quiet_stream_beats_every_fifteen_seconds(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, CLOSE_DONE, 0, &beating);
    loop_advance(loop, STREAM_HEARTBEAT_MS - 1);
    assert_int_equal(view.heartbeats, 0);
    loop_advance(loop, 1);
    assert_int_equal(view.heartbeats, 1);
    loop_advance(loop, 5000);
    say(journal, EVENT_TEXT);
    loop_turn(loop);
    loop_advance(loop, STREAM_HEARTBEAT_MS - 1);
    assert_int_equal(view.heartbeats, 1);
    loop_advance(loop, 1);
    assert_int_equal(view.heartbeats, 2);
    loop_advance(loop, 5 * STREAM_HEARTBEAT_MS);
    assert_int_equal(view.heartbeats, 7);
    stream_end(view.stream, CAUSE_LEFT);
    loop_advance(loop, 5 * STREAM_HEARTBEAT_MS);
    assert_int_equal(view.heartbeats, 7);
    close_view(&view);
    journal_unref(journal);
    loop_free(loop);
}

static enum stream_verdict ends_at_a_question(const struct event *event, void *ctx) {
    (void)ctx;
    return event->kind == EVENT_APPROVAL ? STREAM_FINISHES : stream_judge(event);
}

static void a_contract_may_end_its_stream_where_the_run_goes_on(void **state) {
    (void)state;
    struct stream_wire judging = wire;
    judging.judge = ends_at_a_question;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, CLOSE_DONE, 0, &judging);
    say(journal, EVENT_TEXT);
    say(journal, EVENT_APPROVAL);
    say(journal, EVENT_TEXT);
    loop_turn(loop);
    assert_int_equal(view.data, 1);
    assert_int_equal(view.ended_by, EVENT_APPROVAL);
    assert_int_equal(view.last_seq, 2);
    close_view(&view);
    view_on(&view, loop, journal, CLOSE_DONE, 2, &judging);
    say(journal, EVENT_DONE);
    loop_turn(loop);
    assert_int_equal(view.data, 1);
    assert_int_equal(view.ended_by, EVENT_DONE);
    close_view(&view);
    journal_unref(journal);
    loop_free(loop);
}

static void a_failure_ends_each_mode_its_own_way(void **state) {
    (void)state;
    static const struct {
        enum event_kind kind;
        enum close_mode mode;
        enum close_frame last;
        enum err_code status;
    } rows[] = {
        /* clang-format off */
        {EVENT_FAILED,    CLOSE_SINGLE,       FRAME_NONE,     ERR_NOT_FOUND},
        {EVENT_FAILED,    CLOSE_DONE,         FRAME_DONE,     ERR_NONE},
        {EVENT_FAILED,    CLOSE_TERMINAL,     FRAME_TERMINAL, ERR_NONE},
        {EVENT_FAILED,    CLOSE_EOF,          FRAME_NONE,     ERR_NOT_FOUND},
        {EVENT_FAILED,    CLOSE_SUBSCRIPTION, FRAME_NONE,     ERR_NOT_FOUND},
        {EVENT_CANCELLED, CLOSE_SINGLE,       FRAME_NONE,     ERR_CANCELLED},
        {EVENT_CANCELLED, CLOSE_DONE,         FRAME_DONE,     ERR_NONE},
        {EVENT_CANCELLED, CLOSE_EOF,          FRAME_NONE,     ERR_CANCELLED},
        {EVENT_DONE,      CLOSE_SINGLE,       FRAME_REPLY,    ERR_NONE},
        {EVENT_DONE,      CLOSE_SUBSCRIPTION, FRAME_NONE,     ERR_CANCELLED},
        /* clang-format on */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct loop *loop = loop_new_fake();
        struct journal *journal = new_journal(loop);
        struct view view;
        view_on(&view, loop, journal, rows[i].mode, 0, &wire);
        view.frees = true; /* from inside the last callback */
        say(journal, EVENT_TEXT);
        say(journal, rows[i].kind);
        loop_turn(loop);
        assert_int_equal(view.ended, 1);
        assert_int_equal(view.last, rows[i].last);
        assert_int_equal(view.ending.status, rows[i].status);
        assert_int_equal(view.ended_by, rows[i].kind);
        journal_unref(journal);
        loop_free(loop);
    }
}

static void a_stream_that_is_freed_early_is_silent(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, CLOSE_DONE, 0, &beating);
    say(journal, EVENT_TEXT);
    close_view(&view);
    loop_turn(loop);
    loop_advance(loop, 100000);
    assert_int_equal(view.data + view.ended + view.heartbeats, 0);
    journal_unref(journal);
    loop_free(loop);
}

/* --- any order of anything ---------------------------------------------------------------- */

static uint64_t seed;

static uint64_t draw(uint64_t *dice) { /* splitmix64 */
    uint64_t z = *dice += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static enum close_frame promised(enum close_mode mode, enum event_kind kind) {
    static const enum close_frame finished[] = {FRAME_REPLY, FRAME_DONE, FRAME_TERMINAL,
                                                FRAME_EOF, FRAME_NONE};
    if (kind == EVENT_DONE) return finished[mode];
    return mode == CLOSE_DONE || mode == CLOSE_TERMINAL ? finished[mode] : FRAME_NONE;
}

static void check_ending(const struct view *view) {
    assert_int_equal(view->ended, 1);
    if (!view->ended_by_event) { /* pre-empted: nothing is forged */
        assert_int_equal(view->lasts, 0);
        assert_int_not_equal(view->ending.status, ERR_NONE);
        return;
    }
    enum close_frame due = promised(view->mode, view->ended_by);
    assert_int_equal(view->lasts, due != FRAME_NONE);
    assert_int_equal(view->last, due);
    assert_int_equal(view->ending.status == ERR_NONE, due != FRAME_NONE);
}

/* One life of a stream: up to 24 moves, each drawn. */
static void live(enum close_mode mode, uint64_t *dice, struct loop *loop) {
    static const enum event_kind terminals[] = {EVENT_DONE, EVENT_FAILED, EVENT_CANCELLED};
    static const enum close_cause causes[] = {CAUSE_LEFT, CAUSE_DEADLINE, CAUSE_STALLED,
                                              CAUSE_STOPPING};
    struct journal *journal = new_journal(loop);
    struct view view;
    view_on(&view, loop, journal, mode, 0, draw(dice) % 2 ? &beating : &wire);
    view.bytes_each = draw(dice) % 2 ? 10 : STREAM_HIGH_BYTES / 3;
    view.frees = draw(dice) % 2;
    bool over = false; /* the journal */
    for (size_t moves = draw(dice) % 24 + 1; moves-- > 0;) {
        uint64_t what = draw(dice) % 32;
        if (what < 14 && !over) say(journal, EVENT_TEXT);
        if (what == 14 && !over) say(journal, EVENT_APPROVAL);
        if (what == 15 && !over) over = (say(journal, terminals[draw(dice) % 3]), true);
        if (what == 16 && view.stream) stream_end(view.stream, causes[draw(dice) % 4]);
        if (what == 17) view.queued += STREAM_HIGH_BYTES;
        if (what == 18) loop_advance(loop, STREAM_STALL_MS);
        if (what == 19) loop_advance(loop, draw(dice) % STREAM_STALL_MS);
        if (what >= 20 && what < 24) read_all(&view);
        if (what >= 24) loop_turn(loop);
        if (view.ended) check_ending(&view);
    }
    if (!over && view.stream && draw(dice) % 2) stream_end(view.stream, CAUSE_STOPPING);
    if (!over && !view.ended) say(journal, EVENT_DONE);
    loop_turn(loop);
    while (!view.ended) read_all(&view);
    check_ending(&view);
    close_view(&view);
    loop_turn(loop);
    check_ending(&view);
    journal_unref(journal);
}

static void whatever_happens_a_stream_ends_once_and_as_promised(void **state) {
    (void)state;
    const char *given = getenv("WEIR_SEED");
    seed = given ? strtoull(given, NULL, 0) : clock_mono_us();
    print_message("WEIR_SEED=%llu\n", (unsigned long long)seed);
    uint64_t dice = seed;
    struct loop *loop = loop_new_fake();
    for (size_t i = 0; i < 100000; i++)
        live((enum close_mode)(i % CLOSE_MODE_COUNT), &dice, loop);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_become_frames_in_order_and_one_last_frame),
        cmocka_unit_test(texts_go_to_the_wire_together_with_nothing_lost_between),
        cmocka_unit_test(what_nothing_follows_yet_is_known_to_the_wire),
        cmocka_unit_test(what_leaves_now_keeps_its_order_with_all_else),
        cmocka_unit_test(texts_in_front_of_a_full_transport_do_not_leave_at_once),
        cmocka_unit_test(a_late_stream_reads_from_where_it_says),
        cmocka_unit_test(a_full_transport_holds_the_cursor_until_it_drains),
        cmocka_unit_test(a_peer_that_reads_a_little_is_not_stalled),
        cmocka_unit_test(a_quiet_stream_beats_every_fifteen_seconds),
        cmocka_unit_test(a_contract_may_end_its_stream_where_the_run_goes_on),
        cmocka_unit_test(a_failure_ends_each_mode_its_own_way),
        cmocka_unit_test(a_stream_that_is_freed_early_is_silent),
        cmocka_unit_test(whatever_happens_a_stream_ends_once_and_as_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
