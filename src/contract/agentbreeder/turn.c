#include "contract/agentbreeder/turn.h"

#include "base/mem.h"
#include "contract/agentbreeder/frames.h"
#include "contract/agentbreeder/idempotency_key.h"
#include "contract/agentbreeder/inner.h"
#include "contract/agentbreeder/refusal.h"
#include "contract/agentbreeder/request.h"
#include "provider/dialect.h"
#include "session/directory.h"
#include "session/waiting.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (32 * MIB)
#define RESULT_MAX_BYTES (64 * MIB)
#define UNTIL_UNREAD_MS 1 /* so that a run ends soon after its last reader leaves */

/* --- creation and release ----------------------------------------------------------------- */

static struct turn *turn_new(struct route_call *call, struct runtime_instance *instance) {
    struct turn *turn = MEM_NEW(struct turn);
    list_init(&turn->link);
    turn->call = call;
    turn->instance = instance;
    outcome_init(&turn->outcome);
    turn->outcome.tells_usage = instance->settings->behind_sidecar;
    return turn;
}

static void turn_free(struct turn *turn) {
    list_remove(&turn->link);
    idempotency_lookup_cancel(turn->lookup);
    asked_cancel(turn->asked);
    dormant_wake_cancel(turn->wake);
    follow_free(turn->follow);
    stream_free(turn->stream);
    arena_free(turn->arena);
    run_unref(turn->run);
    outcome_done(&turn->outcome);
    buf_done(&turn->repeat.words);
    buf_done(&turn->repeat.call_id);
    free(turn);
}

struct session_table *turn_sessions(const struct turn *turn) {
    return turn->instance->host->engine->sessions;
}

static enum stream_verdict judge(const struct event *event, void *ctx) {
    struct turn *turn = ctx;
    if (decide_compare(turn, event))
        return turn->repeat.differs || turn->repeat.over ? STREAM_FAILS : STREAM_GOES_ON;
    return event->kind == EVENT_APPROVAL ? STREAM_FINISHES : stream_judge(event);
}

static size_t queued(void *ctx) {
    return route_queued(((struct turn *)ctx)->call);
}

static void wake_at(size_t low, void *ctx) {
    route_wake_at(((struct turn *)ctx)->call, low);
}

static uint64_t stalled_ms(void *ctx) {
    return route_stalled_ms(((struct turn *)ctx)->call);
}

/* A repeated request with the same key may still be reading. */
static bool is_read_by_others(struct turn *turn) {
    uint64_t left_ms;
    return turn->key.len && journal_readers(run_journal(turn->run), &left_ms) > 1;
}

/* A request with a key, and a human's decision, outlive their connection (K28), so that a
 * repeated request gets the answer. The request itself can say otherwise. */
static bool outlives(const struct turn *turn) {
    return turn->instance->settings->keyed_outlives && !turn->says_leaving &&
           (turn->key.len || turn->resumed);
}

/* What happens to the run when the peer leaves. */
static struct leaving leaving_of(struct turn *turn) {
    if (outlives(turn)) return (struct leaving){.how = LEAVING_DETACHES};
    if (turn->run && turn->leaving.how == LEAVING_CANCELS && is_read_by_others(turn))
        return (struct leaving){LEAVING_DETACHES, UNTIL_UNREAD_MS};
    return turn->leaving;
}

/* The stream ended early; the cause decides what happens to the run. A run that an earlier
 * request started is not changed. */
static void leave_run(struct turn *turn, enum close_cause cause) {
    struct leaving leaving = {.how = LEAVING_CANCELS}; /* default: the daemon stops */
    struct str why =
        cause == CAUSE_LEFT ? STR("the caller left") : STR("the call was cut short");
    if (close_is_by_peer(cause)) leaving = leaving_of(turn);
    if (turn->run) {
        run_leave(turn->run, leaving, why);
    } else if (turn->resumed) {
        directory_leave(session_table_directory(turn_sessions(turn)), turn->resumed, leaving,
                        why);
    }
}

static void on_left(void *ctx) {
    struct turn *turn = ctx;
    turn->gone = true;
    if (turn->stream) stream_end(turn->stream, CAUSE_LEFT);
    if (turn->follow) follow_end(turn->follow, CAUSE_LEFT);
    turn_free(turn);
}

