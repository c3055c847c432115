#include "stream/follow.h"

#include "base/mem.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"

#define RUN 77
#define BIG (128 * KIB)

/* One reader of one run: a live journal, a store, or both, as the test says. */
struct scene {
    struct loop *loop;
    struct directory *directory;
    struct store *store;
    struct journal *journal; /* NULL: not alive */
    struct live live;
    struct follow *follow;
    struct store_write writes[64];
    struct store_row rows[64];
    size_t write_count;
    /* The transport. */
    size_t queued, bytes_each;
    /* What came. */
    size_t events, begun, missing, ended;
    uint64_t last_seq;
    bool missing_failed, frees;
    bool ends_at_once; /* from inside begun() */
    struct close_ending ending;
    enum close_cause cause;
};

static void project(const struct event *event, enum close_frame frame, void *ctx) {
    struct scene *scene = ctx;
    (void)frame;
    assert_int_equal(scene->begun, 1);
    assert_int_equal(scene->ended + scene->missing, 0);
    assert_int_equal(event->seq, scene->last_seq + 1); /* no gap, nothing twice */
    scene->last_seq = event->seq;
    scene->events++;
    scene->queued += scene->bytes_each;
}

static size_t queued(void *ctx) {
    return ((struct scene *)ctx)->queued;
}

static void wake_at(size_t low, void *ctx) {
    (void)ctx;
    assert_int_equal(low, STREAM_LOW_BYTES);
}

static uint64_t stalled_ms(void *ctx) {
    (void)ctx;
    return UINT64_MAX;
}

static void free_follow(struct scene *scene) {
    follow_free(scene->follow);
    scene->follow = NULL;
}

static void ended(struct close_ending ending, enum close_cause cause, const struct event *last,
                  void *ctx) {
    struct scene *scene = ctx;
    (void)last;
    assert_int_equal(scene->ended + scene->missing, 0); /* the last call of all */
    scene->ended++;
    scene->ending = ending;
    scene->cause = cause;
    if (scene->frees) free_follow(scene);
}

static const struct stream_wire wire = {.project = project,
                                        .queued = queued,
                                        .wake_at = wake_at,
                                        .stalled_ms = stalled_ms,
                                        .ended = ended};

/* The same for texts that come at once. */
static void project_texts(struct str texts, size_t count, void *ctx) {
    struct scene *scene = ctx;
    struct str agent, text;
    assert_int_equal(scene->begun, 1);
    assert_int_equal(scene->ended + scene->missing, 0);
    scene->last_seq += count;
    scene->events += count;
    scene->queued += count * scene->bytes_each;
    for (; count > 0; count--) assert_true(event_take_text(&texts, &agent, &text));
    assert_int_equal(texts.len, 0);
}

static const struct stream_wire wire_with_texts = {.project = project,
                                                   .project_texts = project_texts,
                                                   .queued = queued,
                                                   .wake_at = wake_at,
                                                   .stalled_ms = stalled_ms,
                                                   .ended = ended};

static const struct stream_wire *used = &wire; /* all tests run with both */

static void begun(void *ctx) {
    struct scene *scene = ctx;
    assert_int_equal(scene->events + scene->ended + scene->missing, 0);
    scene->begun++;
    if (scene->ends_at_once) follow_end(scene->follow, CAUSE_STOPPING);
}

static void missing(const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    assert_int_equal(scene->begun + scene->ended + scene->missing, 0);
    scene->missing++;
    scene->missing_failed = failed != NULL;
    if (scene->frees) free_follow(scene);
}

/* --- the scene ---------------------------------------------------------------------------- */

static void scene_init(struct scene *scene) {
    *scene = (struct scene){
        .loop = loop_new_fake(), .directory = directory_new(), .store = fake_store_new()};
    fake_store_always_commit(scene->store);
}

static void leave(struct scene *scene) {
    if (!scene->journal) return;
    directory_remove(scene->directory, &scene->live);
    journal_leave(scene->journal);
    journal_unref(scene->journal);
    scene->journal = NULL;
}

