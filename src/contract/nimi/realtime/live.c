#include "contract/nimi/realtime/live.h"

#include "base/mem.h"
#include "contract/nimi/reason.h"
#include "job/model_call.h"

#include <stdlib.h>

/* The call that waits for its session's connection. */
struct realtime_opening {
    struct nimi_call *call;           /* NULL: it is over */
    struct realtime_session *session; /* NULL: it is gone, or open */
    struct text model;
    int route;
};

bool realtime_live_is(const struct admission *admission) {
    return live_model_speaks(admission->connector->live, admission->model);
}

/* --- how it sounds ------------------------------------------------------------------------ */

bool realtime_live_sounds(const struct nimi_open_realtime_session_request *from,
                          struct realtime_sounds *ret, struct fault *fault) {
    struct str format = str_trim(from->output_audio_format);
    *ret = (struct realtime_sounds){.in = LIVE_SOUND_PCM, .out = LIVE_SOUND_NONE};
    if (!format.len) return true;
    ret->out = live_sound_find(format);
    if (ret->out == LIVE_SOUND_NONE)
        return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                         "this model speaks pcm16, g711_ulaw and g711_alaw, and not '" STR_FMT
                         "'",
                         STR_ARG(str_head(format, 40)));
    ret->in = ret->out;
    int32_t rate_hz = live_sound_rate_hz(ret->out);
    return from->output_sample_rate_hz == 0 || from->output_sample_rate_hz == rate_hz ||
           fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                     "this model speaks " STR_FMT " at %d Hz only; leave the rate out",
                     STR_ARG(format), (int)rate_hz);
}

/* --- the connection ----------------------------------------------------------------------- */

static void live_fault(const struct reply_failure *failure, struct fault *ret) {
    fault_set(ret, reason_of_failure(str_from(failure->reason), failure->why.code), "%s",
              failure->why.text);
}

static void opening_done(struct realtime_session *session);
static void opening_failed(struct realtime_session *session, const struct fault *fault);

static void live_on_ready(void *ctx) {
    struct realtime_session *session = ctx;
    if (session->opening) opening_done(session);
    realtime_wake(session);
}

/* The call has reported it to a turn that ran. Sound that was lost is no turn's yet. */
static void live_on_over(const struct reply_failure *failure, bool sound_lost, void *ctx) {
    struct realtime_session *session = ctx;
    struct fault fault;
    live_fault(failure, &fault);
    if (session->opening) {
        opening_failed(session, &fault);
        return;
    }
    if (sound_lost && !session->turn) realtime_publish_failed(session, &fault, STR_EMPTY);
    realtime_wake(session);
}

static void on_room(void *ctx) {
    realtime_wake(ctx);
}

static const struct live_events live_events = {live_on_ready, live_on_over, on_room};

static struct str instructions_of(const struct realtime_session *session, struct arena *arena) {
    struct nimi_text_generate_scenario_spec spec;
    struct err e;
    bool read = pb_decode_view(&nimi_text_generate_scenario_spec_table,
                               buf_str(&session->system), arena, &spec, &e);
    return read ? spec.system_prompt : STR_EMPTY;
}

static void live_drop(struct realtime_session *session) {
    live_free(session->live);
    session->live = NULL;
    engine_unref(session->live_engine);
    session->live_engine = NULL;
}

static void connect_to(struct realtime_session *session, const struct admission *admission) {
    struct run_host *host = session->instance->host;
    struct arena *arena = arena_new(8 * MIB);
    live_drop(session);
    session->live_engine = engine_ref(host->engine);
    session->live_is_new = true;
    session->live =
        live_new(admission->connector->live,
                 &(struct live_options){.loop = host->loop,
                                        .model = admission->model,
                                        .instructions = instructions_of(session, arena),
                                        .in = session->sounds.in,
                                        .out = session->sounds.out,
                                        .events = &live_events,
                                        .ctx = session});
    arena_free(arena);
}

/* The configuration may have changed since the last connection. */
static bool connect_anew(struct realtime_session *session, const struct admission *admission,
                         struct fault *fault) {
    if (session->live && !live_is_over(session->live)) return true;
    if (!realtime_live_is(admission))
        return fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED,
                         "this model is no realtime model any more; open a new session");
    connect_to(session, admission);
    return true;
}

void realtime_live_drop(struct realtime_session *session) {
    struct realtime_opening *opening = session->opening;
    session->opening = NULL;
    live_drop(session);
    if (!opening) return;
    opening->session = NULL; /* the runtime stops */
    nimi_end(opening->call, ERR_CANCELLED, NIMI_STOPPING_TEXT);
}

/* --- opening ------------------------------------------------------------------------------ */

static void opening_over(struct realtime_opening *opening) {
    struct realtime_session *session = opening->session;
    opening->session = NULL;
    if (!session) return;
    session->opening = NULL;
    realtime_abandon(session);
}

static void live_on_stopping(void *ctx) {
    struct realtime_opening *opening = ctx;
    if (!opening->session) return;
    opening_over(opening);
    nimi_end(opening->call, ERR_CANCELLED, NIMI_STOPPING_TEXT);
}

