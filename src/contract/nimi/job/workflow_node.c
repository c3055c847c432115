/* Nodes that call no model: templates, extracts, branches, merges, and nodes that do nothing. */
#include "contract/nimi/job/workflow_node.h"

#include "contract/nimi/job/workflow_value.h"

/* --- named outputs ------------------------------------------------------------------------ */

/* A value that flows along an edge is an object. */
static void put_object(struct json value, struct buf *out) {
    if (value.kind == JSON_OBJECT) {
        buf_append(out, value.raw);
        return;
    }
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_raw(&w, "value", value.raw);
    json_close(&w);
}

/* `text` of an extract is its value as text. */
static void put_text_of(struct json output, struct buf *out) {
    struct buf text;
    buf_init(&text, output.raw.len + 16);
    workflow_text(output, &text);
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "value", buf_str(&text));
    json_close(&w);
    buf_done(&text);
}

bool workflow_output_named(struct str text, struct str name, struct buf *out) {
    struct json output = json_of(text);
    struct json member = json_find(output, name);
    if (str_equal(name, STR("output"))) {
        put_object(output, out);
    } else if (member.kind != JSON_NONE) {
        put_object(member, out);
    } else if (str_equal(name, STR("text"))) {
        put_text_of(output, out);
    }
    return buf_ok(out);
}

/* --- the types ---------------------------------------------------------------------------- */

typedef bool make_fn(const struct graph_node *node, struct json inputs,
                     const struct workflow_merged *merged, struct buf *out,
                     struct fault *fault);

static bool make_template(const struct graph_node *node, struct json inputs,
                          const struct workflow_merged *merged, struct buf *out,
                          struct fault *fault) {
    const struct nimi_template_node_config *config = node->node->template_config;
    struct str mime = config->output_mime_type;
    struct buf text;
    (void)merged;
    buf_init(&text, out->max_bytes);
    bool fits = workflow_expand(config->template_, inputs, &text);
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "text", buf_str(&text));
    json_member_str(&w, "output_mime_type", mime.len ? mime : STR("text/plain"));
    json_close(&w);
    buf_done(&text);
    return fits || fault_set(fault, NIMI_AI_OUTPUT_INVALID, "the text becomes too large");
}

static bool make_extract(const struct graph_node *node, struct json inputs,
                         const struct workflow_merged *merged, struct buf *out,
                         struct fault *fault) {
    const struct nimi_extract_node_config *config = node->node->extract_config;
    struct json found =
        workflow_path_at(json_find(inputs, config->source_input), config->json_path);
    (void)merged;
    if (found.kind == JSON_NONE)
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "the path " STR_FMT " leads to nothing in its source",
                         STR_ARG(str_head(config->json_path, 80)));
    put_object(found, out);
    return true;
}

/* The slot `data`, else `input`, else the only one. */
static struct json branch_input(struct json inputs) {
    struct json input = json_find(inputs, STR("data"));
    struct json_reader reader = json_enter(inputs);
    struct json key;
    if (input.kind == JSON_NONE) input = json_find(inputs, STR("input"));
    if (input.kind == JSON_NONE && json_count(inputs) == 1)
        json_next_member(&reader, &key, &input);
    return input;
}

static bool make_branch(const struct graph_node *node, struct json inputs,
                        const struct workflow_merged *merged, struct buf *out,
                        struct fault *fault) {
    const struct nimi_branch_node_config *config = node->node->branch_config;
    bool matched = workflow_condition_holds(config->condition, branch_input(inputs));
    struct json_writer w = json_writer(out);
    (void)merged, (void)fault;
    json_open_object(&w);
    json_member_str(&w, "condition", config->condition);
    json_member_bool(&w, "matched", matched);
    json_member_str(&w, "selected_target",
                    matched ? config->true_target : config->false_target);
    json_close(&w);
    return true;
}

static size_t merge_needs(const struct nimi_merge_node_config *config, size_t all) {
    switch (config->strategy) {
    case NIMI_MERGE_STRATEGY_ANY: return 1;
    case NIMI_MERGE_STRATEGY_N_OF_M: return (size_t)config->min_completed;
    default: return all;
    }
}

static bool make_merge(const struct graph_node *node, struct json inputs,
                       const struct workflow_merged *merged, struct buf *out,
                       struct fault *fault) {
    size_t needs = merge_needs(node->node->merge_config, merged->all);
    if (merged->completed < needs)
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "the merge needs %zu of its %zu nodes, and %zu were completed", needs,
                         merged->all, merged->completed);
    buf_append(out, inputs.raw);
    return true;
}

static bool make_noop(const struct graph_node *node, struct json inputs,
                      const struct workflow_merged *merged, struct buf *out,
                      struct fault *fault) {
    struct json_reader reader = json_enter(inputs);
    struct json key, value;
    (void)node, (void)merged;
    if (!json_next_member(&reader, &key, &value))
        return fault_set(fault, NIMI_AI_INPUT_INVALID, "no input leads to it");
    put_object(value, out);
    return true;
}

static const struct {
    int type;
    make_fn *make;
} types[] = {
    {NIMI_WORKFLOW_NODE_TRANSFORM_TEMPLATE, make_template},
    {NIMI_WORKFLOW_NODE_TRANSFORM_EXTRACT, make_extract},
    {NIMI_WORKFLOW_NODE_CONTROL_BRANCH, make_branch},
    {NIMI_WORKFLOW_NODE_CONTROL_MERGE, make_merge},
    {NIMI_WORKFLOW_NODE_CONTROL_NOOP, make_noop},
};

bool workflow_node_make(const struct graph_node *node, struct json inputs,
                        const struct workflow_merged *merged, struct buf *out,
                        struct fault *fault) {
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].type == node->node->node_type)
            return types[i].make(node, inputs, merged, out, fault);
    }
    return fault_set(fault, NIMI_WF_NODE_CONFIG_MISMATCH, "it is not run here");
}
