/* AI nodes: the job that an attempt is, and what it has made. */
#include "contract/nimi/job/workflow_node.h"
#include "contract/nimi/job/workflow_value.h"

#define TEXT_MAX_BYTES (3 * MIB)

/* What an AI node's configuration has in common. */
struct node_ask {
    struct json inputs;
    struct arena *arena;
    struct nimi_scenario_request_head *head;
    struct nimi_scenario_spec *spec;
    int32_t type; /* ScenarioType */
};

static bool full(struct fault *fault) {
    return fault_set(fault, NIMI_AI_INPUT_INVALID, "what it asks becomes too large");
}

/* A text of the configuration with its {{slots}} filled in; an empty one is the whole slot. */
static bool text_of(const struct node_ask *ask, struct str text, const char *slot,
                    struct str *ret, struct fault *fault) {
    struct buf filled;
    buf_init(&filled, TEXT_MAX_BYTES);
    bool fits = str_trim(text).len || !slot
                    ? workflow_expand(text, ask->inputs, &filled)
                    : workflow_text(json_find(ask->inputs, str_from(slot)), &filled);
    fits = fits && arena_str(ask->arena, buf_str(&filled), ret);
    buf_done(&filled);
    return fits || full(fault);
}

/* --- the types ---------------------------------------------------------------------------- */

#define SPEC(ask, member, type, ...)                                                           \
    struct type *member = ARENA_NEW((ask)->arena, struct type);                                \
    if (!member) return full(fault);                                                           \
    *member = (struct type){__VA_ARGS__};                                                      \
    (ask)->spec->member = member

static void set_head(struct node_ask *ask, struct str model, int32_t route, int32_t fallback,
                     int32_t timeout_ms) {
    ask->head->model_id = model;
    ask->head->route_policy = route ? route : NIMI_ROUTE_POLICY_LOCAL;
    ask->head->fallback = fallback;
    ask->head->timeout_ms = timeout_ms;
}

/* Both text nodes have the same members under the same numbers. */
static bool ask_text(struct node_ask *ask, const struct nimi_ai_generate_node_config *from,
                     struct fault *fault) {
    struct str prompt, system;
    struct nimi_chat_message *message = ARENA_NEW(ask->arena, struct nimi_chat_message);
    if (!message) return full(fault);
    if (!text_of(ask, from->prompt, "prompt", &prompt, fault) ||
        !text_of(ask, from->system_prompt, NULL, &system, fault))
        return false;
    *message = (struct nimi_chat_message){.role = STR("user"), .content = prompt};
    set_head(ask, from->model_id, from->route_policy, from->fallback, from->timeout_ms);
    ask->type = NIMI_SCENARIO_TYPE_TEXT_GENERATE;
    ask->spec->which_spec = NIMI_SCENARIO_SPEC_TEXT_GENERATE;
    SPEC(ask, text_generate, nimi_text_generate_scenario_spec, .input = message,
         .input_count = 1, .system_prompt = system, .temperature = from->temperature,
         .top_p = from->top_p, .max_tokens = from->max_tokens);
    return true;
}

static bool ask_stream(struct node_ask *ask, const struct nimi_ai_stream_node_config *from,
                       struct fault *fault) {
    return ask_text(ask,
                    &(struct nimi_ai_generate_node_config){.model_id = from->model_id,
                                                           .system_prompt = from->system_prompt,
                                                           .temperature = from->temperature,
                                                           .top_p = from->top_p,
                                                           .max_tokens = from->max_tokens,
                                                           .route_policy = from->route_policy,
                                                           .fallback = from->fallback,
                                                           .timeout_ms = from->timeout_ms,
                                                           .prompt = from->prompt},
                    fault);
}

static bool ask_embed(struct node_ask *ask, const struct nimi_ai_embed_node_config *from,
                      struct fault *fault) {
    size_t count = from->inputs_count ? from->inputs_count : 1;
    struct str *inputs = arena_alloc(ask->arena, count * sizeof(*inputs));
    if (!inputs) return full(fault);
    for (size_t i = 0; i < count; i++) {
        struct str text = from->inputs_count ? from->inputs[i] : STR_EMPTY;
        if (!text_of(ask, text, "inputs", &inputs[i], fault)) return false;
    }
    set_head(ask, from->model_id, from->route_policy, from->fallback, from->timeout_ms);
    ask->type = NIMI_SCENARIO_TYPE_TEXT_EMBED;
    ask->spec->which_spec = NIMI_SCENARIO_SPEC_TEXT_EMBED;
    SPEC(ask, text_embed, nimi_text_embed_scenario_spec, .inputs = inputs,
         .inputs_count = count);
    return true;
}

