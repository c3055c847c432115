#include "contract/nimi/realtime/turn.h"

#include "base/mem.h"
#include "contract/nimi/realtime/live.h"
#include "contract/nimi/realtime/turn_inner.h"
#include "job/model_call.h"
#include "store/audit_writer.h"

#include <assert.h>
#include <stdlib.h>

/* --- events ------------------------------------------------------------------------------- */

bool realtime_turn_publish(struct realtime_turn *turn,
                           const struct nimi_realtime_event *event) {
    return realtime_publish(turn->session, event, str_of(turn->input->trace, ULID_LEN));
}

static void publish_text(struct realtime_turn *turn, struct str piece) {
    const struct nimi_realtime_text_delta delta = {.text = piece};
    realtime_turn_publish(turn, &(struct nimi_realtime_event){
                                    .event_type = NIMI_REALTIME_EVENT_TEXT_DELTA,
                                    .which_payload = NIMI_REALTIME_EVENT_TEXT_DELTA_CASE,
                                    .text_delta = &delta});
}

/* --- ending ------------------------------------------------------------------------------- */

/* What it used, as a call's record says it: a turn is no call. */
static void note_used(const struct realtime_turn *turn, int reason) {
    const struct nimi_usage_stats *usage = &turn->said.usage;
    struct audit_record record = {
        .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.ai"),
                  [AUDIT_OPERATION] = STR_INIT("RealtimeTurn"),
                  [AUDIT_WORKSPACE] = text_str(turn->session->app),
                  [AUDIT_USER] = text_str(turn->session->subject),
                  [AUDIT_CONTRACT] = STR_INIT("nimi"),
                  [AUDIT_TRACE] = str_of(turn->input->trace, ULID_LEN),
                  [AUDIT_CAPABILITY] = STR_INIT("TEXT_GENERATE"),
                  [AUDIT_MODEL] = turn->admission.model}};
    if (reason) record.texts[AUDIT_REASON] = str_from(reason_get(reason)->name);
    audit_set(&record, AUDIT_OUTCOME, reason ? reason_get(reason)->code : ERR_NONE);
    if (usage->input_tokens >= 0)
        audit_set(&record, AUDIT_INPUT_TOKENS, (uint64_t)usage->input_tokens);
    if (usage->output_tokens >= 0)
        audit_set(&record, AUDIT_OUTPUT_TOKENS, (uint64_t)usage->output_tokens);
    audit_writer_add(turn->session->instance->audit, &record);
}

/* Stop and free everything. */
static void turn_free(struct realtime_turn *turn, struct str why) {
    timer_stop(&turn->wait);
    attach_cancel(turn->attach);
    cursor_close(turn->cursor);
    if (turn->model) model_call_cancel(turn->model, why);
    model_call_unref(turn->model);
    realtime_turn_speech_drop(turn, why);
    scheduler_release(turn->ticket);
    projection_done(&turn->said);
    buf_done(&turn->reply);
    arena_free(turn->arena);
    engine_unref(turn->engine);
    realtime_input_free(turn->input);
    free(turn);
}

void realtime_turn_drop(struct realtime_session *session) {
    struct realtime_turn *turn = session->turn;
    session->turn = NULL;
    if (turn) turn_free(turn, STR("the session was closed"));
}

void realtime_turn_idle(struct realtime_session *session) {
    uint64_t idle_ms = session->instance->settings->realtime_idle_ms;
    if (idle_ms) timer_start(&session->idle, idle_ms);
}

/* The turn is over; the session listens again, and the next input may be there. */
static void turn_end(struct realtime_turn *turn, int reason) {
    struct realtime_session *session = turn->session;
    note_used(turn, reason);
    session->turn = NULL;
    turn_free(turn, STR("the turn is over"));
    if (!realtime_step(session, REALTIME_LISTENING)) return; /* mail is under way */
    realtime_turn_idle(session);
    realtime_wake(session);
}

/* The real SDK shows the reason as a number, so the hint holds its name. */
void realtime_publish_failed(struct realtime_session *session, const struct fault *fault,
                             struct str trace) {
    struct buf hint;
    buf_init(&hint, 2 * KIB);
    buf_printf(&hint, "%s: %s", reason_get(fault->reason)->name, fault->why.text);
    const struct nimi_realtime_failed failed = {.reason_code = fault->reason,
                                                .action_hint = buf_str(&hint)};
    realtime_publish(
        session,
        &(struct nimi_realtime_event){.event_type = NIMI_REALTIME_EVENT_FAILED,
                                      .which_payload = NIMI_REALTIME_EVENT_FAILED_CASE,
                                      .failed = &failed},
        trace);
    buf_done(&hint);
}

