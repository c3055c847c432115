#include "script/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "wire/json.h"

static struct script *parse(const char *text) {
    struct err e = {0};
    struct script *script = NULL;
    if (!script_parse(STR("s.yaml"), str_from(text), &script, &e)) fail_msg("%s", e.text);
    return script;
}

#define HEAD "script: 1\nscenes:\n"

static const char whole[] =
    "script: 1\n"
    "model: play-1\n"
    "pace: {every: 5ms, chunk: 3}\n"
    "agents:\n"
    "  - {slug: manager, description: leads, delegates: [wally], tools: []}\n"
    "  - {slug: wally}\n"
    "tools:\n"
    "  - {name: look, description: looks, parameters: {type: object}, result: {n: 1}, after: "
    "2ms}\n"
    "  - name: tries\n"
    "    answers: [{error: no luck}, {result: {got: '{args.what} {{!}}'}}, {stall: true}]\n"
    "scenes:\n"
    "  - agent: manager\n"
    "    match: Kyoto\n"
    "    once: true\n"
    "    pace: {every: 7ms}\n"
    "    replies:\n"
    "      - - thinking: hm\n"
    "        - text: 'hi {input}'\n"
    "          pace: {chunk: 9, split: bytes}\n"
    "        - wait: 1s\n"
    "        - tool_call: {id: c1, tool: look, args: {q: 'a \"{input}\"', n: [1, {x: "
    "'{agent}'}]}}\n"
    "        - transfer: wally\n"
    "        - usage: {prompt: 2, completion: 3, thoughts: 1}\n"
    "        - model: other\n"
    "        - repeat: {times: 64, text: ab}\n"
    "        - fault: {kind: error, code: DEADLINE_EXCEEDED, reason: R, message: 'm {input}'}\n"
    "      - approved: [yes]\n"
    "        refused: no\n"
    "  - exact: ''\n"
    "    reply: nothing\n"
    "  - reply: any\n";

static void a_script_is_read_with_all_its_parts(void **state) {
    (void)state;
    struct script *script = parse(whole);
    assert_true(str_equal(script->model, STR("play-1")));
    assert_int_equal(script->agent_count, 2);
    assert_int_equal(script->agents[0].delegate_count, 1);
    assert_false(script->agents[0].all_tools);
    assert_int_equal(script->agents[0].tool_count, 0);
    assert_true(script->agents[1].all_tools);
    assert_ptr_equal(script_agent_find(script, STR("wally")), &script->agents[1]);
    assert_null(script_agent_find(script, STR("eve")));

    const struct script_tool *look = script_tool_find(script, STR("look"));
    assert_int_equal(look->answer_count, 1);
    assert_int_equal(look->answers[0].after_us, 2000);
    const struct script_tool *tries = script_tool_find(script, STR("tries"));
    assert_int_equal(tries->answer_count, 3);
    assert_true(tries->answers[0].error);
    assert_true(str_equal(tries->answers[0].message, STR("no luck")));
    assert_true(tries->answers[2].stall);
    assert_true(str_equal(tries->parameters, STR("{\"type\":\"object\"}")));
    script_free(script);
}