static void on_drained(void *ctx) {
    struct turn *turn = ctx;
    if (turn->stream) stream_drained(turn->stream);
    if (turn->follow) follow_drained(turn->follow);
}

static void on_closed(void *ctx) {
    turn_free(ctx);
}

static const struct route_watch watch = {
    .left = on_left,
    .drained = on_drained,
    .closed = on_closed,
};

void turn_watch(struct turn *turn) {
    route_watch(turn->call, &watch, turn);
}

/* --- /invoke and /resume ------------------------------------------------------------------ */

static void invoke_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct turn *turn = ctx;
    if (turn->repeat.seq) return;
    outcome_note(&turn->outcome, event);
    if (frame != FRAME_REPLY) return;
    struct buf body;
    buf_init(&body, RESULT_MAX_BYTES);
    outcome_write(&turn->outcome, event, &body);
    route_reply(turn->call, 200, STR("application/json"), buf_str(&body));
    buf_done(&body);
}

static void refuse_repeat(struct turn *turn) {
    struct route_failure failure = {.details = STR_EMPTY};
    decide_tell_difference(turn, &failure.code, &failure.message, &failure.status);
    route_fail(turn->call, &failure);
}

static void invoke_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct turn *turn = ctx;
    if (ending.status == ERR_NONE) return;
    leave_run(turn, cause);
    if (turn->gone) return;
    if (turn->repeat.differs || turn->repeat.over) {
        refuse_repeat(turn);
    } else if (last && last->kind == EVENT_FAILED) {
        refusal_of_run(turn->call, last->failed.code, last->failed.reason,
                       last->failed.message);
    } else {
        refusal_of_run(turn->call, cause == CAUSE_STOPPING ? ERR_UNAVAILABLE : ending.status,
                       err_name(ending.status), STR("the turn was cut short"));
    }
}

static const struct stream_wire invoke_wire = {
    .judge = judge,
    .project = invoke_project,
    .queued = queued,
    .wake_at = wake_at,
    .stalled_ms = stalled_ms,
    .ended = invoke_ended,
};

/* --- /stream ------------------------------------------------------------------------------ */

/* The stream had begun before the decisions could be compared. */
static void tell_difference(struct turn *turn) {
    struct str code, message;
    int status;
    if (!turn->repeat.differs && !turn->repeat.over) return;
    decide_tell_difference(turn, &code, &message, &status);
    frame_error(turn->call, ERR_ABORTED, message);
}

static void stream_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct turn *turn = ctx;
    struct route_call *call = turn->call;
    (void)frame;
    if (turn->repeat.seq) {
        tell_difference(turn);
        return;
    }
    outcome_note(&turn->outcome, event);
    if (seam_before(&turn->seam, event, SEAM_OF_STREAM))
        frame_object(call, STR_EMPTY, "delta", STR(SEAM_TEXT));
    switch (event->kind) {
    case EVENT_TEXT: frame_object(call, STR_EMPTY, "delta", event->text.text); break;
    case EVENT_TOOL_CALL: frame_tool_call(call, event); break;
    case EVENT_TOOL_RESULT:
        frame_step(call, event->agent,
                   event->tool_result.error ? STR("tool failed") : STR("tool answered"),
                   event->tool_result.result);
        break;
    case EVENT_STEP:
        frame_step(call, event->agent, event->step.description, event->step.result);
        break;
    case EVENT_APPROVAL:
        frame_approval(call, &turn->outcome, event);
        frame_result(call, &turn->outcome, event);
        break;
    case EVENT_DONE: frame_result(call, &turn->outcome, event); break;
    case EVENT_FAILED: frame_error(call, event->failed.code, event->failed.message); break;
    case EVENT_CANCELLED: frame_error(call, ERR_CANCELLED, event->cancelled.message); break;
    case EVENT_STARTED:
    case EVENT_THINKING:
    case EVENT_USAGE:
    case EVENT_AUDIO:
    case EVENT_ITEM:
    case EVENT_KIND_COUNT: break; /* not sent in this contract */
    }
}

