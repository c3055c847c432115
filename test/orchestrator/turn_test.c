/* What clients see and what is stored of a turn, whatever the runtime says and wherever it
 * stops. */
#include "orchestrator/turn.h"

#include "base/utf8.h"
#include "helper/moves.h"

static void a_turn_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "opening delivered", "opening reading", "opening storing", "delivered reading",
        "delivered storing", "reading storing", "storing final"};
    assert_moves(turn_states, TURN_STATE_COUNT, drawn, ARRAY_LEN(drawn));
    static const char *const tools_drawn[] = {"running completed", "running failed"};
    assert_moves(turn_tool_states, TURN_TOOL_STATE_COUNT, tools_drawn, ARRAY_LEN(tools_drawn));
}

/* --- a turn, and what it did, as text ------------------------------------------------------ */

static const struct turn_agent agents[] = {
    {.id = STR_INIT("A1"), .slug = STR_INIT("manager"), .name = STR_INIT("Manager")},
    {.id = STR_INIT("A2"), .slug = STR_INIT("wally"), .name = STR_INIT("Wally")},
    {.id = STR_INIT("A3"), .slug = STR_INIT("eve"), .name = STR_INIT("Eve")},
};

struct scene {
    struct turn *turn;
    struct buf seen;
    int stores, overs, dones, parts;
};

static struct uuid a_new_id(void) {
    return uuid_new();
}

static void say(struct scene *scene, const char *what, struct str a, struct str b) {
    buf_printf(&scene->seen, "%s " STR_FMT " " STR_FMT "\n", what, STR_ARG(a), STR_ARG(b));
}

static void hear_part(struct scene *scene, const struct turn_effect *effect) {
    struct str slug = effect->part->agent->slug;
    static const struct str delegations[] = {STR_INIT("running"), STR_INIT("completed"),
                                             STR_INIT("failed")};
    switch (effect->kind) {
    case TURN_PART: scene->parts++, say(scene, "part", slug, STR_EMPTY); break;
    case TURN_TEXT: say(scene, "text", slug, effect->text); break;
    case TURN_THINKING: say(scene, "thinking", slug, effect->text); break;
    case TURN_TOOL:
        say(scene, "tool", text_str(effect->tool->tool),
            turn_tool_state_name(effect->tool->state));
        break;
    case TURN_DELEGATION:
        say(scene, "delegation", slug, delegations[effect->delegation]);
        break;
    case TURN_USAGE: say(scene, "usage", effect->text, effect->usage->model); break;
    case TURN_NEW: say(scene, "new", slug, buf_str(&effect->part->text)); break;
    case TURN_DONE:
        scene->dones++, say(scene, "done", slug, message_status_name(effect->status));
        break;
    default: break;
    }
}

static void hear(const struct turn_effect *effect, void *ctx) {
    struct scene *scene = ctx;
    switch (effect->kind) {
    case TURN_USER_STATUS:
        say(scene, "user", message_status_name(effect->status), STR_EMPTY);
        return;
    case TURN_AGENT_STATUS:
        say(scene, "agent", effect->agent->slug, agent_status_name(effect->agent_status));
        return;
    case TURN_STORE: scene->stores++; return;
    case TURN_OVER: scene->overs++, say(scene, "over", effect->text, STR_EMPTY); return;
    default: hear_part(scene, effect); return;
    }
}

static void scene_begin(struct scene *scene) {
    *scene = (struct scene){0};
    buf_init(&scene->seen, 64 * KIB);
    scene->turn = turn_new(&(struct turn_options){.agents = agents,
                                                  .agent_count = ARRAY_LEN(agents),
                                                  .new_id = a_new_id,
                                                  .on_effect = hear,
                                                  .ctx = scene});
    turn_begin(scene->turn);
    turn_sent(scene->turn);
}

static void scene_end(struct scene *scene) {
    turn_free(scene->turn);
    buf_done(&scene->seen);
}

static struct str after_begin(const struct scene *scene) {
    struct str begin = STR("part manager \nagent manager thinking\nuser delivered \n");
    struct str seen = buf_str(&scene->seen);
    assert_true(str_starts(seen, begin));
    return str_skip(seen, begin.len);
}

