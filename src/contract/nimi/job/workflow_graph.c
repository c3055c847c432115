#include "contract/nimi/job/workflow_graph.h"

#include "base/map.h"

#include <assert.h>

/* --- states ------------------------------------------------------------------------------- */

const struct state node_states[NODE_STATE_COUNT] = {
    /* clang-format off */
    [NODE_PENDING]   = {"pending",   TO(NODE_RUNNING) | TO(NODE_SKIPPED) | TO(NODE_CANCELED)},
    [NODE_RUNNING]   = {"running",   TO(NODE_RETRYING) | TO(NODE_COMPLETED) | TO(NODE_FAILED) | TO(NODE_CANCELED)},
    [NODE_RETRYING]  = {"retrying",  TO(NODE_RUNNING) | TO(NODE_CANCELED)},
    [NODE_COMPLETED] = {"completed", 0},
    [NODE_FAILED]    = {"failed",    0},
    [NODE_SKIPPED]   = {"skipped",   0},
    [NODE_CANCELED]  = {"canceled",  0},
    /* clang-format on */
};

bool node_is_over(enum node_state state) {
    return node_states[state].may_become == 0;
}

/* --- checking the graph ------------------------------------------------------------------- */

/* What the checks work with. */
struct reading {
    const struct nimi_workflow_definition *from;
    struct arena *arena;
    struct workflow_graph *graph;
    struct map *by_id; /* graph_node by node_id */
    struct fault *fault;
};

#define SHOWN(text) STR_ARG(str_head(text, 80))

static bool graph_refuse(struct reading *reading, struct str id, const char *what,
                         struct str other) {
    return fault_set(reading->fault, NIMI_WF_DAG_INVALID,
                     "node '" STR_FMT "': %s '" STR_FMT "'", SHOWN(id), what, SHOWN(other));
}

static bool graph_is_full(struct reading *reading) {
    return fault_set(reading->fault, NIMI_WF_DAG_INVALID, "the definition is too large");
}

static bool id_is_right(struct str id) {
    return str_trim(id).len > 0 && id.len <= WORKFLOW_ID_MAX_BYTES;
}

static size_t index_of(const struct reading *reading, struct str id) {
    const struct graph_node *node = map_find(reading->by_id, id);
    return node ? (size_t)(node - reading->graph->nodes) : SIZE_MAX;
}

static bool read_nodes(struct reading *reading) {
    const struct nimi_workflow_definition *from = reading->from;
    struct workflow_graph *graph = reading->graph;
    assert(graph->nodes);
    for (size_t i = 0; i < from->nodes_count; i++) {
        struct graph_node *node = &graph->nodes[i];
        struct str id = from->nodes[i].node_id;
        node->node = &from->nodes[i];
        if (!id_is_right(id))
            return fault_set(reading->fault, NIMI_WF_DAG_INVALID,
                             "nodes[%zu]: a node_id has 1 to %d bytes", i,
                             WORKFLOW_ID_MAX_BYTES);
        if (map_put(reading->by_id, id, node))
            return graph_refuse(reading, id, "two nodes have this id,", id);
    }
    return true;
}

/* Add a dependency once. There is room, because both lists have a place for every node. */
static void depend(struct workflow_graph *graph, size_t from, size_t to) {
    struct graph_node *node = &graph->nodes[to], *upstream = &graph->nodes[from];
    for (size_t i = 0; i < node->before_count; i++) {
        if (node->before[i] == from) return;
    }
    node->before[node->before_count++] = from;
    upstream->after[upstream->after_count++] = to;
}

static bool read_dependencies(struct reading *reading, size_t to) {
    const struct nimi_workflow_node *node = reading->graph->nodes[to].node;
    for (size_t i = 0; i < node->depends_on_count; i++) {
        size_t from = index_of(reading, node->depends_on[i]);
        if (from == SIZE_MAX)
            return graph_refuse(reading, node->node_id, "it depends on an unknown node,",
                                node->depends_on[i]);
        if (from == to)
            return graph_refuse(reading, node->node_id, "it depends on itself,", node->node_id);
        depend(reading->graph, from, to);
    }
    return true;
}

static bool slot_is_free(const struct graph_node *node, struct str slot) {
    for (size_t i = 0; i < node->input_count; i++) {
        if (str_equal(node->inputs[i].slot, slot)) return false;
    }
    return true;
}

static bool read_edge(struct reading *reading, const struct nimi_workflow_edge *edge) {
    size_t from = index_of(reading, edge->from_node_id);
    size_t to = index_of(reading, edge->to_node_id);
    if (from == SIZE_MAX || to == SIZE_MAX)
        return graph_refuse(reading, edge->to_node_id, "an edge joins it to an unknown node,",
                            from == SIZE_MAX ? edge->from_node_id : edge->to_node_id);
    if (from == to)
        return graph_refuse(reading, edge->to_node_id, "an edge joins it to itself,",
                            edge->from_node_id);
    if (!id_is_right(edge->from_output) || !id_is_right(edge->to_input))
        return graph_refuse(reading, edge->to_node_id,
                            "an edge needs from_output and to_input, from", edge->from_node_id);
    struct graph_node *node = &reading->graph->nodes[to];
    if (!slot_is_free(node, edge->to_input))
        return graph_refuse(reading, edge->to_node_id, "two edges lead to its input",
                            edge->to_input);
    node->inputs[node->input_count++] =
        (struct workflow_input){edge->to_input, edge->from_output, from};
    depend(reading->graph, from, to);
    return true;
}

