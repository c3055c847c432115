/* The last question of a thread, among live runs and those in the store. */
#include "session/asked.h"

#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "helper/assert_str.h"
#include "session/directory.h"

#include <stdio.h>

struct scene {
    struct sessions s;
    struct asked_result result;
    enum err_code failed;
    size_t answers;
};

static void open_scene(struct scene *scene, enum fixture_store with) {
    *scene = (struct scene){.s = sessions_open(with)};
}

static void on_answer(const struct asked_result *result, const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    scene->result = *result;
    scene->failed = failed ? failed->code : ERR_NONE;
    scene->answers++;
}

/* What the caller says is gone when this returns. */
static struct asked *look_at(struct scene *scene, const char *user, const char *session,
                             uint64_t run) {
    char user_room[16], session_room[16];
    snprintf(user_room, sizeof(user_room), "%s", user ? user : "");
    snprintf(session_room, sizeof(session_room), "%s", session);
    struct asked *asked = asked_look(&(struct asked_options){
        .loop = scene->s.loop,
        .sessions = scene->s.table,
        .name = {STR("w"), user ? str_from(user_room) : ANY_USER, str_from(session_room)},
        .run = run,
        .on_answer = on_answer,
        .ctx = scene});
    memset(user_room, '#', sizeof(user_room));
    memset(session_room, '#', sizeof(session_room));
    return asked;
}

static struct asked *look(struct scene *scene, const char *user, const char *session) {
    return look_at(scene, user, session, 0);
}

static void answer_loads(struct scene *scene) {
    loop_turn(scene->s.loop);
    while (scene->s.store && fake_store_loads(scene->s.store)) {
        fake_store_answer(scene->s.store, 0);
        loop_turn(scene->s.loop);
    }
}

static void assert_named(struct scene *scene, const char *user, const char *session,
                         uint64_t named, enum asked_answer answer, uint64_t run, uint64_t seq) {
    scene->answers = 0;
    look_at(scene, user, session, named);
    assert_int_equal(scene->answers, 0); /* never before it returns */
    answer_loads(scene);
    assert_int_equal(scene->answers, 1);
    assert_int_equal(scene->result.answer, answer);
    if (answer != ASKED_QUESTION) return;
    assert_int_equal(scene->result.run, run);
    assert_int_equal(scene->result.seq, seq);
}

static void assert_asked(struct scene *scene, const char *user, const char *session,
                         enum asked_answer answer, uint64_t run, uint64_t seq) {
    assert_named(scene, user, session, 0, answer, run, seq);
}

static const struct event asks = {.kind = EVENT_APPROVAL,
                                  .approval = {.call_id = STR_INIT("c"),
                                               .question = STR_INIT("May I?"),
                                               .tool = STR_INIT(""),
                                               .args = STR_INIT("{}"),
                                               .guards = STR_INIT("")}};
static const struct event says = {.kind = EVENT_TEXT, .text = {STR_INIT("well")}};

static struct event starts(const char *user, const char *session) {
    return (struct event){.kind = EVENT_STARTED,
                          .started = {.workspace = STR("w"),
                                      .user = str_from(user),
                                      .session = str_from(session),
                                      .text = STR("x"),
                                      .contract = STR("test"),
                                      .key = STR_EMPTY,
                                      .print = STR_EMPTY}};
}

/* A run as the store has it: its beginning, a word, and questions with a word after each. */
static void write_run(struct scene *scene, uint64_t run, const char *user, const char *session,
                      size_t questions) {
    const struct event begins = starts(user, session);
    struct buf events;
    buf_init(&events, 4 * KIB);
    assert_true(event_encode(&begins, &events) && event_encode(&says, &events));
    for (size_t i = 0; i < questions; i++)
        assert_true(event_encode(&asks, &events) && event_encode(&says, &events));
    fake_store_put(scene->s.store, run, 1, buf_str(&events));
    buf_done(&events);
}

static void of_the_newest_run_of_the_thread_it_is_the_last_question(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, WITH_STORE);
    write_run(&scene, 7, "ann", "s", 1);
    assert_asked(&scene, "ann", "s", ASKED_QUESTION, 7, 3);
    assert_asked(&scene, NULL, "s", ASKED_QUESTION, 7, 3);
    write_run(&scene, 9, "ann", "s", 2);
    assert_asked(&scene, "ann", "s", ASKED_QUESTION, 9, 5);
    write_run(&scene, 11, "ann", "s", 0); /* a later turn: nothing is asked any more */
    assert_asked(&scene, "ann", "s", ASKED_NOTHING, 0, 0);
    assert_asked(&scene, "ann", "t", ASKED_UNKNOWN, 0, 0);
    assert_asked(&scene, "bob", "s", ASKED_UNKNOWN, 0, 0);
    sessions_shut(&scene.s);
}

static void how_the_newest_run_ended_is_told(void **state) {
    (void)state;
    static const enum event_kind ends[] = {EVENT_DONE, EVENT_FAILED, EVENT_CANCELLED};
    struct scene scene;
    open_scene(&scene, WITH_STORE);
    write_run(&scene, 7, "ann", "s", 1);
    assert_asked(&scene, "ann", "s", ASKED_QUESTION, 7, 3);
    assert_int_equal(scene.result.ended, 0);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const struct event begins = starts("ann", "s"), end = {.kind = ends[i]};
        struct buf events;
        buf_init(&events, 4 * KIB);
        assert_true(event_encode(&begins, &events) && event_encode(&end, &events));
        fake_store_put(scene.s.store, 9 + i, 1, buf_str(&events));
        buf_done(&events);
        assert_asked(&scene, "ann", "s", ASKED_NOTHING, 0, 0);
        assert_int_equal(scene.result.run, 9 + i);
        assert_int_equal(scene.result.ended, ends[i]);
    }
    sessions_shut(&scene.s);
}