#define TEXT(slug, said)                                                                       \
    { .kind = CONVERSE_TEXT, .agent = STR_INIT(slug), .text = STR_INIT(said) }
#define CALL(slug, id, name, arguments)                                                        \
    {                                                                                          \
        .kind = CONVERSE_CALL, .agent = STR_INIT(slug), .call_id = STR_INIT(id),               \
        .tool = STR_INIT(name), .args = STR_INIT(arguments)                                    \
    }
#define RESULT(id, failed)                                                                     \
    {                                                                                          \
        .kind = CONVERSE_RESULT, .call_id = STR_INIT(id), .text = STR_INIT("{}"),              \
        .error = failed                                                                        \
    }
#define DONE                                                                                   \
    { .kind = CONVERSE_DONE, .model = STR_INIT("m") }

static void take_all(struct scene *scene, const struct converse_event *events, size_t count) {
    for (size_t i = 0; i < count; i++) turn_take(scene->turn, &events[i]);
}

#define TAKE(scene, ...)                                                                       \
    do {                                                                                       \
        const struct converse_event events_[] = {__VA_ARGS__};                                 \
        take_all(scene, events_, ARRAY_LEN(events_));                                          \
    } while (0)

static void an_answer_is_shown_as_it_comes_and_stored_once(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    TAKE(&scene, TEXT("manager", "Hel"), TEXT("manager", "lo"), DONE);
    assert_int_equal(scene.stores, 1);
    turn_stored(scene.turn);
    assert_str(after_begin(&scene), "user read \n"
                                    "agent manager writing\n"
                                    "text manager Hel\n"
                                    "text manager lo\n"
                                    "new manager Hello\n"
                                    "done manager delivered\n"
                                    "agent manager online\n"
                                    "over  \n");
    scene_end(&scene);
}

static void a_handed_over_turn_has_a_message_for_each_agent(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    TAKE(&scene, CALL("manager", "c1", "transfer_to_agent", "{\"agent_name\":\"wally\"}"),
         RESULT("c1", false), TEXT("wally", "Found it."), DONE);
    turn_stored(scene.turn);
    assert_str(after_begin(&scene), "user read \n"
                                    "tool transfer_to_agent running\n"
                                    "tool transfer_to_agent completed\n"
                                    "part wally \n"
                                    "agent wally thinking\n"
                                    "delegation wally running\n"
                                    "agent manager online\n"
                                    "agent wally writing\n"
                                    "text wally Found it.\n"
                                    "new manager \n"
                                    "done manager delegated\n"
                                    "agent manager online\n"
                                    "new wally Found it.\n"
                                    "done wally delivered\n"
                                    "agent wally online\n"
                                    "delegation wally completed\n"
                                    "over  \n");
    assert_true(turn_delegated(scene.turn));
    assert_str(turn_delegate(scene.turn)->slug, "wally");
    scene_end(&scene);
}

static void an_error_is_readable_and_comes_after_what_was_said(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    TAKE(&scene, TEXT("manager", "Well"),
         {.kind = CONVERSE_ERROR, .code = ERR_INTERNAL, .text = STR_INIT("the model is away")});
    turn_stored(scene.turn);
    const struct turn_part *part = turn_part_at(scene.turn, 0);
    assert_str(buf_str(&part->text),
               "Well\n\nThe assistant could not finish: the model is away");
    assert_int_equal(part->status, MESSAGE_FAILED);
    assert_true(str_find(buf_str(&scene.seen),
                         STR("agent manager error\nagent manager online")) < scene.seen.len);
    scene_end(&scene);
}

static void an_answer_of_nothing_is_silent(void **state) {
    (void)state;
    static const char *const said[] = {" \n", "[SILENT]", ""};
    for (size_t i = 0; i < ARRAY_LEN(said); i++) {
        struct scene scene;
        scene_begin(&scene);
        TAKE(&scene,
             {.kind = CONVERSE_TEXT, .agent = STR("manager"), .text = str_from(said[i])}, DONE);
        turn_stored(scene.turn);
        const struct turn_part *part = turn_part_at(scene.turn, 0);
        assert_int_equal(part->status, MESSAGE_SILENT);
        assert_int_equal(part->dropped, i != 1);
        if (i == 1) assert_str(buf_str(&part->text), "");
        scene_end(&scene);
    }
}