void realtime_turn_fail(struct realtime_turn *turn, const struct fault *fault) {
    realtime_publish_failed(turn->session, fault, str_of(turn->input->trace, ULID_LEN));
    turn_end(turn, fault->reason);
}

void realtime_turn_complete(struct realtime_turn *turn) {
    const struct nimi_realtime_completed completed = {.finish_reason = turn->said.finish,
                                                      .usage = &turn->said.usage};
    realtime_turn_publish(
        turn, &(struct nimi_realtime_event){.event_type = NIMI_REALTIME_EVENT_COMPLETED,
                                            .which_payload = NIMI_REALTIME_EVENT_COMPLETED_CASE,
                                            .completed = &completed});
    turn_end(turn, 0);
}

/* --- the answer --------------------------------------------------------------------------- */

static void turn_put_text(struct realtime_turn *turn, struct str text) {
    buf_append(&turn->reply, text);
    pieces_put(&turn->said.text, text);
    for (struct str piece; (piece = pieces_ready(&turn->said.text)).len;) {
        publish_text(turn, piece);
        pieces_sent(&turn->said.text, piece.len);
    }
}

static void flush_text(struct realtime_turn *turn) {
    struct str rest = pieces_rest(&turn->said.text);
    if (rest.len == 0) return;
    publish_text(turn, rest);
    pieces_sent(&turn->said.text, rest.len);
}

/* What was said is only known to the server, as sound. */
static void remember_spoken(struct buf *spec) {
    const struct nimi_chat_message spoken = {
        .role = STR("user"), .content = STR("[the user spoke here; the words are not known]")};
    pb_encode(&nimi_text_generate_scenario_spec_table,
              &(struct nimi_text_generate_scenario_spec){.input = &spoken, .input_count = 1},
              spec);
}

/* The input and the answer are now part of the conversation. */
static void remember(struct realtime_turn *turn) {
    const struct nimi_chat_message answer = {.role = STR("assistant"),
                                             .content = buf_str(&turn->reply)};
    const struct nimi_text_generate_scenario_spec spec = {.input = &answer, .input_count = 1};
    struct buf *both = &turn->input->spec;
    both->max_bytes = SIZE_MAX; /* both parts are bounded */
    if (turn->input->spoken) remember_spoken(both);
    if (turn->reply.len) pb_encode(&nimi_text_generate_scenario_spec_table, &spec, both);
    dialogue_add(&turn->session->dialogue, buf_str(both));
}

/* Half an answer is neither remembered nor spoken. */
static void fail_too_long(struct realtime_turn *turn) {
    struct fault fault;
    fault_set(&fault, NIMI_AI_OUTPUT_INVALID,
              "the model's reply is longer than the limit of a reply; ask for less");
    realtime_turn_fail(turn, &fault);
}

static void on_answered(struct realtime_turn *turn) {
    if (!buf_ok(&turn->reply)) {
        fail_too_long(turn);
        return;
    }
    remember(turn);
    if (turn->session->is_live) {
        realtime_live_answered(turn);
    } else if (turn->session->audio_format.len && str_trim(buf_str(&turn->reply)).len) {
        realtime_turn_speak(turn);
    } else {
        realtime_turn_complete(turn);
    }
}

static void on_broken(struct realtime_turn *turn, const struct event *event) {
    struct fault fault;
    projection_fault(event, &fault);
    realtime_turn_fail(turn, &fault);
}

/* False: the turn has gone on to its next step, or is over. */
static bool turn_take(struct realtime_turn *turn, const struct event *event) {
    projection_note(&turn->said, event);
    if (event->kind == EVENT_TEXT) turn_put_text(turn, event->text.text);
    if (!event_is_terminal(event->kind)) return true;
    flush_text(turn);
    if (event->kind == EVENT_DONE) {
        on_answered(turn);
    } else {
        on_broken(turn, event);
    }
    return false;
}

