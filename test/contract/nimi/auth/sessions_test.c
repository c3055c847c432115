/* Apps and their sessions: tokens, expiry, limits. The clock is a number. */
#include "contract/nimi/auth/sessions.h"

#include "helper/assert_str.h"

#include <stdio.h>

#define APP STR("demo.app")
#define NOW 1700000000000

static struct sessions *sessions;

static int setup(void **state) {
    (void)state;
    sessions = sessions_new(3);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    sessions_free(sessions);
    return 0;
}

static void put(const struct session_opened *opened, struct str app, struct str subject) {
    uint8_t digest[RANDOM_TOKEN_DIGEST_BYTES];
    random_token_digest(str_from(opened->token), digest);
    sessions_put(sessions, str_from(opened->id), app, subject, digest, opened->expires_ms);
}

static void open_session(struct str app, struct str subject, int32_t ttl_s, int64_t now_ms,
                         struct session_opened *ret) {
    session_make(ttl_s, now_ms, ret);
    put(ret, app, subject);
}

/* What it says of the session's subject is that session's. */
static enum session_verdict renew(struct str id, struct str app, struct str subject,
                                  int32_t ttl_s, int64_t now_ms, struct session_opened *ret) {
    struct buf of;
    buf_init(&of, KIB);
    enum session_verdict verdict =
        sessions_renew(sessions, id, app, subject, ttl_s, now_ms, ret, &of);
    if (verdict == SESSION_VALID) put(ret, app, buf_str(&of));
    buf_done(&of);
    return verdict;
}

static bool revoke(struct str id, struct str app, struct str subject) {
    bool may = sessions_may_end(sessions, id, app, subject);
    if (may) sessions_end(sessions, id);
    return may;
}

static enum session_verdict check(const struct session_opened *opened, struct str app,
                                  int64_t now_ms) {
    return sessions_check(sessions, str_from(opened->id), str_from(opened->token), app, now_ms);
}

static void an_app_is_known_by_its_instance(void **state) {
    (void)state;
    sessions_register(sessions, APP, STR("one"));
    sessions_register(sessions, APP, STR("one"));
    assert_true(sessions_registered(sessions, APP, STR("one")));
    assert_false(sessions_registered(sessions, APP, STR("two")));
    assert_false(sessions_registered(sessions, STR("demo.appone"), STR_EMPTY));
}

static void a_token_opens_its_own_session_only(void **state) {
    (void)state;
    struct session_opened one, two;
    open_session(APP, STR("anna"), 0, NOW, &one);
    open_session(APP, STR("anna"), 0, NOW, &two);
    assert_int_equal(check(&one, APP, NOW), SESSION_VALID);
    assert_int_equal(check(&one, STR("other.app"), NOW), SESSION_UNKNOWN);
    assert_int_equal(sessions_check(sessions, str_from(one.id), str_from(two.token), APP, NOW),
                     SESSION_UNKNOWN);
    assert_int_equal(sessions_check(sessions, str_from(one.id), STR_EMPTY, APP, NOW),
                     SESSION_UNKNOWN);
}

static void a_session_ends_to_the_millisecond(void **state) {
    (void)state;
    static const struct {
        int32_t asked_s;
        int64_t lasts_s;
    } rows[] = {{0, 3600}, {-5, 3600}, {1, 1}, {86400, 86400}, {INT32_MAX, 86400}};
    struct session_opened opened;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        open_session(APP, STR_EMPTY, rows[i].asked_s, NOW, &opened);
        assert_int_equal(opened.expires_ms, NOW + rows[i].lasts_s * 1000);
        assert_int_equal(check(&opened, APP, opened.expires_ms - 1), SESSION_VALID);
        assert_int_equal(check(&opened, APP, opened.expires_ms), SESSION_OVER);
        assert_int_equal(check(&opened, APP, NOW), SESSION_UNKNOWN); /* it is gone */
    }
}

static void a_refresh_ends_the_old_token(void **state) {
    (void)state;
    struct session_opened old, fresh;
    open_session(APP, STR("anna"), 10, NOW, &old);
    assert_int_equal(renew(str_from(old.id), APP, STR("ben"), 10, NOW, &fresh),
                     SESSION_UNKNOWN); /* another's */
    assert_int_equal(renew(str_from(old.id), APP, STR("anna"), 10, NOW + 9000, &fresh),
                     SESSION_VALID);
    assert_int_equal(check(&old, APP, NOW + 9000), SESSION_UNKNOWN);
    assert_int_equal(check(&fresh, APP, NOW + 18999), SESSION_VALID);
    assert_false(revoke(str_from(old.id), APP, STR("ben")));
    assert_true(revoke(str_from(old.id), APP, STR("anna")));
    assert_int_equal(check(&fresh, APP, NOW + 9000), SESSION_UNKNOWN);
}

/* The real SDK opens a session without its user's token, and sends it with the other calls. */
static void a_session_opened_without_a_token_is_any_subjects(void **state) {
    (void)state;
    struct session_opened opened, fresh;
    open_session(APP, STR_EMPTY, 10, NOW, &opened);
    struct str id = str_from(opened.id);
    assert_int_equal(renew(id, APP, STR("anna"), 10, NOW, &fresh), SESSION_VALID);
    assert_int_equal(renew(id, APP, STR_EMPTY, 10, NOW, &fresh), SESSION_VALID);
    assert_int_equal(renew(id, STR("other.app"), STR_EMPTY, 10, NOW, &fresh), SESSION_UNKNOWN);
    assert_false(revoke(id, STR("other.app"), STR("anna")));
    assert_true(revoke(id, APP, STR("anna")));
    assert_int_equal(check(&fresh, APP, NOW), SESSION_UNKNOWN);
}

static void at_the_limit_the_least_recently_used_goes(void **state) {
    (void)state;
    struct session_opened opened[4];
    for (size_t i = 0; i < 3; i++) open_session(APP, STR_EMPTY, 0, NOW, &opened[i]);
    assert_int_equal(check(&opened[0], APP, NOW), SESSION_VALID); /* used again */
    open_session(APP, STR_EMPTY, 0, NOW, &opened[3]);
    assert_int_equal(check(&opened[1], APP, NOW), SESSION_UNKNOWN);
    assert_int_equal(check(&opened[0], APP, NOW), SESSION_VALID);
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof(name), "%d", i);
        sessions_register(sessions, APP, str_from(name));
    }
    assert_false(sessions_registered(sessions, APP, STR("1")));
    assert_true(sessions_registered(sessions, APP, STR("2")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_app_is_known_by_its_instance, setup, teardown),
        cmocka_unit_test_setup_teardown(a_token_opens_its_own_session_only, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_ends_to_the_millisecond, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refresh_ends_the_old_token, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_opened_without_a_token_is_any_subjects, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(at_the_limit_the_least_recently_used_goes, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