static void steps_carry_what_was_written_and_the_defaults(void **state) {
    (void)state;
    struct script *script = parse(whole);
    const struct script_scene *scene =
        script_scene_find(script, STR("manager"), STR("to kyoto"));
    assert_ptr_equal(scene, &script->scenes[0]);
    const struct script_steps *steps = script_reply_get(scene, 0, false);
    assert_int_equal(steps->count, 9);
    const struct script_step *step = steps->at;

    assert_int_equal(step[0].kind, STEP_THINKING);
    assert_int_equal(step[0].pace.every_us, 7000); /* the scene's */
    assert_int_equal(step[0].pace.chunk, 3);       /* the script's */
    assert_int_equal(step[1].pace.chunk, 9);       /* its own */
    assert_true(step[1].pace.bytes);
    assert_int_equal(step[2].wait_us, 1000000);
    assert_true(str_equal(step[3].id, STR("c1")));
    assert_int_equal(step[4].kind, STEP_TOOL_CALL);
    assert_true(str_equal(step[4].tool, STR("transfer_to_agent")));
    struct str args;
    assert_true(script_text_literal(&step[4].args, &args));
    assert_true(str_equal(args, STR("{\"agent_name\":\"wally\"}")));
    assert_int_equal(step[5].usage.prompt, 2);
    assert_int_equal(step[5].usage.total, 5);
    assert_int_equal(step[5].usage.cached, TOKENS_UNKNOWN);
    assert_true(str_equal(step[6].model, STR("other")));
    assert_int_equal(step[7].times, 64);
    assert_int_equal(step[8].kind, STEP_FAIL);
    assert_int_equal(step[8].code, ERR_DEADLINE_EXCEEDED);
    assert_true(str_equal(step[8].reason, STR("R")));
    script_free(script);
}

static void a_scene_is_found_by_agent_and_text_the_first_that_fits(void **state) {
    (void)state;
    struct script *script = parse(whole);
    const struct script_scene *scenes = script->scenes;
    assert_ptr_equal(script_scene_find(script, STR("manager"), STR("KYOTO!")), &scenes[0]);
    assert_ptr_equal(script_scene_find(script, STR("wally"), STR("KYOTO!")), &scenes[2]);
    assert_ptr_equal(script_scene_find(script, STR("wally"), STR("")), &scenes[1]);
    assert_ptr_equal(script_scene_find(script, STR("manager"), STR("Kyot")), &scenes[2]);
    script_free(script);

    script = parse(HEAD "  - {agent: a, match: x, reply: y}\n");
    assert_null(script_scene_find(script, STR("a"), STR("z")));
    assert_null(script_scene_find(script, STR("b"), STR("x")));
    script_free(script);
}

static void replies_follow_each_other_and_branch_on_the_answer(void **state) {
    (void)state;
    struct script *script = parse(whole);
    const struct script_scene *scene = &script->scenes[0];
    struct str text;
    assert_true(script_text_literal(&script_reply_get(scene, 1, true)->at[0].text, &text));
    assert_true(str_equal(text, STR("yes")));
    assert_true(script_text_literal(&script_reply_get(scene, 1, false)->at[0].text, &text));
    assert_true(str_equal(text, STR("no")));
    assert_null(script_reply_get(scene, 2, true)); /* once */
    scene = &script->scenes[2];
    assert_ptr_equal(script_reply_get(scene, 99, true), script_reply_get(scene, 0, true));
    script_free(script);
}

static void rendered(const struct script_text *text, const struct script_values *values,
                     const char *expected) {
    struct buf out;
    buf_init(&out, KIB);
    assert_true(script_text_render(text, values, &out));
    buf_append_byte(&out, '\0');
    assert_string_equal(out.at, expected);
    buf_done(&out);
}

static const struct script_values values = {
    .input = STR_INIT("  say \"hi\"\nand go "),
    .result = STR_INIT("{\"title\":\"A \\\"b\\\"\",\"n\":[1, 2]}"),
    .answer = STR_INIT("yes"),
    .agent = STR_INIT("manager"),
    .args = STR_INIT("{\"what\":\"tea\\n\"}"),
};