/* A stretch of texts contains no seam, because other events come between two replies. */
static void stream_project_texts(struct str texts, size_t count, void *ctx) {
    struct turn *turn = ctx;
    struct event first = {.kind = EVENT_TEXT};
    struct str rest = texts;
    (void)count;
    if (turn->repeat.seq) {
        tell_difference(turn);
        return;
    }
    if (!event_take_text(&rest, &first.agent, &first.text.text)) return;
    outcome_note(&turn->outcome, &first);
    if (seam_before(&turn->seam, &first, SEAM_OF_STREAM))
        frame_object(turn->call, STR_EMPTY, "delta", STR(SEAM_TEXT));
    frame_deltas(turn->call, texts);
}

static void heartbeat(void *ctx) {
    route_sse_comment(((struct turn *)ctx)->call, STR("keep-alive"));
}

/* This contract's stream always ends with `[DONE]`, after success and after failure. */
static void stream_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct turn *turn = ctx;
    (void)last; /* a failure has been sent as an event already */
    if (ending.status != ERR_NONE) leave_run(turn, cause);
    if (turn->gone) return;
    if (cause == CAUSE_STALLED) {
        route_cut(turn->call);
        return;
    }
    if (ending.status != ERR_NONE) {
        frame_error(turn->call, ending.status, STR("the turn was cut short"));
    }
    route_sse_event(turn->call, STR_EMPTY, STR_EMPTY, STR("[DONE]"));
    route_sse_end(turn->call);
}

static const struct stream_wire stream_wire = {
    .judge = judge,
    .project = stream_project,
    .project_texts = stream_project_texts,
    .queued = queued,
    .wake_at = wake_at,
    .stalled_ms = stalled_ms,
    .heartbeat = heartbeat,
    .ended = stream_ended,
};

/* --- starting ----------------------------------------------------------------------------- */

/* Read what the request wants to happen when its caller leaves. */
static bool take_leaving(struct turn *turn, struct err *e) {
    struct str asked = lent_read(route_header(turn->call, STR("x-weir-on-disconnect")));
    turn->leaving = turn->instance->settings->on_disconnect;
    turn->says_leaving = asked.at != NULL;
    if (!asked.at || leaving_parse(asked, &turn->leaving, e)) return true;
    e->code = ERR_MALFORMED; /* 400, because it is a header */
    return err_add(e, "X-Weir-On-Disconnect");
}

void turn_tell_run(struct turn *turn, uint64_t run) {
    char digits[24];
    struct buf id = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&id, run);
    route_field(turn->call, STR("x-weir-run-id"), buf_str(&id));
    turn->outcome.run = run;
}

/* Stream the journal (borrowed) to the caller, with the run's id in a header. */
bool turn_follow(struct turn *turn, struct journal *journal, uint64_t after_seq,
                 struct err *e) {
    turn_tell_run(turn, journal_run(journal));
    struct stream_options options = {.loop = route_loop(turn->call),
                                     .journal = journal,
                                     .after_seq = after_seq,
                                     .mode = turn->mode,
                                     .paces = turn->run != NULL,
                                     .stall_ms = turn->instance->settings->stall_ms,
                                     .heartbeat_ms = turn->instance->settings->heartbeat_ms,
                                     .wire = turn->wire,
                                     .ctx = turn};
    if (stream_open(&options, &turn->stream, e)) return true;
    leave_run(turn, CAUSE_STOPPING);
    return false;
}

void turn_established(struct turn *turn) {
    list_append(&turn->instance->calls, &turn->link);
    if (turn->mode == CLOSE_DONE) route_sse_begin(turn->call);
    arena_free(turn->arena);
    turn->arena = NULL;
    route_watch(turn->call, &watch, turn);
}

void turn_give_up(struct turn *turn, const struct err *why) {
    route_watch(turn->call, NULL, NULL);
    refusal_of_request(turn->call, why);
    turn_free(turn);
}

void turn_fail(struct turn *turn, int status, struct str code, struct str message,
               struct str details) {
    route_watch(turn->call, NULL, NULL);
    route_fail(turn->call, &(struct route_failure){status, code, message, details});
    turn_free(turn);
}