static void live_on_cancelled(enum close_cause why, void *ctx) {
    (void)why;
    opening_over(ctx);
}

static void live_on_closed(void *ctx) {
    struct realtime_opening *opening = ctx;
    opening_over(opening);
    text_done(&opening->model);
    free(opening);
}

static const struct nimi_work opening_events = {
    .stopping = live_on_stopping, .cancelled = live_on_cancelled, .closed = live_on_closed};

static void opening_failed(struct realtime_session *session, const struct fault *fault) {
    struct realtime_opening *opening = session->opening;
    opening_over(opening);
    nimi_refuse(opening->call, fault);
}

static void opening_done(struct realtime_session *session) {
    struct realtime_opening *opening = session->opening;
    const struct realtime_opened opened = {.model = text_str(opening->model),
                                           .route = opening->route};
    session->opening = NULL;
    opening->session = NULL;
    realtime_opened(opening->call, session, &opened);
}

void realtime_live_open(struct nimi_call *call, struct realtime_session *session,
                        const struct admission *admission) {
    struct realtime_opening *opening = MEM_NEW(struct realtime_opening);
    *opening = (struct realtime_opening){.call = call,
                                         .session = session,
                                         .model = text_copy(admission->model),
                                         .route = admission->route};
    session->opening = opening;
    nimi_work(call, &opening_events, opening);
    connect_to(session, admission);
}

/* --- input -------------------------------------------------------------------------------- */

static bool is_connected(struct realtime_session *session, struct fault *fault) {
    struct nimi_scenario_request_head head;
    struct admission admission;
    if (session->live && !live_is_over(session->live)) return true;
    struct arena *arena = arena_new(8 * MIB);
    bool done = realtime_admit(session, arena, &head, &admission, fault) &&
                connect_anew(session, &admission, fault);
    arena_free(arena);
    return done;
}

/* False: it must wait. */
static bool pass_on(struct realtime_session *session, const struct realtime_input *input) {
    struct fault fault;
    if (is_connected(session, &fault)) return live_hear(session->live, buf_str(&input->sound));
    realtime_publish_failed(session, &fault, str_of(input->trace, ULID_LEN));
    return true;
}

void realtime_live_listen(struct realtime_session *session) {
    struct realtime_input *input;
    while ((input = realtime_take_sound(session))) {
        if (!pass_on(session, input)) {
            realtime_return_sound(session, input);
            return;
        }
        realtime_input_free(input);
    }
    if (session->turn && session->live && realtime_waits_spoken(session))
        live_interrupt(session->live);
}

/* --- a turn ------------------------------------------------------------------------------- */

/* What a new connection gets of the conversation: its text. */
static void add_past(struct realtime_turn *turn, struct live_more *more) {
    const struct realtime_session *session = turn->session;
    struct nimi_text_generate_scenario_spec spec;
    struct prompt *past = ARENA_NEW(turn->arena, struct prompt);
    struct fault fault;
    struct err e;
    struct str said;
    if (!past || !arena_str(turn->arena, dialogue_str(&session->dialogue), &said) ||
        !pb_decode_view(&nimi_text_generate_scenario_spec_table, said, turn->arena, &spec,
                        &e) ||
        !spec.input_count ||
        !prompt_build(&spec, turn->admission.model, turn->arena, past, &fault))
        return;
    more->past = past->request.messages;
    more->past_count = past->request.message_count;
}

struct provider *realtime_live_ask(struct realtime_turn *turn, struct fault *fault) {
    struct realtime_session *session = turn->session;
    struct live_more more = {.sound = buf_str(&turn->input->sound),
                             .commit = turn->input->spoken};
    if (!connect_anew(session, &turn->admission, fault)) return NULL;
    if (session->live_is_new) add_past(turn, &more);
    session->live_is_new = false;
    live_next(session->live, &more);
    return live_provider(session->live);
}

void realtime_live_send_sound(struct realtime_turn *turn) {
    if (!realtime_turn_send_chunks(turn, false)) {
        model_call_hold(turn->model, true);
        return;
    }
    buf_clear(&turn->sound);
    turn->sound_sent = 0;
    model_call_hold(turn->model, false);
}

void realtime_live_sound(const struct media_artifact *sound, void *ctx) {
    struct realtime_turn *turn = ctx;
    if (!turn->sound_type.len) turn->sound_type = text_copy(sound->content_type);
    turn->sound_rate_hz = (int32_t)sound->sample_rate_hz;
    buf_append(&turn->sound, sound->bytes);
    realtime_live_send_sound(turn);
}

void realtime_live_answered(struct realtime_turn *turn) {
    bool rest = turn->sound_sent < turn->sound.len;
    if (turn->sounded && !rest) realtime_publish_chunk(turn, STR_EMPTY, true);
    if (!rest) {
        realtime_turn_complete(turn);
    } else if (realtime_step(turn->session, REALTIME_SPEAKING)) {
        turn->sound_whole = true;
        realtime_turn_send_sound(turn);
    }
}
