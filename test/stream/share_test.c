#include "stream/share.h"

#include "base/mem.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "helper/moves.h"
#include "one_run.h"
#include "store/changes.h"

#define READERS 200
#define STALL_MS 30000
#define HEARTBEAT_MS 15000

struct scene;

/* One reader and its transport. */
struct heard {
    struct scene *scene;
    struct share_reader *reader;
    uint64_t after_seq;
    struct buf got;
    size_t queued; /* what the peer has not read yet */
    bool slow;     /* nothing leaves by itself */
    bool wakes, frees, ends_at_once;
    size_t begun, missing, ended, heartbeats;
    bool missing_failed, cut;
    enum close_cause cause;
};

/* Runs, a store, and readers on one loop. */
struct scene {
    struct one_run run;
    struct pages *pages;
    struct share *share;
    size_t encoded;
    struct heard heard[READERS];
};

/* --- the wire ----------------------------------------------------------------------------- */

static void encode(const struct event *event, struct buf *out, const void *ctx) {
    struct scene *scene = *(struct scene *const *)ctx;
    scene->encoded++;
    if (event->seq % 5 == 0 && event->kind == EVENT_TEXT) return; /* not sent */
    buf_printf(out, "<%llu:%d>", (unsigned long long)event->seq, (int)event->kind);
    if (event->kind == EVENT_TEXT) buf_append(out, event->text.text);
}

static void close_reader(struct heard *heard) {
    share_close(heard->reader);
    heard->reader = NULL;
}

static void last_call(struct heard *heard) {
    assert_int_equal(heard->ended + heard->missing, 1);
    if (heard->frees) close_reader(heard);
}

static void begun(void *ctx) {
    struct heard *heard = ctx;
    assert_int_equal(heard->got.len + heard->ended + heard->missing, 0);
    heard->begun++;
    if (heard->ends_at_once) share_end(heard->reader, CAUSE_STOPPING);
}

static void missing(const struct err *failed, void *ctx) {
    struct heard *heard = ctx;
    assert_int_equal(heard->begun, 0);
    heard->missing++;
    heard->missing_failed = failed != NULL;
    last_call(heard);
}

static void send(struct str bytes, void *ctx) {
    struct heard *heard = ctx;
    assert_int_equal(heard->begun, 1);
    assert_int_equal(heard->ended, 0);
    assert_true(bytes.len && bytes.len <= SHARE_TURN_BYTES);
    assert_true(heard->queued < SHARE_HIGH_BYTES);
    buf_append(&heard->got, bytes);
    heard->queued += bytes.len;
}

static size_t queued(void *ctx) {
    return ((struct heard *)ctx)->queued;
}

static void wake_at(size_t low, void *ctx) {
    assert_int_equal(low, SHARE_LOW_BYTES);
    ((struct heard *)ctx)->wakes = true;
}

static uint64_t stalled_ms(void *ctx) {
    (void)ctx;
    return STALL_MS;
}

static void heartbeat(void *ctx) {
    ((struct heard *)ctx)->heartbeats++;
}

static void ended(enum close_cause cause, bool cut, void *ctx) {
    struct heard *heard = ctx;
    heard->ended++;
    heard->cut = cut;
    heard->cause = cause;
    last_call(heard);
}

static const struct share_wire wire = {.begun = begun,
                                       .missing = missing,
                                       .send = send,
                                       .queued = queued,
                                       .wake_at = wake_at,
                                       .stalled_ms = stalled_ms,
                                       .heartbeat = heartbeat,
                                       .ended = ended};

/* --- the scene ---------------------------------------------------------------------------- */

static struct scene *scene; /* too large for a stack */

static void scene_begin_with(bool shared, size_t pages_bytes) {
    scene = MEM_NEW(struct scene);
    one_run_init(&scene->run);
    if (shared) fake_store_share(scene->run.store);
    scene->pages = pages_new(pages_bytes);
    scene->share = share_new(&(struct share_options){.loop = scene->run.loop,
                                                     .directory = scene->run.directory,
                                                     .store = scene->run.store,
                                                     .pages = scene->pages,
                                                     .encode = encode,
                                                     .ctx = &scene});
}

