/* An answer to a run of another replica: what its sender is told, whatever happens to its row and
 * to the run, and in whichever order. */
#include "session/posted_answer.h"

#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "helper/assert_str.h"
#include "session/key_leases.h"
#include "store/changes.h"
#include "wire/event.h"

#include <stdio.h>

#define WAIT_MS 30000
#define RUN 7
#define SEQ 2

struct scene {
    struct sessions s;
    struct posted_answer *posted; /* NULL: it has reported */
    size_t reports;
    enum err_code refused; /* ERR_NONE: the run goes on */
    char why[POSTED_WHY_BYTES];
};

static void append(struct scene *scene, uint64_t seq, struct event event) {
    struct buf events;
    buf_init(&events, 4 * KIB);
    assert_true(event_encode(&event, &events));
    fake_store_put(scene->s.store, RUN, seq, buf_str(&events));
    buf_done(&events);
}

static void open_scene(struct scene *scene) {
    *scene = (struct scene){.s = sessions_open(WITH_SHARED_STORE)};
    session_table_wait(scene->s.table, WAIT_MS);
    append(scene, 1, (struct event){.kind = EVENT_TEXT, .text = {STR("x")}});
    append(
        scene, 2,
        (struct event){
            .kind = EVENT_APPROVAL,
            .approval = {.call_id = STR("c"), .question = STR("May I?"), .args = STR("{}")}});
}

static void settle(struct scene *scene) {
    for (size_t i = 0; i < 12; i++) {
        while (fake_store_loads(scene->s.store)) fake_store_answer(scene->s.store, 0);
        loop_turn(scene->s.loop);
    }
}

static void close_scene(struct scene *scene) {
    fake_store_always_commit(scene->s.store);
    posted_answer_cancel(scene->posted);
    while (fake_store_tasks(scene->s.store)) fake_store_run(scene->s.store, 0);
    settle(scene);
    session_table_leave(scene->s.table, scene->s.loop);
    settle(scene);
    sessions_shut(&scene->s);
}

static void on_end(const struct err *refused, void *ctx) {
    struct scene *scene = ctx;
    scene->posted = NULL;
    scene->reports++;
    scene->refused = refused ? refused->code : ERR_NONE;
    snprintf(scene->why, sizeof(scene->why), "%s", refused ? refused->text : "");
}

static void post(struct scene *scene) {
    char text[] = "yes", key[] = "k";
    scene->posted =
        posted_answer_start(&(struct posted_answer_options){.loop = scene->s.loop,
                                                            .sessions = scene->s.table,
                                                            .workspace = STR("w"),
                                                            .words = {.run = RUN,
                                                                      .seq = SEQ,
                                                                      .text = str_from(text),
                                                                      .key = str_from(key),
                                                                      .key_user = STR("u"),
                                                                      .print = STR("p")},
                                                            .on_end = on_end,
                                                            .ctx = scene});
    memset(text, '#', sizeof(text));
    memset(key, '#', sizeof(key));
}

static int64_t rows(struct scene *scene) {
    return fake_store_number(scene->s.store, "SELECT count(*) FROM posted");
}

/* --- what happens meanwhile --------------------------------------------------------------- */

enum happening { TAKEN, RELEASED, REFUSED, KEY_TAKEN, UNDECIDED, DECIDED, LATE, HAPPENINGS };

/* Time passes in steps, so that what a timer asks of the store is answered. */
static void pass(struct scene *scene, uint64_t ms) {
    for (uint64_t passed = 0; passed < ms; passed += 500) {
        loop_advance(scene->s.loop, 500);
        settle(scene);
    }
}

/* As another replica's statements do (store/posted.c). */
static void happen(struct scene *scene, enum happening what) {
    static const char *const sql[HAPPENINGS] = {
        [TAKEN] = "UPDATE posted SET taken = 2 WHERE taken = 0 AND refused IS NULL",
        [RELEASED] = "UPDATE posted SET taken = 0 WHERE taken = 2 AND refused IS NULL",
        [REFUSED] = "UPDATE posted SET refusal = 1, refused = 'misfit' WHERE refused IS NULL",
        [KEY_TAKEN] = "UPDATE posted SET refusal = 2, refused = 'key' WHERE refused IS NULL",
        [UNDECIDED] = "UPDATE posted SET refusal = 3, refused = '?' WHERE refused IS NULL",
    };
    if (what == LATE) {
        pass(scene, WAIT_MS + 2000);
        return;
    }
    if (what == DECIDED)
        append(scene, SEQ + 1, (struct event){.kind = EVENT_TEXT, .text = {STR("on")}});
    else
        fake_store_sql(scene->s.store, sql[what]);
    changes_tell(store_changes(scene->s.store), CHANGE_POSTED | CHANGE_WRITTEN);
    settle(scene);
}