static void scene_done(struct scene *scene) {
    free_follow(scene);
    while (fake_store_loads(scene->store)) fake_store_answer(scene->store, 0);
    loop_turn(scene->loop);
    leave(scene);
    for (size_t i = 0; i < scene->write_count; i++) buf_done(&scene->rows[i].bytes);
    directory_free(scene->directory);
    fake_store_free(scene->store);
    loop_free(scene->loop);
}

/* The run is alive in this process, from behind `after_seq` on. */
static void enter(struct scene *scene, uint64_t after_seq, size_t window) {
    scene->journal = journal_new(&(struct journal_options){.loop = scene->loop,
                                                           .run = RUN,
                                                           .after_seq = after_seq,
                                                           .window_max_bytes = window,
                                                           .pace_max_bytes = MIB});
    scene->live = (struct live){.run = RUN, .journal = scene->journal, .loop = scene->loop};
    list_init(&scene->live.link);
    directory_add(scene->directory, &scene->live);
}

static struct event event_of(enum event_kind kind, struct str text) {
    struct event event = {.kind = kind, .agent = STR("a")};
    if (kind == EVENT_TEXT) event.text.text = text;
    if (kind == EVENT_FAILED) event.failed.code = ERR_ABORTED;
    return event;
}

static void happen(struct scene *scene, enum event_kind kind) {
    struct event event = event_of(kind, STR("word"));
    journal_append(scene->journal, &event);
}

static void say(struct scene *scene, size_t count, size_t len) {
    char *text = mem_alloc(len);
    memset(text, 'x', len);
    for (size_t i = 0; i < count; i++) {
        struct event event = event_of(EVENT_TEXT, str_of(text, len));
        journal_append(scene->journal, &event);
        loop_turn(scene->loop);
    }
    free(text);
}

static void on_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    (void)ctx;
    assert_null(failed);
}

/* Put the events first..last into the log, in one row; the last is `kind`. */
static void store(struct scene *scene, uint64_t first, uint64_t last, enum event_kind kind,
                  size_t len) {
    struct buf events;
    char *text = mem_alloc(len);
    struct store_row *row = &scene->rows[scene->write_count];
    struct store_write *write = &scene->writes[scene->write_count++];
    memset(text, 'x', len);
    buf_init(&events, 32 * MIB);
    for (uint64_t seq = first; seq <= last; seq++) {
        struct event event = event_of(seq == last ? kind : EVENT_TEXT, str_of(text, len));
        assert_true(event_encode(&event, &events));
    }
    row->run = RUN;
    buf_init(&row->bytes, 32 * MIB);
    assert_true(store_section_append(&row->bytes, RUN, first, buf_str(&events)));
    *write = (struct store_write){
        .rows = row, .row_count = 1, .home = scene->loop, .on_written = on_written};
    store_write(scene->store, write);
    loop_turn(scene->loop);
    buf_done(&events);
    free(text);
}

static void read_from(struct scene *scene, uint64_t after_seq, enum close_mode mode) {
    scene->last_seq = after_seq;
    scene->follow = follow_new(&(struct follow_options){.loop = scene->loop,
                                                        .directory = scene->directory,
                                                        .store = scene->store,
                                                        .run = RUN,
                                                        .after_seq = after_seq,
                                                        .mode = mode,
                                                        .wire = used,
                                                        .begun = begun,
                                                        .missing = missing,
                                                        .ctx = scene});
    assert_int_equal(scene->begun + scene->missing, 0); /* not before it returns */
}

/* Turn until nothing moves; says how often the store was asked. */
static size_t settle(struct scene *scene) {
    size_t asked = 0;
    for (size_t i = 0; i < 8; i++) {
        loop_turn(scene->loop);
        while (fake_store_loads(scene->store)) {
            fake_store_answer(scene->store, 0);
            asked++;
            i = 0;
        }
    }
    return asked;
}

/* --- where the events are ----------------------------------------------------------------- */

static void a_live_run_is_read_from_its_journal_alone(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    enter(&scene, 0, MIB);
    read_from(&scene, 0, CLOSE_DONE);
    assert_int_equal(settle(&scene), 0);
    assert_int_equal(scene.begun, 1); /* there will be something */
    happen(&scene, EVENT_STARTED);
    say(&scene, 3, 5);
    assert_int_equal(scene.last_seq, 4);
    happen(&scene, EVENT_DONE);
    assert_int_equal(settle(&scene), 0);
    assert_int_equal(scene.last_seq, 5);
    assert_int_equal(scene.ended, 1);
    assert_int_equal(scene.cause, CAUSE_FINISHED);
    assert_int_equal(scene.ending.status, ERR_NONE);
    follow_end(scene.follow, CAUSE_STOPPING); /* too late */
    scene_done(&scene);
}