/* While the reader lags the cursor stands still, and so the model is paused. */
static void turn_read_answer(void *ctx) {
    struct realtime_turn *turn = ctx;
    struct event event = {0};
    if (turn->answered) return;
    while (!realtime_is_held(turn->session) && cursor_next(turn->cursor, &event)) {
        turn->answered = event_is_terminal(event.kind);
        if (!turn_take(turn, &event)) return;
    }
}

/* --- asking ------------------------------------------------------------------------------- */

/* The request is made as the first agent, because scripts' scenes and budgets are defined for
 * agents. */
static bool ask_model(struct realtime_turn *turn, struct provider *provider, struct err *e) {
    struct run_host *host = turn->session->instance->host;
    struct str subject = text_str(turn->session->subject);
    turn->prompt.request.agent = turn->engine->agents[0].slug;
    struct model_call_options options = {.host = host,
                                         .engine = turn->engine,
                                         .provider = provider,
                                         .request = &turn->prompt.request,
                                         .workspace = text_str(turn->session->app),
                                         .user = subject.len ? subject : STR("anonymous"),
                                         .text = turn->prompt.asked,
                                         .contract = STR("nimi"),
                                         .asked_ms = turn->asked_ms,
                                         .clocks = turn->clocks,
                                         .on_sound = realtime_live_sound,
                                         .ctx = turn};
    if (!model_call_start(&options, &turn->model, e)) return false;
    if (!cursor_open(model_call_journal(turn->model), 0, host->loop, turn_read_answer, turn,
                     &turn->cursor, e))
        return false;
    cursor_pace(turn->cursor);
    return true;
}

static struct provider *model_of(struct realtime_turn *turn, struct fault *fault) {
    struct provider *provider = turn->admission.connector->provider;
    if (turn->session->is_live) return realtime_live_ask(turn, fault);
    assert(provider); /* or the session would not be open */
    return provider;
}

static void turn_ask(struct realtime_turn *turn) {
    struct fault fault;
    struct err e;
    timer_stop(&turn->wait);
    if (!realtime_step(turn->session, REALTIME_ASKING)) return;
    struct provider *provider = model_of(turn, &fault);
    if (provider && ask_model(turn, provider, &e)) return;
    if (provider) fault_set_code(&fault, NIMI_AI_PROVIDER_RATE_LIMITED, e.code, "%s", e.text);
    realtime_turn_fail(turn, &fault);
}

static void turn_on_granted(void *ctx) {
    turn_ask(ctx);
}

static void turn_on_waited(void *ctx) {
    struct fault fault;
    fault_set(&fault, NIMI_AI_PROVIDER_TIMEOUT,
              "all slots for models were taken for too long; ask again later");
    realtime_turn_fail(ctx, &fault);
}

static void wait_for_slot(struct realtime_turn *turn) {
    struct fault fault;
    struct realtime_session *session = turn->session;
    const struct ticket_ask ask = {.app = text_str(session->app),
                                   .owner = text_str(session->owner),
                                   .class = FAIR_INTERACTIVE,
                                   .loop = session->instance->host->loop,
                                   .on_granted = turn_on_granted,
                                   .ctx = turn};
    if (!realtime_step(session, REALTIME_WAITING)) return;
    switch (scheduler_take(session->instance->runtime->scheduler, &ask, &turn->ticket)) {
    case TICKET_GRANTED: turn_ask(turn); break;
    case TICKET_WAITS: timer_start(&turn->wait, turn->clocks.first_ms); break;
    case TICKET_REFUSED:
        fault_set_code(&fault, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_RESOURCE_EXHAUSTED,
                       "too many calls of this app wait for a model; ask again later");
        realtime_turn_fail(turn, &fault);
        break;
    }
}

/* --- the request -------------------------------------------------------------------------- */

static void on_attached(const struct fault *fault, void *ctx) {
    struct realtime_turn *turn = ctx;
    turn->attach = NULL;
    if (fault) {
        realtime_turn_fail(turn, fault);
    } else {
        wait_for_slot(turn);
    }
}

static void turn_gather(struct realtime_turn *turn) {
    const struct realtime_session *session = turn->session;
    const struct attach_options options = {.loop = session->instance->host->loop,
                                           .store = turn->engine->store,
                                           .app = text_str(session->app),
                                           .subject = text_str(session->subject),
                                           .prompt = &turn->prompt,
                                           .arena = turn->arena,
                                           .done = on_attached,
                                           .ctx = turn};
    if (turn->prompt.artifact_count == 0) {
        wait_for_slot(turn);
    } else if (realtime_step(turn->session, REALTIME_READING)) {
        turn->attach = attach_start(&options);
    }
}