#define ASK(slug, id, to, message)                                                             \
    CALL(slug, id, "send_message_to_agent",                                                    \
         "{\"agent_slug\":\"" to "\",\"message\":\"" message "\"}")

static const char *claim(struct scene *scene, const char *to, const char *message) {
    const struct turn_part *part = turn_claim(scene->turn, str_from(to), str_from(message));
    return part ? part->agent->slug.at : "none";
}

static void what_an_agent_asks_another_is_found_once_while_it_is_asked(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    TAKE(&scene, ASK("manager", "c1", "eve", "a \\u00e9"), ASK("wally", "c2", "eve", "b"),
         ASK("wally", "c3", "eve", "b"), ASK("wally", "c4", "eve", "over"), RESULT("c4", false),
         CALL("wally", "c5", "send_message_to_agent", "no object"),
         CALL("wally", "c6", "web_fetch", "{\"agent_slug\":\"eve\",\"message\":\"c\"}"));
    assert_string_equal(claim(&scene, "eve", "b"), "wally");
    assert_string_equal(claim(&scene, "eve", "a \u00e9"), "manager");
    assert_string_equal(claim(&scene, "eve", "b"), "wally");
    static const char *const gone[][2] = {
        {"eve", "b"}, {"eve", "over"}, {"eve", "c"}, {"manager", "a"}, {"", ""}};
    for (size_t i = 0; i < ARRAY_LEN(gone); i++)
        assert_string_equal(claim(&scene, gone[i][0], gone[i][1]), "none");
    TAKE(&scene, ASK("manager", "c7", "eve", "late"), DONE);
    assert_string_equal(claim(&scene, "eve", "late"), "none");
    scene_end(&scene);
}

static void thinking_is_no_part_of_the_message(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    TAKE(&scene, {.kind = CONVERSE_THINKING, .agent = STR("manager"), .text = STR("hmm")},
         TEXT("manager", "Yes."), DONE);
    assert_str(buf_str(&turn_part_at(scene.turn, 0)->text), "Yes.");
    scene_end(&scene);
}

static void text_that_comes_only_with_the_end_is_taken_from_there(void **state) {
    (void)state;
    struct scene scene;
    const struct crawbl_turn turns[] = {{.agent_id = STR("manager"), .text = STR("Late.")}};
    scene_begin(&scene);
    TAKE(&scene, {.kind = CONVERSE_DONE, .turns = turns, .turn_count = 1});
    assert_str(buf_str(&turn_part_at(scene.turn, 0)->text), "Late.");
    scene_end(&scene);
}

static void what_one_part_says_in_several_turns_stands_apart(void **state) {
    (void)state;
    struct scene scene;
    const struct crawbl_turn turns[] = {{.agent_id = STR("wally"), .text = STR("one")},
                                        {.agent_id = STR("manager"), .text = STR("a")},
                                        {.agent_id = STR("wally"), .text = STR("two")},
                                        {.agent_id = STR("stranger"), .text = STR("b")},
                                        {.agent_id = STR("wally"), .text = STR_EMPTY}};
    scene_begin(&scene);
    TAKE(&scene, {.kind = CONVERSE_DONE, .turns = turns, .turn_count = ARRAY_LEN(turns)});
    assert_str(buf_str(&turn_part_at(scene.turn, 0)->text), "a\n\nb");
    assert_str(buf_str(&turn_part_at(scene.turn, 1)->text), "one\n\ntwo");
    scene_end(&scene);
}