static void holes_are_filled(void **state) {
    (void)state;
    struct script *script = parse(
        HEAD
        "  - reply: ['{{{agent}}}: {topic}/{answer}/{result.title}/{result.n}/{result.no}', "
        "'{result}', '', plain]\n");
    const struct script_step *steps = script->scenes[0].replies[0].plain.at;
    rendered(&steps[0].text, &values, "{manager}: say \"hi\"/yes/A \"b\"/[1, 2]/");
    rendered(&steps[1].text, &values, "{\"title\":\"A \\\"b\\\"\",\"n\":[1, 2]}");
    rendered(&steps[2].text, &values, "");
    struct str text;
    assert_false(script_text_literal(&steps[0].text, &text));
    assert_true(script_text_literal(&steps[2].text, &text));
    assert_int_equal(text.len, 0);
    assert_true(script_text_literal(&steps[3].text, &text));
    assert_true(str_equal(text, STR("plain")));
    assert_int_equal(steps[0].text.ascii, 0); /* not known */
    assert_int_equal(steps[3].text.ascii, text.len);

    struct buf small;
    buf_init(&small, 10);
    assert_false(script_text_render(&steps[0].text, &values, &small));
    buf_done(&small);
    script_free(script);
}

static void holes_in_json_stay_inside_their_strings(void **state) {
    (void)state;
    struct script *script = parse(whole);
    rendered(&script->scenes[0].replies[0].plain.at[3].args, &values,
             "{\"q\":\"a \\\"  say \\\"hi\\\"\\nand go \\\"\",\"n\":[1,{\"x\":\"manager\"}]}");
    rendered(&script_tool_find(script, STR("tries"))->answers[1].result, &values,
             "{\"got\":\"tea\\n {!}\"}");
    script_free(script);
}

static void a_member_of_something_else_leaves_the_hole_empty(void **state) {
    (void)state;
    struct script *script = parse(HEAD "  - reply: ['({result.title})']\n");
    static const struct str results[] = {STR_INIT(""), STR_INIT("no json"), STR_INIT("[1]"),
                                         STR_INIT("{\"other\":1}")};
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        struct script_values some = values;
        some.result = results[i];
        rendered(&script->scenes[0].replies[0].plain.at[0].text, &some, "()");
    }
    script_free(script);
}

static void a_topic_is_short_and_cuts_no_character(void **state) {
    (void)state;
    struct script *script = parse(HEAD "  - reply: ['{topic}']\n");
    struct buf input, out;
    buf_init(&input, KIB);
    buf_init(&out, KIB);
    buf_append_byte(&input, 'x');
    for (int i = 0; i < 100; i++) buf_append(&input, STR("é"));
    struct script_values some = values;
    some.input = buf_str(&input);
    assert_true(
        script_text_render(&script->scenes[0].replies[0].plain.at[0].text, &some, &out));
    assert_int_equal(out.len, 79);
    buf_done(&input);
    buf_done(&out);
    script_free(script);
}

/* --- mistakes ------------------------------------------------------------------------- */

