/* Which definitions are accepted, and what runs next. */
#include "contract/nimi/job/workflow_graph.h"

#include "helper/assert_str.h"

#include <string.h>

static struct arena *arena;

static int setup(void **state) {
    (void)state;
    arena = arena_new(16 * MIB);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

/* A definition of nodes named a, b, c ... whose kinds are letters: n noop, m merge, a merge that
 * needs any, b branch to the next two, g a model. Edges are pairs: "ab bc". */
struct drawn {
    struct nimi_workflow_node nodes[8];
    struct nimi_workflow_edge edges[16];
    struct nimi_workflow_definition definition;
    struct nimi_merge_node_config all, any, two;
    struct nimi_noop_node_config noop;
    struct nimi_branch_node_config branch;
    struct nimi_ai_generate_node_config model;
};

static const char names[] = "abcdefgh";

static void draw_node(struct drawn *drawn, struct nimi_workflow_node *node, char kind,
                      size_t index) {
    node->node_id = str_of(&names[index], 1);
    switch (kind) {
    case 'n':
        node->node_type = NIMI_WORKFLOW_NODE_CONTROL_NOOP;
        node->which_type_config = NIMI_WORKFLOW_NODE_NOOP_CONFIG;
        node->noop_config = &drawn->noop;
        break;
    case 'b':
        drawn->branch = (struct nimi_branch_node_config){
            STR("$.x"), str_of(&names[index + 1], 1), str_of(&names[index + 2], 1)};
        node->node_type = NIMI_WORKFLOW_NODE_CONTROL_BRANCH;
        node->which_type_config = NIMI_WORKFLOW_NODE_BRANCH_CONFIG;
        node->branch_config = &drawn->branch;
        break;
    case 'g':
        drawn->model =
            (struct nimi_ai_generate_node_config){.model_id = STR("m"), .prompt = STR("hi")};
        node->node_type = NIMI_WORKFLOW_NODE_AI_GENERATE;
        node->which_type_config = NIMI_WORKFLOW_NODE_AI_GENERATE_CONFIG;
        node->ai_generate_config = &drawn->model;
        break;
    default:
        node->node_type = NIMI_WORKFLOW_NODE_CONTROL_MERGE;
        node->which_type_config = NIMI_WORKFLOW_NODE_MERGE_CONFIG;
        node->merge_config = kind == 'a'   ? &drawn->any
                             : kind == '2' ? &drawn->two
                                           : &drawn->all;
        break;
    }
}

static void draw(struct drawn *drawn, const char *kinds, const char *edges) {
    static const char slots[] = "0123456789";
    *drawn = (struct drawn){.any = {.strategy = NIMI_MERGE_STRATEGY_ANY},
                            .two = {NIMI_MERGE_STRATEGY_N_OF_M, 2}};
    size_t count = strlen(kinds), edge_count = (strlen(edges) + 1) / 3;
    for (size_t i = 0; i < count; i++) draw_node(drawn, &drawn->nodes[i], kinds[i], i);
    for (size_t i = 0; i < edge_count; i++)
        drawn->edges[i] =
            (struct nimi_workflow_edge){str_of(&edges[3 * i], 1), STR("output"),
                                        str_of(&edges[3 * i + 1], 1), str_of(&slots[i], 1)};
    drawn->definition = (struct nimi_workflow_definition){STR("t"), drawn->nodes, count,
                                                          drawn->edges, edge_count};
}

static int reason_of(struct drawn *drawn, struct workflow_graph *graph) {
    struct fault fault;
    if (workflow_graph_read(&drawn->definition, arena, graph, &fault)) return 0;
    assert_true(err_text(&fault.why).len > 0);
    return fault.reason;
}

static int reason_for(const char *kinds, const char *edges) {
    struct drawn drawn;
    struct workflow_graph graph;
    draw(&drawn, kinds, edges);
    return reason_of(&drawn, &graph);
}

/* --- states ------------------------------------------------------------------------------- */

static void only_the_drawn_moves_are_allowed(void **state) {
    (void)state;
    static const bool drawn[NODE_STATE_COUNT][NODE_STATE_COUNT] = {
        [NODE_PENDING] = {[NODE_RUNNING] = true, [NODE_SKIPPED] = true, [NODE_CANCELED] = true},
        [NODE_RUNNING] = {[NODE_RETRYING] = true,
                          [NODE_COMPLETED] = true,
                          [NODE_FAILED] = true,
                          [NODE_CANCELED] = true},
        [NODE_RETRYING] = {[NODE_RUNNING] = true, [NODE_CANCELED] = true},
    };
    for (unsigned from = 0; from < NODE_STATE_COUNT; from++) {
        bool over = true;
        assert_true(states_name(node_states, (enum node_state)from).len > 0);
        for (unsigned to = 0; to < NODE_STATE_COUNT; to++) {
            assert_int_equal(
                states_allow(node_states, (enum node_state)from, (enum node_state)to),
                drawn[from][to]);
            over = over && !drawn[from][to];
        }
        assert_int_equal(node_is_over((enum node_state)from), over);
    }
}

/* --- definitions -------------------------------------------------------------------------- */

static void a_graph_without_cycles_is_accepted(void **state) {
    (void)state;
    assert_int_equal(reason_for("n", ""), 0);
    assert_int_equal(reason_for("ngnm", "ab ac bd cd"), 0);
    assert_int_equal(reason_for("bnn", "ab ac"), 0);
    assert_int_equal(reason_for("nn2", "ac bc"), 0);
}

static void each_mistake_of_a_graph_has_its_reason(void **state) {
    (void)state;
    assert_int_equal(reason_for("", ""), NIMI_PROTOCOL_ENVELOPE_INVALID);
    assert_int_equal(reason_for("nn", "ab ba"), NIMI_WF_DAG_INVALID); /* a cycle */
    assert_int_equal(reason_for("nnn", "ab bc cb"), NIMI_WF_DAG_INVALID);
    assert_int_equal(reason_for("n", "aa"), NIMI_WF_DAG_INVALID);
    assert_int_equal(reason_for("n", "ah"), NIMI_WF_DAG_INVALID);
    assert_int_equal(reason_for("m", ""), NIMI_WF_DAG_INVALID);     /* nothing to merge */
    assert_int_equal(reason_for("bnn", "ab"), NIMI_WF_DAG_INVALID); /* a target elsewhere */
    assert_int_equal(reason_for("n2", "ab"), NIMI_WF_NODE_CONFIG_MISMATCH); /* 2 of 1 */
}

static int reason_with(void (*spoil)(struct drawn *drawn)) {
    struct drawn drawn;
    struct workflow_graph graph;
    draw(&drawn, "gn", "ab");
    spoil(&drawn);
    return reason_of(&drawn, &graph);
}

static void same_id(struct drawn *drawn) {
    drawn->nodes[1].node_id = STR("a");
}
static void blank_id(struct drawn *drawn) {
    drawn->nodes[1].node_id = STR(" ");
}
static void unknown_output(struct drawn *drawn) {
    drawn->edges[0].from_output = STR("song");
}
static void blank_slot(struct drawn *drawn) {
    drawn->edges[0].to_input = STR("");
}
static void other_type(struct drawn *drawn) {
    drawn->nodes[0].node_type = 42;
}
static void no_model(struct drawn *drawn) {
    drawn->model.model_id = STR("");
}
static void no_prompt(struct drawn *drawn) {
    drawn->model.prompt = STR("");
}
static void pictures(struct drawn *drawn) {
    drawn->model.modal = NIMI_MODAL_IMAGE;
}
static void too_often(struct drawn *drawn) {
    drawn->nodes[0].retry_max_attempts = 11;
}
static void noop_again(struct drawn *drawn) {
    drawn->nodes[1].retry_max_attempts = 1;
}
static void some_day(struct drawn *drawn) {
    drawn->nodes[0].retry_backoff = STR("some day");
}
static void external_noop(struct drawn *drawn) {
    drawn->nodes[1].execution_mode = 2;
}
static void long_callback(struct drawn *drawn) {
    static const char c[WORKFLOW_CALLBACK_MAX_BYTES + 1];
    drawn->nodes[0].callback_ref = str_of(c, sizeof(c));
}
static void no_type(struct drawn *drawn) {
    drawn->definition.workflow_type = STR("");
}

static void each_mistake_of_a_node_has_its_reason(void **state) {
    (void)state;
    static const struct {
        void (*spoil)(struct drawn *drawn);
        int reason;
    } rows[] = {
        {same_id, NIMI_WF_DAG_INVALID},
        {blank_id, NIMI_WF_DAG_INVALID},
        {unknown_output, NIMI_WF_DAG_INVALID},
        {blank_slot, NIMI_WF_DAG_INVALID},
        {other_type, NIMI_WF_NODE_CONFIG_MISMATCH},
        {no_model, NIMI_WF_NODE_CONFIG_MISMATCH},
        {no_prompt, NIMI_WF_NODE_CONFIG_MISMATCH},
        {pictures, NIMI_WF_NODE_CONFIG_MISMATCH},
        {too_often, NIMI_WF_NODE_CONFIG_MISMATCH},
        {noop_again, NIMI_WF_NODE_CONFIG_MISMATCH},
        {some_day, NIMI_WF_NODE_CONFIG_MISMATCH},
        {long_callback, NIMI_WF_NODE_CONFIG_MISMATCH},
        {external_noop, NIMI_WF_NODE_CONFIG_MISMATCH},
        {no_type, NIMI_PROTOCOL_ENVELOPE_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(reason_with(rows[i].spoil), rows[i].reason);
}

static void a_backoff_is_a_time_or_doubles(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t first_ms;
        bool doubles;
    } rows[] = {{"", 1000, false},           {"2s", 2000, false},
                {"500ms", 500, false},       {"10m", 600000, false},
                {"exponential", 1000, true}, {"exponential:20ms", 20, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drawn drawn;
        struct workflow_graph graph;
        draw(&drawn, "g", "");
        drawn.nodes[0].retry_backoff = str_from(rows[i].text);
        assert_int_equal(reason_of(&drawn, &graph), 0);
        assert_int_equal(graph.nodes[0].backoff.first_ms, rows[i].first_ms);
        assert_int_equal(graph.nodes[0].backoff.doubles, rows[i].doubles);
    }
}

/* --- what comes next ---------------------------------------------------------------------- */

/* States as letters: p pending, r running, t retrying, c completed, f failed, s not selected,
 * u skipped because an upstream failed. Answers, one a node: R run, S not selected, U skipped
 * because an upstream failed, . waits. */
static void read_views(const char *letters, struct node_view *views) {
    static const struct {
        char letter;
        struct node_view view;
    } rows[] = {{'p', {.state = NODE_PENDING}},
                {'r', {.state = NODE_RUNNING}},
                {'t', {.state = NODE_RETRYING}},
                {'c', {.state = NODE_COMPLETED, .selected = 1}},
                {'f', {.state = NODE_FAILED}},
                {'s', {.state = NODE_SKIPPED, .skip = SKIP_NOT_SELECTED}},
                {'u', {.state = NODE_SKIPPED, .skip = SKIP_UPSTREAM_FAILED}}};
    for (size_t i = 0; letters[i]; i++) {
        for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
            if (rows[r].letter == letters[i]) views[i] = rows[r].view;
        }
    }
}

static void assert_turns(const char *kinds, const char *edges, const char *states,
                         const char *turns) {
    struct drawn drawn;
    struct workflow_graph graph;
    struct node_view views[8];
    char seen[9] = "";
    draw(&drawn, kinds, edges);
    assert_int_equal(reason_of(&drawn, &graph), 0);
    read_views(states, views);
    for (size_t i = 0; kinds[i]; i++) {
        enum node_skip why = SKIP_NONE;
        enum node_turn turn = workflow_turn(&graph, views, i, &why);
        seen[i] = turn == TURN_RUN           ? 'R'
                  : turn == TURN_WAIT        ? '.'
                  : why == SKIP_NOT_SELECTED ? 'S'
                                             : 'U';
    }
    assert_string_equal(seen, turns);
}

static void a_node_runs_when_what_it_needs_is_there(void **state) {
    (void)state;
    assert_turns("nnn", "ac bc", "ppp", "RR."); /* independent ones at once */
    assert_turns("nnn", "ac bc", "crp", "...");
    assert_turns("nnn", "ac bc", "ctp", "...");
    assert_turns("nnn", "ac bc", "ccp", "..R");
    assert_turns("nnn", "ac bc", "cfp", "..U");
    assert_turns("nnn", "ab bc", "fup", "..U");
    assert_turns("nnm", "ac bc", "cfp", "..R"); /* a merge judges for itself */
    assert_turns("nna", "ac bc", "ffp", "..R");
}

static void a_branch_leads_to_one_of_its_targets(void **state) {
    (void)state;
    assert_turns("bnn", "ab ac", "cpp", ".RS");
    assert_turns("bnnn", "ab ac cd", "ccsp", "...S");    /* what depends on it alone */
    assert_turns("bnnn", "ab ac bd cd", "ccsp", "...R"); /* and what does not */
    assert_turns("bnna", "ab ac bd cd", "ccsp", "...R");
}

static size_t failure_of(const char *kinds, const char *edges, const char *states) {
    struct drawn drawn;
    struct workflow_graph graph;
    struct node_view views[8];
    draw(&drawn, kinds, edges);
    assert_int_equal(reason_of(&drawn, &graph), 0);
    read_views(states, views);
    return workflow_failure(&graph, views);
}

static void a_merge_makes_a_failure_good(void **state) {
    (void)state;
    assert_int_equal(failure_of("nna", "ac bc", "fcc"), SIZE_MAX);
    assert_int_equal(failure_of("nna", "ac bc", "fff"), 0);
    assert_int_equal(failure_of("nnna", "ab bd cd", "fucc"), SIZE_MAX); /* further on */
    assert_int_equal(failure_of("nnna", "ab bd ca", "cfcf"), 1);
    assert_int_equal(failure_of("nnna", "ab ad cd", "fucc"), 0); /* b was not made good */
    assert_int_equal(failure_of("nn", "", "cc"), SIZE_MAX);
}

static void hopeless_failures_are_known_at_once(void **state) {
    (void)state;
    struct drawn drawn;
    struct workflow_graph graph;
    draw(&drawn, "nnamn", "ab bc ad ae");
    assert_int_equal(reason_of(&drawn, &graph), 0);
    assert_true(workflow_may_recover(&graph, 0));
    assert_true(workflow_may_recover(&graph, 1));
    assert_false(workflow_may_recover(&graph, 2));
    assert_false(workflow_may_recover(&graph, 4));
}

static void each_repeat_waits_twice_as_long_up_to_ten_minutes(void **state) {
    (void)state;
    const struct workflow_backoff doubling = {.first_ms = 200, .doubles = true};
    const struct workflow_backoff even = {.first_ms = 200, .doubles = false};
    const struct workflow_backoff longest = {WORKFLOW_BACKOFF_MAX_MS, true};
    assert_int_equal(workflow_backoff_ms(&doubling, 0), 200);
    assert_int_equal(workflow_backoff_ms(&doubling, 3), 1600);
    assert_int_equal(workflow_backoff_ms(&even, 3), 200);
    assert_int_equal(workflow_backoff_ms(&longest, 10), WORKFLOW_BACKOFF_MAX_MS);
}

static void only_a_failure_of_the_provider_is_tried_again(void **state) {
    (void)state;
    assert_true(workflow_attempt_helps(NIMI_AI_PROVIDER_TIMEOUT));
    assert_true(workflow_attempt_helps(NIMI_AI_STREAM_BROKEN));
    assert_false(workflow_attempt_helps(NIMI_AI_INPUT_INVALID));
    assert_false(workflow_attempt_helps(NIMI_AI_OUTPUT_INVALID));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_allowed),
        cmocka_unit_test(each_repeat_waits_twice_as_long_up_to_ten_minutes),
        cmocka_unit_test(only_a_failure_of_the_provider_is_tried_again),
        cmocka_unit_test_setup_teardown(a_graph_without_cycles_is_accepted, setup, teardown),
        cmocka_unit_test_setup_teardown(each_mistake_of_a_graph_has_its_reason, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(each_mistake_of_a_node_has_its_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backoff_is_a_time_or_doubles, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_runs_when_what_it_needs_is_there, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_branch_leads_to_one_of_its_targets, setup, teardown),
        cmocka_unit_test_setup_teardown(a_merge_makes_a_failure_good, setup, teardown),
        cmocka_unit_test_setup_teardown(hopeless_failures_are_known_at_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
