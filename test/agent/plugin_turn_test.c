#include "agent/plugin_turn.h"

#include "base/mem.h"
#include "helper/assert_str.h"
#include "helper/reply_heard.h"
#include <weir/agent.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* --- an agent of the test's own, and a loop that hears it --------------------------------- */

static void (*does)(const struct weir_turn *turn, const struct weir_host *host);

static void turn_of(const struct weir_turn *turn, const struct weir_host *host) {
    does(turn, host);
}

static const struct weir_agent agent = {sizeof(agent), WEIR_AGENT_ABI, turn_of};

struct scene {
    struct loop *loop;
    struct plugin *plugin;
    struct plugin_turn *turn;
    struct timer patience;
    struct buf heard;
    size_t leaves_after; /* events; 0: the ending */
    size_t count;
};

static void leave(struct scene *scene) {
    plugin_turn_leave(scene->turn);
    scene->turn = NULL;
    loop_stop(scene->loop);
}

static void on_ready(void *ctx) {
    struct scene *scene = ctx;
    struct reply_copy *copy;
    while (scene->turn && (copy = plugin_turn_next(scene->turn))) {
        bool ends = reply_event_ends(&copy->event);
        reply_heard(&scene->heard, NULL, &copy->event);
        reply_copy_free(copy);
        if (ends || ++scene->count == scene->leaves_after) leave(scene);
    }
}

static void on_patience(void *ctx) {
    (void)ctx;
    fail_msg("%s", "nothing more came");
}

/* The threads have come back: they hold the plugin no more. */
static void all_back(const struct scene *scene) {
    for (int i = 0; i < 20000 && atomic_load(&scene->plugin->refs) > 1; i++) usleep(1000);
    assert_int_equal(atomic_load(&scene->plugin->refs), 1);
    assert_int_equal(atomic_load(&scene->plugin->threads), 0);
}

static void run_turn(struct scene *scene, const struct message *messages, size_t count) {
    const struct provider_request request = {.agent = STR("ann"),
                                             .workspace = STR("w"),
                                             .user = STR("u"),
                                             .session = STR("s"),
                                             .messages = messages,
                                             .message_count = count};
    struct err e;
    scene->count = 0;
    buf_clear(&scene->heard);
    timer_start(&scene->patience, 20000);
    assert_true(plugin_turn_start(scene->plugin, scene->loop, &request, on_ready, scene,
                                  &scene->turn, &e));
    loop_run(scene->loop);
    timer_stop(&scene->patience);
}

static void scene_init(struct scene *scene) {
    *scene = (struct scene){.loop = loop_new(), .plugin = MEM_NEW(struct plugin)};
    atomic_init(&scene->plugin->refs, 1);
    scene->plugin->agent = &agent;
    buf_init(&scene->plugin->config, KIB);
    buf_append(&scene->plugin->config, STR("{\"city\":\"Kyoto\"}"));
    buf_append_byte(&scene->plugin->config, '\0');
    buf_init(&scene->heard, MIB);
    timer_init(&scene->patience, scene->loop, on_patience, scene);
}

static void scene_done(struct scene *scene) {
    loop_free(scene->loop); /* a mail may be under way */
    all_back(scene);
    plugin_unref(scene->plugin);
    buf_done(&scene->heard);
}

static int setup(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    scene_init(scene);
    *state = scene;
    return 0;
}

static int teardown(void **state) {
    struct scene *scene = *state;
    scene_done(scene);
    free(scene);
    return 0;
}

/* --- turns -------------------------------------------------------------------------------- */

static void says(const struct weir_turn *turn, const struct weir_host *host) {
    assert_int_equal(turn->size, sizeof(*turn));
    assert_int_equal(host->size, sizeof(*host));
    host->say(host->ctx, turn->input);
    host->say(host->ctx, "");
    host->think(host->ctx, turn->config);
    host->step(host->ctx, turn->session);
    host->usage(host->ctx, "m", 1, -5);
}

static const struct message hello[] = {{.role = MESSAGE_USER, .text = STR_INIT("hello")}};

static void words_of_a_plugin_come_in_order_with_one_ending(void **state) {
    struct scene *scene = *state;
    does = says;
    run_turn(scene, hello, 1);
    assert_str(buf_str(&scene->heard),
               "text(hello) thinking({\"city\":\"Kyoto\"}) note(s) usage(m) done() ");
}

/* It asks for a tool twice, and a person in between. */
static void works(const struct weir_turn *turn, const struct weir_host *host) {
    const struct weir_call call = {"look", "{\"at\":1}"}, again = {"look", NULL};
    struct weir_result result;
    host->say(host->ctx, "a");
    if (host->call(host->ctx, &call, 1, &result) == WEIR_OVER) return;
    host->say(host->ctx, result.failed ? "failed" : result.result);
    if (host->ask(host->ctx, "go on?", &result) == WEIR_OVER) return;
    host->say(host->ctx, result.result);
    if (host->call(host->ctx, &again, 1, &result) == WEIR_OVER) return;
    host->say(host->ctx, result.failed ? result.result : "?");
    (void)turn;
}