/* Whoever begins at the end of a window that has moved on reads all of it, without a gap. */
static void
what_left_the_window_comes_from_the_store_and_then_the_journal_goes_on(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    enter(&scene, 0, 64 * KIB);
    happen(&scene, EVENT_STARTED);
    say(&scene, 99, 1000);
    store(&scene, 1, 100, EVENT_TEXT, 1000); /* all that is said is also kept */
    say(&scene, 5, 1000);                    /* and this is not yet */
    read_from(&scene, 0, CLOSE_DONE);
    assert_int_equal(settle(&scene), 1);
    assert_int_equal(scene.last_seq, 105);
    say(&scene, 2, 10);
    assert_int_equal(scene.last_seq, 107);
    happen(&scene, EVENT_DONE);
    assert_int_equal(settle(&scene), 0);
    assert_int_equal(scene.last_seq, 108);
    assert_int_equal(scene.cause, CAUSE_FINISHED);
    scene_done(&scene);
}

/* A revived run's journal begins behind what its first process wrote. */
static void a_journal_that_begins_late_is_read_behind_what_is_stored(void **state) {
    (void)state;
    for (uint64_t after = 0; after <= 10; after++) {
        struct scene scene;
        scene_init(&scene);
        store(&scene, 1, 10, EVENT_APPROVAL, 10);
        enter(&scene, 10, MIB);
        read_from(&scene, after, CLOSE_DONE);
        assert_int_equal(settle(&scene), after < 10);
        assert_int_equal(scene.last_seq, 10);
        assert_int_equal(scene.ended, 0);
        happen(&scene, EVENT_CANCELLED);
        settle(&scene);
        assert_int_equal(scene.last_seq, 11);
        assert_int_equal(scene.ended, 1);
        scene_done(&scene);
    }
}

static void a_long_run_of_long_ago_comes_in_pieces_and_ends_with_its_own_end(void **state) {
    (void)state;
    static const enum event_kind ends[] = {EVENT_DONE, EVENT_FAILED, EVENT_CANCELLED};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct scene scene;
        scene_init(&scene);
        store(&scene, 1, 20, EVENT_TEXT, BIG);
        store(&scene, 21, 21, EVENT_TEXT, 3 * MIB); /* more than a piece */
        store(&scene, 22, 30, ends[i], BIG);
        read_from(&scene, 0, CLOSE_DONE);
        assert_in_range(settle(&scene), 5, 8);
        assert_int_equal(scene.last_seq, 30);
        assert_int_equal(scene.ended, 1);
        assert_int_equal(scene.cause, ends[i] == EVENT_DONE ? CAUSE_FINISHED : CAUSE_FAILED);
        scene_done(&scene);
    }
}

/* The next piece is not fetched while the peer does not read: one piece is all it costs. */
static void a_peer_that_does_not_read_holds_one_piece(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    store(&scene, 1, 40, EVENT_DONE, BIG);
    scene.bytes_each = BIG;
    read_from(&scene, 0, CLOSE_DONE);
    assert_int_equal(settle(&scene), 1);
    assert_int_equal(scene.events, 1);
    for (size_t event = 2; event <= 40; event++) {
        scene.queued = 0;
        follow_drained(scene.follow);
        settle(&scene);
        assert_int_equal(scene.events, event);
    }
    assert_int_equal(scene.cause, CAUSE_FINISHED);
    scene_done(&scene);
}

static void a_peer_that_stalls_in_a_stored_run_is_ended(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    store(&scene, 1, 40, EVENT_DONE, BIG);
    scene.bytes_each = BIG;
    read_from(&scene, 0, CLOSE_DONE);
    settle(&scene);
    loop_advance(scene.loop, STREAM_STALL_MS);
    settle(&scene);
    assert_int_equal(scene.events, 1);
    assert_int_equal(scene.ended, 1);
    assert_int_equal(scene.cause, CAUSE_STALLED);
    scene_done(&scene);
}