bool realtime_admit(const struct realtime_session *session, struct arena *arena,
                    struct nimi_scenario_request_head *ret_head, struct admission *ret,
                    struct fault *fault) {
    const struct envelope envelope = {.app_id = text_str(session->app)};
    struct err e;
    if (!pb_decode_view(&nimi_scenario_request_head_table, buf_str(&session->head), arena,
                        ret_head, &e))
        return fault_set(fault, NIMI_AI_PROVIDER_INTERNAL, "%s", e.text);
    return admit_session(session->instance->settings, &envelope, ret_head, NULL, 0, ret, fault);
}

static bool turn_admit(struct realtime_turn *turn, struct fault *fault) {
    struct nimi_scenario_request_head head;
    if (!realtime_admit(turn->session, turn->arena, &head, &turn->admission, fault))
        return false;
    turn->clocks = turn->session->instance->settings->text;
    admit_clocks(&head, &turn->clocks);
    return true;
}

/* A live model knows the conversation, and hears what was spoken. */
static bool build_live(struct realtime_turn *turn, struct fault *fault) {
    const struct realtime_input *input = turn->input;
    struct nimi_text_generate_scenario_spec spec;
    struct err e;
    if (input->spec.len == 0) {
        turn->prompt = (struct prompt){.request = {.model = turn->admission.model},
                                       .asked = STR("(spoken)")};
        return true;
    }
    return (pb_decode_view(&nimi_text_generate_scenario_spec_table, buf_str(&input->spec),
                           turn->arena, &spec, &e) ||
            fault_set(fault, NIMI_AI_INPUT_INVALID, "%s", e.text)) &&
           prompt_build(&spec, turn->admission.model, turn->arena, &turn->prompt, fault);
}

/* The system prompt, the conversation so far and the input are one spec. */
static bool build(struct realtime_turn *turn, struct fault *fault) {
    const struct realtime_session *session = turn->session;
    struct nimi_text_generate_scenario_spec spec;
    struct buf all;
    struct err e;
    if (session->is_live) return build_live(turn, fault);
    buf_init(&all, SIZE_MAX); /* each part is bounded */
    buf_append(&all, buf_str(&session->system));
    buf_append(&all, dialogue_str(&session->dialogue));
    buf_append(&all, buf_str(&turn->input->spec));
    bool built = pb_decode_view(&nimi_text_generate_scenario_spec_table, buf_str(&all),
                                turn->arena, &spec, &e) ||
                 fault_set(fault, NIMI_AI_INPUT_INVALID, "%s", e.text);
    built =
        built && prompt_build(&spec, turn->admission.model, turn->arena, &turn->prompt, fault);
    buf_done(&all);
    return built;
}

static void turn_begin(struct realtime_session *session, struct realtime_input *input) {
    struct run_host *host = session->instance->host;
    struct realtime_turn *turn = MEM_NEW(struct realtime_turn);
    struct fault fault;
    timer_stop(&session->idle);
    session->turn = turn;
    turn->session = session;
    turn->input = input;
    turn->engine = engine_ref(host->engine);
    turn->arena = arena_new(turn->engine->limits.memory_max_bytes);
    turn->asked_ms = loop_now_ms(host->loop);
    timer_init(&turn->wait, host->loop, turn_on_waited, turn);
    projection_init(&turn->said, NULL);
    buf_init(&turn->reply, turn->engine->limits.reply_max_bytes);
    realtime_turn_speech_init(turn);
    if (turn_admit(turn, &fault) && build(turn, &fault)) {
        turn_gather(turn);
    } else {
        realtime_turn_fail(turn, &fault);
    }
}

void realtime_turn_go_on(struct realtime_session *session) {
    if (session->opening) return;
    if (session->is_live) realtime_live_listen(session);
    struct realtime_turn *turn = session->turn;
    if (turn && turn->cursor && !turn->answered) {
        if (session->is_live) realtime_live_send_sound(turn);
        turn_read_answer(turn);
    } else if (turn) {
        realtime_turn_send_sound(turn);
    } else {
        struct realtime_input *input = realtime_take_input(session);
        if (input) turn_begin(session, input);
    }
}
