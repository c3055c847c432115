/* Sessions belong to their owners, are forgotten when unused, and find the calls to cancel. */
#include "toolserver/sessions.h"

#include "helper/assert_str.h"

static const struct toolserver_owner ann = {STR_INIT("w"), STR_INIT("ann")};
static const struct toolserver_owner eve = {STR_INIT("w"), STR_INIT("eve")};
static const char version[] = "2025-11-25";

static struct toolserver_sessions *sessions;
static char id[TOOLSERVER_SESSION_BYTES];

static void open_session(const struct toolserver_owner *owner, uint64_t now_ms) {
    struct err e;
    assert_true(toolserver_sessions_open(sessions, owner, version, now_ms, id, &e));
    assert_int_equal(strlen(id), TOOLSERVER_SESSION_BYTES - 1);
}

static bool use(const char *which, const struct toolserver_owner *owner, uint64_t now_ms) {
    const char *found = NULL;
    bool known = toolserver_sessions_use(sessions, str_from(which), owner, now_ms, &found);
    if (known) assert_ptr_equal(found, version);
    return known;
}

static void a_session_is_its_owners(void **state) {
    (void)state;
    sessions = toolserver_sessions_new(10, 1000);
    open_session(&ann, 0);
    assert_true(use(id, &ann, 1));
    assert_false(use(id, &eve, 1));
    assert_false(use("", &ann, 1));
    assert_false(use("00000000000000000000000000000000", &ann, 1));
    assert_false(toolserver_sessions_close(sessions, str_from(id), &eve));
    assert_true(toolserver_sessions_close(sessions, str_from(id), &ann));
    assert_false(toolserver_sessions_close(sessions, str_from(id), &ann));
    assert_false(use(id, &ann, 2));
    toolserver_sessions_free(sessions);
}

static void one_that_is_unused_is_forgotten(void **state) {
    (void)state;
    sessions = toolserver_sessions_new(10, 1000);
    open_session(&ann, 0);
    assert_true(use(id, &ann, 999));
    assert_true(use(id, &ann, 1998));
    assert_false(use(id, &ann, 2998));
    assert_int_equal(toolserver_sessions_count(sessions), 0);
    toolserver_sessions_free(sessions);
}

static void one_too_many_ends_the_longest_unused(void **state) {
    (void)state;
    char ids[3][TOOLSERVER_SESSION_BYTES];
    sessions = toolserver_sessions_new(2, 100000);
    for (size_t i = 0; i < 2; i++) {
        open_session(&ann, i);
        memcpy(ids[i], id, sizeof(id));
    }
    assert_true(use(ids[0], &ann, 5));
    open_session(&ann, 6);
    assert_int_equal(toolserver_sessions_count(sessions), 2);
    assert_true(use(ids[0], &ann, 7));
    assert_false(use(ids[1], &ann, 7));
    assert_true(use(id, &ann, 7));
    toolserver_sessions_free(sessions);
}

/* Every gap in the table is closed: each of many is found until it is closed itself. */
static void many_are_found_whichever_is_closed(void **state) {
    (void)state;
    enum { MANY = 500 };
    static char ids[MANY][TOOLSERVER_SESSION_BYTES];
    sessions = toolserver_sessions_new(MANY, 100000);
    for (size_t i = 0; i < MANY; i++) {
        open_session(&ann, 0);
        memcpy(ids[i], id, sizeof(id));
    }
    for (size_t i = 0; i < MANY; i += 2)
        assert_true(toolserver_sessions_close(sessions, str_from(ids[i]), &ann));
    for (size_t i = 0; i < MANY; i++) assert_int_equal(use(ids[i], &ann, 1), i % 2);
    assert_int_equal(toolserver_sessions_count(sessions), MANY / 2);
    toolserver_sessions_free(sessions);
}

/* --- calls -------------------------------------------------------------------------------- */

struct open {
    struct toolserver_entry entry;
    unsigned cancels;
};

static void on_cancel(void *ctx) {
    struct open *open = ctx;
    open->cancels++;
    toolserver_sessions_leave(sessions, &open->entry);
}

static void enter(struct open *open, struct loop *loop, const char *request) {
    *open = (struct open){.entry = {.loop = loop, .cancel = on_cancel, .ctx = open}};
    toolserver_sessions_enter(sessions, str_from(id), str_from(request), &open->entry);
}

static void a_call_is_cancelled_by_its_id_once(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct open one, other;
    sessions = toolserver_sessions_new(10, 1000);
    open_session(&ann, 0);
    enter(&one, loop, "1");
    enter(&other, loop, "\"1\"");
    toolserver_sessions_cancel(sessions, str_from(id), STR("1"));
    toolserver_sessions_cancel(sessions, str_from(id), STR("1"));
    assert_int_equal(one.cancels, 0); /* not before this returns */
    loop_turn(loop);
    assert_int_equal(one.cancels, 1);
    assert_int_equal(other.cancels, 0);
    toolserver_sessions_leave(sessions, &other.entry);
    toolserver_sessions_free(sessions);
    loop_free(loop);
}

static void a_call_that_left_meanwhile_is_not_touched(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct open one;
    sessions = toolserver_sessions_new(10, 1000);
    open_session(&ann, 0);
    enter(&one, loop, "1");
    toolserver_sessions_cancel(sessions, str_from(id), STR("1"));
    toolserver_sessions_leave(sessions, &one.entry);
    loop_turn(loop);
    assert_int_equal(one.cancels, 0);
    toolserver_sessions_free(sessions);
    loop_free(loop);
}

static void closing_a_session_cancels_its_calls(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct open one, other;
    sessions = toolserver_sessions_new(10, 1000);
    open_session(&ann, 0);
    enter(&one, loop, "1");
    enter(&other, loop, "2");
    assert_true(toolserver_sessions_close(sessions, str_from(id), &ann));
    toolserver_sessions_free(sessions); /* the mail under way holds it */
    loop_turn(loop);
    assert_int_equal(one.cancels, 1);
    assert_int_equal(other.cancels, 1);
    loop_free(loop);
}

static void a_session_with_open_calls_is_not_forgotten(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct open one;
    char more[TOOLSERVER_SESSION_BYTES];
    struct err e;
    sessions = toolserver_sessions_new(1, 1000);
    open_session(&ann, 0);
    enter(&one, loop, "1");
    assert_true(use(id, &ann, 5000));
    assert_false(toolserver_sessions_open(sessions, &ann, version, 9000, more, &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    toolserver_sessions_leave(sessions, &one.entry);
    assert_true(toolserver_sessions_open(sessions, &ann, version, 9000, more, &e));
    toolserver_sessions_free(sessions);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_its_owners),
        cmocka_unit_test(one_that_is_unused_is_forgotten),
        cmocka_unit_test(one_too_many_ends_the_longest_unused),
        cmocka_unit_test(many_are_found_whichever_is_closed),
        cmocka_unit_test(a_call_is_cancelled_by_its_id_once),
        cmocka_unit_test(a_call_that_left_meanwhile_is_not_touched),
        cmocka_unit_test(closing_a_session_cancels_its_calls),
        cmocka_unit_test(a_session_with_open_calls_is_not_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
