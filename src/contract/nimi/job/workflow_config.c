/* What each type of node needs, and which outputs it has. */
#include "contract/nimi/job/workflow_graph.h"
#include "contract/nimi/job/workflow_value.h"

typedef bool check_fn(const struct graph_node *node, struct fault *fault);

static bool config_refuse(const struct graph_node *node, struct fault *fault, const char *why) {
    return fault_set(fault, NIMI_WF_NODE_CONFIG_MISMATCH, "node '" STR_FMT "': %s",
                     STR_ARG(str_head(node->node->node_id, 80)), why);
}

static bool is_blank(struct str text) {
    return str_trim(text).len == 0;
}

static bool has_slot(const struct graph_node *node, struct str slot) {
    for (size_t i = 0; i < node->input_count; i++) {
        if (str_equal(node->inputs[i].slot, slot)) return true;
    }
    return false;
}

/* Every AI node names a model, and has its text or an edge to the slot that brings it. */
static bool check_asked(const struct graph_node *node, struct str model, struct str text,
                        struct str slot, struct fault *fault) {
    if (is_blank(model)) return config_refuse(node, fault, "it needs a model_id");
    return !is_blank(text) || has_slot(node, slot) ||
           config_refuse(node, fault,
                         "it has nothing to ask: set its text, or lead an edge to its input "
                         "`prompt` (pictures and text), `text` (speech) or `inputs` (vectors)");
}

static bool check_modal(const struct graph_node *node, int modal, size_t tools,
                        struct fault *fault) {
    if (tools) return config_refuse(node, fault, "tools are not offered to models here");
    return modal == NIMI_MODAL_UNSPECIFIED || modal == NIMI_MODAL_TEXT ||
           config_refuse(node, fault, "its modal must be TEXT");
}

static bool check_generate(const struct graph_node *node, struct fault *fault) {
    const struct nimi_ai_generate_node_config *from = node->node->ai_generate_config;
    return check_modal(node, from->modal, from->tools_count, fault) &&
           check_asked(node, from->model_id, from->prompt, STR("prompt"), fault);
}

static bool check_stream(const struct graph_node *node, struct fault *fault) {
    const struct nimi_ai_stream_node_config *from = node->node->ai_stream_config;
    return check_modal(node, from->modal, from->tools_count, fault) &&
           check_asked(node, from->model_id, from->prompt, STR("prompt"), fault);
}

static bool check_embed(const struct graph_node *node, struct fault *fault) {
    const struct nimi_ai_embed_node_config *from = node->node->ai_embed_config;
    struct str first = from->inputs_count ? from->inputs[0] : STR_EMPTY;
    return check_asked(node, from->model_id, first, STR("inputs"), fault);
}

static bool check_image(const struct graph_node *node, struct fault *fault) {
    const struct nimi_ai_image_node_config *from = node->node->ai_image_config;
    return check_asked(node, from->model_id, from->prompt, STR("prompt"), fault);
}

static bool check_video(const struct graph_node *node, struct fault *fault) {
    const struct nimi_ai_video_node_config *from = node->node->ai_video_config;
    return check_asked(node, from->model_id, from->prompt, STR("prompt"), fault);
}

static bool check_tts(const struct graph_node *node, struct fault *fault) {
    const struct nimi_ai_tts_node_config *from = node->node->ai_tts_config;
    return check_asked(node, from->model_id, from->text, STR("text"), fault);
}

static bool check_synthesize(const struct graph_node *node, struct fault *fault) {
    const struct nimi_ai_tts_synthesize_node_config *from =
        node->node->ai_tts_synthesize_config;
    if (from->extensions_count)
        return config_refuse(node, fault, "no extensions are known for it");
    return check_asked(node, from->model_id, from->text, STR("text"), fault);
}

static bool check_stt(const struct graph_node *node, struct fault *fault) {
    const struct nimi_ai_stt_node_config *from = node->node->ai_stt_config;
    if (is_blank(from->model_id)) return config_refuse(node, fault, "it needs a model_id");
    return from->audio_bytes.len ||
           config_refuse(node, fault, "it has nothing to write down: set audio_bytes");
}

static bool check_extract(const struct graph_node *node, struct fault *fault) {
    const struct nimi_extract_node_config *from = node->node->extract_config;
    if (is_blank(from->source_input))
        return config_refuse(node, fault, "it needs a source_input");
    return workflow_path_is(from->json_path) ||
           config_refuse(node, fault,
                         "its json_path must be a path such as $.a.b or $.list[0]");
}

