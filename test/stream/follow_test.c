#include "stream/follow.h"

#include "base/mem.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "one_run.h"
#include "store/changes.h"

#include <stdlib.h>

#define BIG (128 * KIB)

/* One reader of one run. */
struct scene {
    struct one_run run;
    struct follow *follow;
    /* The transport. */
    size_t queued, bytes_each;
    /* What came. */
    size_t events, last_stretches, begun, missing, ended;
    bool gathers; /* between gather() and leave_now() */
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

static void gather(void *ctx) {
    struct scene *scene = ctx;
    assert_false(scene->gathers);
    scene->gathers = true;
}

static void leave_now(void *ctx) {
    struct scene *scene = ctx;
    assert_true(scene->gathers);
    scene->gathers = false;
    scene->last_stretches++;
}

static const struct stream_wire wire_with_texts = {.project = project,
                                                   .project_texts = project_texts,
                                                   .gather = gather,
                                                   .leave_now = leave_now,
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
    *scene = (struct scene){.begun = 0};
    one_run_init(&scene->run);
}

static void scene_done(struct scene *scene) {
    free_follow(scene);
    one_run_answer_loads(&scene->run);
    one_run_done(&scene->run);
}

static int setup(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    scene_init(scene);
    *state = scene;
    return 0;
}

static int teardown(void **state) {
    struct scene *scene = *state;
    scene_done(scene);
    free(scene);
    return 0;
}

static void read_from(struct scene *scene, uint64_t after_seq, enum close_mode mode) {
    scene->last_seq = after_seq;
    scene->follow = follow_new(&(struct follow_options){.loop = scene->run.loop,
                                                        .directory = scene->run.directory,
                                                        .store = scene->run.store,
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
        loop_turn(scene->run.loop);
        while (fake_store_loads(scene->run.store)) {
            fake_store_answer(scene->run.store, 0);
            asked++;
            i = 0;
        }
    }
    return asked;
}

/* --- where the events are ----------------------------------------------------------------- */

static void a_live_run_is_read_from_its_journal_alone(void **state) {
    struct scene *scene = *state;
    one_run_enter(&scene->run, 0, MIB);
    read_from(scene, 0, CLOSE_DONE);
    assert_int_equal(settle(scene), 0);
    assert_int_equal(scene->begun, 1); /* there will be something */
    one_run_happen(&scene->run, EVENT_STARTED);
    one_run_say(&scene->run, 3, 5);
    assert_int_equal(scene->last_seq, 4);
    assert_int_equal(scene->last_stretches > 0, used->gather != NULL);
    one_run_happen(&scene->run, EVENT_DONE);
    assert_int_equal(settle(scene), 0);
    assert_int_equal(scene->last_seq, 5);
    assert_int_equal(scene->ended, 1);
    assert_int_equal(scene->cause, CAUSE_FINISHED);
    assert_int_equal(scene->ending.status, ERR_NONE);
    follow_end(scene->follow, CAUSE_STOPPING); /* too late */
}

/* A reader that begins at the end of a moved window reads all of it, without a gap. */
static void
what_left_the_window_comes_from_the_store_and_then_the_journal_goes_on(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene);
    one_run_enter(&scene.run, 0, 64 * KIB);
    one_run_happen(&scene.run, EVENT_STARTED);
    one_run_say(&scene.run, 99, 1000);
    one_run_store(&scene.run, 1, 100, EVENT_TEXT, 1000); /* all that is said is also kept */
    one_run_say(&scene.run, 5, 1000);                    /* and this is not yet */
    read_from(&scene, 0, CLOSE_DONE);
    assert_int_equal(settle(&scene), 1);
    assert_int_equal(scene.last_seq, 105);
    one_run_say(&scene.run, 2, 10);
    assert_int_equal(scene.last_seq, 107);
    one_run_happen(&scene.run, EVENT_DONE);
    assert_int_equal(settle(&scene), 0);
    assert_int_equal(scene.last_seq, 108);
    assert_int_equal(scene.cause, CAUSE_FINISHED);
    scene_done(&scene);
}

/* A restored run's journal begins after the events of its first process. */
static void a_journal_that_begins_late_is_read_after_the_stored_events(void **state) {
    (void)state;
    for (uint64_t after = 0; after <= 10; after++) {
        struct scene scene;
        scene_init(&scene);
        one_run_store(&scene.run, 1, 10, EVENT_APPROVAL, 10);
        one_run_enter(&scene.run, 10, MIB);
        read_from(&scene, after, CLOSE_DONE);
        assert_int_equal(settle(&scene), after < 10);
        assert_int_equal(scene.last_seq, 10);
        assert_int_equal(scene.ended, 0);
        one_run_happen(&scene.run, EVENT_CANCELLED);
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
        one_run_store(&scene.run, 1, 20, EVENT_TEXT, BIG);
        one_run_store(&scene.run, 21, 21, EVENT_TEXT, 3 * MIB); /* more than a piece */
        one_run_store(&scene.run, 22, 30, ends[i], BIG);
        read_from(&scene, 0, CLOSE_DONE);
        assert_in_range(settle(&scene), 5, 8);
        assert_int_equal(scene.last_seq, 30);
        assert_int_equal(scene.last_stretches, 0); /* more of the run follows each piece */
        assert_int_equal(scene.ended, 1);
        assert_int_equal(scene.cause, ends[i] == EVENT_DONE ? CAUSE_FINISHED : CAUSE_FAILED);
        scene_done(&scene);
    }
}

/* The next piece is not fetched while the peer does not read: one piece is all it costs. */
static void a_peer_that_does_not_read_holds_one_piece(void **state) {
    struct scene *scene = *state;
    one_run_store(&scene->run, 1, 40, EVENT_DONE, BIG);
    scene->bytes_each = BIG;
    read_from(scene, 0, CLOSE_DONE);
    assert_int_equal(settle(scene), 1);
    assert_int_equal(scene->events, 1);
    for (size_t event = 2; event <= 40; event++) {
        scene->queued = 0;
        follow_drained(scene->follow);
        settle(scene);
        assert_int_equal(scene->events, event);
    }
    assert_int_equal(scene->cause, CAUSE_FINISHED);
}

static void a_peer_that_stalls_in_a_stored_run_is_ended(void **state) {
    struct scene *scene = *state;
    one_run_store(&scene->run, 1, 40, EVENT_DONE, BIG);
    scene->bytes_each = BIG;
    read_from(scene, 0, CLOSE_DONE);
    settle(scene);
    loop_advance(scene->run.loop, STREAM_STALL_MS);
    settle(scene);
    assert_int_equal(scene->events, 1);
    assert_int_equal(scene->ended, 1);
    assert_int_equal(scene->cause, CAUSE_STALLED);
}

/* --- nothing to read ---------------------------------------------------------------------- */

static void an_unknown_run_is_not_found(void **state) {
    (void)state;
    for (size_t frees = 0; frees < 2; frees++) {
        struct scene scene;
        scene_init(&scene);
        scene.frees = frees;
        read_from(&scene, 0, CLOSE_DONE);
        assert_int_equal(settle(&scene), 1);
        assert_int_equal(scene.missing, 1);
        assert_false(scene.missing_failed);
        if (!frees) follow_end(scene.follow, CAUSE_STOPPING); /* nothing comes after it */
        scene_done(&scene);
    }
}

static void after_its_end_there_is_nothing(void **state) {
    struct scene *scene = *state;
    one_run_store(&scene->run, 1, 3, EVENT_DONE, 10);
    read_from(scene, 3, CLOSE_DONE);
    settle(scene);
    assert_int_equal(scene->missing, 1);
}

static void without_a_store_only_live_runs_are_known(void **state) {
    struct scene *scene = *state;
    struct store *store = scene->run.store;
    scene->run.store = NULL;
    read_from(scene, 0, CLOSE_DONE);
    loop_turn(scene->run.loop);
    assert_int_equal(scene->missing, 1);
    assert_false(scene->missing_failed);
    scene->run.store = store;
}

static void a_store_that_does_not_answer_says_why(void **state) {
    struct scene *scene = *state;
    one_run_store(&scene->run, 1, 3, EVENT_DONE, 10);
    read_from(scene, 0, CLOSE_DONE);
    loop_turn(scene->run.loop);
    fake_store_refuse(scene->run.store, 0, ERR_UNAVAILABLE);
    settle(scene);
    assert_int_equal(scene->missing, 1);
    assert_true(scene->missing_failed);
}

static void a_run_whose_rest_is_nowhere_breaks_off(void **state) {
    struct scene *scene = *state;
    one_run_store(&scene->run, 1, 3, EVENT_TEXT, 10); /* and its end was never written */
    read_from(scene, 0, CLOSE_DONE);
    settle(scene);
    assert_int_equal(scene->last_seq, 3);
    assert_int_equal(scene->ended, 1);
    assert_int_equal(scene->cause, CAUSE_FAILED);
    assert_int_equal(scene->ending.status, ERR_UNAVAILABLE);
}

/* --- leaving ------------------------------------------------------------------------------ */

static void a_reader_that_goes_while_the_store_is_asked_hears_nothing(void **state) {
    (void)state;
    for (size_t turns = 0; turns < 3; turns++) {
        struct scene scene;
        scene_init(&scene);
        one_run_store(&scene.run, 1, 3, EVENT_DONE, 10);
        read_from(&scene, 0, CLOSE_DONE);
        for (size_t i = 0; i < turns; i++) loop_turn(scene.run.loop);
        if (turns == 2) fake_store_answer(scene.run.store, 0); /* the answer is on its way */
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
    static const enum err_code statuses[] = {ERR_CANCELLED, ERR_DEADLINE_EXCEEDED,
                                             ERR_RESOURCE_EXHAUSTED};
    for (size_t i = 0; i < 2 * 3 * ARRAY_LEN(causes); i++) {
        struct scene scene;
        size_t turns = i / 2 % 3;
        enum close_cause cause = causes[i / 6];
        scene_init(&scene);
        one_run_store(&scene.run, 1, 3, EVENT_APPROVAL, 10);
        scene.frees = i % 2;
        read_from(&scene, 0, CLOSE_DONE);
        for (size_t t = 0; t < turns; t++) loop_turn(scene.run.loop);
        if (turns == 2) fake_store_answer(scene.run.store, 0);
        follow_end(scene.follow, cause);
        assert_int_equal(scene.ended, 1);
        assert_int_equal(scene.cause, cause);
        if (i / 6 < ARRAY_LEN(statuses)) assert_int_equal(scene.ending.status, statuses[i / 6]);
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
        one_run_enter(&scene.run, 0, MIB);
        one_run_happen(&scene.run, EVENT_STARTED);
        read_from(&scene, 0, CLOSE_DONE);
        settle(&scene);
        follow_end(scene.follow, CAUSE_STOPPING);
        assert_int_equal(scene.ended, 1);
        assert_int_equal(scene.cause, CAUSE_STOPPING);
        assert_int_not_equal(scene.ending.status, ERR_NONE);
        one_run_happen(&scene.run, EVENT_DONE);
        settle(&scene);
        assert_int_equal(scene.events, 1);
        scene_done(&scene);
    }
}

/* A run that is alive, one in the store, and one of another replica that has no more events yet. */
static void it_may_be_ended_and_freed_from_inside_its_first_call(void **state) {
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct scene scene;
        bool elsewhere = i >= 4;
        scene_init(&scene);
        scene.ends_at_once = true;
        scene.frees = i % 2;
        if (elsewhere) fake_store_share(scene.run.store);
        if (i < 2) {
            one_run_enter(&scene.run, 0, MIB);
        } else {
            one_run_store(&scene.run, 1, 3, elsewhere ? EVENT_TEXT : EVENT_DONE, 10);
        }
        read_from(&scene, elsewhere ? 3 : 0, CLOSE_DONE);
        settle(&scene);
        assert_int_equal(scene.ended, 1);
        assert_int_equal(scene.events, 0);
        assert_int_equal(scene.cause, CAUSE_STOPPING);
        scene_done(&scene);
    }
}

static void tell_changed(struct scene *scene) {
    changes_tell(store_changes(scene->run.store), CHANGE_WRITTEN);
    settle(scene);
}

/* Each change would begin the reading again, and with it the time that the peer has. */
static void a_run_that_came_from_another_replica_is_then_read_here_alone(void **state) {
    struct scene *scene = *state;
    fake_store_share(scene->run.store);
    one_run_store(&scene->run, 1, 3, EVENT_TEXT, 10);
    scene->bytes_each = STREAM_HIGH_BYTES;
    read_from(scene, 3, CLOSE_DONE);
    settle(scene);
    assert_int_equal(scene->begun, 1);
    one_run_enter(&scene->run, 3, MIB);
    tell_changed(scene);
    one_run_say(&scene->run, 2, 10);
    settle(scene);
    assert_int_equal(scene->last_seq, 4);
    loop_advance(scene->run.loop, STREAM_STALL_MS - 1);
    tell_changed(scene);
    assert_int_equal(scene->ended, 0);
    loop_advance(scene->run.loop, 1);
    settle(scene);
    assert_int_equal(scene->ended, 1);
    assert_int_equal(scene->cause, CAUSE_STALLED);
}

/* The run may end and leave the directory while a reader is behind: its journal is held. */
static void a_run_that_ends_is_still_read_to_its_end(void **state) {
    struct scene *scene = *state;
    one_run_enter(&scene->run, 0, 16 * KIB);
    scene->bytes_each = STREAM_HIGH_BYTES;
    one_run_happen(&scene->run, EVENT_STARTED);
    read_from(scene, 0, CLOSE_DONE);
    settle(scene);
    one_run_say(&scene->run, 50, 1000);
    one_run_happen(&scene->run, EVENT_DONE);
    settle(scene);
    one_run_leave(&scene->run);
    assert_int_equal(scene->events, 1);
    while (!scene->ended) {
        scene->queued = 0;
        follow_drained(scene->follow);
        assert_int_equal(settle(scene), 0);
    }
    assert_int_equal(scene->last_seq, 52);
    assert_int_equal(scene->cause, CAUSE_FINISHED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_live_run_is_read_from_its_journal_alone),
        cmocka_unit_test(
            what_left_the_window_comes_from_the_store_and_then_the_journal_goes_on),
        cmocka_unit_test(a_journal_that_begins_late_is_read_after_the_stored_events),
        cmocka_unit_test(a_long_run_of_long_ago_comes_in_pieces_and_ends_with_its_own_end),
        TEST(a_peer_that_does_not_read_holds_one_piece),
        TEST(a_peer_that_stalls_in_a_stored_run_is_ended),
        cmocka_unit_test(an_unknown_run_is_not_found),
        TEST(after_its_end_there_is_nothing),
        TEST(without_a_store_only_live_runs_are_known),
        TEST(a_store_that_does_not_answer_says_why),
        TEST(a_run_whose_rest_is_nowhere_breaks_off),
        cmocka_unit_test(a_reader_that_goes_while_the_store_is_asked_hears_nothing),
        cmocka_unit_test(a_reader_that_is_ended_is_ended_once_wherever_it_stands),
        cmocka_unit_test(a_live_stream_is_ended_by_its_cause_and_may_free_itself),
        cmocka_unit_test(it_may_be_ended_and_freed_from_inside_its_first_call),
        TEST(a_run_that_came_from_another_replica_is_then_read_here_alone),
        TEST(a_run_that_ends_is_still_read_to_its_end),
    };
    int failed = cmocka_run_group_tests_name("event by event", tests, NULL, NULL);
    used = &wire_with_texts;
    return failed + cmocka_run_group_tests_name("texts at once", tests, NULL, NULL);
}
