/* Commands in a sandbox, with this test as their guard. What they try against it is in
 * test/e2e/test_exec.py. */
#include "tool/exec.h"

#include "helper/as_guard.h"
#include "helper/assert_str.h"
#include "helper/test_folder.h"

#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct scene {
    char root[64];
    struct loop *loop;
    struct tool *tool;
    size_t awaited, answers;
    enum err_code code;
    struct buf said;
    bool gathers; /* what all calls say */
    struct timer soon;
    struct tool_call *calls[2];
};

static void on_done(struct str result, const struct err *failed, void *ctx) {
    struct scene *scene = ctx;
    scene->code = failed ? failed->code : ERR_NONE;
    if (!scene->gathers) buf_clear(&scene->said);
    buf_append(&scene->said, failed ? err_text(failed) : result);
    if (++scene->answers == scene->awaited) loop_stop(scene->loop);
}

/* False: this machine cannot shut a command in, and the error says so. */
static bool begin_many(struct scene *scene, uint64_t timeout_ms, uint64_t at_once) {
    struct err e;
    *scene = (struct scene){.root = ""};
    test_folder_make(scene->root);
    assert_int_equal(chmod(scene->root, 0755), 0);
    struct exec_options options = {.root = str_from(scene->root),
                                   .limits = {.memory_bytes = 256 * MIB,
                                              .cpu_s = 10,
                                              .processes = 16,
                                              .file_bytes = MIB,
                                              .scratch_bytes = MIB},
                                   .disk_bytes = MIB,
                                   .output_bytes = KIB,
                                   .timeout_ms = timeout_ms,
                                   .idle_ms = 60000,
                                   .at_once = at_once};
    if (!exec_tool_new(&options, &scene->tool, &e)) {
        assert_int_equal(e.code, ERR_UNIMPLEMENTED);
        assert_true(e.text[0]);
        rmdir(scene->root);
        return false;
    }
    scene->loop = loop_new();
    buf_init(&scene->said, MIB);
    return true;
}

static bool begin(struct scene *scene, uint64_t timeout_ms) {
    return begin_many(scene, timeout_ms, 1);
}

static struct tool_call *start_in(struct scene *scene, const char *session, const char *args) {
    struct tool_request request = {.call_id = STR("c1"),
                                   .args = str_from(args),
                                   .agent = STR("a"),
                                   .workspace = STR("w"),
                                   .user = STR("u"),
                                   .session = str_from(session)};
    scene->awaited++;
    return scene->tool->kind->start(scene->tool, scene->loop, &request, on_done, scene);
}

static struct tool_call *start(struct scene *scene, const char *args) {
    return start_in(scene, "s", args);
}

/* No child of ours is left. */
static void end(struct scene *scene) {
    tool_free(scene->tool);
    loop_free(scene->loop);
    buf_done(&scene->said);
    while (waitpid(-1, NULL, 0) > 0) {
    }
    test_folder_remove(scene->root);
}

static void says(struct scene *scene, const char *args, const char *expected) {
    start(scene, args);
    loop_run(scene->loop);
    assert_int_equal(scene->code, ERR_NONE);
    assert_str(buf_str(&scene->said), expected);
}

static void fails(struct scene *scene, const char *args, const char *why) {
    start(scene, args);
    loop_run(scene->loop);
    assert_true(scene->code != ERR_NONE);
    if (str_find(buf_str(&scene->said), str_from(why)) == scene->said.len)
        fail_msg("'" STR_FMT "' is not '%s'", STR_ARG(buf_str(&scene->said)), why);
}

static void a_command_answers_with_what_it_says(void **state) {
    struct scene scene;
    (void)state;
    if (!begin(&scene, 20000)) skip();
    assert_true(scene.tool->asks);
    says(&scene, "{\"command\":\"echo a; echo b >&2; pwd; exit 7\"}",
         "{\"exit_code\":7,\"stdout\":\"a\\n/workspace\\n\",\"stderr\":\"b\\n\"}");
    says(&scene, "{\"command\":\"kill -XFSZ $$\"}",
         "{\"exit_code\":153,\"ended\":\"it reached the limit of a file's size, or filled the "
         "workspace\","
         "\"stdout\":\"\",\"stderr\":\"\"}");
    start(&scene, "{\"command\":\"yes\"}");
    loop_run(scene.loop);
    assert_true(str_starts(buf_str(&scene.said),
                           STR("{\"ended\":\"it said more than the output limit")));
    end(&scene);
}

