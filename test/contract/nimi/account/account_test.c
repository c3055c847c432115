/* The account without calls: logins, the clock, bindings, what is restored, and what the disk
 * refuses. Nothing here has a store; its records are handed over as they would be read. */
#include "contract/nimi/account/account.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include <pthread.h>
#include <stdio.h>

#define UNIX_MS INT64_C(1700000000000)
#define DONE NIMI_ACCOUNT_REASON_CODE_ACTION_EXECUTED
#define UNAVAILABLE NIMI_ACCOUNT_REASON_CODE_ACCOUNT_UNAVAILABLE
#define APP STR("app.desk")
#define ONE STR("one")

static struct loop *loop;
static struct nimi_account *account;
static struct account_now now;

static bool trusts(struct str issuer, const void *ctx) {
    (void)ctx;
    return str_equal(issuer, STR("house"));
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    account = nimi_account_new();
    now = (struct account_now){loop, 1000, UNIX_MS, STR_EMPTY};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    nimi_account_free(account);
    loop_free(loop);
    return 0;
}

static void pass(uint64_t ms) {
    now.ms += ms;
    now.unix_ms += (int64_t)ms;
    account_tick(account, &now);
}

static void restore(const struct kept_record *records, size_t count) {
    account_restore(account, records, count, NULL, trusts, NULL, &now);
}

static void assert_state(enum account_state state, int reason) {
    struct account_status status;
    account_status(account, &status);
    assert_str(states_name(account_states, status.state),
               states_name(account_states, state).at);
    assert_int_equal(status.reason, reason);
}

/* --- what was published ------------------------------------------------------------------- */

struct heard {
    struct topic_reader reader;
    struct account_filter filter;
    struct buf bytes;
};

static char *heard_room(size_t bytes, void *ctx) {
    return buf_room(&((struct heard *)ctx)->bytes, bytes);
}

static void heard_put(size_t bytes, void *ctx) {
    buf_grew(&((struct heard *)ctx)->bytes, bytes);
}

static size_t heard_queued(void *ctx) {
    (void)ctx;
    return 0;
}

static void heard_wake(size_t low, void *ctx) {
    (void)low, (void)ctx;
}

static bool heard_wants(struct str label, void *ctx) {
    return account_wants(label, &((struct heard *)ctx)->filter);
}

static void heard_lost(void *ctx) {
    (void)ctx;
    fail_msg("lost");
}

static const struct topic_wire wire = {.room = heard_room,
                                       .put = heard_put,
                                       .queued = heard_queued,
                                       .wake_at = heard_wake,
                                       .wants = heard_wants,
                                       .lost = heard_lost};

/* The events that a caller with this filter gets after `after`, in words: "15:active", with a
 * subject "3@anna". */
static void assert_heard(struct account_filter filter, uint64_t after, const char *expected) {
    struct heard heard = {.filter = filter};
    struct buf words;
    buf_init(&heard.bytes, 4 * MIB);
    buf_init(&words, 64 * KIB);
    topic_reader_start(&heard.reader, account_topic(account), loop, TOPIC_AFTER, after, &wire,
                       &heard);
    topic_reader_flush(&heard.reader, SIZE_MAX);
    topic_reader_stop(&heard.reader);
    loop_turn(loop);
    uint64_t last = 0;
    for (struct str rest = buf_str(&heard.bytes); rest.len;) {
        const unsigned char *at = (const unsigned char *)rest.at;
        size_t len = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
        struct arena *arena = arena_new(MIB);
        struct nimi_account_session_event event;
        struct err e;
        assert_true(pb_decode_view(&nimi_account_session_event_table,
                                   str_head(str_skip(rest, 5), len), arena, &event, &e));
        assert_true(event.sequence > last);
        last = event.sequence;
        buf_printf(&words, "%d", event.event_type);
        if (event.account_projection)
            buf_printf(&words, "@" STR_FMT, STR_ARG(event.account_projection->account_id));
        buf_append_byte(&words, ' ');
        rest = str_skip(rest, 5 + len);
        arena_free(arena);
    }
    assert_str(buf_str(&words), expected);
    buf_done(&words);
    buf_done(&heard.bytes);
}

static const struct account_filter desk = {STR_INIT("app.desk"), STR_INIT("one"), {0}};

static uint64_t newest(void) {
    return topic_last(account_topic(account));
}

/* --- what is done ------------------------------------------------------------------------- */

static int change(enum account_act act, const struct account_material *material) {
    int reason = account_begin(account, act, material, &now);
    return reason == DONE ? account_end(account, act, material, NULL, &now) : reason;
}