static void scene_begin(size_t pages_bytes) {
    scene_begin_with(false, pages_bytes);
}

static void scene_end(void) {
    for (size_t i = 0; i < READERS; i++) {
        close_reader(&scene->heard[i]);
        buf_done(&scene->heard[i].got);
    }
    one_run_answer_loads(&scene->run);
    share_free(scene->share);
    pages_free(scene->pages);
    one_run_done(&scene->run);
    free(scene);
}

static struct heard *read_from(size_t index, uint64_t after_seq) {
    struct heard *heard = &scene->heard[index];
    heard->scene = scene;
    heard->after_seq = after_seq;
    buf_init(&heard->got, 64 * MIB);
    heard->reader =
        share_open(scene->share, &(struct share_reading){.run = RUN,
                                                         .after_seq = after_seq,
                                                         .stall_ms = STALL_MS,
                                                         .heartbeat_ms = HEARTBEAT_MS,
                                                         .wire = &wire,
                                                         .ctx = heard});
    assert_int_equal(heard->begun + heard->missing, 0); /* not before it returns */
    return heard;
}

static void drain(struct heard *heard, size_t bytes) {
    heard->queued -= bytes < heard->queued ? bytes : heard->queued;
    if (!heard->wakes || heard->queued > SHARE_LOW_BYTES) return;
    heard->wakes = false;
    if (heard->reader) share_drained(heard->reader);
}

/* Turn until nothing moves; says how often the store was asked. */
static size_t settle(void) {
    size_t asked = 0;
    for (size_t quiet = 0; quiet < 4; quiet++) {
        size_t before = 0, after = 0;
        for (size_t i = 0; i < READERS; i++) before += scene->heard[i].got.len;
        loop_advance(scene->run.loop, 0);
        loop_turn(scene->run.loop);
        for (size_t i = 0; i < READERS; i++) {
            if (!scene->heard[i].slow) drain(&scene->heard[i], SIZE_MAX);
        }
        while (fake_store_loads(scene->run.store)) {
            fake_store_answer(scene->run.store, 0);
            asked++;
            quiet = 0;
        }
        for (size_t i = 0; i < READERS; i++) after += scene->heard[i].got.len;
        if (after != before) quiet = 0;
    }
    return asked;
}

/* The bytes of a reader alone: texts of `len` from its place to `last`, which is `kind`. */
static void assert_heard(const struct heard *heard, uint64_t last, enum event_kind kind,
                         size_t len) {
    struct buf all;
    char *text = mem_alloc(len);
    memset(text, 'x', len);
    buf_init(&all, 64 * MIB);
    for (uint64_t seq = heard->after_seq + 1; seq <= last; seq++) {
        struct event event = one_run_event(seq == last ? kind : EVENT_TEXT, str_of(text, len));
        event.seq = seq;
        encode(&event, &all, &scene);
    }
    assert_int_equal(heard->got.len, all.len);
    assert_memory_equal(heard->got.at, all.at, all.len);
    buf_done(&all);
    free(text);
}

/* --- many readers ------------------------------------------------------------------------- */

static void
late_readers_at_many_places_hear_the_same_bytes_and_share_the_reading(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_store(&scene->run, 1, 3000, EVENT_DONE, 300);
    for (size_t i = 0; i < READERS; i++) read_from(i, i % 3 ? i * 14 : 0)->frees = i % 2;
    size_t asked = settle();
    assert_true(scene->encoded <= 3000);
    assert_true(asked <= 30);
    for (size_t i = 0; i < READERS; i++) {
        assert_heard(&scene->heard[i], 3000, EVENT_DONE, 300);
        assert_int_equal(scene->heard[i].begun, 1);
        assert_int_equal(scene->heard[i].cause, CAUSE_FINISHED);
    }
    scene_end();
}

