/* Programs of /bin/sh as tools, with this test as their guard. */
#include "tool/command.h"

#include "helper/as_guard.h"
#include "helper/assert_str.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS "{\"a\": 1}"

struct scene {
    struct loop *loop;
    struct tool *tool;
    size_t awaited, answers;
    bool failed;
    enum err_code code;
    struct buf said;
};

static void begin_with(struct scene *scene, const char *script, size_t output, size_t at_once) {
    const char *args[] = {"sh", "-c", script, NULL};
    static const char *const environment[] = {"PATH=/usr/bin:/bin", "WORD=hello", NULL};
    struct command_options options = {.name = STR("try"),
                                      .description = STR("Tries."),
                                      .parameters = STR("{\"type\":\"object\"}"),
                                      .path = "/bin/sh",
                                      .args = args,
                                      .environment = environment,
                                      .output_max_bytes = output,
                                      .at_once = at_once};
    struct err e;
    *scene = (struct scene){.loop = loop_new()};
    buf_init(&scene->said, MIB);
    if (!command_tool_new(&options, &scene->tool, &e)) fail_msg("%s", e.text);
}

static void begin(struct scene *scene, const char *script) {
    begin_with(scene, script, 64 * KIB, 4);
}

/* No child of ours is left, neither alive nor as a zombie. */
static void end(struct scene *scene) {
    tool_free(scene->tool);
    loop_free(scene->loop);
    buf_done(&scene->said);
    while (waitpid(-1, NULL, 0) > 0) {
    }
}

static void on_done(struct str result, const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    scene->answers++;
    scene->failed = failed != NULL;
    scene->code = failed ? failed->code : ERR_NONE;
    buf_clear(&scene->said);
    buf_append(&scene->said, failed ? err_text(failed) : result);
    if (scene->answers == scene->awaited) loop_stop(scene->loop);
}

static struct tool_call *start(struct scene *scene) {
    struct tool_request request = {.call_id = STR("call_0"),
                                   .id = STR("c1"),
                                   .args = STR(ARGS),
                                   .agent = STR("clerk"),
                                   .workspace = STR("w"),
                                   .user = STR("u 1"),
                                   .session = str_of("a\0b", 3)};
    scene->awaited++;
    return scene->tool->kind->start(scene->tool, scene->loop, &request, on_done, scene);
}

static void says(const char *script, const char *expected) {
    struct scene scene;
    begin(&scene, script);
    start(&scene);
    assert_int_equal(scene.answers, 0);
    loop_run(scene.loop);
    assert_str(buf_str(&scene.said), expected);
    assert_false(scene.failed);
    end(&scene);
}

static void fails(const char *script, enum err_code code, const char *expected) {
    struct scene scene;
    begin(&scene, script);
    start(&scene);
    loop_run(scene.loop);
    assert_str(buf_str(&scene.said), expected);
    assert_int_equal(scene.code, code);
    end(&scene);
}

static void a_program_reads_the_arguments_and_writes_the_result(void **state) {
    (void)state;
    says("cat", "{\"output\":{\"a\":1}}");
    says("echo some text", "{\"output\":\"some text\"}");
    says("echo \"$WORD $WEIR_TOOL $WEIR_CALL_ID $WEIR_AGENT $WEIR_WORKSPACE $WEIR_USER"
         "<$WEIR_SESSION>\"",
         "{\"output\":\"hello try c1 clerk w u 1<>\"}");
    says("true", "{\"output\":\"\"}");
}

/* 320 bytes are shown: the first of them would be half a character. */
static const char *tail_expected(void) {
    static char text[400];
    snprintf(text, sizeof(text), "tool 'try' failed with status 4: %318s7", "");
    return text;
}

static void a_status_other_than_0_is_an_error_with_the_end_of_its_complaint(void **state) {
    (void)state;
    fails("echo lost; echo why >&2; exit 3", ERR_UNKNOWN,
          "tool 'try' failed with status 3: why");
    fails("exit 1", ERR_UNKNOWN, "tool 'try' failed with status 1");
    fails("head -c 100000 /dev/zero | tr '\\0' x >&2; printf '\\303\\244%319d' 7 >&2; exit 4",
          ERR_UNKNOWN, tail_expected());
    fails("kill -9 $$", ERR_EFFECT_UNKNOWN, "tool 'try' was ended by signal 9");
}