void turn_reply(struct turn *turn, struct str body) {
    route_watch(turn->call, NULL, NULL);
    route_reply(turn->call, 200, STR("application/json"), body);
    turn_free(turn);
}

static bool agentbreeder_turn_start(struct turn *turn, uint64_t key_mark, struct err *e) {
    const struct runtime_request *request = &turn->request;
    struct run_host *host = turn->instance->host;
    struct run_request asked = {
        .name = {turn->instance->settings->workspace, request->user, request->session},
        .text = request->text,
        .messages = request->messages,
        .message_count = request->message_count,
        .brought = turn->instance->settings->brought,
        .schema = request->schema,
        .extras = request->extras,
        .contract = STR("agentbreeder"),
        .policy = turn->instance->settings->busy,
        .key = turn->key,
        .print = request->print,
        .key_mark = key_mark,
    };
    if (!run_start(host, &asked, &turn->run, e)) return false;
    outcome_address(&turn->outcome, request->session, request->wants_text,
                    request->used_thread_id);
    return turn_follow(turn, run_journal(turn->run), 0, e);
}

/* --- repeated requests -------------------------------------------------------------------- */

static void on_begun(void *ctx) {
    turn_established(ctx);
}

/* The store has the start of the run but not its end, which could not be written. */
static void on_missing(const struct err *failed, void *ctx) {
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "this turn cannot be read: %s",
            failed ? failed->text : "what became of it is not known yet; try again");
    turn_give_up(ctx, &e);
}

void turn_attach(struct turn *turn, uint64_t run, uint64_t after_seq) {
    turn_tell_run(turn, run);
    struct follow_options options = {.loop = route_loop(turn->call),
                                     .directory = session_table_directory(turn_sessions(turn)),
                                     .store = session_table_store(turn_sessions(turn)),
                                     .run = run,
                                     .after_seq = after_seq,
                                     .mode = turn->mode,
                                     .stall_ms = turn->instance->settings->stall_ms,
                                     .heartbeat_ms = turn->instance->settings->heartbeat_ms,
                                     .wire = turn->wire,
                                     .begun = on_begun,
                                     .missing = on_missing,
                                     .ctx = turn};
    turn->follow = follow_new(&options);
}

/* Attach to the run that an earlier request with this key began, or to its decision. */
static void join(struct turn *turn, uint64_t run, uint64_t seq) {
    if (seq) {
        decide_again(turn, run, seq);
        return;
    }
    outcome_address(&turn->outcome, STR_EMPTY, turn->request.wants_text,
                    turn->request.used_thread_id);
    turn_attach(turn, run, 0);
}

static void refuse_other(struct turn *turn) {
    turn_fail(turn, 409, STR("IDEMPOTENCY_KEY_REUSED"),
              STR("this idempotency key was used for another request; send a new key, or the "
                  "same input, session and config as then"),
              STR_EMPTY);
}

/* If a run of the session waits, the text is its answer; otherwise a turn begins. */
static void begin_turn(struct turn *turn, uint64_t mark) {
    struct err e = {.code = ERR_NONE};
    switch (decide_by_turn(turn, mark, &e)) {
    case SETTLES: turn_established(turn); return;
    case SETTLES_OTHER: return;
    case SETTLES_AGAIN: turn_look_up(turn); return;
    case SETTLES_FAILED: turn_give_up(turn, &e); return;
    case SETTLES_NOTHING: break;
    }
    if (agentbreeder_turn_start(turn, mark, &e)) {
        turn_established(turn);
    } else if (e.code == ERR_ALREADY_EXISTS) {
        turn_look_up(turn);
    } else {
        turn_give_up(turn, &e);
    }
}

static void agentbreeder_turn_begin(struct turn *turn, uint64_t mark) {
    if (turn->resumes) {
        decide_by_resume(turn, mark);
    } else {
        begin_turn(turn, mark);
    }
}

static void on_key_known(const struct idempotency_lookup_result *result,
                         const struct err *failed, void *ctx) {
    struct turn *turn = ctx;
    turn->lookup = NULL;
    switch (result->answer) {
    case IDEMPOTENCY_FREE: agentbreeder_turn_begin(turn, result->mark); break;
    case IDEMPOTENCY_RUN: join(turn, result->run, result->seq); break;
    case IDEMPOTENCY_OTHER: refuse_other(turn); break;
    case IDEMPOTENCY_FAILED: turn_give_up(turn, failed); break;
    }
}