/* Far less room than the run needs: it is read again, and the bytes stay the same. */
static void with_little_room_they_hear_the_same(void **state) {
    (void)state;
    scene_begin(100 * KIB);
    one_run_store(&scene->run, 1, 3000, EVENT_FAILED, 300);
    for (size_t i = 0; i < 20; i++) read_from(i, i * 140);
    settle();
    assert_true(pages_held(scene->pages) <= 100 * KIB + 2 * PAGE_BYTES);
    for (size_t i = 0; i < 20; i++) {
        assert_heard(&scene->heard[i], 3000, EVENT_FAILED, 300);
        assert_int_equal(scene->heard[i].cause, CAUSE_FAILED);
    }
    scene_end();
}

static void live_readers_share_what_is_encoded_once(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_enter(&scene->run, 0, MIB);
    for (size_t i = 0; i < READERS; i++) read_from(i, 0);
    assert_int_equal(settle(), 0);
    assert_int_equal(scene->heard[0].begun, 1); /* there will be something */
    one_run_say(&scene->run, 50, 40);
    settle();
    for (size_t i = 0; i < READERS; i++) assert_heard(&scene->heard[i], 50, EVENT_TEXT, 40);
    size_t before = scene->encoded;
    one_run_say(&scene->run, 1, 40);
    settle();
    assert_int_equal(scene->encoded, before + 1);
    one_run_happen(&scene->run, EVENT_DONE);
    assert_int_equal(settle(), 0);
    for (size_t i = 0; i < READERS; i++) {
        assert_heard(&scene->heard[i], 52, EVENT_DONE, 40);
        assert_int_equal(scene->heard[i].cause, CAUSE_FINISHED);
    }
    scene_end();
}

/* Those who join late catch up from the store and the window, while the run goes on. */
static void late_readers_of_a_live_run_catch_up(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_enter(&scene->run, 0, 64 * KIB);
    one_run_say(&scene->run, 500, 1000);
    one_run_store(&scene->run, 1, 500, EVENT_TEXT, 1000);
    one_run_say(&scene->run, 5, 1000); /* and this is not stored yet */
    for (size_t i = 0; i < READERS; i++) {
        read_from(i, i * 2);
        if (i % 40 == 0) one_run_say(&scene->run, 1, 1000);
    }
    settle();
    one_run_say(&scene->run, 3, 1000);
    one_run_happen(&scene->run, EVENT_CANCELLED);
    settle();
    for (size_t i = 0; i < READERS; i++) {
        assert_heard(&scene->heard[i], 514, EVENT_CANCELLED, 1000);
        assert_int_equal(scene->heard[i].cause, CAUSE_FAILED);
    }
    scene_end();
}

/* A revived run's journal begins after what its first process wrote. */
static void a_journal_that_begins_late_is_read_after_the_stored_events(void **state) {
    (void)state;
    for (uint64_t after = 0; after <= 10; after++) {
        scene_begin(MIB);
        one_run_store(&scene->run, 1, 10, EVENT_APPROVAL, 10);
        one_run_enter(&scene->run, 10, MIB);
        struct heard *heard = read_from(0, after);
        assert_int_equal(settle(), after < 10);
        assert_int_equal(heard->ended, 0);
        one_run_happen(&scene->run, EVENT_DONE);
        settle();
        assert_int_equal(heard->ended, 1);
        assert_true(str_ends(buf_str(&heard->got), STR("<11:11>")));
        scene_end();
    }
}

/* --- a run of another replica -------------------------------------------------------------- */

static void tell_changed(void) {
    changes_tell(store_changes(scene->run.store), CHANGE_WRITTEN);
    loop_turn(scene->run.loop);
}

