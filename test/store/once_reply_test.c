/* Keyed writes, over all replicas: one makes it, and what a dead one was making is free again. */
#include "store/once_reply.h"

#include "store/takeover.h"
#include "two_replicas.h"

#include <stdio.h>
#include <string.h>

static void on_claimed(struct once_claim *claim, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)claim;
    fixture_opened(failed, scene->f);
}

/* The caller ends claim->reply. */
static struct once_claim claimed(struct scene *scene, struct replica *replica, int64_t number,
                                 char key, char print) {
    struct once_claim claim = {.number = number,
                               .unix_ms = 1000,
                               .owner = {STR("ann"), STR("a")},
                               .on_done = on_claimed,
                               .ctx = scene};
    memset(claim.key, key, sizeof(claim.key));
    memset(claim.print, print, sizeof(claim.print));
    buf_init(&claim.reply, KIB);
    once_claim_start(replica->store, scene->f->loop, &claim);
    loop_run(scene->f->loop);
    if (scene->f->failed.code) fail_msg("%s", scene->f->failed.text);
    return claim;
}

static void expect(struct scene *scene, struct replica *replica, int64_t number, char key,
                   char print, enum once_claimed found, const char *reply) {
    struct once_claim claim = claimed(scene, replica, number, key, print);
    assert_int_equal(claim.found, found);
    assert_true(str_equal(buf_str(&claim.reply), str_from(reply)));
    buf_done(&claim.reply);
}

static void on_kept(const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    fixture_opened(failed, scene->f);
}

static void keep(struct scene *scene, const struct once_claim *claim, const char *reply) {
    const struct kept_reply made = kept_reply_of(claim, str_from(reply), 5000);
    once_reply_keep(scene->a.store, scene->f->loop, &made, on_kept, scene);
    loop_run(scene->f->loop);
    if (scene->f->failed.code) fail_msg("%s", scene->f->failed.text);
}

static void one_makes_it_and_the_others_have_its_reply(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    struct once_claim mine = claimed(&scene, &scene.a, 1, 'k', 'p');
    assert_int_equal(mine.found, ONCE_NEW);
    expect(&scene, &scene.a, 1, 'k', 'p', ONCE_NEW, ""); /* its own, asked again */
    expect(&scene, &scene.b, 1, 'k', 'p', ONCE_MAKING, "");
    expect(&scene, &scene.b, 2, 'k', 'q', ONCE_OTHER, "");
    keep(&scene, &mine, "done");
    expect(&scene, &scene.b, 3, 'k', 'p', ONCE_KEPT, "done");
    expect(&scene, &scene.b, 4, 'k', 'q', ONCE_OTHER, "");
    buf_done(&mine.reply);
    close_scene(&scene);
}

static void what_was_dropped_is_free(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    struct once_claim mine = claimed(&scene, &scene.a, 1, 'k', 'p');
    once_reply_drop(scene.a.store, scene.f->loop, &mine);
    expect(&scene, &scene.a, 2, 'x', 'p', ONCE_NEW, "");
    expect(&scene, &scene.b, 1, 'k', 'p', ONCE_NEW, "");
    buf_done(&mine.reply);
    close_scene(&scene);
}

static void taken_over(struct takeover *takeover, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)takeover;
    fixture_opened(failed, scene->f);
}

static void those_of_a_dead_replica_are_free_again(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    struct once_claim kept = claimed(&scene, &scene.a, 1, 'k', 'p');
    keep(&scene, &kept, "done");
    expect(&scene, &scene.a, 2, 'm', 'p', ONCE_NEW, "");
    server_fence(scene.f, "a");
    expect(&scene, &scene.b, 1, 'm', 'p', ONCE_MAKING, "");
    struct takeover takeover = {.on_done = taken_over, .ctx = &scene};
    takeover_start(scene.b.store, scene.f->loop, &takeover);
    loop_run(scene.f->loop);
    takeover_done(&takeover);
    expect(&scene, &scene.b, 1, 'm', 'p', ONCE_NEW, "");
    expect(&scene, &scene.b, 2, 'k', 'p', ONCE_KEPT, "done");
    buf_done(&kept.reply);
    close_scene(&scene);
}