static bool check_template(const struct graph_node *node, struct fault *fault) {
    return !is_blank(node->node->template_config->template_) ||
           config_refuse(node, fault, "it needs a template");
}

static bool check_branch(const struct graph_node *node, struct fault *fault) {
    const struct nimi_branch_node_config *from = node->node->branch_config;
    if (!workflow_condition_is(from->condition))
        return config_refuse(node, fault,
                             "its condition must be a path such as $.ok, or a path, one of == "
                             "!= >= <= > <, and a number, a string, true, false or null");
    if (is_blank(from->true_target) && is_blank(from->false_target))
        return config_refuse(node, fault, "it needs a true_target or a false_target");
    return !str_equal(from->true_target, from->false_target) ||
           config_refuse(node, fault, "its two targets are the same");
}

static bool check_merge(const struct graph_node *node, struct fault *fault) {
    const struct nimi_merge_node_config *from = node->node->merge_config;
    bool counts = from->strategy == NIMI_MERGE_STRATEGY_N_OF_M;
    if (from->strategy < 0 || from->strategy > NIMI_MERGE_STRATEGY_N_OF_M)
        return config_refuse(node, fault, "its strategy is not known");
    return !counts ||
           (from->min_completed >= 1 && (size_t)from->min_completed <= node->before_count) ||
           config_refuse(node, fault,
                         "its min_completed must be from 1 to the number of nodes before it");
}

static bool check_nothing(const struct graph_node *node, struct fault *fault) {
    (void)node, (void)fault;
    return true;
}

static bool check_unsupported(const struct graph_node *node, struct fault *fault) {
    return config_refuse(node, fault,
                         "nodes of this type are not run here (scripts, and making voices)");
}

/* --- the types ---------------------------------------------------------------------------- */

/* `outputs` ends with NULL; without a list a node may have any output. Every node has
 * `output`. */
static const char *const text_outputs[] = {"text", "model", "usage", "job_id", NULL};
static const char *const vector_outputs[] = {"vectors", "model", "usage", "job_id", NULL};
static const char *const artifact_outputs[] = {"artifacts", "model", "usage", "job_id", NULL};
static const char *const transcript_outputs[] = {"text",  "artifacts", "model",
                                                 "usage", "job_id",    NULL};
static const char *const template_outputs[] = {"text", "output_mime_type", NULL};
static const char *const branch_outputs[] = {"condition", "matched", "selected_target", NULL};

static const struct node_type {
    int type, config;
    bool is_ai;
    check_fn *check;
    const char *const *outputs;
} types[] = {
    /* clang-format off */
    {NIMI_WORKFLOW_NODE_AI_GENERATE,         NIMI_WORKFLOW_NODE_AI_GENERATE_CONFIG,         true,  check_generate,    text_outputs},
    {NIMI_WORKFLOW_NODE_AI_STREAM,           NIMI_WORKFLOW_NODE_AI_STREAM_CONFIG,           true,  check_stream,      text_outputs},
    {NIMI_WORKFLOW_NODE_AI_EMBED,            NIMI_WORKFLOW_NODE_AI_EMBED_CONFIG,            true,  check_embed,       vector_outputs},
    {NIMI_WORKFLOW_NODE_AI_IMAGE,            NIMI_WORKFLOW_NODE_AI_IMAGE_CONFIG,            true,  check_image,       artifact_outputs},
    {NIMI_WORKFLOW_NODE_AI_VIDEO,            NIMI_WORKFLOW_NODE_AI_VIDEO_CONFIG,            true,  check_video,       artifact_outputs},
    {NIMI_WORKFLOW_NODE_AI_TTS,              NIMI_WORKFLOW_NODE_AI_TTS_CONFIG,              true,  check_tts,         artifact_outputs},
    {NIMI_WORKFLOW_NODE_AI_STT,              NIMI_WORKFLOW_NODE_AI_STT_CONFIG,              true,  check_stt,         transcript_outputs},
    {NIMI_WORKFLOW_NODE_AI_TTS_CREATE_VOICE, NIMI_WORKFLOW_NODE_AI_TTS_CREATE_VOICE_CONFIG, true,  check_unsupported, NULL},
    {NIMI_WORKFLOW_NODE_AI_TTS_SYNTHESIZE,   NIMI_WORKFLOW_NODE_AI_TTS_SYNTHESIZE_CONFIG,   true,  check_synthesize,  artifact_outputs},
    {NIMI_WORKFLOW_NODE_TRANSFORM_EXTRACT,   NIMI_WORKFLOW_NODE_EXTRACT_CONFIG,             false, check_extract,     NULL},
    {NIMI_WORKFLOW_NODE_TRANSFORM_TEMPLATE,  NIMI_WORKFLOW_NODE_TEMPLATE_CONFIG,            false, check_template,    template_outputs},
    {NIMI_WORKFLOW_NODE_TRANSFORM_SCRIPT,    NIMI_WORKFLOW_NODE_SCRIPT_CONFIG,              false, check_unsupported, NULL},
    {NIMI_WORKFLOW_NODE_CONTROL_BRANCH,      NIMI_WORKFLOW_NODE_BRANCH_CONFIG,              false, check_branch,      branch_outputs},
    {NIMI_WORKFLOW_NODE_CONTROL_MERGE,       NIMI_WORKFLOW_NODE_MERGE_CONFIG,               false, check_merge,       NULL},
    {NIMI_WORKFLOW_NODE_CONTROL_NOOP,        NIMI_WORKFLOW_NODE_NOOP_CONFIG,                false, check_nothing,     NULL},
    /* clang-format on */
};

