#include "sidecar/deliveries.h"

#include "base/mem.h"
#include "fake/http_fake.h"
#include "helper/assert_str.h"
#include "helper/test_folder.h"
#include "sidecar/delivery_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SENT_LINE "{\"sent\":\"0000000000000001-1\"}\n"

struct scene {
    char folder[TEST_FOLDER_BYTES];
    char file[TEST_FOLDER_BYTES + 16], beside[TEST_FOLDER_BYTES + 16];
    struct loop *loop;
    struct http_pool *pool;
    struct deliveries *deliveries;
    unsigned kept, refused;
    bool stopped;
};

static void start(struct scene *scene, bool on_disk) {
    struct err e;
    const struct deliveries_options options = {.loop = scene->loop,
                                               .pool = scene->pool,
                                               .url = STR("http://platform/"),
                                               .file =
                                                   on_disk ? str_from(scene->file) : STR_EMPTY};
    assert_true(deliveries_new(&options, &scene->deliveries, &e));
    loop_advance(scene->loop, 1);
}

static void on_stopped(void *ctx) {
    struct scene *scene = ctx;
    scene->stopped = true;
}

static void stop(struct scene *scene) {
    scene->stopped = false;
    deliveries_stop(scene->deliveries, on_stopped, scene);
    loop_turn(scene->loop);
    assert_true(scene->stopped);
    deliveries_free(scene->deliveries);
    scene->deliveries = NULL;
}

static void set_up(struct scene *scene) {
    *scene = (struct scene){.kept = 0};
    test_folder_make(scene->folder);
    snprintf(scene->file, sizeof(scene->file), "%s/outbox", scene->folder);
    snprintf(scene->beside, sizeof(scene->beside), "%s/outbox.new", scene->folder);
    scene->loop = loop_new_fake();
    scene->pool = http_pool_new();
}

static void tear_down(struct scene *scene) {
    stop(scene);
    http_pool_free(scene->pool);
    loop_free(scene->loop);
    test_folder_remove(scene->folder);
}

static void on_kept(const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    *(failed ? &scene->refused : &scene->kept) += 1;
}

static void put_body(struct scene *scene, struct str body, bool once) {
    const struct delivery_event event = {STR("/costs"), body, once};
    deliveries_put(scene->deliveries, &event, 1, on_kept, scene);
    loop_turn(scene->loop);
}

static void put(struct scene *scene) {
    put_body(scene, STR("{\"a\":1}"), false);
}

static uint64_t size_of(const char *path) {
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return (uint64_t)found.st_size;
}

/* A file that has grown far beyond what waits. */
static void write_long_file(const struct scene *scene) {
    struct buf text;
    buf_init(&text, 4 * MIB);
    while (text.len < 2 * MIB) buf_append(&text, STR(SENT_LINE));
    buf_append_byte(&text, 0);
    write_file(scene->file, text.at);
    buf_done(&text);
}

/* Answer the call that is out. */
static void answer(const struct scene *scene, unsigned status) {
    struct http_call *call = fake_http_call(scene->pool, 0);
    assert_true(fake_http_head(call, status, "application/json"));
    fake_http_end(call);
    loop_turn(scene->loop);
}

/* --- the file --------------------------------------------------------------------------------- */

static void a_file_that_cannot_be_replaced_is_appended_to(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    write_long_file(&scene);
    uint64_t before = size_of(scene.file);
    assert_int_equal(mkdir(scene.beside, 0700), 0);
    start(&scene, true);
    for (unsigned i = 0; i < 3; i++) put(&scene);
    assert_int_equal(scene.kept, 3);
    assert_int_equal(scene.refused, 0);
    assert_true(size_of(scene.file) > before);
    stop(&scene);

    start(&scene, true);
    assert_int_equal(deliveries_counts(scene.deliveries).waiting, 3);
    tear_down(&scene);
}

static void it_is_replaced_again_after_a_pause(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    write_long_file(&scene);
    assert_int_equal(mkdir(scene.beside, 0700), 0);
    start(&scene, true);
    put(&scene);
    assert_int_equal(rmdir(scene.beside), 0);
    put(&scene);
    assert_true(size_of(scene.file) > 2 * MIB);
    loop_advance(scene.loop, 60000);
    put(&scene);
    assert_true(size_of(scene.file) < 1 * KIB);
    assert_int_equal(scene.kept, 3);
    tear_down(&scene);
}

static void a_file_that_cannot_be_replaced_does_not_delay_the_stop(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    start(&scene, true);
    put(&scene);
    stop(&scene);
    write_long_file(&scene);
    assert_int_equal(mkdir(scene.beside, 0700), 0);
    start(&scene, true);
    tear_down(&scene);
}

static void a_cut_line_swallows_nothing(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    write_file(scene.file, "{\"id\":\"5-1\",\"path\":\"/costs\",\"bo");
    start(&scene, true);
    put(&scene);
    stop(&scene);
    start(&scene, true);
    assert_int_equal(deliveries_counts(scene.deliveries).waiting, 1);
    tear_down(&scene);
}