static struct account_material material_of(const char *subject, int64_t lasts_ms) {
    return (struct account_material){.subject = str_from(subject),
                                     .issuer = STR("house"),
                                     .scope = STR("read write"),
                                     .token = STR("secret"),
                                     .session = STR("session-1"),
                                     .expires_unix_ms = now.unix_ms + lasts_ms};
}

static void log_in(const char *subject, int64_t lasts_ms) {
    struct account_attempt attempt;
    struct account_material material = material_of(subject, lasts_ms);
    assert_int_equal(account_begin_login(account, APP, ONE, 0, &now, &attempt), DONE);
    const struct account_proof proof = {str_from(attempt.id), APP, ONE, str_from(attempt.state),
                                        str_from(attempt.nonce)};
    assert_int_equal(account_take_proof(account, &proof, &now), DONE);
    assert_int_equal(change(ACCOUNT_LOGIN, &material), DONE);
}

static int bind(const char *agent, int32_t ttl_s, char *ret_id) {
    const struct nimi_scoped_app_binding_relation relation = {
        .runtime_app_id = APP, .app_instance_id = ONE, .agent_id = str_from(agent)};
    struct nimi_scoped_app_binding_relation made;
    struct arena *arena = arena_new(MIB);
    struct buf bytes;
    struct err e;
    buf_init(&bytes, 64 * KIB);
    int reason = account_bind(account, &relation, ttl_s, &now, &bytes);
    if (reason == DONE) {
        assert_true(pb_decode_view(&nimi_scoped_app_binding_relation_table, buf_str(&bytes),
                                   arena, &made, &e));
        if (ret_id) snprintf(ret_id, ULID_LEN + 1, STR_FMT, STR_ARG(made.binding_id));
    }
    buf_done(&bytes);
    arena_free(arena);
    return reason;
}

/* --- tests -------------------------------------------------------------------------------- */

static void nothing_can_be_done_before_the_store_was_read(void **state) {
    (void)state;
    struct account_attempt attempt;
    struct account_material material = material_of("anna", 1000);
    assert_state(ACCOUNT_UNAVAILABLE, NIMI_ACCOUNT_REASON_CODE_CUSTODY_UNAVAILABLE);
    assert_true(account_wants_read(account));
    assert_int_equal(account_begin_login(account, APP, ONE, 0, &now, &attempt), UNAVAILABLE);
    assert_int_equal(change(ACCOUNT_LOGOUT, NULL), UNAVAILABLE);
    assert_int_equal(change(ACCOUNT_REFRESH, &material), UNAVAILABLE);
    assert_int_equal(bind("a", 0, NULL), UNAVAILABLE);
    struct err failed;
    err_set(&failed, ERR_UNAVAILABLE, "no");
    account_restore(account, NULL, 0, &failed, trusts, NULL, &now);
    assert_true(account_wants_read(account));
    assert_true(account_due_ms(account) == now.ms + ACCOUNT_RETRY_MS);
    restore(NULL, 0);
    assert_false(account_wants_read(account));
    assert_state(ACCOUNT_ANONYMOUS, DONE);
    assert_heard(desk, 0, "");
}

static void an_attempt_ends_to_the_millisecond(void **state) {
    (void)state;
    static const struct {
        int32_t asked_s;
        uint64_t lasts_ms;
    } rows[] = {{0, 600000}, {-1, 600000}, {1, 1000}, {3600, 3600000}, {INT32_MAX, 3600000}};
    struct account_attempt attempt;
    restore(NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(
            account_begin_login(account, APP, ONE, rows[i].asked_s, &now, &attempt), DONE);
        assert_true(account_due_ms(account) == now.ms + rows[i].lasts_ms);
        assert_true(attempt.expires_unix_ms == now.unix_ms + (int64_t)rows[i].lasts_ms);
        pass(rows[i].lasts_ms - 1);
        assert_state(ACCOUNT_LOGIN_PENDING, DONE);
        pass(1);
        assert_state(ACCOUNT_ANONYMOUS, NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED);
    }
    assert_true(account_due_ms(account) == UINT64_MAX);
    assert_heard(desk, 0, "2 1 5 1 2 1 5 1 2 1 5 1 2 1 5 1 2 1 5 1 ");
}