static void a_run_that_is_named_is_looked_at_if_it_is_of_the_thread(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, WITH_STORE);
    write_run(&scene, 7, "ann", "s", 1);
    write_run(&scene, 9, "ann", "s", 0);
    assert_named(&scene, "ann", "s", 7, ASKED_QUESTION, 7, 3);
    assert_named(&scene, NULL, "s", 7, ASKED_QUESTION, 7, 3);
    assert_named(&scene, "ann", "s", 9, ASKED_NOTHING, 0, 0);
    assert_named(&scene, "bob", "s", 7, ASKED_UNKNOWN, 0, 0);
    assert_named(&scene, "bob", "s", 9, ASKED_UNKNOWN, 0, 0);
    assert_named(&scene, "ann", "t", 7, ASKED_UNKNOWN, 0, 0);
    assert_named(&scene, "ann", "s", 8, ASKED_UNKNOWN, 0, 0); /* no such run */
    sessions_shut(&scene.s);
}

static void a_thread_of_several_users_is_ambiguous_until_one_is_named(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, WITH_STORE);
    write_run(&scene, 7, "ann", "s", 1);
    write_run(&scene, 9, "bob", "s", 1);
    assert_asked(&scene, NULL, "s", ASKED_SEVERAL, 0, 0);
    assert_asked(&scene, "ann", "s", ASKED_QUESTION, 7, 3);
    assert_asked(&scene, "bob", "s", ASKED_QUESTION, 9, 3);
    sessions_shut(&scene.s);
}

static void a_run_that_is_alive_is_read_from_its_journal(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct scene scene;
        open_scene(&scene, with_store ? WITH_STORE : NO_STORE);
        struct directory *directory = session_table_directory(scene.s.table);
        struct journal *journal = journal_new(&(struct journal_options){
            .loop = scene.s.loop, .run = 9, .window_max_bytes = 4 * KIB});
        const struct event begins = starts("ann", "s");
        journal_append(journal, &begins);
        journal_append(journal, &asks);
        journal_append(journal, &says);
        loop_turn(scene.s.loop);
        struct live live = {.run = 9,
                            .journal = journal,
                            .loop = scene.s.loop,
                            .workspace = STR("w"),
                            .user = STR("ann"),
                            .session = STR("s")};
        list_init(&live.link);
        if (with_store) write_run(&scene, 7, "ann", "s", 1);
        directory_add(directory, &live);
        assert_asked(&scene, NULL, "s", ASKED_QUESTION, 9, 2);
        assert_asked(&scene, "ann", "s", ASKED_QUESTION, 9, 2);
        assert_asked(&scene, "bob", "s", ASKED_UNKNOWN, 0, 0);
        if (with_store) write_run(&scene, 8, "bob", "s", 1);
        assert_asked(&scene, NULL, "s", with_store ? ASKED_SEVERAL : ASKED_QUESTION, 9, 2);
        directory_remove(directory, &live);
        journal_unref(journal);
        sessions_shut(&scene.s);
    }
}

static void a_store_that_cannot_answer_is_reported(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, WITH_STORE);
    look(&scene, "ann", "s");
    loop_turn(scene.s.loop);
    fake_store_refuse(scene.s.store, 0, ERR_UNAVAILABLE);
    loop_turn(scene.s.loop);
    assert_int_equal(scene.answers, 1);
    assert_int_equal(scene.result.answer, ASKED_FAILED);
    assert_int_equal(scene.failed, ERR_UNAVAILABLE);
    sessions_shut(&scene.s);
}

static void a_cancelled_look_up_has_no_callback(void **state) {
    (void)state;
    for (int loads = 0; loads < 3; loads++) { /* how far it has come */
        struct scene scene;
        open_scene(&scene, WITH_STORE);
        write_run(&scene, 7, "ann", "s", 1);
        struct asked *asked = look(&scene, "ann", "s");
        if (loads > 0) loop_turn(scene.s.loop);
        if (loads > 1) fake_store_answer(scene.s.store, 0);
        if (loads > 1) loop_turn(scene.s.loop);
        asked_cancel(asked);
        answer_loads(&scene); /* the answer comes too late */
        assert_int_equal(scene.answers, 0);
        sessions_shut(&scene.s);
    }
    asked_cancel(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_newest_run_of_the_thread_it_is_the_last_question),
        cmocka_unit_test(how_the_newest_run_ended_is_told),
        cmocka_unit_test(a_run_that_is_named_is_looked_at_if_it_is_of_the_thread),
        cmocka_unit_test(a_thread_of_several_users_is_ambiguous_until_one_is_named),
        cmocka_unit_test(a_run_that_is_alive_is_read_from_its_journal),
        cmocka_unit_test(a_store_that_cannot_answer_is_reported),
        cmocka_unit_test(a_cancelled_look_up_has_no_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