static void a_run_of_another_replica_is_read_as_it_is_committed(void **state) {
    (void)state;
    scene_begin_with(true, MIB);
    one_run_store(&scene->run, 1, 3, EVENT_TEXT, 10);
    struct heard *heard = read_from(0, 0);
    settle();
    assert_heard(heard, 3, EVENT_TEXT, 10);
    one_run_store(&scene->run, 4, 6, EVENT_TEXT, 10);
    tell_changed();
    settle();
    assert_heard(heard, 6, EVENT_TEXT, 10);
    one_run_store(&scene->run, 7, 9, EVENT_DONE, 10);
    tell_changed();
    settle();
    assert_heard(heard, 9, EVENT_DONE, 10);
    assert_int_equal(heard->cause, CAUSE_FINISHED);
    scene_end();
}

/* The answer was read before the commit, and the commit is heard of before the answer. */
static void a_commit_while_the_store_is_asked_is_not_missed(void **state) {
    (void)state;
    scene_begin_with(true, MIB);
    one_run_store(&scene->run, 1, 3, EVENT_TEXT, 10);
    struct heard *heard = read_from(0, 0);
    settle();
    tell_changed();
    while (!fake_store_loads(scene->run.store)) loop_turn(scene->run.loop);
    tell_changed();
    fake_store_answer(scene->run.store, 0);
    one_run_store(&scene->run, 4, 6, EVENT_DONE, 10);
    settle();
    assert_heard(heard, 6, EVENT_DONE, 10);
    assert_int_equal(heard->cause, CAUSE_FINISHED);
    scene_end();
}

/* --- turns -------------------------------------------------------------------------------- */

/* No reader gets a second turn while another waits for its first. */
static void readers_take_turns(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_store(&scene->run, 1, 3000, EVENT_DONE, 300);
    read_from(READERS - 1, 0);
    settle(); /* now it is in the pages */
    for (size_t i = 0; i < READERS - 1; i++) read_from(i, 0)->slow = true;
    size_t passes = 0, served = 0;
    while (served < READERS - 1) {
        size_t before = 0, after = 0;
        for (size_t i = 0; i < READERS - 1; i++) before += scene->heard[i].got.len;
        loop_advance(scene->run.loop, 0);
        loop_turn(scene->run.loop);
        served = 0;
        for (size_t i = 0; i < READERS - 1; i++) {
            after += scene->heard[i].got.len;
            served += scene->heard[i].got.len > 0;
            assert_true(scene->heard[i].got.len <= SHARE_TURN_BYTES);
        }
        assert_true(after - before <= 2 * (SHARE_PASS_BYTES + SHARE_TURN_BYTES));
        assert_true(++passes < 50);
    }
    assert_true(passes > 1); /* the loop went to its sockets in between */
    scene_end();
}

/* One turn of the loop has served a part of those that an event woke. */
static void readers_may_leave_while_others_have_the_event(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_enter(&scene->run, 0, MIB);
    for (size_t i = 1; i < READERS; i++) read_from(i, 0);
    settle();
    one_run_say(&scene->run, 1, 15000);
    loop_turn(scene->run.loop);
    size_t served = 0;
    for (size_t i = 0; i < READERS; i++) served += scene->heard[i].got.len > 0;
    assert_in_range(served, 1, READERS - 60);
    for (size_t i = 3; i < READERS; i += 3) close_reader(&scene->heard[i]);
    for (size_t i = 1; i < READERS; i += 3) share_end(scene->heard[i].reader, CAUSE_STOPPING);
    read_from(0, 0);
    one_run_say(&scene->run, 3, 15000);
    one_run_happen(&scene->run, EVENT_DONE);
    settle();
    assert_heard(&scene->heard[0], 5, EVENT_DONE, 15000);
    for (size_t i = 1; i < READERS; i++) {
        if (i % 3 == 1) assert_int_equal(scene->heard[i].cause, CAUSE_STOPPING);
        if (i % 3 == 1) assert_int_equal(scene->heard[i].ended, 1);
        if (i % 3 == 2) assert_heard(&scene->heard[i], 5, EVENT_DONE, 15000);
    }
    scene_end();
}