static bool ask_image(struct node_ask *ask, const struct nimi_ai_image_node_config *from,
                      struct fault *fault) {
    struct str prompt;
    if (!text_of(ask, from->prompt, "prompt", &prompt, fault)) return false;
    set_head(ask, from->model_id, from->route_policy, from->fallback, from->timeout_ms);
    ask->type = NIMI_SCENARIO_TYPE_IMAGE_GENERATE;
    ask->spec->which_spec = NIMI_SCENARIO_SPEC_IMAGE_GENERATE;
    SPEC(ask, image_generate, nimi_image_generate_scenario_spec, .prompt = prompt);
    return true;
}

static bool ask_video(struct node_ask *ask, const struct nimi_ai_video_node_config *from,
                      struct fault *fault) {
    struct str prompt;
    if (!text_of(ask, from->prompt, "prompt", &prompt, fault)) return false;
    set_head(ask, from->model_id, from->route_policy, from->fallback, from->timeout_ms);
    ask->type = NIMI_SCENARIO_TYPE_VIDEO_GENERATE;
    ask->spec->which_spec = NIMI_SCENARIO_SPEC_VIDEO_GENERATE;
    SPEC(ask, video_generate, nimi_video_generate_scenario_spec, .prompt = prompt);
    return true;
}

static bool ask_tts(struct node_ask *ask, const struct nimi_ai_tts_node_config *from,
                    struct fault *fault) {
    struct str text;
    if (!text_of(ask, from->text, "text", &text, fault)) return false;
    set_head(ask, from->model_id, from->route_policy, from->fallback, from->timeout_ms);
    ask->type = NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE;
    ask->spec->which_spec = NIMI_SCENARIO_SPEC_SPEECH_SYNTHESIZE;
    SPEC(ask, speech_synthesize, nimi_speech_synthesize_scenario_spec, .text = text);
    return true;
}

static bool ask_synthesize(struct node_ask *ask,
                           const struct nimi_ai_tts_synthesize_node_config *from,
                           struct fault *fault) {
    struct str text;
    int32_t route = from->connector_id.len ? NIMI_ROUTE_POLICY_CLOUD : NIMI_ROUTE_POLICY_LOCAL;
    if (!text_of(ask, from->text, "text", &text, fault)) return false;
    set_head(ask, from->model_id, route, 0, from->timeout_ms);
    ask->head->connector_id = from->connector_id;
    ask->type = NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE;
    ask->spec->which_spec = NIMI_SCENARIO_SPEC_SPEECH_SYNTHESIZE;
    SPEC(ask, speech_synthesize, nimi_speech_synthesize_scenario_spec, .text = text,
         .audio_format = from->audio_format, .sample_rate_hz = from->sample_rate_hz,
         .speed = from->speed, .pitch = from->pitch, .volume = from->volume,
         .emotion = from->emotion, .voice_ref = from->voice_ref);
    return true;
}

static bool ask_stt(struct node_ask *ask, const struct nimi_ai_stt_node_config *from,
                    struct fault *fault) {
    struct nimi_speech_transcription_audio_source *source =
        ARENA_NEW(ask->arena, struct nimi_speech_transcription_audio_source);
    if (!source) return full(fault);
    source->which_source = NIMI_SPEECH_TRANSCRIPTION_AUDIO_SOURCE_AUDIO_BYTES;
    source->audio_bytes = from->audio_bytes;
    set_head(ask, from->model_id, from->route_policy, from->fallback, from->timeout_ms);
    ask->type = NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE;
    ask->spec->which_spec = NIMI_SCENARIO_SPEC_SPEECH_TRANSCRIBE;
    SPEC(ask, speech_transcribe, nimi_speech_transcribe_scenario_spec,
         .mime_type = from->mime_type, .audio_source = source);
    return true;
}

