/* An answer to a session's run of another replica: whose the session is, what its run asks, and what
 * came of the answer. */
#include "session/elsewhere.h"

#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"
#include "helper/assert_str.h"
#include "session/directory.h"
#include "store/changes.h"
#include "store/lease.h"
#include "store/posted.h"
#include "wire/yes_no.h"

#include <stdio.h>

#define RUN 9
#define SEQ 2

struct scene {
    struct sessions s;
    struct elsewhere *elsewhere;
    size_t ends;
    struct elsewhere_result result;
    enum err_code why;
};

static const struct session_name name = {STR_INIT("w"), STR_INIT("ann"), STR_INIT("s")};

/* A run that waits, as the store has it. */
static void write_run(struct scene *scene, uint64_t run, const char *session, bool waits) {
    const struct event begins = {.kind = EVENT_STARTED,
                                 .started = {.workspace = STR("w"),
                                             .user = STR("ann"),
                                             .session = str_from(session),
                                             .text = STR("x"),
                                             .contract = STR("test"),
                                             .key = STR_EMPTY,
                                             .print = STR_EMPTY}};
    const struct event asks = {
        .kind = EVENT_APPROVAL,
        .approval = {.call_id = STR("c"), .question = STR("May I?"), .args = STR("{}")}};
    const struct event says = {.kind = EVENT_TEXT, .text = {STR("on")}};
    struct buf events;
    buf_init(&events, 4 * KIB);
    assert_true(event_encode(&begins, &events) && event_encode(&asks, &events));
    if (!waits) assert_true(event_encode(&says, &events));
    fake_store_put(scene->s.store, run, 1, buf_str(&events));
    buf_done(&events);
}

static void hold(struct scene *scene, int holder) {
    struct lease_key key = session_lease_key(&name);
    char sql[160], *at = sql;
    at += snprintf(at, sizeof(sql), "INSERT INTO lease VALUES(x'");
    for (size_t i = 0; i < LEASE_KEY_BYTES; i++)
        at += snprintf(at, 3, "%02x", (unsigned)(unsigned char)key.bytes[i]);
    snprintf(at, 16, "', %d)", holder);
    fake_store_sql(scene->s.store, sql);
}

static void open_scene(struct scene *scene) {
    *scene = (struct scene){.s = sessions_open(WITH_SHARED_STORE)};
    session_table_wait(scene->s.table, 30000);
}

static void settle(struct scene *scene) {
    for (size_t i = 0; i < 12; i++) {
        while (fake_store_loads(scene->s.store)) fake_store_answer(scene->s.store, 0);
        loop_turn(scene->s.loop);
    }
}

static void close_scene(struct scene *scene) {
    settle(scene);
    session_table_leave(scene->s.table, scene->s.loop);
    settle(scene);
    sessions_shut(&scene->s);
}

static void on_end(const struct elsewhere_result *result, const struct err *why, void *ctx) {
    struct scene *scene = ctx;
    scene->elsewhere = NULL;
    scene->ends++;
    scene->result = *result;
    scene->why = why ? why->code : ERR_NONE;
}

static const struct yes_no_words none_more;

static void start(struct scene *scene, uint64_t run, uint64_t seq, const char *text,
                  const struct yes_no_words *decides) {
    scene->ends = 0;
    scene->elsewhere = elsewhere_start(&(struct elsewhere_options){.loop = scene->s.loop,
                                                                   .sessions = scene->s.table,
                                                                   .name = name,
                                                                   .run = run,
                                                                   .seq = seq,
                                                                   .text = str_from(text),
                                                                   .decides = decides,
                                                                   .on_end = on_end,
                                                                   .ctx = scene});
    assert_non_null(scene->elsewhere);
    assert_int_equal(scene->ends, 0);
    settle(scene);
}

static int64_t posted(struct scene *scene) {
    return fake_store_number(scene->s.store, "SELECT count(*) FROM posted");
}

/* What the replica that has the run does. */
static void other_does(struct scene *scene, const char *sql) {
    if (sql)
        fake_store_sql(scene->s.store, sql);
    else
        write_run(scene, RUN, "s", false);
    changes_tell(store_changes(scene->s.store), CHANGE_ANY);
    settle(scene);
}

enum holder { FREE, OURS, OTHERS };

static void only_a_run_that_waits_at_another_replica_is_answered(void **state) {
    (void)state;
    enum asked_run { NO_RUN, GOES_ON, WAITS };
    for (int holder = FREE; holder <= OTHERS; holder++) {
        for (int run = NO_RUN; run <= WAITS; run++) {
            struct scene scene;
            open_scene(&scene);
            if (holder != FREE) hold(&scene, holder == OURS ? 1 : 2);
            if (run != NO_RUN) write_run(&scene, RUN, "s", run == WAITS);
            start(&scene, 0, 0, "yes", NULL);
            bool posts = holder == OTHERS && run == WAITS;
            assert_int_equal(scene.ends, posts ? 0 : 1);
            assert_int_equal(posted(&scene), posts ? 1 : 0);
            if (!posts) assert_int_equal(scene.result.found, ELSEWHERE_NONE);
            elsewhere_cancel(scene.elsewhere);
            settle(&scene);
            assert_int_equal(posted(&scene), 0);
            close_scene(&scene);
        }
    }
}