/* Two apps log in at once: the first one has the account, and the other hears why not. */
static void of_two_logins_one_is_completed(void **state) {
    (void)state;
    struct account_attempt first, second;
    struct account_material anna = material_of("anna", 5000), ben = material_of("ben", 5000);
    restore(NULL, 0);
    account_begin_login(account, APP, ONE, 0, &now, &first);
    account_begin_login(account, STR("app.other"), ONE, 0, &now, &second);
    const struct account_proof proofs[] = {
        {str_from(first.id), APP, ONE, str_from(first.state), str_from(first.nonce)},
        {str_from(second.id), STR("app.other"), ONE, str_from(second.state),
         str_from(second.nonce)}};
    assert_int_equal(account_take_proof(account, &proofs[0], &now), DONE);
    assert_int_equal(account_take_proof(account, &proofs[1], &now), DONE);
    /* The second one's token is checked first; the other waits for its issuer's keys, longer
     * than an attempt lasts. */
    pass(700000);
    anna.expires_unix_ms = ben.expires_unix_ms = now.unix_ms + 5000;
    assert_int_equal(account_begin(account, ACCOUNT_LOGIN, &ben, &now), DONE);
    assert_int_equal(account_begin(account, ACCOUNT_LOGIN, &anna, &now), UNAVAILABLE);
    account_fail_proof(account, str_from(first.id), UNAVAILABLE, &now);
    assert_state(ACCOUNT_LOGIN_PENDING, DONE); /* the write goes on */
    assert_int_equal(account_end(account, ACCOUNT_LOGIN, &ben, NULL, &now), DONE);
    assert_state(ACCOUNT_AUTHENTICATED, DONE);
    assert_int_equal(account_take_proof(account, &proofs[0], &now),
                     NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED);
}

static void a_failed_login_goes_back_to_where_it_began(void **state) {
    (void)state;
    struct account_attempt attempt;
    restore(NULL, 0);
    log_in("anna", 1000);
    pass(1000);
    assert_state(ACCOUNT_EXPIRED, NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED);
    account_begin_login(account, APP, ONE, 0, &now, &attempt);
    const struct account_proof proof = {str_from(attempt.id), APP, ONE, str_from(attempt.state),
                                        str_from(attempt.nonce)};
    assert_int_equal(account_take_proof(account, &proof, &now), DONE);
    assert_int_equal(account_take_proof(account, &proof, &now),
                     NIMI_ACCOUNT_REASON_CODE_PROOF_CONSUMED);
    account_return_proof(account, proof.attempt); /* the keys could not be had */
    assert_int_equal(account_take_proof(account, &proof, &now), DONE);
    account_fail_proof(account, proof.attempt, NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED, &now);
    assert_state(ACCOUNT_REAUTH_REQUIRED, NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED);
}

static void logins_have_a_limit(void **state) {
    (void)state;
    struct account_attempt attempt;
    char name[16];
    restore(NULL, 0);
    for (int i = 0; i < ACCOUNT_ATTEMPTS_MAX; i++) {
        snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(account_begin_login(account, APP, str_from(name), 0, &now, &attempt),
                         DONE);
    }
    assert_int_equal(account_begin_login(account, APP, ONE, 0, &now, &attempt), ACCOUNT_FULL);
    assert_int_equal(account_begin_login(account, APP, STR("7"), 0, &now, &attempt), DONE);
    pass(600000);
    assert_int_equal(account_begin_login(account, APP, ONE, 0, &now, &attempt), DONE);
}

static void expiry_suspends_bindings_and_a_newer_token_brings_them_back(void **state) {
    (void)state;
    struct account_material newer, other;
    char kept[ULID_LEN + 1], short_one[ULID_LEN + 1];
    restore(NULL, 0);
    log_in("anna", 2000);
    uint64_t since = newest();
    assert_int_equal(bind("a", 10, kept), DONE);
    assert_int_equal(bind("b", 3, short_one), DONE);
    pass(1999);
    assert_state(ACCOUNT_AUTHENTICATED, DONE);
    pass(1);
    assert_int_equal(bind("c", 0, NULL), UNAVAILABLE);
    const struct nimi_scoped_runtime_binding_attachment shown = {.binding_id = str_from(kept),
                                                                 .runtime_app_id = APP,
                                                                 .app_instance_id = ONE,
                                                                 .agent_id = STR("a")};
    assert_int_equal(account_check_binding(account, &shown, &now),
                     NIMI_ACCOUNT_REASON_CODE_BINDING_STALE);
    pass(1000);
    other = material_of("ben", 5000);
    assert_int_equal(change(ACCOUNT_REFRESH, &other),
                     NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED);
    newer = material_of("anna", 5000);
    assert_int_equal(change(ACCOUNT_REFRESH, &newer), DONE);
    assert_int_equal(account_check_binding(account, &shown, &now), DONE);
    newer = material_of("anna", 0);
    assert_int_equal(change(ACCOUNT_REFRESH, &newer), NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED);
    assert_heard(desk, since,
                 "15@anna 16@anna 15@anna 16@anna 17@anna 17@anna 1@anna 19@anna 6@anna 7@anna "
                 "1@anna 16@anna ");
}