#define CALL(id, name, args)                                                                   \
    {                                                                                          \
        .role = MESSAGE_TOOL_CALL, .agent = STR_INIT("ann"), .call_id = STR_INIT(id),          \
        .tool = STR_INIT(name), .text = STR_INIT(args)                                         \
    }
#define RESULT(id, result, failed)                                                             \
    {                                                                                          \
        .role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT(id), .text = STR_INIT(result),        \
        .error = failed                                                                        \
    }

static const struct message so_far[] = {
    {.role = MESSAGE_USER, .text = STR_INIT("hello")},
    CALL("1", "look", "{\"at\":1}"),
    RESULT("1", "{\"seen\":2}", false),
    CALL("2", "request_approval", "{}"),
    RESULT("2", "{\"answer\":\"yes\"}", false),
    CALL("3", "look", "{}"),
    RESULT("3", "{\"error\":\"no\"}", true),
};

static void a_turn_that_begins_anew_goes_on_where_it_was(void **state) {
    struct scene *scene = *state;
    static const char *const heard[] = {
        "text(a) call(,look,{\"at\":1}) done() ",
        "text({\"seen\":2}) approval(go on?) done() ",
        "text({\"answer\":\"yes\"}) call(,look,{}) done() ",
        "text({\"error\":\"no\"}) done() ",
    };
    does = works;
    for (size_t calls = 0; calls < ARRAY_LEN(heard); calls++) {
        run_turn(scene, so_far, 1 + 2 * calls);
        assert_str(buf_str(&scene->heard), heard[calls]);
    }
}

static void wanders(const struct weir_turn *turn, const struct weir_host *host) {
    const struct weir_call call = {"another", "{}"};
    struct weir_result result;
    (void)turn;
    assert_int_equal(host->call(host->ctx, &call, 1, &result), WEIR_OVER);
    assert_int_equal(host->say(host->ctx, "more"), WEIR_OVER);
    assert_true(host->cancelled(host->ctx));
}

static void another_call_than_the_one_on_record_fails_the_turn(void **state) {
    struct scene *scene = *state;
    does = wanders;
    run_turn(scene, so_far, 3);
    assert_str(buf_str(&scene->heard), "failed(AGENT_PROTOCOL) ");
}

static void gives_up(const struct weir_turn *turn, const struct weir_host *host) {
    (void)turn;
    assert_int_equal((host->fail)(host->ctx, "NOT_FOUND", "gone"), WEIR_OVER);
    assert_int_equal((host->fail)(host->ctx, "", NULL), WEIR_OVER);
    assert_int_equal(host->call(host->ctx, NULL, 0, NULL), WEIR_OVER);
}

static void a_failure_is_heard_once(void **state) {
    struct scene *scene = *state;
    does = gives_up;
    run_turn(scene, hello, 1);
    assert_str(buf_str(&scene->heard), "failed(AGENT_FAILED) ");
}

static void floods(const struct weir_turn *turn, const struct weir_host *host) {
    char text[1025];
    (void)turn;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    while (host->say(host->ctx, text) == WEIR_OK) {
    }
    assert_true(host->cancelled(host->ctx));
}

static void *floods_on_thread(void *ctx) {
    floods(NULL, ctx);
    return NULL;
}

static void floods_in_threads(const struct weir_turn *turn, const struct weir_host *host) {
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, floods_on_thread, (void *)(uintptr_t)host);
    floods(turn, host);
    for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* It waits for the loop while much is queued, and hears that no reader is left. */
static void a_listener_that_leaves_ends_a_turn_that_never_would(void **state) {
    struct scene *scene = *state;
    does = floods;
    for (size_t after = 1; after < 300; after += 97) {
        scene->leaves_after = after;
        run_turn(scene, hello, 1);
        assert_int_equal(scene->heard.len, after * strlen("text() ") + after * 1024);
    }
}

/* Threads of the agent speak while its own thread makes calls. */
#define THREADS 4
#define WORDS 500

static void *speaks(void *ctx) {
    const struct weir_host *host = ctx;
    for (int i = 0; i < WORDS; i++) {
        host->say(host->ctx, "x");
        host->usage(host->ctx, "m", 1, 1);
        if (host->cancelled(host->ctx)) break;
    }
    return NULL;
}

static void speaks_in_threads(const struct weir_turn *turn, const struct weir_host *host) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, speaks, (void *)(uintptr_t)host);
    works(turn, host);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void threads_of_the_agent_may_speak_too(void **state) {
    struct scene *scene = *state;
    does = speaks_in_threads;
    for (size_t calls = 0; calls < 4; calls++) {
        run_turn(scene, so_far, 1 + 2 * calls);
        assert_true(str_ends(buf_str(&scene->heard), STR("done() ")));
    }
    does = floods_in_threads;
    scene->leaves_after = 100;
    run_turn(scene, hello, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(words_of_a_plugin_come_in_order_with_one_ending),
        TEST(a_turn_that_begins_anew_goes_on_where_it_was),
        TEST(another_call_than_the_one_on_record_fails_the_turn),
        TEST(a_failure_is_heard_once),
        TEST(a_listener_that_leaves_ends_a_turn_that_never_would),
        TEST(threads_of_the_agent_may_speak_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
