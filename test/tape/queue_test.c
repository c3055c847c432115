/* Readers of one folder follow one another, and are woken. */
#include "tape/queue.h"

#include "helper/assert_str.h"

#define READERS 5

struct scene {
    struct loop *loop;
    struct tape_queue *queue;
    struct tape_place places[READERS];
    bool enters[READERS];
    char order[READERS + 1];
    size_t granted;
};

struct scene_reader {
    struct scene *scene;
    char name;
};

static void on_granted(void *ctx) {
    struct scene_reader *reader = ctx;
    reader->scene->order[reader->scene->granted++] = reader->name;
}

static void open_scene(struct scene *scene, struct scene_reader readers[static READERS]) {
    *scene = (struct scene){.loop = loop_new_fake(), .queue = tape_queue_new()};
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (struct scene_reader){scene, (char)('a' + i)};
        scene->enters[i] = tape_queue_enter(scene->queue, &scene->places[i], scene->loop,
                                            on_granted, &readers[i]);
        assert_int_equal(scene->enters[i], i == 0);
    }
}

static void close_scene(struct scene *scene) {
    tape_queue_free(scene->queue);
    loop_free(scene->loop);
}

static void one_reads_and_the_others_follow_in_their_order(void **state) {
    (void)state;
    struct scene scene;
    struct scene_reader readers[READERS];
    open_scene(&scene, readers);
    for (size_t i = 0; i < READERS; i++) {
        loop_turn(scene.loop);
        assert_int_equal(scene.granted, i); /* one for each that has left */
        tape_queue_leave(scene.queue);
    }
    loop_turn(scene.loop);
    assert_string_equal(scene.order, "bcde");
    struct tape_place again;
    assert_true(tape_queue_enter(scene.queue, &again, scene.loop, on_granted, &readers[0]));
    tape_queue_leave(scene.queue);
    close_scene(&scene);
}

static void who_is_cancelled_is_passed_over(void **state) {
    (void)state;
    struct scene scene;
    struct scene_reader readers[READERS];
    open_scene(&scene, readers);
    assert_true(tape_queue_cancel(scene.queue, &scene.places[1]));
    assert_true(tape_queue_cancel(scene.queue, &scene.places[3]));
    assert_false(tape_queue_cancel(scene.queue, &scene.places[0])); /* it reads */
    tape_queue_leave(scene.queue);
    assert_false(tape_queue_cancel(scene.queue, &scene.places[2])); /* its mail is on its way */
    loop_turn(scene.loop);
    assert_string_equal(scene.order, "c");
    assert_true(tape_queue_cancel(scene.queue, &scene.places[4]));
    tape_queue_leave(scene.queue);
    loop_turn(scene.loop);
    assert_string_equal(scene.order, "c");
    close_scene(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_reads_and_the_others_follow_in_their_order),
        cmocka_unit_test(who_is_cancelled_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