/* What is copied once for all who stand at a place is not what one elsewhere gets. */
static void readers_at_other_places_get_their_own_bytes_in_the_same_pass(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_enter(&scene->run, 0, MIB);
    one_run_say(&scene->run, 40, 700);
    for (size_t i = 0; i < READERS; i++) read_from(i, i % 7 * (i % 3))->slow = i % 5 == 4;
    settle();
    one_run_happen(&scene->run, EVENT_DONE);
    for (size_t rounds = 0; rounds < 40; rounds++) {
        settle();
        for (size_t i = 4; i < READERS; i += 5) drain(&scene->heard[i], 3000 + 100 * (i % 11));
    }
    for (size_t i = 0; i < READERS; i++) assert_heard(&scene->heard[i], 41, EVENT_DONE, 700);
    scene_end();
}

static void a_peer_that_does_not_read_holds_only_its_queue(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_store(&scene->run, 1, 40, EVENT_DONE, 128 * KIB);
    struct heard *slow = read_from(0, 0), *quick = read_from(1, 0);
    slow->slow = true;
    settle();
    assert_int_equal(slow->got.len, SHARE_TURN_BYTES); /* in the middle of an event */
    assert_heard(quick, 40, EVENT_DONE, 128 * KIB);
    pages_shrink(scene->pages, 0);
    while (!slow->ended) {
        drain(slow, 10000);
        settle();
        pages_shrink(scene->pages, 0);
    }
    assert_heard(slow, 40, EVENT_DONE, 128 * KIB);
    scene_end();
}

static void a_peer_that_stalls_is_ended(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_store(&scene->run, 1, 400, EVENT_DONE, 1000);
    struct heard *heard = read_from(0, 0);
    heard->slow = heard->frees = true;
    settle();
    loop_advance(scene->run.loop, STALL_MS - 1);
    assert_int_equal(heard->ended, 0);
    loop_advance(scene->run.loop, 1);
    assert_int_equal(heard->ended, 1);
    assert_int_equal(heard->cause, CAUSE_STALLED);
    scene_end();
}

static void a_quiet_live_run_sends_heartbeats(void **state) {
    (void)state;
    scene_begin(16 * MIB);
    one_run_enter(&scene->run, 0, MIB);
    struct heard *heard = read_from(0, 0);
    settle();
    loop_advance(scene->run.loop, HEARTBEAT_MS - 1);
    assert_int_equal(heard->heartbeats, 0);
    loop_advance(scene->run.loop, 1);
    assert_int_equal(heard->heartbeats, 1);
    loop_advance(scene->run.loop, HEARTBEAT_MS / 2);
    one_run_say(&scene->run, 1, 3);
    settle();
    loop_advance(scene->run.loop, HEARTBEAT_MS / 2);
    assert_int_equal(heard->heartbeats, 1); /* it was not quiet */
    loop_advance(scene->run.loop, HEARTBEAT_MS);
    assert_int_equal(heard->heartbeats, 2);
    scene_end();
}

/* --- what is missing, and ends ------------------------------------------------------------- */

static void nothing_is_known_of_it(void **state) {
    (void)state;
    scene_begin(MIB);
    for (size_t i = 0; i < 10; i++) read_from(i, i)->frees = i % 2;
    settle();
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(scene->heard[i].missing, 1);
        assert_false(scene->heard[i].missing_failed);
    }
    scene_end();
}

static void a_run_whose_rest_is_nowhere_breaks_off(void **state) {
    (void)state;
    scene_begin(MIB);
    one_run_store(&scene->run, 1, 10, EVENT_TEXT, 10);
    struct heard *heard = read_from(0, 0);
    settle();
    assert_heard(heard, 10, EVENT_TEXT, 10);
    assert_int_equal(heard->ended, 1);
    assert_int_equal(heard->cause, CAUSE_FAILED);
    assert_true(heard->cut);
    scene_end();
}

