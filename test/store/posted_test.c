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

static bool is_refused(struct scene *scene) {
    posting_look(scene->b.store, scene->f->loop, &scene->posting);
    await(scene);
    return scene->posting.refused;
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
    assert_int_equal(scene.list.all[0].number, 1);
    close_scene(&scene);
}

static void one_that_was_given_is_not_read_again(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    post(&scene, 1, "yes");
    assert_int_equal(read_at(&scene, &scene.a), 1);
    posted_note(scene.a.store, scene.f->loop, &scene.list.all[0], NULL);
    settle(&scene, &scene.a);
    assert_int_equal(scene.list.count, 0);
    assert_false(is_refused(&scene));
    close_scene(&scene);
}

static void the_sender_sees_why_it_was_refused(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    post(&scene, 1, "yes");
    assert_false(is_refused(&scene));
    assert_int_equal(read_at(&scene, &scene.a), 1);
    posted_note(scene.a.store, scene.f->loop, &scene.list.all[0], "it does not fit");
    settle(&scene, &scene.a);
    assert_int_equal(scene.list.count, 0);
    assert_true(is_refused(&scene));
    assert_string_equal(scene.posting.why, "it does not fit");
    posting_remove(scene.b.store, scene.f->loop, 1);
    assert_false(is_refused(&scene));
    assert_int_equal(server_number(scene.f, "SELECT count(*) FROM posted"), 0);
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
    assert_int_equal(read_at(&scene, &scene.a), 1);
    posted_note(scene.a.store, scene.f->loop, &scene.list.all[0], NULL);
    settle(&scene, &scene.a);
    server_fence(scene.f, "a");
    take_over(&scene, &scene.b);
    assert_int_equal(read_at(&scene, &scene.b), 1);
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

static void many_are_read_in_turn(void **state) {
    REPLICAS_NEED_A_SERVER();
    struct scene scene;
    open_scene(&scene, *state);
    for (int64_t number = 1; number <= POSTED_MAX + 3; number++) post(&scene, number, "yes");
    assert_int_equal(read_at(&scene, &scene.a), POSTED_MAX);
    for (size_t i = 0; i < POSTED_MAX; i++)
        posted_note(scene.a.store, scene.f->loop, &scene.list.all[i], NULL);
    settle(&scene, &scene.a);
    assert_int_equal(scene.list.count, 3);
    close_scene(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_read_where_its_run_is),
        TEST(it_is_posted_once),
        TEST(one_that_was_given_is_not_read_again),
        TEST(the_sender_sees_why_it_was_refused),
        TEST(the_next_one_that_has_the_run_gives_it_again),
        TEST(those_of_a_dead_sender_go_with_it),
        TEST(many_are_read_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
