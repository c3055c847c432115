/* The last question of a thread, among live runs and those in the store. */
#include "session/asked.h"

#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "session/directory.h"

#include <stdio.h>

struct house {
    struct loop *loop;
    struct store *store;
    struct session_table *sessions;
    struct asked_result result;
    enum err_code failed;
    size_t answers;
};

static void open_house(struct house *house, bool with_store) {
    *house = (struct house){.loop = loop_new_fake()};
    if (with_store) {
        house->store = fake_store_new();
        fake_store_always_commit(house->store);
    }
    house->sessions = session_table_new(house->store);
}

static void shut_house(struct house *house) {
    session_table_free(house->sessions);
    fake_store_free(house->store);
    loop_free(house->loop);
}

static void on_answer(const struct asked_result *result, const struct err *failed, void *ctx) {
    struct house *house = ctx;
    house->result = *result;
    house->failed = failed ? failed->code : ERR_NONE;
    house->answers++;
}

/* What the caller says is gone when this returns. */
static struct asked *look(struct house *house, const char *user, const char *session) {
    char user_room[16], session_room[16];
    snprintf(user_room, sizeof(user_room), "%s", user ? user : "");
    snprintf(session_room, sizeof(session_room), "%s", session);
    struct asked *asked = asked_look(&(struct asked_options){
        .loop = house->loop,
        .sessions = house->sessions,
        .name = {STR("w"), user ? str_from(user_room) : ANY_USER, str_from(session_room)},
        .on_answer = on_answer,
        .ctx = house});
    memset(user_room, '#', sizeof(user_room));
    memset(session_room, '#', sizeof(session_room));
    return asked;
}

static void answer_loads(struct house *house) {
    loop_turn(house->loop);
    while (house->store && fake_store_loads(house->store)) {
        fake_store_answer(house->store, 0);
        loop_turn(house->loop);
    }
}

static void assert_asked(struct house *house, const char *user, const char *session,
                         enum asked_answer answer, uint64_t run, uint64_t seq) {
    house->answers = 0;
    look(house, user, session);
    assert_int_equal(house->answers, 0); /* never before it returns */
    answer_loads(house);
    assert_int_equal(house->answers, 1);
    assert_int_equal(house->result.answer, answer);
    if (answer != ASKED_QUESTION) return;
    assert_int_equal(house->result.run, run);
    assert_int_equal(house->result.seq, seq);
}

static const struct event asks = {.kind = EVENT_APPROVAL,
                                  .approval = {.call_id = STR_INIT("c"),
                                               .question = STR_INIT("May I?"),
                                               .tool = STR_INIT(""),
                                               .args = STR_INIT("{}"),
                                               .guards = STR_INIT("")}};
static const struct event says = {.kind = EVENT_TEXT, .text = {STR_INIT("well")}};

static void on_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write, (void)ctx;
    assert_null(failed);
}

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

/* A run as the store has it: its beginning, a word, and so many questions with a word behind.
 */
static void write_run(struct house *house, uint64_t run, const char *user, const char *session,
                      size_t questions) {
    const struct event begins = starts(user, session);
    struct buf events;
    struct store_row row = {.run = run};
    buf_init(&events, 4 * KIB);
    buf_init(&row.bytes, 4 * KIB);
    assert_true(event_encode(&begins, &events) && event_encode(&says, &events));
    for (size_t i = 0; i < questions; i++)
        assert_true(event_encode(&asks, &events) && event_encode(&says, &events));
    assert_true(store_section_append(&row.bytes, run, 1, buf_str(&events)));
    struct store_write write = {
        .rows = &row, .row_count = 1, .home = house->loop, .on_written = on_written};
    store_write(house->store, &write);
    loop_turn(house->loop);
    buf_done(&row.bytes);
    buf_done(&events);
}