/* So many kept replies, of keys that no test names. */
static void fill(struct scene *scene, const char *caller, const char *app, int rows,
                 const char *bytes) {
    char sql[400];
    snprintf(sql, sizeof(sql),
             "INSERT INTO once_reply(key, print, holder, number, until_ms, bytes, caller, app)"
             " SELECT convert_to('%s %s ' || n, 'UTF8'), 'p', 1, n, 2000 + n, %s, '%s', '%s'"
             " FROM generate_series(1, %d) n",
             caller, app, bytes, caller, app, rows);
    server_run(scene->f, sql);
}

static int64_t rows_of(struct scene *scene, const char *where) {
    char sql[160];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM once_reply WHERE %s", where);
    return server_number(scene->f, sql);
}

/* The oldest of its app go, whoever else has older ones. */
static void a_claim_in_a_full_share_takes_the_place_of_its_own(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    fill(&scene, "ann", "b", 10, "'x'");
    fill(&scene, "ben", "a", 10, "'x'");
    fill(&scene, "ann", "a", ONCE_APP_MAX, "'x'");
    expect(&scene, &scene.a, 1, 'k', 'p', ONCE_NEW, "");
    assert_int_equal(rows_of(&scene, "app = 'b' OR caller = 'ben'"), 20);
    assert_int_equal(rows_of(&scene, "caller = 'ann' AND app = 'a'"), ONCE_APP_MAX - 15);
    assert_int_equal(rows_of(&scene, "key = convert_to('ann a 16', 'UTF8')"), 0);
    assert_int_equal(rows_of(&scene, "key = convert_to('ann a 17', 'UTF8')"), 1);
    close_scene(&scene);
}

static bool is_refused(struct scene *scene, int64_t number, char key) {
    struct once_claim claim = {.number = number,
                               .unix_ms = 1000,
                               .owner = {STR("ann"), STR("a")},
                               .on_done = on_claimed,
                               .ctx = scene};
    memset(claim.key, key, sizeof(claim.key));
    buf_init(&claim.reply, KIB);
    once_claim_start(scene->a.store, scene->f->loop, &claim);
    loop_run(scene->f->loop);
    buf_done(&claim.reply);
    return scene->f->failed.code == ERR_RESOURCE_EXHAUSTED;
}

/* The caller with the most loses its oldest; who has few loses nothing, and has its turn. */
static void who_has_the_most_makes_room_for_all(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    fill(&scene, "ann", "a", 10, "'x'");
    fill(&scene, "ben", "a", ONCE_ALL_MAX / 2 - 11, "'x'");
    fill(&scene, "zoe", "a", ONCE_ALL_MAX / 2, "'x'");
    expect(&scene, &scene.a, 1, 'k', 'p', ONCE_NEW, "");
    assert_int_equal(rows_of(&scene, "true"), ONCE_ALL_MAX);
    expect(&scene, &scene.a, 2, 'm', 'p', ONCE_NEW, "");
    assert_int_equal(rows_of(&scene, "caller = 'ann'"), 12);
    assert_int_equal(rows_of(&scene, "caller = 'ben'"), ONCE_ALL_MAX / 2 - 11);
    assert_int_equal(rows_of(&scene, "caller = 'zoe'"), ONCE_ALL_MAX / 2 - 16);
    assert_int_equal(rows_of(&scene, "key = convert_to('zoe a 16', 'UTF8')"), 0);
    assert_int_equal(rows_of(&scene, "key = convert_to('zoe a 17', 'UTF8')"), 1);
    expect(&scene, &scene.b, 3, 'k', 'p', ONCE_MAKING, "");
    close_scene(&scene);
}

/* Few replies may have the most: it is not those of many small ones that must go. */
static void large_replies_go_before_many_small_ones(void **state) {
    REPLICAS_NEED_A_SERVER();
    char sql[120];
    struct scene scene;
    open_scene(&scene, *state);
    fill(&scene, "zoe", "a", ONCE_CALLER_MAX, "'x'");
    fill(&scene, "ben", "a", 20, "'x'");
    snprintf(sql, sizeof(sql), "UPDATE once_reply SET size = %zu WHERE caller = 'ben'",
             (size_t)ONCE_ALL_MAX_BYTES / 16);
    server_run(scene.f, sql);
    expect(&scene, &scene.a, 1, 'k', 'p', ONCE_NEW, "");
    assert_int_equal(rows_of(&scene, "caller = 'ben'"), 4);
    assert_int_equal(rows_of(&scene, "caller = 'zoe'"), ONCE_CALLER_MAX);
    close_scene(&scene);
}

/* What is being made is not forgotten, whoever makes it. A key that is there is answered as
 * ever. */