static void a_run_that_is_erased_while_it_is_read_breaks_off(void **state) {
    (void)state;
    for (int inside = 0; inside < 2; inside++) { /* of an event */
        scene_begin(16 * MIB);
        one_run_store(&scene->run, 1, inside ? 40 : 400, EVENT_DONE, inside ? 128 * KIB : 1000);
        struct heard *heard = read_from(0, 0);
        heard->slow = true;
        settle();
        assert_true(heard->got.len && !heard->ended);
        fake_store_erase_all(scene->run.store);
        pages_drop_all(scene->pages);
        drain(heard, heard->queued);
        settle();
        assert_int_equal(heard->ended, 1);
        assert_int_equal(heard->cause, CAUSE_FAILED);
        assert_true(heard->cut);
        scene_end();
    }
}

static void a_stream_that_ends_early_is_cut_only_inside_an_event(void **state) {
    (void)state;
    static const enum close_cause causes[] = {CAUSE_STOPPING, CAUSE_STALLED, CAUSE_DEADLINE};
    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        scene_begin(16 * MIB);
        one_run_store(&scene->run, 1, 40, EVENT_DONE, 128 * KIB);
        one_run_enter(&scene->run, 0, MIB);
        struct heard *live = read_from(1, 0);
        settle();
        share_end(live->reader, causes[i]); /* at the tail, with nothing begun */
        assert_int_equal(live->ended, 1);
        assert_false(live->cut);
        scene_end();
        scene_begin(16 * MIB);
        one_run_store(&scene->run, 1, 40, EVENT_DONE, 128 * KIB);
        struct heard *slow = read_from(0, 0);
        slow->slow = true;
        settle();
        assert_int_equal(slow->got.len, SHARE_TURN_BYTES); /* in the middle of an event */
        share_end(slow->reader, causes[i]);
        assert_int_equal(slow->ended, 1);
        assert_true(slow->cut);
        scene_end();
    }
}

static void what_was_erased_meanwhile_is_not_sent(void **state) {
    (void)state;
    scene_begin(MIB);
    one_run_store(&scene->run, 1, 10, EVENT_DONE, 10);
    struct heard *heard = read_from(0, 0);
    loop_turn(scene->run.loop);
    assert_int_equal(fake_store_loads(scene->run.store), 1);
    pages_drop_all(scene->pages);
    fake_store_answer(scene->run.store, 0); /* as it was before */
    loop_turn(scene->run.loop);
    assert_int_equal(heard->got.len, 0);
    assert_int_equal(pages_held(scene->pages), 0);
    assert_int_equal(fake_store_loads(scene->run.store), 1); /* it looks again */
    scene_end();
}

static void a_reader_that_goes_while_the_store_is_asked_hears_nothing(void **state) {
    (void)state;
    scene_begin(MIB);
    one_run_store(&scene->run, 1, 10, EVENT_DONE, 10);
    struct heard *goes = read_from(0, 0), *stays = read_from(1, 0);
    loop_turn(scene->run.loop);
    close_reader(goes);
    settle();
    assert_int_equal(goes->begun + goes->missing + goes->ended, 0);
    assert_int_equal(stays->ended, 1);
    struct heard *last = read_from(2, 3);
    pages_shrink(scene->pages, 0);
    loop_turn(scene->run.loop);
    close_reader(last); /* the last of all: the answer to its load is dropped */
    struct heard *next = read_from(3, 5);
    settle();
    assert_heard(next, 10, EVENT_DONE, 10);
    scene_end();
}

