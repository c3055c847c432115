#include "store/posted.h"

#include "replicas.h"
#include "store/takeover.h"

/* `a` has run 7, which waits; `b` has an answer for it. */
struct scene {
    struct fixture *f;
    struct replica a, b;
    struct posting posting;
    struct posted_list list;
};

static void posting_done(struct posting *posting, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)posting;
    fixture_opened(failed, scene->f);
}

static void list_done(struct posted_list *list, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)list;
    fixture_opened(failed, scene->f);
}

static void await(struct scene *scene) {
    loop_run(scene->f->loop);
    if (scene->f->failed.code) fail_msg("%s", scene->f->failed.text);
}

static void open_scene(struct scene *scene, struct fixture *f) {
    *scene = (struct scene){.f = f};
    replica_open(f, &scene->a, "a");
    replica_open(f, &scene->b, "b");
    replica_write(&scene->a, begun_run(7, "s"));
    replica_write(&scene->b, begun_run(8, "t"));
}

static void close_scene(struct scene *scene) {
    posted_list_done(&scene->list);
    replica_close(&scene->a);
    replica_close(&scene->b);
}

static void post(struct scene *scene, int64_t number, const char *text) {
    scene->posting = (struct posting){.words = {.run = 7,
                                                .seq = 2,
                                                .text = str_from(text),
                                                .key = STR("k"),
                                                .key_user = STR("u"),
                                                .print = STR("p\0q")},
                                      .number = number,
                                      .on_done = posting_done,
                                      .ctx = scene};
    posting_send(scene->b.store, scene->f->loop, &scene->posting);
    await(scene);
}

static size_t read_at(struct scene *scene, struct replica *replica) {
    scene->list.on_done = list_done;
    scene->list.ctx = scene;
    posted_read(replica->store, scene->f->loop, &scene->list);
    await(scene);
    return scene->list.count;
}

/* The next task of the same store comes after those that free themselves. */
static void settle(struct scene *scene, struct replica *replica) {
    read_at(scene, replica);
}

static enum posted_refusal refusal_of(struct scene *scene) {
    posting_look(scene->b.store, scene->f->loop, &scene->posting);
    await(scene);
    return scene->posting.refused;
}

static void take_done(struct posted_take *take, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)take;
    fixture_opened(failed, scene->f);
}

static bool take(struct scene *scene, struct replica *replica) {
    struct posted_take take = {.id = {scene->posting.sender, scene->posting.number},
                               .on_done = take_done,
                               .ctx = scene};
    posted_take(replica->store, scene->f->loop, &take);
    await(scene);
    return take.taken;
}

static bool withdraw(struct scene *scene) {
    posting_withdraw(scene->b.store, scene->f->loop, &scene->posting);
    await(scene);
    return scene->posting.withdrawn;
}

static void refuse(struct scene *scene, struct replica *replica, enum posted_refusal refusal,
                   const char *why) {
    const struct posted_id id = {scene->posting.sender, scene->posting.number};
    posted_refuse(replica->store, scene->f->loop, id, refusal, why);
    settle(scene, replica);
}

static void release(struct scene *scene, struct replica *replica) {
    const struct posted_id id = {scene->posting.sender, scene->posting.number};
    posted_release(replica->store, scene->f->loop, id);
    settle(scene, replica);
}

static void an_answer_is_read_where_its_run_is(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    post(&scene, 1, "yes");
    assert_int_equal(read_at(&scene, &scene.b), 0);
    assert_int_equal(read_at(&scene, &scene.a), 1);
    const struct posted_words *words = &scene.list.all[0].words;
    assert_int_equal(words->run, 7);
    assert_int_equal(words->seq, 2);
    assert_true(str_equal(words->text, STR("yes")));
    assert_true(str_equal(words->key, STR("k")));
    assert_true(str_equal(words->key_user, STR("u")));
    assert_true(str_equal(words->print, STR("p\0q")));
    assert_int_equal(read_at(&scene, &scene.a), 1); /* it was not given yet */
    close_scene(&scene);
}