static void what_a_runtime_says_of_a_failure_is_cut_between_characters(void **state) {
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct scene scene;
        char said[600] = "x";
        for (size_t i = 1; i + 2 < sizeof(said); i += 2) {
            said[i] = '\xc3';
            said[i + 1] = '\xa9';
        }
        scene_begin(&scene);
        if (lost)
            turn_end(scene.turn, TURN_LOST, str_from(said));
        else
            TAKE(&scene,
                 {.kind = CONVERSE_ERROR, .code = ERR_INTERNAL, .text = str_from(said)});
        struct str text = buf_str(&turn_part_at(scene.turn, 0)->text);
        assert_true(text.len > 399 && utf8_valid(text));
        scene_end(&scene);
    }
}

static void an_unknown_agent_speaks_as_the_one_who_was_asked(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    TAKE(&scene, TEXT("stranger", "Hi"), TEXT("", " all"), DONE);
    assert_int_equal(turn_part_count(scene.turn), 1);
    assert_str(buf_str(&turn_part_at(scene.turn, 0)->text), "Hi all");
    scene_end(&scene);
}

static void a_tool_without_a_result_is_not_shown_as_done(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    TAKE(&scene, CALL("manager", "c1", "web_fetch", "{\"url\":\"http://a\",\"secret\":1}"),
         CALL("manager", "c2", "calculator", "not json"), RESULT("c2", true));
    turn_end(scene.turn, TURN_LOST, STR("the line is cut"));
    const struct turn_tool *tool = turn_tool_at(scene.turn, 0);
    assert_int_equal(tool->state, TURN_TOOL_FAILED);
    assert_str(text_str(tool->query), "http://a");
    assert_str(text_str(tool->args), "{\"url\":\"http://a\"}");
    assert_int_equal(turn_tool_at(scene.turn, 1)->state, TURN_TOOL_FAILED);
    assert_str(text_str(turn_tool_at(scene.turn, 1)->args), "");
    scene_end(&scene);
}

static void an_answer_without_an_end_of_its_own_is_cut(void **state) {
    (void)state;
    struct scene scene;
    char piece[64 * 1024];
    memset(piece, 'a', sizeof(piece));
    scene_begin(&scene);
    const struct converse_event event = {
        .kind = CONVERSE_TEXT, .agent = STR("manager"), .text = str_of(piece, sizeof(piece))};
    for (size_t i = 0; i < 100; i++) turn_take(scene.turn, &event);
    assert_true(turn_ended(scene.turn));
    assert_int_equal(scene.stores, 1);
    assert_true(turn_part_at(scene.turn, 0)->text.len < TURN_TEXT_MAX_BYTES + 1024);
    scene_end(&scene);
}

/* As JSON it is six times as long. */
static void an_answer_of_control_characters_is_cut_before_its_json_is_too_long(void **state) {
    (void)state;
    struct scene scene;
    char piece[64 * 1024];
    memset(piece, '\1', sizeof(piece));
    scene_begin(&scene);
    const struct converse_event event = {
        .kind = CONVERSE_TEXT, .agent = STR("manager"), .text = str_of(piece, sizeof(piece))};
    size_t taken = 0;
    for (; !turn_ended(scene.turn) && taken < 100; taken++) turn_take(scene.turn, &event);
    assert_int_equal(taken, TURN_JSON_MAX_BYTES / (6 * sizeof(piece)) +
                                1); /* the last one is too much */
    assert_int_equal(turn_part_at(scene.turn, 0)->status, MESSAGE_FAILED);
    scene_end(&scene);
}

static void an_answer_in_short_pieces_is_as_long_as_one_in_long_ones(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    const struct converse_event event = {
        .kind = CONVERSE_TEXT, .agent = STR("manager"), .text = STR("ab")};
    size_t fit = TURN_TEXT_MAX_BYTES / 2;
    for (size_t i = 0; i < fit; i++) turn_take(scene.turn, &event);
    assert_false(turn_ended(scene.turn));
    turn_take(scene.turn, &event);
    assert_true(turn_ended(scene.turn));
    scene_end(&scene);
}