static void it_is_ended_once_wherever_it_stands(void **state) {
    (void)state;
    scene_begin(MIB);
    one_run_enter(&scene->run, 0, MIB);
    one_run_say(&scene->run, 3, 9);
    read_from(0, 0)->ends_at_once = true;
    read_from(1, 0);
    share_end(scene->heard[1].reader, CAUSE_STOPPING); /* in the queue */
    settle();
    read_from(2, 0)->frees = true;
    settle();
    share_end(scene->heard[2].reader, CAUSE_STOPPING); /* at the tail */
    share_end(scene->heard[1].reader, CAUSE_DEADLINE); /* too late */
    one_run_say(&scene->run, 3, 9);
    settle();
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(scene->heard[i].ended, 1);
        assert_int_equal(scene->heard[i].cause, CAUSE_STOPPING);
    }
    scene_end();
}

/* Live, at its beginning and at its tail, and from the store. */
static void it_may_be_ended_and_closed_from_inside_its_first_call(void **state) {
    (void)state;
    for (size_t way = 0; way < 3; way++) {
        scene_begin(MIB);
        if (way < 2) {
            one_run_enter(&scene->run, 0, MIB);
            one_run_say(&scene->run, 3, 9);
        } else {
            one_run_store(&scene->run, 1, 3, EVENT_DONE, 9);
        }
        struct heard *heard = read_from(0, way == 1 ? 3 : 0);
        heard->ends_at_once = heard->frees = true;
        read_from(1, 0);
        settle();
        assert_int_equal(heard->begun, 1);
        assert_int_equal(heard->ended, 1);
        assert_int_equal(heard->cause, CAUSE_STOPPING);
        assert_heard(&scene->heard[1], 3, way < 2 ? EVENT_TEXT : EVENT_DONE, 9);
        scene_end();
    }
}

static void a_share_may_end_before_its_loads_do(void **state) {
    (void)state;
    scene_begin(MIB);
    one_run_store(&scene->run, 1, 10, EVENT_DONE, 10);
    read_from(0, 0);
    loop_turn(scene->run.loop);
    close_reader(&scene->heard[0]);
    share_free(scene->share);
    pages_free(scene->pages);
    scene->share = NULL;
    scene->pages = NULL;
    scene_end();
}

static void every_move_is_allowed_or_refused(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "queued tail", "queued full", "queued load", "queued over", "tail queued", "tail over",
        "full queued", "full over",   "load queued", "load tail",   "load over"};
    assert_moves(share_states, SHARE_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_readers_at_many_places_hear_the_same_bytes_and_share_the_reading),
        cmocka_unit_test(with_little_room_they_hear_the_same),
        cmocka_unit_test(live_readers_share_what_is_encoded_once),
        cmocka_unit_test(late_readers_of_a_live_run_catch_up),
        cmocka_unit_test(a_journal_that_begins_late_is_read_after_the_stored_events),
        cmocka_unit_test(a_run_of_another_replica_is_read_as_it_is_committed),
        cmocka_unit_test(a_commit_while_the_store_is_asked_is_not_missed),
        cmocka_unit_test(readers_take_turns),
        cmocka_unit_test(readers_may_leave_while_others_have_the_event),
        cmocka_unit_test(readers_at_other_places_get_their_own_bytes_in_the_same_pass),
        cmocka_unit_test(a_peer_that_does_not_read_holds_only_its_queue),
        cmocka_unit_test(a_peer_that_stalls_is_ended),
        cmocka_unit_test(a_quiet_live_run_sends_heartbeats),
        cmocka_unit_test(nothing_is_known_of_it),
        cmocka_unit_test(a_run_whose_rest_is_nowhere_breaks_off),
        cmocka_unit_test(a_run_that_is_erased_while_it_is_read_breaks_off),
        cmocka_unit_test(a_stream_that_ends_early_is_cut_only_inside_an_event),
        cmocka_unit_test(what_was_erased_meanwhile_is_not_sent),
        cmocka_unit_test(a_reader_that_goes_while_the_store_is_asked_hears_nothing),
        cmocka_unit_test(it_is_ended_once_wherever_it_stands),
        cmocka_unit_test(it_may_be_ended_and_closed_from_inside_its_first_call),
        cmocka_unit_test(a_share_may_end_before_its_loads_do),
        cmocka_unit_test(every_move_is_allowed_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
