#include "contract/nimi/realtime/realtime.h"

#include "base/mem.h"
#include "contract/nimi/bearer.h"
#include "contract/nimi/media_spec.h"
#include "contract/nimi/prompt.h"
#include "contract/nimi/realtime/live.h"
#include "contract/nimi/realtime/session.h"
#include "contract/nimi/realtime/turn.h"
#include "contract/nimi/subscription.h"

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

void realtime_opened(struct nimi_call *call, struct realtime_session *session,
                     const struct realtime_opened *opened) {
    const struct str id = str_of(session->id, REALTIME_ID_LEN);
    const struct nimi_realtime_session_opened payload = {
        .session_id = id, .model_resolved = opened->model, .route_decision = opened->route};
    const struct nimi_realtime_event event = {.event_type = NIMI_REALTIME_EVENT_OPENED,
                                              .which_payload = NIMI_REALTIME_EVENT_OPENED_CASE,
                                              .opened = &payload};
    realtime_publish(session, &event, nimi_trace(call));
    nimi_reply(call, &nimi_open_realtime_session_response_table,
               &(struct nimi_open_realtime_session_response){.session_id = id,
                                                             .route_decision = opened->route,
                                                             .model_resolved = opened->model,
                                                             .trace_id = nimi_trace(call)});
}

/* Whether the session can sound as it was asked for. */
static bool sounds_are_had(const struct nimi_instance *instance,
                           const struct nimi_open_realtime_session_request *from,
                           const struct admission *admission, struct realtime_sounds *ret,
                           struct fault *fault) {
    if (realtime_live_is(admission)) return realtime_live_sounds(from, ret, fault);
    return speech_is_had(instance, from, admission, fault);
}

void realtime_open(struct nimi_call *call, const void *request) {
    const struct nimi_open_realtime_session_request *from = request;
    struct nimi_instance *instance = call->instance;
    struct realtime_sounds sounds = {.out = LIVE_SOUND_NONE};
    struct admission admission;
    struct fault fault;
    if (!admit_session(instance->settings, &call->envelope, from->head, from->extensions,
                       from->extensions_count, &admission, &fault) ||
        !sounds_are_had(instance, from, &admission, &sounds, &fault) ||
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
                                                .request = from,
                                                .is_live = realtime_live_is(&admission),
                                                .sounds = sounds});
    if (!realtime_table_add(instance->runtime->realtime, session, &fault)) {
        realtime_discard(session);
        nimi_refuse(call, &fault);
    } else if (session->is_live) {
        realtime_live_open(call, session, &admission);
    } else {
        realtime_opened(call, session,
                        &(struct realtime_opened){admission.model, admission.route});
    }
}

/* --- finding one -------------------------------------------------------------------------- */

/* Without issuers of tokens a caller is the app that it says it is. */
static bool is_the_callers(const struct nimi_call *call,
                           const struct realtime_session *session) {
    return str_equal(call->envelope.app_id, text_str(session->app)) &&
           bearer_may_see(call, text_str(session->subject));
}

/* With a reference. NULL: *fault says why. Another's session looks like one that never was
 * (checks.md M4). */
static struct realtime_session *realtime_find(struct nimi_call *call, struct str id,
                                              struct fault *fault) {
    struct realtime_session *session =
        realtime_table_find(call->instance->runtime->realtime, id);
    if (session && is_the_callers(call, session)) return session;
    realtime_unref(session);
    fault_set(fault, NIMI_AI_REALTIME_SESSION_NOT_FOUND,
              "there is no such realtime session of this app and subject; it was closed, was "
              "idle for too long, or ended with the runtime");
    return NULL;
}

/* --- appending ---------------------------------------------------------------------------- */

static bool refuse_item(size_t index, int reason, const char *why, struct fault *fault) {
    return fault_set(fault, reason, "items[%zu]: %s", index, why);
}

/* Whether a live session listens to sound of this kind. */
static bool sound_is_heard(const struct realtime_session *session,
                           const struct nimi_realtime_audio_input *audio, size_t index,
                           struct fault *fault) {
    enum live_sound in = session->sounds.in;
    struct str type =
        str_trim(str_head(audio->mime_type, str_find_byte(audio->mime_type, ';')));
    if (!session->is_live)
        return refuse_item(index, NIMI_AI_MODALITY_NOT_SUPPORTED,
                           "this model does not listen; have the sound transcribed by a job, "
                           "and append the text as a message",
                           fault);
    if (audio->which_source != NIMI_REALTIME_AUDIO_INPUT_AUDIO_BYTES)
        return refuse_item(index, NIMI_AI_MODALITY_NOT_SUPPORTED,
                           "sound is read from audio_bytes only", fault);
    if (type.len && live_sound_find(type) != in)
        return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                         "items[%zu]: this session listens to " STR_FMT
                         ", mono, at %d Hz; g711 is heard where it is spoken",
                         index, STR_ARG(live_sound_type(in)), (int)live_sound_rate_hz(in));
    return audio->sample_rate_hz == 0 || audio->sample_rate_hz == live_sound_rate_hz(in) ||
           fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                     "items[%zu]: this session listens to sound of %d Hz, and this has %d Hz",
                     index, (int)live_sound_rate_hz(in), (int)audio->sample_rate_hz);
}