static bool ask_by_type(struct node_ask *ask, const struct nimi_workflow_node *node,
                        struct fault *fault) {
    switch (node->node_type) {
    case NIMI_WORKFLOW_NODE_AI_GENERATE: return ask_text(ask, node->ai_generate_config, fault);
    case NIMI_WORKFLOW_NODE_AI_STREAM: return ask_stream(ask, node->ai_stream_config, fault);
    case NIMI_WORKFLOW_NODE_AI_EMBED: return ask_embed(ask, node->ai_embed_config, fault);
    case NIMI_WORKFLOW_NODE_AI_IMAGE: return ask_image(ask, node->ai_image_config, fault);
    case NIMI_WORKFLOW_NODE_AI_VIDEO: return ask_video(ask, node->ai_video_config, fault);
    case NIMI_WORKFLOW_NODE_AI_TTS: return ask_tts(ask, node->ai_tts_config, fault);
    case NIMI_WORKFLOW_NODE_AI_TTS_SYNTHESIZE:
        return ask_synthesize(ask, node->ai_tts_synthesize_config, fault);
    default: return ask_stt(ask, node->ai_stt_config, fault);
    }
}

bool workflow_node_ask(const struct graph_node *node, struct json inputs, struct str app,
                       struct str subject, struct arena *arena,
                       struct nimi_submit_scenario_job_request *ret, struct fault *fault) {
    struct node_ask ask = {.inputs = inputs,
                           .arena = arena,
                           .head = ARENA_NEW(arena, struct nimi_scenario_request_head),
                           .spec = ARENA_NEW(arena, struct nimi_scenario_spec)};
    if (!ask.head || !ask.spec) return full(fault);
    ask.head->app_id = app;
    ask.head->subject_user_id = subject;
    if (!ask_by_type(&ask, node->node, fault)) return false;
    *ret = (struct nimi_submit_scenario_job_request){.head = ask.head,
                                                     .scenario_type = ask.type,
                                                     .execution_mode =
                                                         NIMI_EXECUTION_MODE_ASYNC_JOB,
                                                     .spec = ask.spec};
    return true;
}

/* --- what it has made --------------------------------------------------------------------- */

static void put_artifacts(struct json_writer *w, const struct nimi_scenario_job *job) {
    json_member_array(w, "artifacts");
    for (size_t i = 0; i < job->artifacts_count; i++) {
        const struct nimi_scenario_artifact *artifact = &job->artifacts[i];
        json_open_object(w);
        json_member_str(w, "artifact_id", artifact->artifact_id);
        json_member_str(w, "mime_type", artifact->mime_type);
        json_member_str(w, "uri", artifact->uri);
        json_member_str(w, "sha256", artifact->sha256);
        json_member_i64(w, "size_bytes", artifact->size_bytes);
        json_close(w);
    }
    json_close(w);
}

static void put_vectors(struct json_writer *w, const struct nimi_text_embed_output *from) {
    json_member_array(w, "vectors");
    for (size_t i = 0; i < from->vectors_count; i++) {
        json_open_array(w);
        for (size_t v = 0; v < from->vectors[i].values_count; v++)
            json_write_double(w, from->vectors[i].values[v]);
        json_close(w);
    }
    json_close(w);
}

static void put_made(struct json_writer *w, const struct nimi_scenario_output *made) {
    switch (made->which_output) {
    case NIMI_SCENARIO_OUTPUT_TEXT_GENERATE:
        json_member_str(w, "text", made->text_generate->text);
        break;
    case NIMI_SCENARIO_OUTPUT_TEXT_EMBED: put_vectors(w, made->text_embed); break;
    case NIMI_SCENARIO_OUTPUT_SPEECH_TRANSCRIBE:
        json_member_str(w, "text", made->speech_transcribe->text);
        break;
    default: break;
    }
}

static void put_usage(struct json_writer *w, const struct nimi_usage_stats *usage) {
    if (!usage) return;
    json_member_object(w, "usage");
    json_member_i64(w, "input_tokens", usage->input_tokens);
    json_member_i64(w, "output_tokens", usage->output_tokens);
    json_close(w);
}

bool workflow_node_take(const struct job_fold *job, struct buf *out, struct fault *fault) {
    struct arena *arena = arena_new(16 * job->output.len + 64 * KIB);
    struct nimi_scenario_output made;
    struct err e;
    bool whole = pb_decode_view(&nimi_scenario_output_table, job->output, arena, &made, &e);
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    if (whole) put_made(&w, &made);
    if (job->job.artifacts_count) put_artifacts(&w, &job->job);
    json_member_str(&w, "model", job->job.model_resolved);
    json_member_str(&w, "job_id", job->job.job_id);
    put_usage(&w, job->job.usage);
    json_close(&w);
    arena_free(arena);
    return (whole && buf_ok(out)) || fault_set(fault, NIMI_AI_OUTPUT_INVALID,
                                               "what it has made is too large for a "
                                               "workflow; ask for less");
}
