#include "agent/process.h"

#include "agent/process_turn.h"
#include "base/buf.h"
#include "base/mem.h"
#include "helper/as_guard.h"
#include "helper/moves.h"
#include "loop/loop.h"

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "idle busy",     "idle gone",     "busy idle",     "busy held",
        "busy draining", "busy gone",     "held busy",     "held draining",
        "held gone",     "draining idle", "draining gone",
    };
    assert_moves(process_states, PROCESS_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* A turn of "worker" that was asked before: it called twice, and another agent once. */
static const struct message messages[] = {
    {.role = MESSAGE_USER, .text = STR_INIT("earlier")},
    {.role = MESSAGE_TOOL_CALL, .agent = STR_INIT("worker"), .call_id = STR_INIT("0")},
    {.role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT("0"), .text = STR_INIT("{}")},
    {.role = MESSAGE_USER, .text = STR_INIT("do\n\"it\"")},
    {.role = MESSAGE_OPAQUE, .text = STR_INIT("for its provider alone")},
    {.role = MESSAGE_TOOL_CALL,
     .agent = STR_INIT("worker"),
     .call_id = STR_INIT("1"),
     .tool = STR_INIT("look"),
     .text = STR_INIT("{\n \"a\": 1.50\n}")},
    {.role = MESSAGE_TOOL_CALL,
     .agent = STR_INIT("worker"),
     .call_id = STR_INIT("2"),
     .tool = STR_INIT("do"),
     .text = STR_INIT("{}")},
    {.role = MESSAGE_TOOL_RESULT,
     .call_id = STR_INIT("2"),
     .text = STR_INIT("plain words"),
     .error = true},
    {.role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT("1"), .text = STR_INIT("{\"x\":[1, 2]}")},
    {.role = MESSAGE_TOOL_CALL, .agent = STR_INIT("other"), .call_id = STR_INIT("3")},
};

static const struct tool_offer tools[] = {
    {STR_INIT("look"), STR_INIT("Looks."), STR_INIT("{\n  \"type\": \"object\"\n}")}};

static const struct provider_request request = {.agent = STR_INIT("worker"),
                                                .model = STR_INIT("m"),
                                                .system = STR_INIT("be brief"),
                                                .messages = messages,
                                                .message_count = ARRAY_LEN(messages),
                                                .turn_start = 3,
                                                .tools = tools,
                                                .tool_count = 1,
                                                .workspace = STR_INIT("w"),
                                                .user = STR_INIT("u"),
                                                .session = STR_INIT("s"),
                                                .extras = STR_INIT("{\"config\":{\"a\":[1]}}")};

static void a_turn_is_one_line_with_the_calls_made_so_far(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 64 * KIB);
    assert_int_equal(process_turn_calls(&request), 2);
    assert_true(process_turn_append(&request, STR("7-1"), &out));
    assert_str(
        buf_str(&out),
        "{\"type\":\"turn\",\"turn\":\"7-1\",\"agent\":\"worker\",\"workspace\":\"w\","
        "\"user\":\"u\",\"session\":\"s\",\"model\":\"m\",\"instructions\":\"be brief\","
        "\"input\":\"do\\n\\\"it\\\"\",\"messages\":["
        "{\"role\":\"user\",\"text\":\"earlier\"},"
        "{\"role\":\"tool_call\",\"agent\":\"worker\",\"call\":\"0\",\"args\":\"\"},"
        "{\"role\":\"tool_result\",\"call\":\"0\",\"result\":{},\"error\":false},"
        "{\"role\":\"user\",\"text\":\"do\\n\\\"it\\\"\"},"
        "{\"role\":\"tool_call\",\"agent\":\"worker\",\"call\":\"1\",\"tool\":\"look\","
        "\"args\":{\"a\":1.50}},"
        "{\"role\":\"tool_call\",\"agent\":\"worker\",\"call\":\"2\",\"tool\":\"do\","
        "\"args\":{}},"
        "{\"role\":\"tool_result\",\"call\":\"2\",\"result\":\"plain words\",\"error\":true},"
        "{\"role\":\"tool_result\",\"call\":\"1\",\"result\":{\"x\":[1,2]},\"error\":false},"
        "{\"role\":\"tool_call\",\"agent\":\"other\",\"call\":\"3\",\"args\":\"\"}],"
        "\"calls\":[{\"tool\":\"look\",\"args\":{\"a\":1.50},\"result\":{\"x\":[1,2]},"
        "\"error\":false},{\"tool\":\"do\",\"args\":{},\"result\":\"plain words\","
        "\"error\":true}],"
        "\"config\":{\"a\":[1]},\"metadata\":{},\"tools\":[{\"name\":\"look\",\"description\":"
        "\"Looks.\",\"parameters\":"
        "{\"type\":\"object\"}}]}\n");
    buf_done(&out);
}

