/* Webhooks that replicas share: who sends to which, what stale senders cannot change, and room. */
#include "store/webhook_claim.h"

#include "store/kept.h"
#include "store/takeover.h"
#include "two_replicas.h"

static const struct webhook_claim_limits plenty = {16, 16, 16};

struct claim_answer {
    struct fixture *f;
    struct scene *scene; /* NULL: nothing else was asked at once */
    bool stands;
    char taken[4096]; /* "KEY=BYTES/SENT " */
    size_t count, owned;
};

static void on_answer(bool stands, const struct err *failed, void *ctx) {
    struct claim_answer *answer = ctx;
    answer->stands = stands;
    fixture_opened(failed, answer->f);
}

static void on_claims(const struct webhook_claim *claims, size_t count,
                      const struct err *failed, void *ctx) {
    struct claim_answer *answer = ctx;
    size_t at = 0;
    answer->owned = count;
    for (size_t i = 0; i < count; i++) {
        if (!claims[i].taken) continue;
        answer->count++;
        at += (size_t)snprintf(answer->taken + at, sizeof(answer->taken) - at,
                               STR_FMT "=" STR_FMT "/" STR_FMT " ", STR_ARG(claims[i].key),
                               STR_ARG(claims[i].bytes), STR_ARG(claims[i].sent));
    }
    if (answer->scene)
        scene_answered(answer->scene, failed);
    else
        fixture_opened(failed, answer->f);
}

static bool wait_for(struct fixture *f, struct claim_answer *answer) {
    loop_run(f->loop);
    (void)answer;
    return f->failed.code == ERR_NONE;
}

/* Records of workspace `w` begin with it. */
static bool try_put(struct replica *replica, uint64_t run, const char *key, const char *w,
                    uint64_t number, struct webhook_claim_limits limits) {
    struct claim_answer answer = {.f = replica->f};
    char bytes[64];
    snprintf(bytes, sizeof(bytes), "%s,%s", w, key);
    char peers[16];
    snprintf(peers, sizeof(peers), "%s,", w);
    const struct webhook_claim_put put = {.run = run,
                                          .key = str_from(key),
                                          .bytes = str_from(bytes),
                                          .peers = str_from(peers),
                                          .number = number,
                                          .limits = limits};
    webhook_claim_room(replica->store, replica->f->loop, &put, on_answer, &answer);
    bool room = wait_for(replica->f, &answer);
    webhook_claim_put(replica->store, replica->f->loop, &put, on_answer, &answer);
    bool done = wait_for(replica->f, &answer);
    assert_int_equal(room, done);
    if (!done) assert_int_equal(replica->f->failed.code, ERR_RESOURCE_EXHAUSTED);
    return done;
}

static void put(struct replica *replica, uint64_t run, const char *key, uint64_t number) {
    assert_true(try_put(replica, run, key, "w", number, plenty));
}

static bool stands(struct replica *replica, const char *key, uint64_t number) {
    struct claim_answer answer = {.f = replica->f};
    webhook_claim_check(replica->store, replica->f->loop, str_from(key), number, on_answer,
                        &answer);
    assert_true(wait_for(replica->f, &answer));
    return answer.stands;
}

static void sent(struct replica *replica, const char *key, uint64_t number, uint64_t seq,
                 enum webhook_claim_end end) {
    webhook_claim_sent(replica->store, replica->f->loop, str_from(key), number, seq, end);
    (void)stands(replica, key, number); /* answered after it */
}

static void remove_one(struct replica *replica, const char *key) {
    struct claim_answer answer = {.f = replica->f};
    webhook_claim_remove(replica->store, replica->f->loop, str_from(key), on_answer, &answer);
    assert_true(wait_for(replica->f, &answer));
}

static struct claim_answer take(struct replica *replica, uint64_t number) {
    struct claim_answer answer = {.f = replica->f};
    webhook_claims_take(replica->store, replica->f->loop, number, on_claims, &answer);
    assert_true(wait_for(replica->f, &answer));
    return answer;
}

static void assert_taken(struct replica *replica, uint64_t number, const char *expected) {
    struct claim_answer answer = take(replica, number);
    assert_string_equal(answer.taken, expected);
}

static int64_t kept(struct scene *scene, const char *where) {
    char sql[160];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM kept WHERE %s", where);
    return server_number(scene->f, sql);
}

static void a_webhook_of_a_living_replica_is_taken_by_none(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    put(&scene.a, 7, "7-x", 1);
    sent(&scene.a, "7-x", 1, 12, WEBHOOK_CLAIM_GOES_ON);
    assert_taken(&scene.b, 1, "");
    assert_true(stands(&scene.a, "7-x", 1));
    assert_false(stands(&scene.b, "7-x", 1)); /* the number is the other one's */
    assert_int_equal(take(&scene.a, 2).owned, 1);
    close_scene(&scene);
}

static void those_of_a_replica_that_ended_go_on_after_what_they_were_sent(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    put(&scene.a, 7, "7-x", 1);
    put(&scene.a, 7, "7-y", 2);
    put(&scene.a, 8, "8-over", 3);
    sent(&scene.a, "7-x", 1, 12, WEBHOOK_CLAIM_GOES_ON);
    sent(&scene.a, "8-over", 3, 5, WEBHOOK_CLAIM_IS_OVER);
    server_fence(scene.f, "a");
    assert_taken(&scene.b, 4, "7-x=w,7-x/12 7-y=w,7-y/ ");
    assert_taken(&scene.b, 4, "7-x=w,7-x/12 7-y=w,7-y/ "); /* the answer got lost */
    assert_taken(&scene.b, 5, "");
    assert_int_equal(kept(&scene, "space = 4"), 3);
    assert_int_equal(kept(&scene, "space = 6"), 2);
    close_scene(&scene);
}