/* --- nothing to read ---------------------------------------------------------------------- */

static void nobody_knows_it(void **state) {
    (void)state;
    for (size_t frees = 0; frees < 2; frees++) {
        struct scene scene;
        scene_init(&scene);
        scene.frees = frees;
        read_from(&scene, 0, CLOSE_DONE);
        assert_int_equal(settle(&scene), 1);
        assert_int_equal(scene.missing, 1);
        assert_false(scene.missing_failed);
        if (!frees) follow_end(scene.follow, CAUSE_STOPPING); /* nothing comes behind it */
        scene_done(&scene);
    }
}

static void behind_its_end_there_is_nothing(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    store(&scene, 1, 3, EVENT_DONE, 10);
    read_from(&scene, 3, CLOSE_DONE);
    settle(&scene);
    assert_int_equal(scene.missing, 1);
    scene_done(&scene);
}

static void without_a_store_only_live_runs_are_known(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    struct store *store = scene.store;
    scene.store = NULL;
    read_from(&scene, 0, CLOSE_DONE);
    loop_turn(scene.loop);
    assert_int_equal(scene.missing, 1);
    assert_false(scene.missing_failed);
    scene.store = store;
    scene_done(&scene);
}

static void a_store_that_does_not_answer_says_why(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    store(&scene, 1, 3, EVENT_DONE, 10);
    read_from(&scene, 0, CLOSE_DONE);
    loop_turn(scene.loop);
    fake_store_refuse(scene.store, 0, ERR_UNAVAILABLE);
    settle(&scene);
    assert_int_equal(scene.missing, 1);
    assert_true(scene.missing_failed);
    scene_done(&scene);
}

static void a_run_whose_rest_is_nowhere_breaks_off(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    store(&scene, 1, 3, EVENT_TEXT, 10); /* and its end was never written */
    read_from(&scene, 0, CLOSE_DONE);
    settle(&scene);
    assert_int_equal(scene.last_seq, 3);
    assert_int_equal(scene.ended, 1);
    assert_int_equal(scene.cause, CAUSE_FAILED);
    assert_int_equal(scene.ending.status, ERR_UNAVAILABLE);
    scene_done(&scene);
}

/* --- leaving ------------------------------------------------------------------------------ */

static void a_reader_that_goes_while_the_store_is_asked_hears_nothing(void **state) {
    (void)state;
    for (size_t turns = 0; turns < 3; turns++) {
        struct scene scene;
        scene_init(&scene);
        store(&scene, 1, 3, EVENT_DONE, 10);
        read_from(&scene, 0, CLOSE_DONE);
        for (size_t i = 0; i < turns; i++) loop_turn(scene.loop);
        if (turns == 2) fake_store_answer(scene.store, 0); /* the answer is on its way */
        free_follow(&scene);
        settle(&scene);
        assert_int_equal(scene.begun + scene.missing + scene.ended, 0);
        scene_done(&scene);
    }
}

static void a_reader_that_is_ended_is_ended_once_wherever_it_stands(void **state) {
    (void)state;
    static const enum close_cause causes[] = {CAUSE_LEFT, CAUSE_DEADLINE, CAUSE_STALLED,
                                              CAUSE_STOPPING};
    static const enum err_code told[] = {ERR_CANCELLED, ERR_DEADLINE_EXCEEDED,
                                         ERR_RESOURCE_EXHAUSTED};
    for (size_t i = 0; i < 2 * 3 * ARRAY_LEN(causes); i++) {
        struct scene scene;
        size_t turns = i / 2 % 3;
        enum close_cause cause = causes[i / 6];
        scene_init(&scene);
        store(&scene, 1, 3, EVENT_APPROVAL, 10);
        scene.frees = i % 2;
        read_from(&scene, 0, CLOSE_DONE);
        for (size_t t = 0; t < turns; t++) loop_turn(scene.loop);
        if (turns == 2) fake_store_answer(scene.store, 0);
        follow_end(scene.follow, cause);
        assert_int_equal(scene.ended, 1);
        assert_int_equal(scene.cause, cause);
        if (i / 6 < ARRAY_LEN(told)) assert_int_equal(scene.ending.status, told[i / 6]);
        settle(&scene);
        if (!scene.frees) follow_end(scene.follow, cause);
        assert_int_equal(scene.begun + scene.missing, 0);
        scene_done(&scene);
    }
}