static void a_claim_without_room_is_refused(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    expect(&scene, &scene.a, 1, 'k', 'p', ONCE_NEW, "");
    fill(&scene, "ann", "a", ONCE_APP_MAX - 1, "NULL");
    assert_true(is_refused(&scene, 2, 'm'));
    expect(&scene, &scene.a, 1, 'k', 'p', ONCE_NEW, "");
    server_run(scene.f, "DELETE FROM once_reply WHERE number > 1");
    fill(&scene, "ben", "a", ONCE_ALL_MAX, "NULL");
    assert_true(is_refused(&scene, 2, 'm'));
    assert_int_equal(rows_of(&scene, "caller = 'ben'"), ONCE_ALL_MAX);
    expect(&scene, &scene.b, 3, 'k', 'p', ONCE_MAKING, "");
    close_scene(&scene);
}

static void a_key_whose_time_is_over_is_free_however_many_are(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    struct once_claim mine = claimed(&scene, &scene.a, 1, 'k', 'p');
    keep(&scene, &mine, "done");
    server_run(scene.f, "UPDATE once_reply SET until_ms = 999");
    fill(&scene, "ben", "a", 2 * ONCE_SWEPT_MAX, "'x'");
    server_run(scene.f, "UPDATE once_reply SET until_ms = 1 WHERE caller = 'ben'");
    expect(&scene, &scene.b, 1, 'k', 'q', ONCE_NEW, "");
    assert_int_equal(rows_of(&scene, "true"), ONCE_SWEPT_MAX + 1);
    buf_done(&mine.reply);
    close_scene(&scene);
}

static void a_reply_whose_word_is_no_longer_so_is_forgotten(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    struct once_claim mine = claimed(&scene, &scene.a, 1, 'k', 'p');
    keep(&scene, &mine, "done");
    once_reply_forget(scene.a.store, scene.f->loop, mine.key, STR("another"));
    expect(&scene, &scene.a, 2, 'k', 'p', ONCE_KEPT, "done");
    once_reply_forget(scene.a.store, scene.f->loop, mine.key, STR("done"));
    expect(&scene, &scene.a, 3, 'k', 'p', ONCE_NEW, "");
    buf_done(&mine.reply);
    close_scene(&scene);
}

struct making {
    struct scene *scene;
    struct kept_reply made;
    bool fails;
};

static bool make(struct database *db, void *ctx, struct err *e) {
    const struct making *making = ctx;
    return once_reply_put(db, &making->made, e) &&
           (!making->fails || err_set(e, ERR_UNAVAILABLE, "no effect"));
}

static void on_made(const struct err *failed, void *ctx) {
    const struct making *making = ctx;
    fixture_opened(failed, making->scene->f);
}

static void run_making(struct making *making) {
    struct store_task task = {.fn = make, .on_done = on_made};
    store_run(making->scene->a.store, making->scene->f->loop, &task, making);
    loop_run(making->scene->f->loop);
}

/* It is kept in the transaction of its effect, or not at all. */
static void a_reply_is_kept_with_its_effect(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    struct once_claim mine = claimed(&scene, &scene.a, 1, 'k', 'p');
    struct making making = {&scene, kept_reply_of(&mine, STR("done"), 5000), true};
    run_making(&making);
    assert_int_equal(scene.f->failed.code, ERR_UNAVAILABLE);
    expect(&scene, &scene.b, 2, 'k', 'p', ONCE_MAKING, "");
    making.fails = false;
    run_making(&making);
    once_reply_drop(scene.a.store, scene.f->loop, &mine); /* its caller had left */
    expect(&scene, &scene.a, 9, 'x', 'p', ONCE_NEW, "");
    expect(&scene, &scene.b, 3, 'k', 'p', ONCE_KEPT, "done");
    buf_done(&mine.reply);
    close_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_makes_it_and_the_others_have_its_reply),
        TEST(what_was_dropped_is_free),
        TEST(those_of_a_dead_replica_are_free_again),
        TEST(a_claim_in_a_full_share_takes_the_place_of_its_own),
        TEST(who_has_the_most_makes_room_for_all),
        TEST(large_replies_go_before_many_small_ones),
        TEST(a_claim_without_room_is_refused),
        TEST(a_key_whose_time_is_over_is_free_however_many_are),
        TEST(a_reply_whose_word_is_no_longer_so_is_forgotten),
        TEST(a_reply_is_kept_with_its_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