static void results_are_delivered_from_the_first_new_one(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 64 * KIB);
    assert_true(process_turn_results(&request, STR("7-1"), 1, &out));
    assert_str(buf_str(&out),
               "{\"type\":\"result\",\"turn\":\"7-1\",\"result\":\"plain words\","
               "\"error\":true}\n");
    buf_clear(&out);
    assert_true(process_turn_results(&request, STR("7-1"), 2, &out));
    assert_str(buf_str(&out), "");
    buf_done(&out);
}

static void a_line_that_does_not_fit_is_none(void **state) {
    (void)state;
    for (size_t room = 0; room < 100; room++) {
        struct buf out;
        buf_init(&out, room);
        assert_false(process_turn_append(&request, STR("7-1"), &out));
        buf_done(&out);
    }
}

/* --- a program ---------------------------------------------------------------------------- */

struct scene {
    struct loop *loop;
    enum reply_kind ended;
    struct buf said;
};

static void on_reply(const struct reply_event *event, void *ctx) {
    struct scene *scene = ctx;
    if (event->kind != REPLY_DONE && event->kind != REPLY_FAILED) return;
    scene->ended = event->kind;
    buf_clear(&scene->said);
    buf_append(&scene->said, event->kind == REPLY_DONE ? event->model : event->reason);
    loop_stop(scene->loop);
}

/* One turn, whose model is the program's own word for itself: its process id. */
static void take_turn(struct scene *scene, struct provider *provider, size_t text_bytes) {
    struct message message = {.role = MESSAGE_USER};
    message.text = str_of(mem_zero(text_bytes + 1, 1), text_bytes);
    memset((char *)message.text.at, 'x', text_bytes);
    struct provider_request asked = {.agent = STR("worker"),
                                     .model = STR("m"),
                                     .messages = &message,
                                     .message_count = 1,
                                     .run = 7};
    (void)provider_call_start(provider, scene->loop, &asked, on_reply, scene);
    loop_run(scene->loop);
    free((char *)message.text.at);
}

/* The text stands in the line twice: 66 MiB. */
static void a_turn_that_is_too_long_is_refused_and_leaves_the_program_warm(void **state) {
    (void)state;
    static const char script[] =
        "while IFS= read -r line; do turn=${line#*'\"turn\":\"'}; turn=${turn%%'\"'*}; "
        "printf '{\"turn\":\"%s\",\"type\":\"usage\",\"model\":\"%s\"}\\n' \"$turn\" $$; "
        "printf '{\"turn\":\"%s\",\"type\":\"done\"}\\n' \"$turn\"; done";
    static const char *const command[] = {"bash", "-c", script, NULL};
    static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    struct scene scene = {.loop = loop_new()};
    struct provider *provider;
    struct err e;
    buf_init(&scene.said, KIB);
    struct process_pool *pool = process_pool_new();
    process_pool_add(pool, scene.loop);
    const struct agent_options options = {.name = STR("worker"),
                                          .command = command,
                                          .environment = environment,
                                          .processes_max = 1,
                                          .silence_ms = 100000,
                                          .processes = pool};
    assert_true(process_agent.make(&options, &provider, &e));
    take_turn(&scene, provider, 10);
    assert_int_equal(scene.ended, REPLY_DONE);
    char *warm = str_dup(buf_str(&scene.said));
    take_turn(&scene, provider, 33 * MIB);
    assert_int_equal(scene.ended, REPLY_FAILED);
    assert_str(buf_str(&scene.said), "MODEL_CANNOT_CARRY");
    take_turn(&scene, provider, 10);
    assert_int_equal(scene.ended, REPLY_DONE);
    assert_str(buf_str(&scene.said), warm);
    free(warm);
    provider_free(provider);
    process_pool_leave(pool, scene.loop);
    loop_free(scene.loop);
    process_pool_free(pool);
    buf_done(&scene.said);
}

int main(int arg_count, char **args) {
    as_guard(arg_count, args);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(a_turn_is_one_line_with_the_calls_made_so_far),
        cmocka_unit_test(results_are_delivered_from_the_first_new_one),
        cmocka_unit_test(a_line_that_does_not_fit_is_none),
        cmocka_unit_test(a_turn_that_is_too_long_is_refused_and_leaves_the_program_warm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