static void bindings_end_before_somebody_else_has_the_account(void **state) {
    (void)state;
    restore(NULL, 0);
    log_in("anna", 1000);
    assert_int_equal(bind("a", 0, NULL), DONE);
    pass(1000);
    uint64_t since = newest();
    log_in("ben", 1000);
    /* Revoked while it is still anna's. */
    assert_heard(desk, since, "2@anna 1@anna 18@anna 3@ben 1@ben ");
    /* Who is proved to be one of them hears nothing of the other. */
    struct account_filter anna = desk, ben = desk, other = {STR("app.other"), ONE, STR_EMPTY};
    anna.subject = STR("anna");
    ben.subject = STR("ben");
    assert_heard(anna, since, "2@anna 1@anna 18@anna ");
    assert_heard(ben, since, "3@ben 1@ben ");
    assert_heard(other, since, "2@anna 1@anna 3@ben 1@ben ");
}

static void the_disk_that_refuses_makes_it_unavailable(void **state) {
    (void)state;
    static const enum account_act acts[] = {ACCOUNT_REFRESH, ACCOUNT_LOGOUT, ACCOUNT_SWITCH};
    static const char *const said[] = {"6@anna 18@anna 8@anna 13 1 14@anna 1@anna ",
                                       "9@anna 18@anna 13 1 14@anna 1@anna ",
                                       "11@anna 18@anna 13 1 14@anna 1@anna "};
    const struct kept_record on_disk[] = {
        {KEPT_ACCOUNT, STR("expires_ms"), STR("1800000000000"), false},
        {KEPT_ACCOUNT, STR("issuer"), STR("house"), false},
        {KEPT_ACCOUNT, STR("subject"), STR("anna"), false}};
    struct err failed;
    err_set(&failed, ERR_UNAVAILABLE, "the disk is full");
    restore(on_disk, 3);
    for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
        struct account_material material = material_of("anna", 9000000);
        const struct account_material *brought = acts[i] == ACCOUNT_REFRESH ? &material : NULL;
        assert_int_equal(bind("a", 0, NULL), DONE);
        uint64_t since = newest();
        assert_int_equal(account_begin(account, acts[i], brought, &now), DONE);
        assert_false(account_wants_read(account));
        assert_int_equal(account_begin(account, ACCOUNT_LOGOUT, NULL, &now), UNAVAILABLE);
        assert_int_equal(account_end(account, acts[i], brought, &failed, &now),
                         NIMI_ACCOUNT_REASON_CODE_CUSTODY_UNAVAILABLE);
        assert_state(ACCOUNT_UNAVAILABLE, NIMI_ACCOUNT_REASON_CODE_CUSTODY_UNAVAILABLE);
        assert_true(account_due_ms(account) == now.ms + ACCOUNT_RETRY_MS);
        restore(on_disk, 3); /* what is there counts */
        assert_state(ACCOUNT_AUTHENTICATED, DONE);
        assert_heard(desk, since, said[i]);
    }
}

static void what_the_store_says_is_taken(void **state) {
    (void)state;
    static const struct {
        const char *subject, *issuer, *expires;
        enum account_state state;
    } rows[] = {
        {"anna", "house", "1700000000001", ACCOUNT_AUTHENTICATED},
        {"anna", "house", "1700000000000", ACCOUNT_EXPIRED},
        {"anna", "house", "0", ACCOUNT_EXPIRED},
        {"anna", "gone", "1800000000000", ACCOUNT_REAUTH_REQUIRED},
        {"", "house", "1800000000000", ACCOUNT_ANONYMOUS},
        {"anna", "house", "soon", ACCOUNT_ANONYMOUS},
        {"anna", "house", "", ACCOUNT_ANONYMOUS},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct kept_record records[] = {
            {KEPT_ACCOUNT, STR("expires_ms"), str_from(rows[i].expires), false},
            {KEPT_ACCOUNT, STR("issuer"), str_from(rows[i].issuer), false},
            {KEPT_ACCOUNT, STR("subject"), str_from(rows[i].subject), false},
            {KEPT_ACCOUNT_EVENT, STR("short"), STR("x"), false},
            {KEPT_ACCOUNT_EVENT, str_of("\0\0\0\0\0\0\0\1", 8), STR("\xff\xff"), false},
            {KEPT_ACCOUNT_BINDING, STR("short"), STR("x"), false}};
        struct account_status status;
        nimi_account_free(account);
        account = nimi_account_new();
        restore(records, ARRAY_LEN(records));
        account_status(account, &status);
        assert_int_equal(status.state, rows[i].state);
        assert_true(newest() >= UINT64_C(1) << 32);
        restore(NULL, 0); /* a second answer changes nothing */
        account_status(account, &status);
        assert_int_equal(status.state, rows[i].state);
    }
    nimi_account_free(account);
    account = nimi_account_new();
    account_restore(account,
                    &(struct kept_record){KEPT_ACCOUNT, STR("subject"), STR("anna"), false}, 1,
                    NULL, NULL, NULL, &now);
    assert_state(ACCOUNT_ANONYMOUS, DONE); /* without issuers */
}