#define NOTHING ((enum err_code) - 1) /* nothing is reported */

static const enum err_code first_report[HAPPENINGS] = {
    [TAKEN] = NOTHING,
    [RELEASED] = NOTHING,
    [REFUSED] = ERR_INVALID_ARGUMENT,
    [KEY_TAKEN] = ERR_ALREADY_EXISTS,
    [UNDECIDED] = ERR_FAILED_PRECONDITION,
    [DECIDED] = ERR_NONE,
    [LATE] = ERR_UNAVAILABLE,
};

/* What was taken is waited for, however late it is. */
static enum err_code report_of(enum happening first, enum happening second) {
    if (first_report[first] != NOTHING) return first_report[first];
    return first == TAKEN && second == LATE ? NOTHING : first_report[second];
}

static void what_happens_first_is_reported_once_and_nothing_stays(void **state) {
    (void)state;
    for (enum happening first = 0; first < HAPPENINGS; first++) {
        for (enum happening second = 0; second < HAPPENINGS; second++) {
            struct scene scene;
            open_scene(&scene);
            post(&scene);
            settle(&scene);
            assert_int_equal(rows(&scene), 1);
            happen(&scene, first);
            happen(&scene, second);
            enum err_code expected = report_of(first, second);
            assert_int_equal(scene.reports, expected == NOTHING ? 0 : 1);
            if (expected != NOTHING) assert_int_equal(scene.refused, expected);
            assert_int_equal(rows(&scene), expected == NOTHING ? 1 : 0);
            close_scene(&scene);
        }
    }
}

/* Its taker has died, or could not give it. */
static void
one_that_was_taken_when_it_was_late_is_withdrawn_when_it_is_open_again(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    post(&scene);
    settle(&scene);
    happen(&scene, TAKEN);
    happen(&scene, LATE);
    assert_int_equal(scene.reports, 0);
    happen(&scene, RELEASED);
    pass(&scene, 2000);
    assert_int_equal(scene.reports, 1);
    assert_int_equal(scene.refused, ERR_UNAVAILABLE);
    close_scene(&scene);
}

/* The notification was lost. */
static void a_decision_that_was_not_heard_of_is_found_when_it_is_late(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    post(&scene);
    settle(&scene);
    append(&scene, SEQ + 1, (struct event){.kind = EVENT_TEXT, .text = {STR("on")}});
    settle(&scene);
    assert_int_equal(scene.reports, 0);
    happen(&scene, LATE);
    assert_int_equal(scene.reports, 1);
    assert_int_equal(scene.refused, ERR_NONE);
    close_scene(&scene);
}

static void words_that_are_kept_for_the_model_decide_nothing(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    post(&scene);
    append(&scene, SEQ + 1, (struct event){.kind = EVENT_ITEM, .item = {.type = STR("aside")}});
    changes_tell(store_changes(scene.s.store), CHANGE_WRITTEN);
    settle(&scene);
    assert_int_equal(scene.reports, 0);
    append(&scene, SEQ + 2, (struct event){.kind = EVENT_TEXT, .text = {STR("on")}});
    changes_tell(store_changes(scene.s.store), CHANGE_WRITTEN);
    settle(&scene);
    assert_int_equal(scene.reports, 1);
    assert_int_equal(scene.refused, ERR_NONE);
    close_scene(&scene);
}

/* --- the store ---------------------------------------------------------------------------- */

/* Its outcome unknown, it may have been written. */
static void an_answer_that_cannot_be_sent_is_refused_unless_it_may_be_there(void **state) {
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct scene scene;
        open_scene(&scene);
        fake_store_ask_me(scene.s.store);
        post(&scene);
        fake_store_fail(scene.s.store, 0, known ? ERR_UNAVAILABLE : ERR_OUTCOME_UNKNOWN);
        fake_store_always_commit(scene.s.store);
        settle(&scene);
        assert_int_equal(scene.reports, known);
        if (!known) happen(&scene, LATE);
        assert_int_equal(scene.reports, 1);
        assert_int_equal(scene.refused, ERR_UNAVAILABLE);
        close_scene(&scene);
    }
}