static void a_live_stream_is_ended_by_its_cause_and_may_free_itself(void **state) {
    (void)state;
    for (size_t frees = 0; frees < 2; frees++) {
        struct scene scene;
        scene_init(&scene);
        scene.frees = frees;
        enter(&scene, 0, MIB);
        happen(&scene, EVENT_STARTED);
        read_from(&scene, 0, CLOSE_DONE);
        settle(&scene);
        follow_end(scene.follow, CAUSE_STOPPING);
        assert_int_equal(scene.ended, 1);
        assert_int_equal(scene.cause, CAUSE_STOPPING);
        assert_int_not_equal(scene.ending.status, ERR_NONE);
        happen(&scene, EVENT_DONE);
        settle(&scene);
        assert_int_equal(scene.events, 1);
        scene_done(&scene);
    }
}

static void it_may_be_ended_and_freed_from_inside_its_first_call(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct scene scene;
        scene_init(&scene);
        scene.ends_at_once = true;
        scene.frees = i % 2;
        if (i < 2) {
            enter(&scene, 0, MIB);
        } else {
            store(&scene, 1, 3, EVENT_DONE, 10);
        }
        read_from(&scene, 0, CLOSE_DONE);
        settle(&scene);
        assert_int_equal(scene.ended, 1);
        assert_int_equal(scene.events, 0);
        assert_int_equal(scene.cause, CAUSE_STOPPING);
        scene_done(&scene);
    }
}

/* The run may end and leave the directory while a reader is behind: its journal is held. */
static void a_run_that_ends_is_still_read_to_its_end(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    enter(&scene, 0, 16 * KIB);
    scene.bytes_each = STREAM_HIGH_BYTES;
    happen(&scene, EVENT_STARTED);
    read_from(&scene, 0, CLOSE_DONE);
    settle(&scene);
    say(&scene, 50, 1000);
    happen(&scene, EVENT_DONE);
    settle(&scene);
    leave(&scene);
    assert_int_equal(scene.events, 1);
    while (!scene.ended) {
        scene.queued = 0;
        follow_drained(scene.follow);
        assert_int_equal(settle(&scene), 0);
    }
    assert_int_equal(scene.last_seq, 52);
    assert_int_equal(scene.cause, CAUSE_FINISHED);
    scene_done(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_live_run_is_read_from_its_journal_alone),
        cmocka_unit_test(
            what_left_the_window_comes_from_the_store_and_then_the_journal_goes_on),
        cmocka_unit_test(a_journal_that_begins_late_is_read_behind_what_is_stored),
        cmocka_unit_test(a_long_run_of_long_ago_comes_in_pieces_and_ends_with_its_own_end),
        cmocka_unit_test(a_peer_that_does_not_read_holds_one_piece),
        cmocka_unit_test(a_peer_that_stalls_in_a_stored_run_is_ended),
        cmocka_unit_test(nobody_knows_it),
        cmocka_unit_test(behind_its_end_there_is_nothing),
        cmocka_unit_test(without_a_store_only_live_runs_are_known),
        cmocka_unit_test(a_store_that_does_not_answer_says_why),
        cmocka_unit_test(a_run_whose_rest_is_nowhere_breaks_off),
        cmocka_unit_test(a_reader_that_goes_while_the_store_is_asked_hears_nothing),
        cmocka_unit_test(a_reader_that_is_ended_is_ended_once_wherever_it_stands),
        cmocka_unit_test(a_live_stream_is_ended_by_its_cause_and_may_free_itself),
        cmocka_unit_test(it_may_be_ended_and_freed_from_inside_its_first_call),
        cmocka_unit_test(a_run_that_ends_is_still_read_to_its_end),
    };
    int failed = cmocka_run_group_tests_name("event by event", tests, NULL, NULL);
    used = &wire_with_texts;
    return failed + cmocka_run_group_tests_name("texts at once", tests, NULL, NULL);
}