static bool too_long(struct fault *fault) {
    return fault_set(fault, NIMI_AI_INPUT_INVALID,
                     "the input is longer than %zu bytes; upload pictures with "
                     "UploadArtifact and refer to them, and append sound in parts",
                     (size_t)REALTIME_INPUT_BYTES);
}

/* What a call appends: messages for a spec, and sound. */
struct appended {
    struct nimi_chat_message *messages;
    size_t message_count;
    struct realtime_input *input;
};

static bool realtime_take_item(const struct realtime_session *session,
                               const struct nimi_realtime_input_item *item, size_t index,
                               struct appended *to, struct fault *fault) {
    if (to->input->spoken)
        return refuse_item(index, NIMI_AI_INPUT_INVALID,
                           "end_of_turn ends the input of a call; append more by another",
                           fault);
    switch (item->which_item) {
    case NIMI_REALTIME_INPUT_ITEM_MESSAGE:
        to->messages[to->message_count++] = *item->message;
        return true;
    case NIMI_REALTIME_INPUT_ITEM_AUDIO:
        if (!sound_is_heard(session, item->audio, index, fault)) return false;
        to->input->spoken = item->audio->end_of_turn;
        return buf_append(&to->input->sound, item->audio->audio_bytes) || too_long(fault);
    default:
        return refuse_item(index, NIMI_AI_INPUT_INVALID, "an item is a message or audio",
                           fault);
    }
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

static bool read_items(const struct realtime_session *session,
                       const struct nimi_append_realtime_input_request *from,
                       struct arena *arena, struct realtime_input *input, struct fault *fault) {
    struct appended to = {.input = input};
    to.messages = arena_alloc(arena, (from->items_count + 1) * sizeof(*to.messages));
    if (!from->items_count || !to.messages)
        return fault_set(fault, NIMI_AI_INPUT_INVALID, "there is nothing to append");
    for (size_t i = 0; i < from->items_count; i++) {
        if (!realtime_take_item(session, &from->items[i], i, &to, fault)) return false;
    }
    const struct nimi_text_generate_scenario_spec spec = {.input = to.messages,
                                                          .input_count = to.message_count};
    if (to.message_count == 0) return true;
    return input_is_right(&spec, fault) &&
           (pb_encode(&nimi_text_generate_scenario_spec_table, &spec, &input->spec) ||
            too_long(fault));
}

static struct realtime_input *input_new(const struct nimi_call *call) {
    struct realtime_input *input = MEM_NEW(struct realtime_input);
    memcpy(input->trace, call->trace, sizeof(input->trace));
    buf_init(&input->spec, REALTIME_INPUT_BYTES);
    buf_init(&input->sound, REALTIME_INPUT_BYTES);
    return input;
}

static bool realtime_realtime_append(struct nimi_call *call,
                                     const struct nimi_append_realtime_input_request *from,
                                     struct arena *arena, struct realtime_session *session,
                                     struct fault *fault) {
    struct realtime_input *input = input_new(call);
    if (read_items(session, from, arena, input, fault) &&
        has_memory(2 * (input->spec.len + input->sound.len), fault))
        return realtime_append(session, input, fault);
    realtime_input_free(input);
    return false;
}

void realtime_append_input(struct nimi_call *call, const void *request) {
    const struct nimi_append_realtime_input_request *from = request;
    struct fault fault;
    struct realtime_session *session = realtime_find(call, from->session_id, &fault);
    if (session && realtime_realtime_append(call, from, call->arena, session, &fault)) {
        nimi_reply(call, &nimi_append_realtime_input_response_table,
                   &(struct nimi_append_realtime_input_response){.ack = &accepted,
                                                                 .trace_id = nimi_trace(call)});
    } else {
        nimi_refuse(call, &fault);
    }
    realtime_unref(session);
}

/* --- reading ------------------------------------------------------------------------------ */

void realtime_read_events(struct nimi_call *call, const void *request) {
    const struct nimi_read_realtime_events_request *from = request;
    struct fault fault;
    struct realtime_session *session = realtime_find(call, from->session_id, &fault);
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

void realtime_close_session(struct nimi_call *call, const void *request) {
    const struct nimi_close_realtime_session_request *from = request;
    struct fault fault;
    struct realtime_session *session = realtime_find(call, from->session_id, &fault);
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
