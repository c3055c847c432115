#include "contract/nimi/realtime/realtime.h"

#include "base/mem.h"
#include "contract/nimi/bearer.h"
#include "contract/nimi/media_spec.h"
#include "contract/nimi/prompt.h"
#include "contract/nimi/realtime/session.h"
#include "contract/nimi/realtime/turn.h"
#include "contract/nimi/subscription.h"

#include <stdlib.h>

#define OPEN_BYTES (64 * KIB) /* asked of the process's ceiling for a session */

static const struct nimi_ack accepted = {.ok = true, .reason_code = NIMI_ACTION_EXECUTED};

static bool has_memory(size_t bytes, struct fault *fault) {
    struct err e;
    return mem_check(bytes, &e) || fault_set_code(fault, NIMI_AI_PROVIDER_RATE_LIMITED,
                                                  ERR_RESOURCE_EXHAUSTED, "%s", e.text);
}

/* --- opening ------------------------------------------------------------------------------ */

/* Whether an answer can be spoken as it was asked for. */
static bool speech_is_had(const struct nimi_instance *instance,
                          const struct nimi_open_realtime_session_request *from,
                          const struct admission *admission, struct fault *fault) {
    struct media *media =
        realtime_speaker(instance->settings, admission, from->head->subject_user_id);
    const struct nimi_speech_synthesize_scenario_spec spec = {
        .text = STR("hello"),
        .audio_format = from->output_audio_format,
        .sample_rate_hz = from->output_sample_rate_hz};
    struct media_request request;
    if (!str_trim(from->output_audio_format).len) return true;
    if (!media)
        return fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED,
                         "nothing here speaks for this model; leave output_audio_format empty");
    return media_spec_speech(&spec, media, STR_EMPTY, &request, fault);
}

static bool prompt_is_short(struct str prompt, struct fault *fault) {
    return prompt.len <= REALTIME_INPUT_BYTES ||
           fault_set(fault, NIMI_AI_INPUT_INVALID,
                     "the system_prompt has %zu bytes, and %zu are allowed", prompt.len,
                     (size_t)REALTIME_INPUT_BYTES);
}

static void publish_opened(struct realtime_session *session, const struct nimi_call *call,
                           const struct admission *admission) {
    const struct nimi_realtime_session_opened opened = {
        .session_id = str_of(session->id, REALTIME_ID_LEN),
        .model_resolved = admission->model,
        .route_decision = admission->route};
    const struct nimi_realtime_event event = {.event_type = NIMI_REALTIME_EVENT_OPENED,
                                              .which_payload = NIMI_REALTIME_EVENT_OPENED_CASE,
                                              .opened = &opened};
    realtime_publish(session, &event, nimi_trace(call));
}

void realtime_open(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_open_realtime_session_request *from = request;
    struct nimi_instance *instance = call->instance;
    struct admission admission;
    struct fault fault;
    (void)arena;
    if (!admit_session(instance->settings, &call->envelope, from->head, from->extensions,
                       from->extensions_count, &admission, &fault) ||
        !speech_is_had(instance, from, &admission, &fault) ||
        !prompt_is_short(from->system_prompt, &fault) ||
        !has_memory(OPEN_BYTES + from->system_prompt.len, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    struct realtime_session *session =
        realtime_new(&(struct realtime_options){.instance = instance,
                                                .app = from->head->app_id,
                                                .subject = from->head->subject_user_id,
                                                .owner = nimi_owner(call),
                                                .request = from});
    publish_opened(session, call, &admission);
    if (!realtime_table_add(nimi_runtime_realtime(instance->runtime), session, &fault)) {
        realtime_discard(session);
        nimi_refuse(call, &fault);
        return;
    }
    nimi_reply(call, &nimi_open_realtime_session_response_table,
               &(struct nimi_open_realtime_session_response){
                   .session_id = str_of(session->id, REALTIME_ID_LEN),
                   .route_decision = admission.route,
                   .model_resolved = admission.model,
                   .trace_id = nimi_trace(call)});
}

/* --- finding one -------------------------------------------------------------------------- */

/* Without issuers of tokens a caller is the app that it says it is. */
static bool is_the_callers(const struct nimi_call *call,
                           const struct realtime_session *session) {
    return str_equal(call->envelope.app_id, text_str(session->app)) &&
           bearer_may_see(call, text_str(session->subject));
}

/* With a reference. NULL: *fault says why. */
static struct realtime_session *realtime_find(struct nimi_call *call, struct str id,
                                              struct fault *fault) {
    struct realtime_session *session =
        realtime_table_find(nimi_runtime_realtime(call->instance->runtime), id);
    if (!session) {
        fault_set(fault, NIMI_AI_REALTIME_SESSION_NOT_FOUND,
                  "there is no such realtime session; it was closed, was idle for too long, or "
                  "ended with the runtime");
    } else if (!is_the_callers(call, session)) {
        realtime_unref(session);
        session = NULL;
        fault_set(fault, NIMI_APP_SCOPE_FORBIDDEN,
                  "this session belongs to another app or subject; x-nimi-app-id and the token "
                  "say who asks");
    }
    return session;
}

/* --- appending ---------------------------------------------------------------------------- */

static bool item_is_read(const struct nimi_realtime_input_item *item, size_t index,
                         struct fault *fault) {
    switch (item->which_item) {
    case NIMI_REALTIME_INPUT_ITEM_MESSAGE: return true;
    case NIMI_REALTIME_INPUT_ITEM_AUDIO:
        return fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED,
                         "items[%zu]: sound is not listened to by this runtime; have it "
                         "transcribed by a job, and append the text as a message",
                         index);
    default:
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "items[%zu]: an item is a message or audio", index);
    }
}

