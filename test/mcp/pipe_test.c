/* A program that speaks MCP: `cat`, which answers with what it was sent. */
#include "mcp/pipe.h"

#include "helper/as_guard.h"
#include "helper/assert_str.h"
#include "helper/moves.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void only_the_drawn_moves_are_legal(void **state) {
    static const char *const drawn[] = {"down up", "up resting", "up down", "resting up",
                                        "resting down"};
    (void)state;
    assert_moves(pipe_states, PIPE_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

struct scene {
    struct loop *loop;
    struct mcp_pipe *pipe;
    struct buf said, unread;
    struct err down;
    int downs;
    struct timer late, rested;
};

static void on_message(struct json value, void *ctx) {
    struct scene *scene = ctx;
    buf_append(&scene->said, value.raw);
    loop_stop(scene->loop);
}

static void on_down(const struct err *why, void *ctx) {
    struct scene *scene = ctx;
    scene->down = *why;
    scene->downs++;
    loop_stop(scene->loop);
}

static void on_unread(struct str line, void *ctx) {
    struct scene *scene = ctx;
    buf_printf(&scene->unread, STR_FMT ";", STR_ARG(line));
}

static const struct pipe_events events = {on_message, on_unread, on_down};

static void on_late(void *ctx) {
    (void)ctx;
    fail_msg("nothing happens");
}

static void on_rested(void *ctx) {
    loop_stop(((struct scene *)ctx)->loop);
}

static void begin(struct scene *scene, const char *script) {
    static const char *args[] = {"sh", "-c", NULL, NULL};
    static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    args[2] = script;
    *scene = (struct scene){.loop = loop_new()};
    buf_init(&scene->said, KIB);
    buf_init(&scene->unread, KIB);
    timer_init(&scene->late, scene->loop, on_late, scene);
    timer_start(&scene->late, 20000);
    const struct pipe_options options = {
        .loop = scene->loop, .name = STR("test"), .args = args, .environment = environment};
    scene->pipe = pipe_new(&options, &events, scene);
}

static void finish(struct scene *scene) {
    timer_stop(&scene->late);
    pipe_free(scene->pipe);
    loop_free(scene->loop);
    buf_done(&scene->said);
    buf_done(&scene->unread);
}

static void what_a_program_writes_are_messages(void **state) {
    struct scene scene;
    struct err e;
    (void)state;
    begin(&scene, "echo noise; exec cat");
    assert_false(pipe_send(scene.pipe, STR("{}")));
    assert_true(pipe_start(scene.pipe, &e));
    assert_true(pipe_send(scene.pipe, STR("{\"a\":1}")));
    loop_run(scene.loop);
    assert_str(buf_str(&scene.said), "{\"a\":1}");
    finish(&scene);
}

static void a_program_that_ends_rests_before_it_is_started_again(void **state) {
    struct scene scene;
    struct err e;
    (void)state;
    begin(&scene, "kill -9 $$");
    assert_true(pipe_start(scene.pipe, &e));
    loop_run(scene.loop);
    assert_str(err_text(&scene.down), "ended by signal 9");
    assert_false(pipe_send(scene.pipe, STR("{}")));
    assert_false(pipe_start(scene.pipe, &e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    timer_init(&scene.rested, scene.loop, on_rested, &scene);
    timer_start(&scene.rested, 300);
    loop_run(scene.loop);
    assert_true(pipe_start(scene.pipe, &e));
    loop_run(scene.loop);
    assert_int_equal(scene.downs, 2);
    finish(&scene);
}

static void a_line_without_an_end_ends_the_program(void **state) {
    struct scene scene;
    struct err e;
    (void)state;
    begin(&scene, "exec tr '\\000' x </dev/zero");
    assert_true(pipe_start(scene.pipe, &e));
    loop_run(scene.loop);
    assert_str(err_text(&scene.down), "wrote a line of more than 4 MiB");
    finish(&scene);
}

static void a_program_that_is_not_there_is_named(void **state) {
    static const char *const args[] = {"no-such-program", NULL};
    static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    struct scene scene = {.loop = loop_new()};
    struct err e;
    (void)state;
    const struct pipe_options options = {
        .loop = scene.loop, .name = STR("test"), .args = args, .environment = environment};
    scene.pipe = pipe_new(&options, &events, &scene);
    assert_false(pipe_start(scene.pipe, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "no-such-program"));
    pipe_free(scene.pipe);
    loop_free(scene.loop);
}

/* Half of a surrogate pair is mended; what else is no JSON is handed on as it is. */
static void a_line_that_is_no_json_is_mended_or_handed_on(void **state) {
    struct scene scene;
    struct err e;
    (void)state;
    begin(&scene, "exec cat");
    assert_true(pipe_start(scene.pipe, &e));
    assert_true(pipe_send(scene.pipe, STR("{\"id\":1,\"result\":tru}")));
    assert_true(pipe_send(scene.pipe, STR("{\"a\":\"x\\ud83d\"}")));
    loop_run(scene.loop);
    assert_str(buf_str(&scene.unread), "{\"id\":1,\"result\":tru};");
    assert_str(buf_str(&scene.said), "{\"a\":\"x\\ufffd\"}");
    finish(&scene);
}

int main(int arg_count, char **args) {
    as_guard(arg_count, args);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_legal),
        cmocka_unit_test(what_a_program_writes_are_messages),
        cmocka_unit_test(a_line_that_is_no_json_is_mended_or_handed_on),
        cmocka_unit_test(a_program_that_ends_rests_before_it_is_started_again),
        cmocka_unit_test(a_line_without_an_end_ends_the_program),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
