/* What replicas tell each other: whatever the moment at which two of them read it, they agree. */
#include "contract/nimi/facts.h"

#include "contract/nimi/auth/sessions.h"
#include "contract/nimi/grant/grants.h"
#include "helper/assert_str.h"

#define LATER (INT64_C(1) << 42)
#define ID(n) "0000000000000000000000000" n

/* The tables of one replica. */
struct replica {
    struct sessions *sessions;
    struct grants *grants;
    struct facts *facts;
};

static const uint8_t digest[RANDOM_TOKEN_DIGEST_BYTES] = {1, 2, 3};

static void open_replica(struct replica *replica) {
    replica->sessions = sessions_new(8);
    replica->grants = grants_new(8, MIB);
    replica->facts = facts_new(replica->sessions, replica->grants);
}

static void close_replica(struct replica *replica) {
    facts_free(replica->facts);
    grants_free(replica->grants);
    sessions_free(replica->sessions);
}

static void hear(struct replica *replica, struct fact_fact fact) {
    struct buf bytes;
    struct err e;
    buf_init(&bytes, 64 * KIB);
    assert_true(pb_encode(&fact_fact_table, &fact, &bytes));
    if (!facts_apply(replica->facts, buf_str(&bytes), &e)) fail_msg("%s", e.text);
    buf_done(&bytes);
}

static void hear_grant(struct replica *replica, const char *id, const char *parent,
                       const char *policy) {
    const struct fact_grant_fact grant = {.token_id = str_from(id),
                                          .parent_id = str_from(parent),
                                          .digest = str_of(digest, sizeof(digest)),
                                          .app_id = STR("a"),
                                          .subject = STR("anna"),
                                          .principal = STR("p"),
                                          .policy = str_from(policy),
                                          .expires_ms = LATER};
    hear(replica, (struct fact_fact){.grant = &grant});
}

static void hear_revoked(struct replica *replica, const char *id) {
    hear(replica, (struct fact_fact){.revoked_token_id = str_from(id)});
}

static enum grant_state state_of(struct replica *replica, const char *id) {
    const struct grant *grant;
    grants_lock(replica->grants);
    enum grant_state state =
        grants_check(replica->grants, str_from(id), digest, STR("a"), LATER - 1, &grant);
    grants_unlock(replica->grants);
    return state;
}

static void a_token_is_good_until_it_is_revoked(void **state) {
    (void)state;
    struct replica one;
    open_replica(&one);
    assert_int_equal(state_of(&one, ID("1")), GRANT_UNKNOWN);
    hear_grant(&one, ID("1"), "", "v1");
    assert_int_equal(state_of(&one, ID("1")), GRANT_GOOD);
    hear_revoked(&one, ID("2")); /* unknown here: it has expired */
    hear_revoked(&one, ID("1"));
    assert_int_equal(state_of(&one, ID("1")), GRANT_REVOKED);
    close_replica(&one);
}

/* At another replica the parent was revoked before this one was told of the child. */
static void a_child_of_a_revoked_token_is_revoked(void **state) {
    (void)state;
    struct replica one;
    open_replica(&one);
    hear_grant(&one, ID("1"), "", "v1");
    hear_revoked(&one, ID("1"));
    hear_grant(&one, ID("2"), ID("1"), "v1");
    assert_int_equal(state_of(&one, ID("2")), GRANT_REVOKED);
    hear_grant(&one, ID("4"), ID("3"), "v1"); /* its parent is not known any more */
    assert_int_equal(state_of(&one, ID("4")), GRANT_UNKNOWN);
    close_replica(&one);
}

/* Of two policies at once the one that was told last counts at all replicas, also at those that hear
 * of it later. */
static void a_token_that_a_newer_policy_revoked_stays_so(void **state) {
    (void)state;
    struct replica one;
    open_replica(&one);
    hear_grant(&one, ID("1"), "", "v1");
    hear_grant(&one, ID("2"), "", "v2");
    assert_int_equal(state_of(&one, ID("1")), GRANT_REVOKED);
    assert_int_equal(state_of(&one, ID("2")), GRANT_GOOD);
    hear_grant(&one, ID("1"), "", "v1"); /* told twice, it is no newer */
    assert_int_equal(state_of(&one, ID("1")), GRANT_REVOKED);
    assert_int_equal(state_of(&one, ID("2")), GRANT_GOOD);
    close_replica(&one);
}

static void hear_session(struct replica *replica, const char *token, int64_t expires_ms) {
    uint8_t print[RANDOM_TOKEN_DIGEST_BYTES];
    random_token_digest(str_from(token), print);
    const struct fact_session_fact session = {.session_id = STR(ID("1")),
                                              .app_id = STR("a"),
                                              .subject = STR("anna"),
                                              .digest = str_of(print, sizeof(print)),
                                              .expires_ms = expires_ms};
    hear(replica, (struct fact_fact){.session = &session});
}

static enum session_verdict session_of(struct replica *replica, const char *token,
                                       int64_t now_ms) {
    return sessions_check(replica->sessions, STR(ID("1")), str_from(token), STR("a"), now_ms);
}

static void a_session_has_the_token_that_was_told_last(void **state) {
    (void)state;
    struct replica one;
    open_replica(&one);
    hear_session(&one, "first", 1000);
    assert_int_equal(session_of(&one, "first", 999), SESSION_VALID);
    hear_session(&one, "second", 2000);
    assert_int_equal(session_of(&one, "first", 999), SESSION_UNKNOWN);
    assert_int_equal(session_of(&one, "second", 1999), SESSION_VALID);
    struct buf subject;
    buf_init(&subject, KIB);
    struct session_opened fresh;
    assert_int_equal(sessions_renew(one.sessions, STR(ID("1")), STR("a"), STR("anna"), 10, 1999,
                                    &fresh, &subject),
                     SESSION_VALID);
    assert_str(buf_str(&subject), "anna");
    buf_done(&subject);
    hear(&one, (struct fact_fact){.revoked_session_id = STR(ID("1"))});
    assert_int_equal(session_of(&one, "second", 1999), SESSION_UNKNOWN);
    close_replica(&one);
}

static void an_app_is_registered(void **state) {
    (void)state;
    struct replica one;
    const struct fact_app_fact app = {STR("a"), STR("i")};
    open_replica(&one);
    hear(&one, (struct fact_fact){.app = &app});
    assert_true(sessions_registered(one.sessions, STR("a"), STR("i")));
    assert_true(sessions_knows_app(one.sessions, STR("a")));
    close_replica(&one);
}

static void what_is_no_fact_is_refused(void **state) {
    (void)state;
    struct replica one;
    struct err e;
    const struct fact_session_fact short_id = {.session_id = STR("1"),
                                               .digest = str_of(digest, sizeof(digest))};
    struct buf bytes;
    open_replica(&one);
    buf_init(&bytes, KIB);
    assert_true(pb_encode(&fact_fact_table, &(struct fact_fact){.session = &short_id}, &bytes));
    assert_false(facts_apply(one.facts, buf_str(&bytes), &e));
    assert_false(facts_apply(one.facts, STR("\x0a\xff"), &e));
    assert_true(facts_apply(one.facts, STR_EMPTY, &e)); /* of a newer weir */
    buf_done(&bytes);
    close_replica(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_good_until_it_is_revoked),
        cmocka_unit_test(a_child_of_a_revoked_token_is_revoked),
        cmocka_unit_test(a_token_that_a_newer_policy_revoked_stays_so),
        cmocka_unit_test(a_session_has_the_token_that_was_told_last),
        cmocka_unit_test(an_app_is_registered),
        cmocka_unit_test(what_is_no_fact_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