static void what_could_not_be_stored_is_not_shown_as_delivered(void **state) {
    (void)state;
    struct scene scene;
    scene_begin(&scene);
    TAKE(&scene, TEXT("manager", "Hello"), DONE);
    turn_unstored(scene.turn);
    assert_str(after_begin(&scene), "user read \n"
                                    "agent manager writing\n"
                                    "text manager Hello\n"
                                    "done manager failed\n"
                                    "agent manager error\n"
                                    "agent manager online\n"
                                    "over  \n");
    scene_end(&scene);
}

/* O5: whatever has come, and however it ends, each message is done once, and stored once. */
static void a_turn_is_stored_once_wherever_it_is_cut(void **state) {
    (void)state;
    const struct converse_event events[] = {
        {.kind = CONVERSE_THINKING, .agent = STR("manager"), .text = STR("hm")},
        TEXT("manager", "One moment."),
        {.kind = CONVERSE_USAGE, .agent = STR("manager"), .usage = {.model = STR("m")}},
        CALL("manager", "c1", "transfer_to_agent", "{\"agent_name\":\"eve\"}"),
        RESULT("c1", false),
        CALL("eve", "c2", "calculator", "{\"expression\":\"1\"}"),
        RESULT("c2", false),
        TEXT("eve", "It is 1."),
        {.kind = CONVERSE_USAGE, .agent = STR("eve"), .usage = {.model = STR("m")}},
        DONE,
        TEXT("eve", "too late"),
    };
    static const enum turn_end ends[] = {TURN_UNOPENED, TURN_LOST, TURN_CANCELLED};
    for (size_t cut = 0; cut <= ARRAY_LEN(events); cut++) {
        for (size_t how = 0; how < ARRAY_LEN(ends); how++) {
            struct scene scene;
            scene_begin(&scene);
            take_all(&scene, events, cut);
            turn_end(scene.turn, ends[how], STR("cut"));
            take_all(&scene, events, ARRAY_LEN(events));
            turn_end(scene.turn, TURN_LOST, STR("again"));
            assert_int_equal(scene.stores, 1);
            assert_int_equal(scene.overs, 0);
            turn_stored(scene.turn);
            assert_int_equal(scene.overs, 1);
            assert_int_equal(scene.dones, scene.parts);
            for (size_t i = 0; i < turn_part_count(scene.turn); i++) {
                enum message_status status = turn_part_at(scene.turn, i)->status;
                assert_true(status == MESSAGE_DELIVERED || status >= MESSAGE_FAILED);
                if (cut < 10) assert_int_not_equal(status, MESSAGE_DELIVERED);
            }
            for (size_t i = 0; i < turn_tool_count(scene.turn); i++)
                assert_int_not_equal(turn_tool_at(scene.turn, i)->state, TURN_TOOL_RUNNING);
            scene_end(&scene);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_moves_as_drawn),
        cmocka_unit_test(an_answer_is_shown_as_it_comes_and_stored_once),
        cmocka_unit_test(a_handed_over_turn_has_a_message_for_each_agent),
        cmocka_unit_test(an_error_is_readable_and_comes_after_what_was_said),
        cmocka_unit_test(an_answer_of_nothing_is_silent),
        cmocka_unit_test(what_an_agent_asks_another_is_found_once_while_it_is_asked),
        cmocka_unit_test(thinking_is_no_part_of_the_message),
        cmocka_unit_test(text_that_comes_only_with_the_end_is_taken_from_there),
        cmocka_unit_test(what_one_part_says_in_several_turns_stands_apart),
        cmocka_unit_test(what_a_runtime_says_of_a_failure_is_cut_between_characters),
        cmocka_unit_test(an_unknown_agent_speaks_as_the_one_who_was_asked),
        cmocka_unit_test(a_tool_without_a_result_is_not_shown_as_done),
        cmocka_unit_test(an_answer_without_an_end_of_its_own_is_cut),
        cmocka_unit_test(an_answer_of_control_characters_is_cut_before_its_json_is_too_long),
        cmocka_unit_test(an_answer_in_short_pieces_is_as_long_as_one_in_long_ones),
        cmocka_unit_test(what_could_not_be_stored_is_not_shown_as_delivered),
        cmocka_unit_test(a_turn_is_stored_once_wherever_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