static const struct {
    const char *text, *why;
} mistakes[] = {
    {"", "s.yaml:1:1: expected a script, which is a map, found nothing"},
    {"scenes: []", "s.yaml:1:1: a script needs the key 'script'"},
    {"script: 1", "s.yaml:1:1: a script needs the key 'scenes'"},
    {"script: 2\nscenes: []",
     "s.yaml:1:9: this is version 2 of the format; version 1 is read here"},
    {"script: 1\nsceens: []",
     "s.yaml:2:1: a script has no key 'sceens'; did you mean 'scenes'?"},
    {"script: 1\nscenes: {}", "s.yaml:2:9: expected a list of scenes"},
    {HEAD "  - {}", "s.yaml:3:5: a scene needs 'reply'"},
    {HEAD "  - {reply: a, replies: [b]}", "s.yaml:3:5: a scene needs 'reply'"},
    {HEAD "  - {replies: []}", "s.yaml:3:15: a scene needs at least one reply"},
    {HEAD "  - {reply: {text: a}}", "s.yaml:3:13: a reply is a list of steps"},
    {HEAD "  - {reply: {approved: a}}",
     "s.yaml:3:13: a reply to an approval needs the key 'refused'"},
    {HEAD "  - {reply: {approved: a, refusd: b}}",
     "s.yaml:3:27: a reply to an approval has no key 'refusd'; did you mean 'refused'?"},
    {HEAD "  - {match: a, exact: b, reply: c}", "s.yaml:3:5: give 'match'"},
    {HEAD "  - {match: '', reply: c}", "s.yaml:3:13: an empty 'match' is in every text"},
    {HEAD "  - reply: a\n  - {match: x, reply: b}",
     "s.yaml:4:5: this scene is never played: the one on line 3 answers every text"},
    {HEAD "  - {agent: m, reply: a}\n  - {agent: m, reply: b}",
     "s.yaml:4:5: this scene is never"},
    {HEAD "  - reply: [txt: a]", "s.yaml:3:13: no step is called 'txt'; did you mean 'text'?"},
    {HEAD "  - reply: [{text: a, wait: 1s}]", "s.yaml:3:23: 'text' and 'wait' are two steps"},
    {HEAD "  - reply: [{}]", "s.yaml:3:13: this step does nothing"},
    {HEAD "  - reply: [{pace: {}}]", "s.yaml:3:13: this step does nothing"},
    {HEAD "  - reply: [[a]]", "s.yaml:3:13: a step is a text or a map"},
    {HEAD "  - reply: [{wait: 1s, pace: {chunk: 1}}]", "s.yaml:3:24: 'wait' has no pace"},
    {HEAD "  - reply: [{wait: 25h}]", "s.yaml:3:20: more than a day"},
    {HEAD "  - reply: [{text: a, pace: {every: 20}}]", "s.yaml:3:37: '20' has no unit"},
    {HEAD "  - reply: [{text: a, pace: {split: words}}]", "s.yaml:3:37: split is"},
    {HEAD "  - reply: [{text: [a]}]", "s.yaml:3:20: expected text, found a list"},
    {HEAD "  - reply: ['{inptu}']",
     "s.yaml:3:13: nothing here fills {inptu}; did you mean 'input'?"},
    {HEAD "  - reply: ['{args}']", "s.yaml:3:13: nothing here fills {args}; for a plain brace"},
    {HEAD "  - reply: ['{input.x}']", "s.yaml:3:13: nothing here fills {input.x}"},
    {HEAD "  - reply: ['{result.}']", "s.yaml:3:13: nothing here fills {result.}"},
    {HEAD "  - reply: ['a { b']", "s.yaml:3:13: a brace stands alone"},
    {HEAD "  - reply: ['a } b']", "s.yaml:3:13: a brace stands alone"},
    {HEAD "  - reply: [{tool_call: {tool: t, args: {a: '{no}'}}}]",
     "s.yaml:3:45: nothing here fills"},
    {HEAD "  - reply: [{tool_call: {tool: t, args: [1]}}]", "s.yaml:3:41: expected a map"},
    {HEAD "  - reply: [{tool_call: {args: {}}}]",
     "s.yaml:3:25: a tool_call needs the key 'tool'"},
    {HEAD "  - reply: [{usage: {prompt: 99999999999999999}}]", "s.yaml:3:30: no model counts"},
    {HEAD "  - reply: [{fault: {kind: stal}}]",
     "s.yaml:3:28: no fault is called 'stal'; did you mean 'stall'?"},
    {HEAD "  - reply: [{fault: {kind: eof, code: INTERNAL}}]",
     "s.yaml:3:21: only a fault of kind"},
    {HEAD "  - reply: [{fault: {kind: error, code: INTERNALL}}]",
     "s.yaml:3:41: no error code is called 'INTERNALL'; did you mean 'INTERNAL'?"},
    {HEAD "  - reply: [{fault: {kind: error, code: OK}}]", "s.yaml:3:41: no error code"},
    {HEAD "  - reply: [{fault: {kind: eof}}, a]", "s.yaml:3:35: nothing follows a fault"},
    {HEAD "  - reply: [{repeat: {times: 1000001, text: a}}]",
     "s.yaml:3:22: at most 1000000 times"},
    {"script: 1\nagents: [{slug: a, delegates: [reserch]}, {slug: researcher}]\nscenes: []",
     "s.yaml:2:32: no agent is called 'reserch'; did you mean 'researcher'?"},
    {"script: 1\nagents: [{slug: a, tools: [x]}]\nscenes: []",
     "s.yaml:2:28: no tool is called 'x'"},
    {"script: 1\nagents: [{slug: a}, {slug: a}]\nscenes: []",
     "s.yaml:2:21: a second agent 'a'"},
    {"script: 1\nagents: [{slug: a}]\nscenes: [{agent: b, reply: x}]",
     "s.yaml:3:18: no agent is"},
    {"script: 1\nagents: [{slug: a}]\nscenes: [{reply: [transfer: b]}]",
     "s.yaml:3:29: no agent is"},
    {"script: 1\ntools: [{name: a}]\nscenes: []", "s.yaml:2:9: a tool answers with one of"},
    {"script: 1\ntools: [{name: a, result: {}, error: x}]\nscenes: []",
     "s.yaml:2:9: a tool answers"},
    {"script: 1\ntools: [{name: a, answers: []}]\nscenes: []",
     "s.yaml:2:28: a tool needs at least"},
    {"script: 1\ntools: [{name: a, result: {}, answers: [{error: x}]}]\nscenes: []",
     "s.yaml:2:9: give either one answer"},
    {"script: 1\ntools: [{name: a, result: [1]}]\nscenes: []", "s.yaml:2:27: expected a map"},
};

