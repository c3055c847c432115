/* The sound of an answer. It is made of the whole answer, and arrives whole. */
#include "contract/nimi/media_spec.h"
#include "contract/nimi/offered.h"
#include "contract/nimi/realtime/turn_inner.h"

#define CHUNK_BYTES (24 * KIB) /* as upstream splits sound */

/* --- who speaks --------------------------------------------------------------------------- */

static bool speaks_here(const struct nimi_connector *connector, struct str subject) {
    return connector->local && connector->enabled && connector->has_credential &&
           offered_to(connector, subject) && media_can(connector->media, MEDIA_SPEECH);
}

struct media *realtime_speaker(const struct nimi_settings *settings,
                               const struct admission *admission, struct str subject) {
    if (media_can(admission->connector->media, MEDIA_SPEECH))
        return admission->connector->media;
    if (admission->route != NIMI_ROUTE_POLICY_LOCAL) return NULL;
    for (size_t i = 0; i < settings->connector_count; i++) {
        if (speaks_here(&settings->connectors[i], subject))
            return settings->connectors[i].media;
    }
    return NULL;
}

/* --- sending ------------------------------------------------------------------------------ */

void realtime_publish_chunk(struct realtime_turn *turn, struct str chunk, bool last) {
    const struct nimi_realtime_audio_chunk audio = {.chunk = chunk,
                                                    .mime_type = text_str(turn->sound_type),
                                                    .sample_rate_hz = turn->sound_rate_hz,
                                                    .eof = last};
    realtime_turn_publish(turn, &(struct nimi_realtime_event){
                                    .event_type = NIMI_REALTIME_EVENT_AUDIO_CHUNK,
                                    .which_payload = NIMI_REALTIME_EVENT_AUDIO_CHUNK_CASE,
                                    .audio_chunk = &audio});
}

bool realtime_turn_send_chunks(struct realtime_turn *turn, bool whole) {
    while (turn->sound_sent < turn->sound.len) {
        if (realtime_is_held(turn->session)) return false;
        struct str rest = str_skip(buf_str(&turn->sound), turn->sound_sent);
        struct str chunk = str_head(rest, CHUNK_BYTES);
        turn->sound_sent += chunk.len;
        turn->sounded = true;
        realtime_publish_chunk(turn, chunk, whole && chunk.len == rest.len);
    }
    return true;
}

void realtime_turn_send_sound(struct realtime_turn *turn) {
    if (turn->sound_whole && realtime_turn_send_chunks(turn, true))
        realtime_turn_complete(turn);
}

/* --- making it ---------------------------------------------------------------------------- */

static void speech_on_artifact(const struct reply_event *event, void *ctx) {
    struct realtime_turn *turn = ctx;
    buf_append(&turn->sound, event->artifact->bytes);
    text_done(&turn->sound_type);
    turn->sound_type = text_copy(event->artifact->content_type);
    turn->sound_rate_hz = (int32_t)event->artifact->sample_rate_hz;
}

static void speech_on_made(const struct reply_event *event, void *ctx) {
    struct realtime_turn *turn = ctx;
    struct fault fault;
    (void)event;
    turn->media_run = NULL;
    scheduler_release(turn->ticket);
    turn->ticket = NULL;
    if (turn->sound.len && buf_ok(&turn->sound)) {
        turn->sound_whole = true;
        realtime_turn_send_sound(turn);
        return;
    }
    fault_set(&fault, NIMI_AI_OUTPUT_INVALID,
              "the answer's sound is empty, or longer than a turn may hold");
    realtime_turn_fail(turn, &fault);
}

static void speech_on_failed(const struct reply_event *event, void *ctx) {
    struct realtime_turn *turn = ctx;
    struct fault fault;
    turn->media_run = NULL;
    fault_set(&fault, reason_of_failure(event->reason, event->code), STR_FMT,
              STR_ARG(event->text));
    realtime_turn_fail(turn, &fault);
}

static void speech_on_reply(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_ARTIFACT] = speech_on_artifact,
        [REPLY_DONE] = speech_on_made,
        [REPLY_FAILED] = speech_on_failed};
    reply_event_handle(handlers, event, ctx);
}

static bool speech_start(struct realtime_turn *turn, struct fault *fault) {
    struct realtime_session *session = turn->session;
    const struct nimi_settings *settings = session->instance->settings;
    struct str subject = text_str(session->subject);
    struct media *media = realtime_speaker(settings, &turn->admission, subject);
    const struct nimi_speech_synthesize_scenario_spec spec = {
        .text = buf_str(&turn->reply),
        .audio_format = text_str(session->audio_format),
        .sample_rate_hz = session->audio_rate_hz};
    struct err e;
    if (!media)
        return fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED,
                         "nothing here speaks for this session any more");
    if (!media_spec_speech(&spec, media, STR_EMPTY, &turn->speech, fault)) return false;
    const struct media_run_options options = {.host = session->instance->host,
                                              .engine = turn->engine,
                                              .media = media,
                                              .request = &turn->speech,
                                              .record = MEDIA_RUN_RECORDED,
                                              .workspace = text_str(session->app),
                                              .user = subject.len ? subject : STR("anonymous"),
                                              .text = spec.text,
                                              .contract = STR("nimi"),
                                              .asked_ms =
                                                  loop_now_ms(session->instance->host->loop),
                                              .clocks = settings->speech,
                                              .on_reply = speech_on_reply,
                                              .ctx = turn};
    return media_run_start(&options, &turn->media_run, &e) ||
           fault_set_code(fault, NIMI_AI_PROVIDER_RATE_LIMITED, e.code, "%s", e.text);
}

void realtime_turn_speak(struct realtime_turn *turn) {
    struct fault fault;
    if (!realtime_step(turn->session, REALTIME_SPEAKING)) return;
    if (!speech_start(turn, &fault)) realtime_turn_fail(turn, &fault);
}

void realtime_turn_speech_init(struct realtime_turn *turn) {
    buf_init(&turn->sound, MEDIA_ARTIFACT_MAX_BYTES);
}

void realtime_turn_speech_drop(struct realtime_turn *turn, struct str why) {
    if (turn->media_run) media_run_cancel(turn->media_run, why);
    buf_done(&turn->sound);
    text_done(&turn->sound_type);
}