static void a_store_that_is_away_when_it_is_late_is_asked_again(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    post(&scene);
    settle(&scene);
    fake_store_always_lose(scene.s.store, ERR_UNAVAILABLE);
    happen(&scene, LATE);
    assert_int_equal(scene.reports, 0);
    fake_store_always_commit(scene.s.store);
    pass(&scene, 2000);
    assert_int_equal(scene.reports, 1);
    assert_int_equal(scene.refused, ERR_UNAVAILABLE);
    assert_int_equal(rows(&scene), 0);
    close_scene(&scene);
}

/* After each number of answers of the store. */
static void it_may_be_cancelled_at_any_time(void **state) {
    (void)state;
    for (size_t answers = 0; answers < 5; answers++) {
        struct scene scene;
        open_scene(&scene);
        fake_store_ask_me(scene.s.store);
        post(&scene);
        for (size_t i = 0; i < answers; i++) {
            if (fake_store_tasks(scene.s.store)) fake_store_run(scene.s.store, 0);
            if (fake_store_loads(scene.s.store)) fake_store_answer(scene.s.store, 0);
            loop_turn(scene.s.loop);
        }
        posted_answer_cancel(scene.posted);
        scene.posted = NULL;
        while (fake_store_tasks(scene.s.store)) fake_store_run(scene.s.store, 0);
        settle(&scene);
        while (fake_store_tasks(scene.s.store)) fake_store_run(scene.s.store, 0);
        assert_int_equal(scene.reports, 0);
        assert_int_equal(rows(&scene), 0);
        close_scene(&scene);
    }
}

/* --- its key ------------------------------------------------------------------------------ */

static void on_leased(struct lease_request *request, const struct err *failed, void *ctx) {
    (void)request, (void)ctx;
    assert_null(failed);
}

static int64_t leases(struct scene *scene) {
    return fake_store_number(scene->s.store, "SELECT count(*) FROM lease WHERE holder = 1");
}

static void its_key_stays_with_this_replica_until_it_has_reported(void **state) {
    (void)state;
    const struct claim_name name = {STR("w"), STR("u"), STR("k")};
    struct scene scene;
    open_scene(&scene);
    struct key_leases *kept = session_table_key_leases(scene.s.table);
    struct lease_request request = {.key = key_leases_keep(kept, &name, scene.s.loop),
                                    .on_done = on_leased};
    lease_ask(scene.s.store, scene.s.loop, &request);
    settle(&scene);
    key_leases_let(kept, &request.key); /* the look-up has found it free */
    post(&scene);
    settle(&scene);
    happen(&scene, TAKEN);
    happen(&scene, LATE);
    pass(&scene, WAIT_MS);
    assert_int_equal(leases(&scene), 1);
    happen(&scene, DECIDED);
    assert_int_equal(scene.reports, 1);
    pass(&scene, WAIT_MS);
    assert_int_equal(leases(&scene), 0);
    close_scene(&scene);
}

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[POSTED_STATE_COUNT] = {
        /* sending looking reading waiting withdrawing over */
        [POSTED_SENDING] = ".#...#",     [POSTED_LOOKING] = "..#..#",
        [POSTED_READING] = ".#####",     [POSTED_WAITING] = ".#..##",
        [POSTED_WITHDRAWING] = ".###.#", [POSTED_OVER] = "......",
    };
    for (unsigned from = 0; from < POSTED_STATE_COUNT; from++) {
        for (unsigned to = 0; to < POSTED_STATE_COUNT; to++)
            assert_int_equal(states_allow(posted_answer_states, from, to),
                             rows[from][to] == '#');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(what_happens_first_is_reported_once_and_nothing_stays),
        cmocka_unit_test(
            one_that_was_taken_when_it_was_late_is_withdrawn_when_it_is_open_again),
        cmocka_unit_test(a_decision_that_was_not_heard_of_is_found_when_it_is_late),
        cmocka_unit_test(words_that_are_kept_for_the_model_decide_nothing),
        cmocka_unit_test(an_answer_that_cannot_be_sent_is_refused_unless_it_may_be_there),
        cmocka_unit_test(a_store_that_is_away_when_it_is_late_is_asked_again),
        cmocka_unit_test(it_may_be_cancelled_at_any_time),
        cmocka_unit_test(its_key_stays_with_this_replica_until_it_has_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