/* The messages of a request as a spec. */
static bool input_spec(const struct nimi_append_realtime_input_request *from,
                       struct arena *arena, struct nimi_text_generate_scenario_spec *ret,
                       struct fault *fault) {
    struct nimi_chat_message *messages =
        arena_alloc(arena, (from->items_count + 1) * sizeof(*messages));
    if (!from->items_count || !messages)
        return fault_set(fault, NIMI_AI_INPUT_INVALID, "there is nothing to append");
    for (size_t i = 0; i < from->items_count; i++) {
        if (!item_is_read(&from->items[i], i, fault)) return false;
        messages[i] = *from->items[i].message;
    }
    *ret = (struct nimi_text_generate_scenario_spec){.input = messages,
                                                     .input_count = from->items_count};
    return true;
}

/* What a turn would refuse is refused now, with its place. */
static bool input_is_right(const struct nimi_text_generate_scenario_spec *spec,
                           struct fault *fault) {
    struct arena *arena = arena_new(8 * MIB);
    struct prompt prompt;
    bool right = prompt_build(spec, STR("m"), arena, &prompt, fault);
    arena_free(arena);
    return right;
}

static struct realtime_input *input_new(const struct nimi_call *call,
                                        const struct nimi_text_generate_scenario_spec *spec) {
    struct realtime_input *input = MEM_NEW(struct realtime_input);
    memcpy(input->trace, call->trace, sizeof(input->trace));
    buf_init(&input->spec, REALTIME_INPUT_BYTES);
    if (pb_encode(&nimi_text_generate_scenario_spec_table, spec, &input->spec)) return input;
    realtime_input_free(input);
    return NULL;
}

static bool append(struct nimi_call *call,
                   const struct nimi_append_realtime_input_request *from, struct arena *arena,
                   struct realtime_session *session, struct fault *fault) {
    struct nimi_text_generate_scenario_spec spec;
    if (!input_spec(from, arena, &spec, fault) || !input_is_right(&spec, fault)) return false;
    struct realtime_input *input = input_new(call, &spec);
    if (!input)
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "the input is longer than %zu bytes; upload pictures with "
                         "UploadArtifact and refer to them",
                         (size_t)REALTIME_INPUT_BYTES);
    if (has_memory(2 * input->spec.len, fault)) return realtime_append(session, input, fault);
    realtime_input_free(input);
    return false;
}

void realtime_append_input(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_append_realtime_input_request *from = request;
    struct fault fault;
    struct realtime_session *session = realtime_find(call, from->session_id, &fault);
    if (session && append(call, from, arena, session, &fault)) {
        nimi_reply(call, &nimi_append_realtime_input_response_table,
                   &(struct nimi_append_realtime_input_response){.ack = &accepted,
                                                                 .trace_id = nimi_trace(call)});
    } else {
        nimi_refuse(call, &fault);
    }
    realtime_unref(session);
}

/* --- reading ------------------------------------------------------------------------------ */

void realtime_read_events(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_read_realtime_events_request *from = request;
    struct fault fault;
    struct realtime_session *session = realtime_find(call, from->session_id, &fault);
    (void)arena;
    if (session && realtime_read(session, from->after_sequence, &fault)) {
        const struct subscription_options options = {.topic = session->topic,
                                                     .start = TOPIC_AFTER,
                                                     .after = from->after_sequence,
                                                     .turned = realtime_turned,
                                                     .left = realtime_left,
                                                     .ctx = session};
        subscription_settle(call, subscription_start(call, &options, NULL));
    } else {
        nimi_refuse(call, &fault);
    }
    realtime_unref(session);
}

/* --- closing ------------------------------------------------------------------------------ */

void realtime_close_session(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_close_realtime_session_request *from = request;
    struct fault fault;
    struct realtime_session *session = realtime_find(call, from->session_id, &fault);
    (void)arena;
    if (session && realtime_close(session, nimi_trace(call))) {
        nimi_reply(call, &nimi_close_realtime_session_response_table,
                   &(struct nimi_close_realtime_session_response){.ack = &accepted});
    } else {
        if (session)
            fault_set(&fault, NIMI_AI_REALTIME_SESSION_NOT_FOUND,
                      "this realtime session is over");
        nimi_refuse(call, &fault);
    }
    realtime_unref(session);
}