static void a_program_that_writes_without_end_is_ended(void **state) {
    (void)state;
    fails("echo $$ >&2; exec yes", ERR_EFFECT_UNKNOWN,
          "tool 'try' wrote more than 64KiB and was ended; the setting tools.try.output allows "
          "more");
}

static void a_background_process_of_a_program_does_not_hold_the_call(void **state) {
    (void)state;
    says("setsid sleep 600 & sleep 600 & echo ready", "{\"output\":\"ready\"}");
}

static bool is_alive(const char *pid) {
    return kill((pid_t)strtol(pid, NULL, 10), 0) == 0;
}

static void stop(void *ctx) {
    loop_stop(ctx);
}

static void a_cancelled_call_takes_all_that_it_started_with_it(void **state) {
    (void)state;
    struct scene scene;
    struct timer late;
    char path[] = "/tmp/weir-command-test-XXXXXX", script[256], pids[3][32];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    snprintf(script, sizeof(script),
             "trap '' TERM; setsid sleep 600 & echo $! >> %s; sleep 600 & echo $! >> %s; "
             "echo $$ >> %s; wait",
             path, path, path);
    begin(&scene, script);
    struct tool_call *call = start(&scene);
    timer_init(&late, scene.loop, stop, scene.loop);
    ssize_t len = 0;
    char text[128] = "";
    for (size_t lines = 0; lines < 3;) {
        timer_start(&late, 10);
        loop_run(scene.loop);
        len = pread(fd, text, sizeof(text) - 1, 0);
        lines = 0;
        for (ssize_t i = 0; i < len; i++) lines += text[i] == '\n';
    }
    assert_int_equal(sscanf(text, "%31s %31s %31s", pids[0], pids[1], pids[2]), 3);
    for (size_t i = 0; i < 3; i++) assert_true(is_alive(pids[i]));
    scene.tool->kind->cancel(call);
    end(&scene); /* waits for the guard, which leaves last */
    for (size_t i = 0; i < 3; i++) assert_false(is_alive(pids[i]));
    assert_int_equal(scene.answers, 0);
    close(fd);
    unlink(path);
}

static void more_calls_than_may_run_at_once_wait(void **state) {
    (void)state;
    struct scene scene;
    struct tool_call *calls[8];
    begin_with(&scene, "read line; echo \"$line\"", KIB, 2);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) calls[i] = start(&scene);
    scene.tool->kind->cancel(calls[7]);
    scene.tool->kind->cancel(calls[0]);
    scene.awaited -= 2;
    loop_run(scene.loop);
    assert_int_equal(scene.answers, 6);
    assert_str(buf_str(&scene.said), "{\"output\":{\"a\":1}}");
    end(&scene);
}

static void a_program_that_is_gone_is_named(void **state) {
    (void)state;
    struct scene scene;
    static const char *const none[] = {NULL}, *const args[] = {"x", NULL};
    struct err e;
    scene = (struct scene){.loop = loop_new()};
    buf_init(&scene.said, KIB);
    struct command_options options = {.name = STR("try"),
                                      .parameters = STR("{}"),
                                      .path = "/no/such/program",
                                      .args = args,
                                      .environment = none,
                                      .output_max_bytes = KIB,
                                      .at_once = 1};
    assert_true(command_tool_new(&options, &scene.tool, &e));
    start(&scene);
    loop_run(scene.loop);
    assert_str(buf_str(&scene.said),
               "tool 'try': cannot run '/no/such/program': No such file or directory");
    assert_int_equal(scene.code, ERR_NOT_FOUND);
    end(&scene);
}

int main(int arg_count, char **args) {
    as_guard(arg_count, args);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_reads_the_arguments_and_writes_the_result),
        cmocka_unit_test(a_status_other_than_0_is_an_error_with_the_end_of_its_complaint),
        cmocka_unit_test(a_program_that_writes_without_end_is_ended),
        cmocka_unit_test(a_background_process_of_a_program_does_not_hold_the_call),
        cmocka_unit_test(a_cancelled_call_takes_all_that_it_started_with_it),
        cmocka_unit_test(more_calls_than_may_run_at_once_wait),
        cmocka_unit_test(a_program_that_is_gone_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