static void a_mistake_is_named_at_its_place_with_the_fix(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        struct err e = {0};
        struct script *script = NULL;
        bool read = script_parse(STR("s.yaml"), str_from(mistakes[i].text), &script, &e);
        if (read) fail_msg("taken: %s", mistakes[i].text);
        if (!str_starts(err_text(&e), str_from(mistakes[i].why)))
            fail_msg("'%s' is not '%s'", e.text, mistakes[i].why);
    }
}

static void every_prefix_of_a_script_is_read_or_refused(void **state) {
    (void)state;
    for (size_t cut = 0; cut < sizeof(whole); cut++) {
        struct err e = {0};
        struct script *script = NULL;
        if (script_parse(STR("s"), str_of(whole, cut), &script, &e)) {
            script_free(script);
        } else {
            assert_true(e.code != ERR_NONE && e.text[0]);
        }
    }
}

static void the_demo_is_a_script_that_says_what_it_is(void **state) {
    (void)state;
    struct buf text;
    struct err e;
    buf_init(&text, MIB);
    if (!file_read(STR("examples/demo.yaml"), &text, &e)) fail_msg("%s", e.text);
    struct script *demo;
    if (!script_parse(STR("examples/demo.yaml"), buf_str(&text), &demo, &e))
        fail_msg("%s", e.text);
    assert_true(str_equal(demo->agents[0].slug, STR("manager")));
    assert_int_equal(demo->agents[0].delegate_count, 2);
    assert_int_equal(demo->tool_count, 1);
    assert_true(str_find(buf_str(&text), STR("not an AI")) < text.len);
    buf_done(&text);
    script_free(demo);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_is_read_with_all_its_parts),
        cmocka_unit_test(steps_carry_what_was_written_and_the_defaults),
        cmocka_unit_test(a_scene_is_found_by_agent_and_text_the_first_that_fits),
        cmocka_unit_test(replies_follow_each_other_and_branch_on_the_answer),
        cmocka_unit_test(holes_are_filled),
        cmocka_unit_test(holes_in_json_stay_inside_their_strings),
        cmocka_unit_test(a_member_of_something_else_leaves_the_hole_empty),
        cmocka_unit_test(a_topic_is_short_and_cuts_no_character),
        cmocka_unit_test(a_mistake_is_named_at_its_place_with_the_fix),
        cmocka_unit_test(every_prefix_of_a_script_is_read_or_refused),
        cmocka_unit_test(the_demo_is_a_script_that_says_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