/* As it is when the first commit's outcome was unknown. */
static void it_is_posted_once(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    post(&scene, 1, "yes");
    post(&scene, 1, "yes");
    assert_int_equal(read_at(&scene, &scene.a), 1);
    post(&scene, 2, "no");
    assert_int_equal(read_at(&scene, &scene.a), 2);
    assert_int_equal(scene.list.all[0].id.number, 1);
    close_scene(&scene);
}

/* So that one whose taking was never answered is given after all. */
static void one_that_was_taken_is_read_by_its_taker_alone(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    post(&scene, 1, "yes");
    assert_true(take(&scene, &scene.a));
    assert_true(take(&scene, &scene.a));
    assert_int_equal(read_at(&scene, &scene.a), 1);
    server_run(scene.f, "UPDATE posted SET taken = -1");
    assert_int_equal(read_at(&scene, &scene.a), 0);
    assert_int_equal(refusal_of(&scene), POSTED_ACCEPTED);
    close_scene(&scene);
}

static void the_sender_sees_why_it_was_refused(void **state) {
    REPLICAS_NEED_A_SERVER();
    static const enum posted_refusal refusals[] = {POSTED_MISFIT, POSTED_KEY_TAKEN,
                                                   POSTED_UNDECIDED};
    struct scene scene;
    open_scene(&scene, *state);
    for (int64_t number = 1; number <= 3; number++) {
        post(&scene, number, "yes");
        assert_int_equal(refusal_of(&scene), POSTED_ACCEPTED);
        refuse(&scene, &scene.a, refusals[number - 1], "it does not fit");
        assert_int_equal(scene.list.count, 0);
        assert_int_equal(refusal_of(&scene), refusals[number - 1]);
        assert_string_equal(scene.posting.why, "it does not fit");
        posting_remove(scene.b.store, scene.f->loop, number);
        assert_int_equal(refusal_of(&scene), POSTED_ACCEPTED);
        assert_int_equal(server_number(scene.f, "SELECT count(*) FROM posted"), 0);
    }
    close_scene(&scene);
}

/* --- what competes for a row -------------------------------------------------------------- */

enum step { TAKE, OTHER_TAKES, WITHDRAW, REFUSE, OTHER_REFUSES, RELEASE, REMOVE, STEPS };
enum row { OPEN, TAKEN, TAKEN_BY_OTHER, REFUSED, GONE };

static enum row row_of(struct scene *scene) {
    if (server_number(scene->f, "SELECT count(*) FROM posted") == 0) return GONE;
    if (server_number(scene->f, "SELECT count(*) FROM posted WHERE refused IS NOT NULL"))
        return REFUSED;
    int64_t taker = server_number(scene->f, "SELECT taken FROM posted");
    return taker == 0                                      ? OPEN
           : taker == (int64_t)store_epoch(scene->a.store) ? TAKEN
                                                           : TAKEN_BY_OTHER;
}

/* Each says whether it has won, where its caller learns that. */
static void do_step(struct scene *scene, enum step step, enum row before, enum row after) {
    bool gone = before == GONE;
    switch (step) {
    case TAKE: assert_int_equal(take(scene, &scene->a), after == TAKEN); break;
    case OTHER_TAKES: assert_int_equal(take(scene, &scene->b), after == TAKEN_BY_OTHER); break;
    case WITHDRAW: assert_int_equal(withdraw(scene), after == GONE || gone); break;
    case REFUSE: refuse(scene, &scene->a, POSTED_MISFIT, "no"); break;
    case OTHER_REFUSES: refuse(scene, &scene->b, POSTED_MISFIT, "no"); break;
    case RELEASE: release(scene, &scene->a); break;
    case REMOVE:
        posting_remove(scene->b.store, scene->f->loop, scene->posting.number);
        settle(scene, &scene->b);
        break;
    case STEPS: break;
    }
}

