#include "tool/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char text[] = "script: 1\n"
                           "tools:\n"
                           "  - {name: look, description: looks, result: {saw: '{args.q}'}}\n"
                           "  - {name: odd, result: {}, parameters: {type: [unheard of]}}\n"
                           "  - {name: slow, result: {}, after: 150ms}\n"
                           "  - name: moody\n"
                           "    answers: [{error: no luck}, {result: {n: 2}}, {stall: true}]\n"
                           "scenes: []\n";

struct stage {
    struct loop *loop;
    struct script *script;
    struct buf said;
};

static void stage_init(struct stage *stage) {
    struct err e;
    stage->loop = loop_new_fake();
    assert_true(
        script_parse(STR("s.yaml"), str_of(text, sizeof(text) - 1), &stage->script, &e));
    buf_init(&stage->said, KIB);
}

static void stage_done(struct stage *stage) {
    buf_done(&stage->said);
    script_free(stage->script);
    loop_free(stage->loop);
}

static void on_done(struct str result, const struct err *failed, void *ctx) {
    struct stage *stage = ctx;
    if (failed) {
        buf_printf(&stage->said, "failed(" STR_FMT ") ", STR_ARG(err_text(failed)));
    } else {
        buf_printf(&stage->said, "result(" STR_FMT ") ", STR_ARG(result));
    }
}

static void said(struct stage *stage, const char *expected) {
    buf_append_byte(&stage->said, '\0');
    assert_string_equal(stage->said.at, expected);
    buf_clear(&stage->said);
}

static struct tool *tool_new(struct stage *stage, struct str name) {
    return scripted_tool_new(script_tool_find(stage->script, name));
}

static struct tool_call *call(struct stage *stage, struct tool *tool) {
    static const struct tool_request request = {.call_id = STR_INIT("c1"),
                                                .args = STR_INIT("{\"q\":\"tea \\\"x\\\"\"}"),
                                                .agent = STR_INIT("manager")};
    size_t before = stage->said.len;
    struct tool_call *started = tool->kind->start(tool, stage->loop, &request, on_done, stage);
    assert_int_equal(stage->said.len, before);
    return started;
}

static void a_tool_answers_with_its_arguments_filled_in(void **state) {
    (void)state;
    struct stage stage;
    stage_init(&stage);
    struct tool *tool = tool_new(&stage, STR("look"));
    assert_true(str_equal(tool->description, STR("looks")));
    assert_true(str_equal(tool->parameters, STR("{\"type\":\"object\"}")));
    call(&stage, tool);
    loop_advance(stage.loop, 0);
    said(&stage, "result({\"saw\":\"tea \\\"x\\\"\"}) ");
    tool_free(tool);
    stage_done(&stage);
}

static void arguments_are_checked_by_parameters_that_are_a_schema(void **state) {
    (void)state;
    struct stage stage;
    stage_init(&stage);
    struct tool *tool = tool_new(&stage, STR("look"));
    struct json list, object;
    struct err e;
    assert_true(json_read(STR("[1]"), &list, &e));
    assert_true(json_read(STR("{}"), &object, &e));
    assert_true(schema_check(tool->schema, object, &e));
    assert_false(schema_check(tool->schema, list, &e));
    tool_free(tool);
    tool = tool_new(&stage, STR("odd"));
    assert_null(tool->schema);
    tool_free(tool);
    stage_done(&stage);
}

static void an_answer_comes_after_its_delay(void **state) {
    (void)state;
    struct stage stage;
    stage_init(&stage);
    struct tool *tool = tool_new(&stage, STR("slow"));
    call(&stage, tool);
    loop_advance(stage.loop, 149);
    said(&stage, "");
    loop_advance(stage.loop, 1);
    said(&stage, "result({}) ");
    tool_free(tool);
    stage_done(&stage);
}

static void answers_come_in_turn_and_begin_again(void **state) {
    (void)state;
    struct stage stage;
    stage_init(&stage);
    struct tool *tool = tool_new(&stage, STR("moody"));
    call(&stage, tool);
    loop_advance(stage.loop, 0);
    said(&stage, "failed(no luck) ");
    call(&stage, tool);
    loop_advance(stage.loop, 0);
    said(&stage, "result({\"n\":2}) ");
    struct tool_call *stalled = call(&stage, tool);
    loop_advance(stage.loop, 1000000);
    said(&stage, "");
    tool->kind->cancel(stalled);
    call(&stage, tool);
    loop_advance(stage.loop, 0);
    said(&stage, "failed(no luck) ");
    tool_free(tool);
    stage_done(&stage);
}

static void a_cancelled_call_answers_nothing(void **state) {
    (void)state;
    struct stage stage;
    stage_init(&stage);
    struct tool *tool = tool_new(&stage, STR("slow"));
    struct tool_call *started = call(&stage, tool);
    loop_advance(stage.loop, 100);
    tool->kind->cancel(started);
    loop_advance(stage.loop, 1000);
    said(&stage, "");
    tool_free(tool);
    stage_done(&stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tool_answers_with_its_arguments_filled_in),
        cmocka_unit_test(arguments_are_checked_by_parameters_that_are_a_schema),
        cmocka_unit_test(an_answer_comes_after_its_delay),
        cmocka_unit_test(answers_come_in_turn_and_begin_again),
        cmocka_unit_test(a_cancelled_call_answers_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