void turn_look_up(struct turn *turn) {
    const struct runtime_settings *settings = turn->instance->settings;
    turn->lookup = idempotency_lookup_start(&(struct idempotency_lookup_options){
        .loop = route_loop(turn->call),
        .sessions = turn_sessions(turn),
        .name = {settings->workspace, turn->request.user, turn->key},
        .print = turn->request.print,
        .kept_ms = settings->keys_kept_ms,
        .failures_free = settings->keyed_outlives,
        .on_answer = on_key_known,
        .ctx = turn});
}

/* --- the calls ---------------------------------------------------------------------------- */

/* Copy lent text, because a call may have to wait. */
bool turn_keep(struct turn *turn, struct lent lent, struct str *ret, struct err *e) {
    *ret = (struct str){NULL, 0};
    return !lent_read(lent).at || lent_keep(lent, turn->arena, ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a call may hold");
}

static bool read_request(struct turn *turn, struct err *e) {
    struct route_call *call = turn->call;
    struct str body, session;
    turn->arena = arena_new(ARENA_MAX_BYTES);
    return take_leaving(turn, e) && key_take(call, turn->arena, &turn->key, e) &&
           turn_keep(turn, route_body(call), &body, e) &&
           turn_keep(turn, route_header(call, STR("x-session-id")), &session, e) &&
           runtime_request_parse(body, session, turn->key.len > 0, turn->arena, &turn->request,
                                 e);
}

/* Look the key up first, if there is one. */
static void enter(struct turn *turn) {
    if (!turn->key.len) {
        agentbreeder_turn_begin(turn, 0);
        return;
    }
    turn_watch(turn);
    turn_look_up(turn);
}

static void on_awake(const struct err *failed, void *ctx) {
    struct turn *turn = ctx;
    turn->wake = NULL;
    if (failed) {
        turn_give_up(turn, failed);
    } else {
        enter(turn);
    }
}

void turn_wake(struct turn *turn, const struct pending_answer *answer) {
    const struct dormant_filter filter = session_sleepers(answer);
    turn_watch(turn);
    turn->wake = dormant_wake_start(session_table_directory(turn_sessions(turn)), &filter,
                                    DORMANT_WAKE_MAX, route_loop(turn->call), on_awake, turn);
    if (!turn->wake) enter(turn); /* the runs woke up meanwhile */
}

static void begin_call(struct route_call *call, struct runtime_instance *instance,
                       enum close_mode mode, const struct stream_wire *wire) {
    struct turn *turn = turn_new(call, instance);
    struct err e;
    turn->mode = mode;
    turn->wire = wire;
    if (read_request(turn, &e)) {
        enter(turn);
    } else {
        turn_give_up(turn, &e);
    }
}

void turn_invoke(struct route_call *call, void *ctx) {
    begin_call(call, ctx, CLOSE_SINGLE, &invoke_wire);
}

void turn_stream(struct route_call *call, void *ctx) {
    begin_call(call, ctx, CLOSE_DONE, &stream_wire);
}

static bool read_resume(struct turn *turn, struct err *e) {
    turn->arena = arena_new(ARENA_MAX_BYTES);
    return take_leaving(turn, e) && key_take(turn->call, turn->arena, &turn->key, e) &&
           decide_read(turn, e);
}

void turn_resume(struct route_call *call, void *ctx) {
    struct turn *turn = turn_new(call, ctx);
    struct err e;
    turn->mode = CLOSE_SINGLE;
    turn->wire = &invoke_wire;
    turn->resumes = true;
    if (read_resume(turn, &e)) {
        enter(turn);
    } else {
        turn_give_up(turn, &e);
    }
}

void turn_cut_all(struct runtime_instance *instance) {
    LIST_EACH(&instance->calls, link) {
        struct turn *turn = CONTAINER_OF(link, struct turn, link);
        if (turn->stream) stream_end(turn->stream, CAUSE_STOPPING);
        if (turn->follow) follow_end(turn->follow, CAUSE_STOPPING);
    }
}