static void of_two_steps_each_finds_the_row_as_the_other_left_it(void **state) {
    REPLICAS_NEED_A_SERVER();
    static const enum row after[][STEPS] = {
        /*                 TAKE     OTHER_TAKES     WITHDRAW        REFUSE
                           OTHER_REFUSES   RELEASE         REMOVE */
        [OPEN] = {TAKEN, TAKEN_BY_OTHER, GONE, REFUSED, REFUSED, OPEN, GONE},
        [TAKEN] = {TAKEN, TAKEN, TAKEN, REFUSED, TAKEN, OPEN, GONE},
        [TAKEN_BY_OTHER] = {TAKEN_BY_OTHER, TAKEN_BY_OTHER, TAKEN_BY_OTHER, TAKEN_BY_OTHER,
                            REFUSED, TAKEN_BY_OTHER, GONE},
        [REFUSED] = {REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, GONE},
        [GONE] = {GONE, GONE, GONE, GONE, GONE, GONE, GONE},
    };
    struct scene scene;
    open_scene(&scene, *state);
    int64_t number = 0;
    for (enum step first = 0; first < STEPS; first++) {
        for (enum step second = 0; second < STEPS; second++) {
            post(&scene, ++number, "yes");
            enum row between = after[OPEN][first], end = after[between][second];
            do_step(&scene, first, OPEN, between);
            assert_int_equal(row_of(&scene), between);
            do_step(&scene, second, between, end);
            assert_int_equal(row_of(&scene), end);
            server_run(scene.f, "DELETE FROM posted");
        }
    }
    close_scene(&scene);
}

static void taken(struct takeover *takeover, const struct err *failed, void *ctx) {
    const struct scene *scene = ctx;
    (void)takeover;
    fixture_opened(failed, scene->f);
}

static void take_over(struct scene *scene, struct replica *replica) {
    struct takeover takeover = {.on_done = taken, .ctx = scene};
    takeover_start(replica->store, scene->f->loop, &takeover);
    await(scene);
    takeover_done(&takeover);
}

/* It may have died before the decision was in the log. */
static void the_next_one_that_has_the_run_gives_it_again(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    post(&scene, 1, "yes");
    assert_true(take(&scene, &scene.a));
    assert_false(withdraw(&scene));
    server_fence(scene.f, "a");
    take_over(&scene, &scene.b);
    assert_int_equal(read_at(&scene, &scene.b), 1);
    assert_true(withdraw(&scene)); /* nobody has it now */
    close_scene(&scene);
}

static void those_of_a_dead_sender_go_with_it(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    post(&scene, 1, "yes");
    server_fence(scene.f, "b");
    take_over(&scene, &scene.a);
    assert_int_equal(read_at(&scene, &scene.a), 0);
    assert_int_equal(server_number(scene.f, "SELECT count(*) FROM posted"), 0);
    close_scene(&scene);
}

/* Those of the first page may stay for a while. */
static void many_are_read_page_after_page(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    for (int64_t number = 1; number <= POSTED_MAX + 3; number++) post(&scene, number, "yes");
    assert_int_equal(read_at(&scene, &scene.a), POSTED_MAX);
    assert_true(scene.list.more);
    scene.list.after = scene.list.all[POSTED_MAX - 1].id;
    assert_int_equal(read_at(&scene, &scene.a), 3);
    assert_false(scene.list.more);
    assert_int_equal(scene.list.all[2].id.number, POSTED_MAX + 3);
    close_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_read_where_its_run_is),
        TEST(it_is_posted_once),
        TEST(one_that_was_taken_is_read_by_its_taker_alone),
        TEST(the_sender_sees_why_it_was_refused),
        TEST(of_two_steps_each_finds_the_row_as_the_other_left_it),
        TEST(the_next_one_that_has_the_run_gives_it_again),
        TEST(those_of_a_dead_sender_go_with_it),
        TEST(many_are_read_page_after_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