static void a_missing_command_fails(void **state) {
    struct scene scene;
    char path[96];
    (void)state;
    if (!begin(&scene, 20000)) skip();
    fails(&scene, "{\"command\":5}", "exec: the argument 'command' must be a string");
    fails(&scene, "{\"command\":\"a\\u0000b\"}", "exec: a command has no NUL byte");
    snprintf(path, sizeof(path), "%s/workspaces", scene.root);
    fclose(fopen(path, "w")); /* where a folder should be */
    fails(&scene, "{\"command\":\"true\"}", "exec: the folder of the workspace cannot be made");
    end(&scene);
}

static void a_command_that_takes_too_long_is_ended(void **state) {
    struct scene scene;
    (void)state;
    if (!begin(&scene, 300)) skip();
    says(&scene, "{\"command\":\"trap '' TERM; while :; do sleep 1; done\"}",
         "{\"ended\":\"it took longer than the time limit, and was ended\",\"stdout\":\"\","
         "\"stderr\":\"\"}");
    end(&scene);
}

/* A neighbour that cannot be read, and one that fills the workspace, end only themselves. */
static void a_call_answers_for_its_own_folder(void **state) {
    struct scene scene;
    (void)state;
    if (!begin_many(&scene, 20000, 3)) skip();
    scene.gathers = true;
    start_in(&scene, "s-1", "{\"command\":\"mkdir shut; chmod 0 shut; echo was shut\"}");
    loop_run(scene.loop);
    start_in(&scene, "s-2",
             "{\"command\":\"until test -e /tmp/n$n; do sleep 0.1; n=x$n; "
             "test ${#n} -gt 15 && touch /tmp/n$n; done; echo fine\"}");
    start_in(&scene, "s-3",
             "{\"command\":\"for i in 1 2 3 4; do head -c 900K /dev/zero > f$i; done; "
             "sleep 10\"}");
    loop_run(scene.loop);
    struct str said = buf_str(&scene.said);
    assert_true(str_find(said, STR("was shut")) < said.len);
    assert_true(str_find(said, STR("\"exit_code\":0,\"stdout\":\"fine\\n\"")) < said.len);
    assert_true(str_find(said, STR("it filled the workspace beyond its limit")) < said.len);
    end(&scene);
}

static void cancel_all(void *ctx) {
    struct scene *scene = ctx;
    for (size_t i = 0; i < ARRAY_LEN(scene->calls); i++)
        scene->tool->kind->cancel(scene->calls[i]);
    loop_stop(scene->loop);
}

/* One runs, or is just being begun, and one waits for its slot. */
static void cancelled_calls_end_wherever_they_are(void **state) {
    static const uint64_t moments_ms[] = {0, 1, 20, 400};
    (void)state;
    for (size_t m = 0; m < ARRAY_LEN(moments_ms); m++) {
        struct scene scene;
        if (!begin(&scene, 20000)) skip();
        for (size_t i = 0; i < ARRAY_LEN(scene.calls); i++)
            scene.calls[i] = start(&scene, "{\"command\":\"trap '' TERM; sleep 60\"}");
        timer_init(&scene.soon, scene.loop, cancel_all, &scene);
        timer_start(&scene.soon, moments_ms[m]);
        loop_run(scene.loop);
        assert_int_equal(scene.answers, 0);
        scene.awaited = 0;
        scene.answers = 0;
        says(&scene, "{\"command\":\"echo on\"}",
             "{\"exit_code\":0,\"stdout\":\"on\\n\",\"stderr\":\"\"}");
        end(&scene);
    }
}

int main(int arg_count, char **args) {
    as_guard(arg_count, args);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_answers_with_what_it_says),
        cmocka_unit_test(a_missing_command_fails),
        cmocka_unit_test(a_command_that_takes_too_long_is_ended),
        cmocka_unit_test(a_call_answers_for_its_own_folder),
        cmocka_unit_test(cancelled_calls_end_wherever_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