/* As many as there are; each is one's alone. */
static void of_two_that_take_at_once_each_gets_others(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    struct replica c;
    replica_open(scene.f, &c, "c");
    char key[32];
    for (uint64_t run = 1; run <= WEBHOOK_CLAIMS_MAX + 10; run++) {
        snprintf(key, sizeof(key), "%d-x", (int)run);
        assert_true(try_put(&c, run, key, "w", run, (struct webhook_claim_limits){9, 99, 99}));
    }
    server_fence(scene.f, "c");
    struct claim_answer first = {.scene = &scene}, second = {.scene = &scene};
    webhook_claims_take(scene.a.store, scene.f->loop, 1, on_claims, &first);
    webhook_claims_take(scene.b.store, scene.f->loop, 1, on_claims, &second);
    await_answers(&scene, 2);
    assert_int_equal(first.count + second.count, WEBHOOK_CLAIMS_MAX + 10);
    assert_true(first.count == 10 || second.count == 10);
    replica_close(&c);
    close_scene(&scene);
}

static void who_has_lost_its_claim_changes_nothing(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    put(&scene.a, 7, "7-x", 1);
    put(&scene.b, 7, "7-x", 1); /* again, elsewhere */
    assert_false(stands(&scene.a, "7-x", 1));
    sent(&scene.a, "7-x", 1, 12, WEBHOOK_CLAIM_IS_OVER);
    assert_int_equal(kept(&scene, "space = 5"), 0);
    sent(&scene.a, "7-x", 1, 12, WEBHOOK_CLAIM_IS_GONE);
    assert_true(stands(&scene.b, "7-x", 1));
    put(&scene.b, 7, "7-x", 2); /* and again, here */
    sent(&scene.b, "7-x", 1, 12, WEBHOOK_CLAIM_GOES_ON);
    assert_int_equal(kept(&scene, "space = 5"), 0);
    remove_one(&scene.a, "7-x");
    sent(&scene.b, "7-x", 2, 12, WEBHOOK_CLAIM_GOES_ON);
    assert_int_equal(kept(&scene, "true"), 0);
    close_scene(&scene);
}

static void one_without_a_run_is_removed_by_who_sends_to_it(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    put(&scene.a, 7, "7-x", 1);
    sent(&scene.a, "7-x", 1, 3, WEBHOOK_CLAIM_GOES_ON);
    sent(&scene.a, "7-x", 1, 3, WEBHOOK_CLAIM_IS_GONE);
    assert_int_equal(kept(&scene, "true"), 0);
    close_scene(&scene);
}

/* A daemon that has the store for itself keeps no claims. */
static void what_a_single_daemon_left_is_taken(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    server_run(scene.f, "INSERT INTO kept(space, key, bytes) VALUES(4, '7-x', 'one'),"
                        " (5, '7-x', '12'), (4, '8-x', 'two'), (5, '8-x', '9 over'),"
                        " (6, '9-x', '999-1')");
    assert_taken(&scene.b, 1, "7-x=one/12 ");
    assert_int_equal(kept(&scene, "space = 6"), 1);
    close_scene(&scene);
}

static void limits_count_the_webhooks_of_all_replicas(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    static const struct webhook_claim_limits two_of_a_task = {2, 9, 9}, three_of_w = {9, 3, 9},
                                             four = {9, 9, 4};
    put(&scene.a, 7, "7-a", 1);
    put(&scene.b, 7, "7-b", 1);
    put(&scene.b, 77, "77-a", 2); /* of another task */
    assert_false(try_put(&scene.a, 7, "7-c", "w", 3, two_of_a_task));
    assert_true(try_put(&scene.a, 7, "7-b", "w", 4, two_of_a_task)); /* it is replaced */
    assert_false(try_put(&scene.b, 8, "8-a", "w", 5, three_of_w));
    assert_true(try_put(&scene.b, 8, "8-a", "ww", 6, three_of_w)); /* of another workspace */
    assert_false(try_put(&scene.a, 9, "9-a", "v", 7, four));
    close_scene(&scene);
}

static void one_that_is_over_makes_room(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    static const struct webhook_claim_limits one_of_a_task = {1, 9, 9}, one_of_w = {9, 1, 9},
                                             one = {9, 9, 1};
    put(&scene.a, 7, "7-a", 1);
    sent(&scene.a, "7-a", 1, 3, WEBHOOK_CLAIM_IS_OVER);
    assert_true(try_put(&scene.b, 7, "7-b", "w", 1, one_of_a_task));
    assert_int_equal(kept(&scene, "space = 5"), 0);
    sent(&scene.b, "7-b", 1, 3, WEBHOOK_CLAIM_IS_OVER);
    assert_true(try_put(&scene.a, 8, "8-a", "w", 2, one_of_w));
    sent(&scene.a, "8-a", 2, 3, WEBHOOK_CLAIM_IS_OVER);
    assert_true(try_put(&scene.b, 9, "9-a", "v", 2, one));
    assert_false(try_put(&scene.b, 10, "10-a", "u", 3, one));
    assert_int_equal(kept(&scene, "space = 4"), 1);
    close_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_webhook_of_a_living_replica_is_taken_by_none),
        TEST(those_of_a_replica_that_ended_go_on_after_what_they_were_sent),
        TEST(of_two_that_take_at_once_each_gets_others),
        TEST(who_has_lost_its_claim_changes_nothing),
        TEST(one_without_a_run_is_removed_by_who_sends_to_it),
        TEST(what_a_single_daemon_left_is_taken),
        TEST(limits_count_the_webhooks_of_all_replicas),
        TEST(one_that_is_over_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