static void a_question_that_is_named_must_be_the_session_s_and_the_last(void **state) {
    (void)state;
    static const struct {
        uint64_t run, seq;
        bool posts;
    } cases[] = {
        {RUN, SEQ, true}, {RUN, SEQ + 1, false}, {RUN + 1, SEQ, false}, {8, SEQ, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene;
        open_scene(&scene);
        write_run(&scene, 8, "another", true);
        write_run(&scene, RUN, "s", true);
        start(&scene, cases[i].run, cases[i].seq, "yes", NULL);
        assert_int_equal(posted(&scene), cases[i].posts);
        if (!cases[i].posts) assert_int_equal(scene.result.found, ELSEWHERE_NONE);
        elsewhere_cancel(scene.elsewhere);
        close_scene(&scene);
    }
}

static void what_came_of_it_is_reported(void **state) {
    (void)state;
    static const struct {
        const char *sql; /* NULL: the run goes on */
        enum elsewhere_found found;
        enum err_code why;
    } cases[] = {
        {NULL, ELSEWHERE_DECIDED, ERR_NONE},
        {"UPDATE posted SET refusal = 1, refused = 'x'", ELSEWHERE_REFUSED,
         ERR_INVALID_ARGUMENT},
        {"UPDATE posted SET refusal = 2, refused = 'x'", ELSEWHERE_REFUSED, ERR_ALREADY_EXISTS},
        {"UPDATE posted SET refusal = 3, refused = 'x'", ELSEWHERE_REFUSED,
         ERR_FAILED_PRECONDITION},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene scene;
        open_scene(&scene);
        hold(&scene, 2);
        write_run(&scene, RUN, "s", true);
        start(&scene, 0, 0, "yes", NULL);
        other_does(&scene, cases[i].sql);
        assert_int_equal(scene.ends, 1);
        assert_int_equal(scene.result.found, cases[i].found);
        assert_int_equal(scene.result.run, RUN);
        assert_int_equal(scene.result.seq, SEQ);
        assert_int_equal(scene.why, cases[i].why);
        close_scene(&scene);
    }
}

static void words_that_must_decide_and_do_not_are_refused_here(void **state) {
    (void)state;
    for (int decides = 0; decides < 2; decides++) {
        struct scene scene;
        open_scene(&scene);
        hold(&scene, 2);
        write_run(&scene, RUN, "s", true);
        start(&scene, 0, 0, decides ? "yes" : "what for?", &none_more);
        assert_int_equal(posted(&scene), decides);
        if (!decides) assert_int_equal(scene.result.found, ELSEWHERE_REFUSED);
        if (!decides) assert_int_equal(scene.why, ERR_FAILED_PRECONDITION);
        elsewhere_cancel(scene.elsewhere);
        close_scene(&scene);
    }
}

static void a_store_that_cannot_say_is_reported(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene);
    hold(&scene, 2);
    fake_store_always_lose(scene.s.store, ERR_UNAVAILABLE);
    start(&scene, 0, 0, "yes", NULL);
    assert_int_equal(scene.result.found, ELSEWHERE_FAILED);
    assert_int_equal(scene.why, ERR_UNAVAILABLE);
    fake_store_always_commit(scene.s.store);
    close_scene(&scene);
}

static void it_may_be_cancelled_at_any_time(void **state) {
    (void)state;
    for (size_t answers = 0; answers < 6; answers++) {
        struct scene scene;
        open_scene(&scene);
        hold(&scene, 2);
        write_run(&scene, RUN, "s", true);
        fake_store_ask_me(scene.s.store);
        scene.elsewhere = elsewhere_start(&(struct elsewhere_options){.loop = scene.s.loop,
                                                                      .sessions = scene.s.table,
                                                                      .name = name,
                                                                      .text = STR("yes"),
                                                                      .key = STR("k"),
                                                                      .key_user = STR("ann"),
                                                                      .on_end = on_end,
                                                                      .ctx = &scene});
        for (size_t i = 0; i < answers; i++) {
            if (fake_store_tasks(scene.s.store)) fake_store_run(scene.s.store, 0);
            if (fake_store_loads(scene.s.store)) fake_store_answer(scene.s.store, 0);
            loop_turn(scene.s.loop);
        }
        elsewhere_cancel(scene.elsewhere);
        fake_store_always_commit(scene.s.store);
        while (fake_store_tasks(scene.s.store)) fake_store_run(scene.s.store, 0);
        settle(&scene);
        assert_int_equal(scene.ends, 0);
        assert_int_equal(posted(&scene), 0);
        close_scene(&scene);
    }
}

static void a_store_that_is_not_shared_is_not_asked(void **state) {
    (void)state;
    struct scene scene = {.s = sessions_open(WITH_STORE)};
    assert_null(elsewhere_start(&(struct elsewhere_options){.loop = scene.s.loop,
                                                            .sessions = scene.s.table,
                                                            .name = name,
                                                            .text = STR("yes"),
                                                            .on_end = on_end,
                                                            .ctx = &scene}));
    sessions_shut(&scene.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_run_that_waits_at_another_replica_is_answered),
        cmocka_unit_test(a_question_that_is_named_must_be_the_session_s_and_the_last),
        cmocka_unit_test(what_came_of_it_is_reported),
        cmocka_unit_test(words_that_must_decide_and_do_not_are_refused_here),
        cmocka_unit_test(a_store_that_cannot_say_is_reported),
        cmocka_unit_test(it_may_be_cancelled_at_any_time),
        cmocka_unit_test(a_store_that_is_not_shared_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