static void what_waits_is_bounded_in_bytes_and_can_be_loaded(void **state) {
    (void)state;
    struct scene scene;
    struct buf body;
    set_up(&scene);
    start(&scene, true);
    buf_init(&body, 64 * KIB);
    buf_append(&body, STR("{\"a\":\""));
    while (body.len < 60 * KIB) buf_append(&body, STR("abcdefgh"));
    buf_append(&body, STR("\"}"));
    for (unsigned i = 0; i < 400; i++) put_body(&scene, buf_str(&body), false);
    buf_done(&body);
    assert_true(scene.kept > 200);
    assert_true(scene.refused > 100);
    assert_true(size_of(scene.file) <= DELIVERIES_MAX_BYTES);
    uint64_t waiting = deliveries_counts(scene.deliveries).waiting;
    assert_int_equal(waiting, scene.kept);
    stop(&scene);
    start(&scene, true);
    assert_int_equal(deliveries_counts(scene.deliveries).waiting, waiting);
    tear_down(&scene);
}

static void a_full_file_refuses_lines_and_opens_again(void **state) {
    (void)state;
    struct scene scene;
    struct delivery_file file;
    struct buf text;
    struct err e;
    set_up(&scene);
    buf_init(&text, DELIVERY_FILE_MAX_BYTES);
    assert_true(delivery_file_open(&file, str_from(scene.file), &text, &e));
    file.bytes = DELIVERY_FILE_MAX_BYTES - 2;
    assert_false(delivery_file_append(&file, STR("abc"), &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    delivery_file_close(&file);
    buf_done(&text);
    start(&scene, true);
    tear_down(&scene);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void an_event_of_best_effort_holds_up_no_other(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    start(&scene, false);
    put_body(&scene, STR("{\"audit\":1}"), true);
    put(&scene);
    assert_str(fake_http_request(fake_http_call(scene.pool, 0))->body, "{\"audit\":1}");
    answer(&scene, 503);
    assert_str(fake_http_request(fake_http_call(scene.pool, 0))->body, "{\"a\":1}");
    answer(&scene, 201);
    struct delivery_counts counts = deliveries_counts(scene.deliveries);
    assert_int_equal(counts.dropped, 1);
    assert_int_equal(counts.failed, 1);
    assert_int_equal(counts.sent, 1);
    assert_int_equal(counts.waiting, 0);
    tear_down(&scene);
}

static void it_stays_one_of_best_effort_in_the_file(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    start(&scene, true);
    put_body(&scene, STR("{\"audit\":1}"), true);
    stop(&scene);
    start(&scene, true);
    answer(&scene, 500);
    assert_int_equal(deliveries_counts(scene.deliveries).dropped, 1);
    tear_down(&scene);
}

static void a_redirect_is_a_failure_that_may_pass(void **state) {
    (void)state;
    struct scene scene;
    set_up(&scene);
    start(&scene, false);
    put(&scene);
    answer(&scene, 302);
    assert_int_equal(deliveries_counts(scene.deliveries).waiting, 1);
    assert_int_equal(fake_http_calls(scene.pool), 0);
    loop_advance(scene.loop, DELIVERY_FIRST_WAIT_MS);
    answer(&scene, 200);
    assert_int_equal(deliveries_counts(scene.deliveries).sent, 1);
    tear_down(&scene);
}

static struct text key_of(const struct scene *scene) {
    return text_copy(fake_http_header(fake_http_call(scene->pool, 0), "Idempotency-Key"));
}

static void two_processes_give_no_event_the_same_key(void **state) {
    (void)state;
    struct scene one, other;
    set_up(&one);
    set_up(&other);
    start(&one, true);
    start(&other, true);
    put(&one);
    put(&other);
    struct text first = key_of(&one), second = key_of(&other);
    assert_false(str_equal(text_str(first), text_str(second)));
    stop(&one); /* the next process sends it under the same key */
    start(&one, true);
    struct text again = key_of(&one);
    assert_true(str_equal(text_str(again), text_str(first)));
    text_done(&first);
    text_done(&second);
    text_done(&again);
    tear_down(&one);
    tear_down(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_cannot_be_replaced_is_appended_to),
        cmocka_unit_test(it_is_replaced_again_after_a_pause),
        cmocka_unit_test(a_file_that_cannot_be_replaced_does_not_delay_the_stop),
        cmocka_unit_test(a_cut_line_swallows_nothing),
        cmocka_unit_test(what_waits_is_bounded_in_bytes_and_can_be_loaded),
        cmocka_unit_test(a_full_file_refuses_lines_and_opens_again),
        cmocka_unit_test(an_event_of_best_effort_holds_up_no_other),
        cmocka_unit_test(it_stays_one_of_best_effort_in_the_file),
        cmocka_unit_test(a_redirect_is_a_failure_that_may_pass),
        cmocka_unit_test(two_processes_give_no_event_the_same_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