static size_t count_edges_to(const struct nimi_workflow_definition *from, struct str id) {
    size_t count = 0;
    for (size_t i = 0; i < from->edges_count; i++)
        count += str_equal(from->edges[i].to_node_id, id);
    return count;
}

static bool read_edges(struct reading *reading) {
    struct workflow_graph *graph = reading->graph;
    const struct nimi_workflow_definition *from = reading->from;
    for (size_t i = 0; i < graph->count; i++) {
        struct graph_node *node = &graph->nodes[i];
        size_t inputs = count_edges_to(from, node->node->node_id);
        node->before = arena_alloc(reading->arena, graph->count * sizeof(size_t));
        node->after = arena_alloc(reading->arena, graph->count * sizeof(size_t));
        node->inputs = arena_alloc(reading->arena, (inputs + 1) * sizeof(*node->inputs));
        if (!node->before || !node->after || !node->inputs) return graph_is_full(reading);
    }
    for (size_t i = 0; i < graph->count; i++) {
        if (!read_dependencies(reading, i)) return false;
    }
    for (size_t i = 0; i < from->edges_count; i++) {
        if (!read_edge(reading, &from->edges[i])) return false;
    }
    return true;
}

/* Kahn: take away nodes that depend on nothing that is left, until none is. */
static bool has_no_cycle(struct reading *reading) {
    struct workflow_graph *graph = reading->graph;
    size_t waits[WORKFLOW_NODES_MAX], ready[WORKFLOW_NODES_MAX], ready_count = 0;
    for (size_t i = 0; i < graph->count; i++) {
        waits[i] = graph->nodes[i].before_count;
        if (!waits[i]) ready[ready_count++] = i;
    }
    for (size_t next = 0; next < ready_count; next++) {
        const struct graph_node *node = &graph->nodes[ready[next]];
        for (size_t i = 0; i < node->after_count; i++) {
            if (--waits[node->after[i]] == 0) ready[ready_count++] = node->after[i];
        }
    }
    for (size_t i = 0; i < graph->count; i++) {
        if (!waits[i]) continue;
        struct str id = graph->nodes[i].node->node_id;
        return graph_refuse(reading, id, "the graph has a cycle through, or before,", id);
    }
    return true;
}

/* --- nodes that refer to others ----------------------------------------------------------- */

static bool is_after(const struct graph_node *node, size_t index) {
    for (size_t i = 0; i < node->after_count; i++) {
        if (node->after[i] == index) return true;
    }
    return false;
}

static bool target_is_next(struct reading *reading, const struct graph_node *node,
                           struct str target) {
    size_t index = index_of(reading, target);
    return str_trim(target).len == 0 || (index != SIZE_MAX && is_after(node, index)) ||
           graph_refuse(reading, node->node->node_id,
                        "a branch's target must depend on it directly, which is not so of",
                        target);
}

static bool check_references(struct reading *reading, struct graph_node *node) {
    const struct nimi_workflow_node *from = node->node;
    for (size_t i = 0; i < node->input_count; i++) {
        const struct workflow_input *input = &node->inputs[i];
        if (!workflow_config_has_output(&reading->graph->nodes[input->from], input->output))
            return graph_refuse(reading, from->node_id,
                                "an edge takes an output that its node does not have,",
                                input->output);
    }
    switch (from->which_type_config) {
    case NIMI_WORKFLOW_NODE_BRANCH_CONFIG:
        return target_is_next(reading, node, from->branch_config->true_target) &&
               target_is_next(reading, node, from->branch_config->false_target);
    case NIMI_WORKFLOW_NODE_MERGE_CONFIG:
        return node->before_count > 0 ||
               graph_refuse(reading, from->node_id, "nothing leads to the merge",
                            from->node_id);
    case NIMI_WORKFLOW_NODE_EXTRACT_CONFIG:
        return !slot_is_free(node, from->extract_config->source_input) ||
               graph_refuse(reading, from->node_id, "no edge leads to its source_input",
                            from->extract_config->source_input);
    default: return true;
    }
}

static bool check_nodes(struct reading *reading) {
    for (size_t i = 0; i < reading->graph->count; i++) {
        if (!workflow_config_check(&reading->graph->nodes[i], reading->fault)) return false;
    }
    for (size_t i = 0; i < reading->graph->count; i++) {
        if (!check_references(reading, &reading->graph->nodes[i])) return false;
    }
    return true;
}

static bool check_size(struct reading *reading) {
    const struct nimi_workflow_definition *from = reading->from;
    if (str_trim(from->workflow_type).len == 0 || from->nodes_count == 0)
        return fault_set(reading->fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "a definition needs a workflow_type and a node");
    if (from->nodes_count > WORKFLOW_NODES_MAX || from->edges_count > WORKFLOW_EDGES_MAX)
        return fault_set(reading->fault, NIMI_WF_DAG_INVALID,
                         "a workflow has at most %d nodes and %d edges", WORKFLOW_NODES_MAX,
                         WORKFLOW_EDGES_MAX);
    return true;
}

bool workflow_graph_read(const struct nimi_workflow_definition *definition, struct arena *arena,
                         struct workflow_graph *ret, struct fault *fault) {
    struct reading reading = {definition, arena, ret, map_new(), fault};
    bool right = check_size(&reading);
    *ret = (struct workflow_graph){.count = definition->nodes_count};
    if (right) {
        ret->nodes = arena_alloc(arena, ret->count * sizeof(*ret->nodes));
        right = (ret->nodes || graph_is_full(&reading)) && read_nodes(&reading) &&
                read_edges(&reading) && has_no_cycle(&reading) && check_nodes(&reading);
    }
    map_free(reading.by_id);
    return right;
}