static void the_token_is_forgotten_with_the_account(void **state) {
    (void)state;
    struct text token = {.at = NULL};
    int64_t expires;
    const struct str scopes[] = {STR("read"), STR("write")};
    restore(NULL, 0);
    assert_int_equal(account_token(account, STR("session-1"), NULL, 0, &now, &token, &expires),
                     UNAVAILABLE);
    log_in("anna", 1000);
    assert_int_equal(
        account_token(account, STR("session-1"), scopes, 2, &now, &token, &expires), DONE);
    assert_str(text_str(token), "secret");
    text_wipe(&token);
    assert_int_equal(account_token(account, STR("session-2"), NULL, 0, &now, &token, &expires),
                     NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED);
    assert_int_equal(account_token(account, STR_EMPTY, NULL, 0, &now, &token, &expires),
                     NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED);
    now.by = STR("ben");
    assert_int_equal(account_token(account, STR("session-1"), NULL, 0, &now, &token, &expires),
                     NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED);
    assert_int_equal(change(ACCOUNT_LOGOUT, NULL),
                     NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED);
    now.by = STR("anna");
    pass(1000);
    assert_int_equal(account_token(account, STR("session-1"), NULL, 0, &now, &token, &expires),
                     UNAVAILABLE);
    assert_null(token.at);
}

static void bindings_have_limits(void **state) {
    (void)state;
    char agent[16];
    restore(NULL, 0);
    log_in("anna", 100000);
    for (int i = 0; i < BINDINGS_PER_INSTANCE; i++) {
        snprintf(agent, sizeof(agent), "%d", i);
        assert_int_equal(bind(agent, 1, NULL), DONE);
    }
    assert_int_equal(bind("more", 1, NULL), ACCOUNT_FULL);
    pass(1000);
    assert_int_equal(bind("more", INT32_MAX, NULL), DONE);
    pass(BINDINGS_TTL_MAX_S * UINT64_C(1000) - 1);
    assert_true(account_due_ms(account) == now.ms + 1);
}

/* --- several threads ---------------------------------------------------------------------- */

#define ROUNDS 200

static void *use_it(void *ctx) {
    struct str instance = str_from(ctx);
    struct account_now mine = now;
    const struct nimi_scoped_app_binding_relation relation = {
        .runtime_app_id = APP, .app_instance_id = instance, .agent_id = STR("a")};
    for (int i = 0; i < ROUNDS; i++) {
        struct account_material material = material_of("anna", 5000);
        struct account_status status;
        struct buf bytes;
        buf_init(&bytes, 64 * KIB);
        account_bind(account, &relation, 0, &mine, &bytes);
        if (account_begin(account, ACCOUNT_REFRESH, &material, &mine) == DONE)
            account_end(account, ACCOUNT_REFRESH, &material, NULL, &mine);
        account_status(account, &status);
        account_tick(account, &mine);
        account_lock(account);
        account_take_number(account);
        account_unlock(account);
        buf_done(&bytes);
    }
    return NULL;
}

static void several_loops_use_it_at_once(void **state) {
    (void)state;
    pthread_t threads[3];
    static char names[][8] = {"one", "two", "three"};
    restore(NULL, 0);
    log_in("anna", 5000);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_it, names[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    assert_state(ACCOUNT_AUTHENTICATED, DONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(nothing_can_be_done_before_the_store_was_read),
        TEST(an_attempt_ends_to_the_millisecond),
        TEST(of_two_logins_one_is_completed),
        TEST(a_failed_login_goes_back_to_where_it_began),
        TEST(logins_have_a_limit),
        TEST(expiry_suspends_bindings_and_a_newer_token_brings_them_back),
        TEST(bindings_end_before_somebody_else_has_the_account),
        TEST(the_disk_that_refuses_makes_it_unavailable),
        TEST(what_the_store_says_is_taken),
        TEST(the_token_is_forgotten_with_the_account),
        TEST(bindings_have_limits),
        TEST(several_loops_use_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