static void of_the_newest_run_of_the_thread_it_is_the_last_question(void **state) {
    (void)state;
    struct house house;
    open_house(&house, true);
    write_run(&house, 7, "ann", "s", 1);
    assert_asked(&house, "ann", "s", ASKED_QUESTION, 7, 3);
    assert_asked(&house, NULL, "s", ASKED_QUESTION, 7, 3);
    write_run(&house, 9, "ann", "s", 2);
    assert_asked(&house, "ann", "s", ASKED_QUESTION, 9, 5);
    write_run(&house, 11, "ann", "s", 0); /* a later turn: nothing is asked any more */
    assert_asked(&house, "ann", "s", ASKED_NOTHING, 0, 0);
    assert_asked(&house, "ann", "t", ASKED_NOTHING, 0, 0);
    assert_asked(&house, "bob", "s", ASKED_NOTHING, 0, 0);
    shut_house(&house);
}

static void a_thread_of_several_users_is_nobodys_until_one_is_named(void **state) {
    (void)state;
    struct house house;
    open_house(&house, true);
    write_run(&house, 7, "ann", "s", 1);
    write_run(&house, 9, "bob", "s", 1);
    assert_asked(&house, NULL, "s", ASKED_SEVERAL, 0, 0);
    assert_asked(&house, "ann", "s", ASKED_QUESTION, 7, 3);
    assert_asked(&house, "bob", "s", ASKED_QUESTION, 9, 3);
    shut_house(&house);
}

static void a_run_that_is_alive_is_read_from_its_journal(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct house house;
        open_house(&house, with_store);
        struct directory *directory = session_table_directory(house.sessions);
        struct journal *journal = journal_new(&(struct journal_options){
            .loop = house.loop, .run = 9, .window_max_bytes = 4 * KIB});
        const struct event begins = starts("ann", "s");
        journal_append(journal, &begins);
        journal_append(journal, &asks);
        journal_append(journal, &says);
        loop_turn(house.loop);
        struct live live = {.run = 9,
                            .journal = journal,
                            .loop = house.loop,
                            .workspace = STR("w"),
                            .user = STR("ann"),
                            .session = STR("s")};
        list_init(&live.link);
        if (with_store) write_run(&house, 7, "ann", "s", 1);
        directory_add(directory, &live);
        assert_asked(&house, NULL, "s", ASKED_QUESTION, 9, 2);
        assert_asked(&house, "ann", "s", ASKED_QUESTION, 9, 2);
        assert_asked(&house, "bob", "s", ASKED_NOTHING, 0, 0);
        if (with_store) write_run(&house, 8, "bob", "s", 1);
        assert_asked(&house, NULL, "s", with_store ? ASKED_SEVERAL : ASKED_QUESTION, 9, 2);
        directory_remove(directory, &live);
        journal_unref(journal);
        shut_house(&house);
    }
}

static void a_store_that_cannot_say_is_told(void **state) {
    (void)state;
    struct house house;
    open_house(&house, true);
    look(&house, "ann", "s");
    loop_turn(house.loop);
    fake_store_refuse(house.store, 0, ERR_UNAVAILABLE);
    loop_turn(house.loop);
    assert_int_equal(house.answers, 1);
    assert_int_equal(house.result.answer, ASKED_FAILED);
    assert_int_equal(house.failed, ERR_UNAVAILABLE);
    shut_house(&house);
}

static void who_gives_up_hears_nothing(void **state) {
    (void)state;
    for (int loads = 0; loads < 3; loads++) { /* how far it has come */
        struct house house;
        open_house(&house, true);
        write_run(&house, 7, "ann", "s", 1);
        struct asked *asked = look(&house, "ann", "s");
        if (loads > 0) loop_turn(house.loop);
        if (loads > 1) fake_store_answer(house.store, 0);
        if (loads > 1) loop_turn(house.loop);
        asked_cancel(asked);
        answer_loads(&house); /* it comes, and finds nobody */
        assert_int_equal(house.answers, 0);
        shut_house(&house);
    }
    asked_cancel(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_newest_run_of_the_thread_it_is_the_last_question),
        cmocka_unit_test(a_thread_of_several_users_is_nobodys_until_one_is_named),
        cmocka_unit_test(a_run_that_is_alive_is_read_from_its_journal),
        cmocka_unit_test(a_store_that_cannot_say_is_told),
        cmocka_unit_test(who_gives_up_hears_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