static const struct node_type *type_of(const struct nimi_workflow_node *node) {
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].type == node->node_type && types[i].config == node->which_type_config)
            return &types[i];
    }
    return NULL;
}

bool workflow_config_has_output(const struct graph_node *node, struct str output) {
    const struct node_type *type = type_of(node->node);
    if (!type || str_equal(output, STR("output"))) return true;
    if (node->is_merge) return has_slot(node, output);
    for (const char *const *at = type->outputs; at && *at; at++) {
        if (str_equal(output, str_from(*at))) return true;
    }
    return type->outputs == NULL;
}

/* --- retries ------------------------------------------------------------------------------ */

static const struct {
    const char *unit;
    uint64_t ms;
} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}};

/* "2s", "500ms", "1m", "exponential" (from one second), "exponential:200ms". */
static bool read_backoff(struct str text, struct workflow_backoff *ret) {
    struct str head = STR("exponential");
    *ret = (struct workflow_backoff){.first_ms = 1000};
    text = str_trim(text);
    if (str_starts(text, head)) {
        ret->doubles = true;
        text = str_skip(text, head.len);
        if (text.len && text.at[0] != ':') return false;
        text = str_skip(text, text.len ? 1 : 0);
        if (!text.len) return true;
    }
    if (!text.len) return true;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        struct str unit = str_from(units[i].unit);
        if (!str_ends(text, unit) ||
            !str_to_u64(str_head(text, text.len - unit.len), &ret->first_ms))
            continue;
        if (ret->first_ms > WORKFLOW_BACKOFF_MAX_MS / units[i].ms) return false;
        ret->first_ms *= units[i].ms;
        return true;
    }
    return false;
}

static bool check_retries(struct graph_node *node, struct fault *fault) {
    const struct nimi_workflow_node *from = node->node;
    if (from->retry_max_attempts < 0 || from->retry_max_attempts > WORKFLOW_RETRIES_MAX)
        return config_refuse(node, fault, "its retry_max_attempts must be from 0 to 10");
    if (from->retry_max_attempts && !node->is_ai)
        return config_refuse(node, fault, "only AI nodes can be tried again");
    return read_backoff(from->retry_backoff, &node->backoff) ||
           config_refuse(node, fault,
                         "its retry_backoff must be a time of at most ten minutes, such as 2s "
                         "or 500ms, or exponential, or exponential:200ms");
}

bool workflow_config_check(struct graph_node *node, struct fault *fault) {
    const struct nimi_workflow_node *from = node->node;
    const struct node_type *type = type_of(from);
    if (!type)
        return config_refuse(node, fault,
                             "its node_type is unknown, or its configuration is another's");
    node->is_ai = type->is_ai;
    node->is_merge = from->node_type == NIMI_WORKFLOW_NODE_CONTROL_MERGE;
    node->is_branch = from->node_type == NIMI_WORKFLOW_NODE_CONTROL_BRANCH;
    node->external = from->execution_mode == NIMI_WORKFLOW_EXECUTION_MODE_EXTERNAL_ASYNC;
    node->manual = from->resume_strategy == NIMI_WORKFLOW_RESUME_STRATEGY_MANUAL;
    if (from->callback_ref.len > WORKFLOW_CALLBACK_MAX_BYTES)
        return config_refuse(node, fault, "its callback_ref has more than 1024 bytes");
    if (node->external && !node->is_ai)
        return config_refuse(node, fault, "only AI nodes can be EXTERNAL_ASYNC");
    return type->check(node, fault) && check_retries(node, fault);
}
