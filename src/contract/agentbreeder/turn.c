#include "contract/agentbreeder/turn.h"

#include "base/mem.h"
#include "contract/agentbreeder/idempotency_key.h"
#include "contract/agentbreeder/inner.h"
#include "contract/agentbreeder/refusal.h"
#include "contract/agentbreeder/request.h"
#include "session/directory.h"
#include "session/waiting.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (32 * MIB)
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

void turn_leave_run(struct turn *turn, enum close_cause cause) {
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

void turn_report_run(struct turn *turn, uint64_t run) {
    char digits[24];
    struct buf id = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&id, run);
    route_field(turn->call, STR("x-weir-run-id"), buf_str(&id));
    turn->outcome.run = run;
}

/* Stream the journal (borrowed) to the caller, with the run's id in a header. */
bool turn_follow(struct turn *turn, struct journal *journal, uint64_t after_seq,
                 struct err *e) {
    turn_report_run(turn, journal_run(journal));
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
    turn_leave_run(turn, CAUSE_STOPPING);
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
    turn_report_run(turn, run);
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
static void turn_join(struct turn *turn, uint64_t run, uint64_t seq) {
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
    case IDEMPOTENCY_RUN: turn_join(turn, result->run, result->seq); break;
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
static void turn_enter(struct turn *turn) {
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
        turn_enter(turn);
    }
}

void turn_wake(struct turn *turn, const struct pending_answer *answer) {
    const struct dormant_filter filter = session_sleepers(answer);
    turn_watch(turn);
    turn->wake = dormant_wake_start(session_table_directory(turn_sessions(turn)), &filter,
                                    DORMANT_WAKE_MAX, route_loop(turn->call), on_awake, turn);
    if (!turn->wake) turn_enter(turn); /* the runs woke up meanwhile */
}

static void begin_call(struct route_call *call, struct runtime_instance *instance,
                       enum close_mode mode, const struct stream_wire *wire) {
    struct turn *turn = turn_new(call, instance);
    struct err e;
    turn->mode = mode;
    turn->wire = wire;
    if (read_request(turn, &e)) {
        turn_enter(turn);
    } else {
        turn_give_up(turn, &e);
    }
}

void turn_invoke(struct route_call *call, void *ctx) {
    begin_call(call, ctx, CLOSE_SINGLE, &turn_invoke_wire);
}

void turn_stream(struct route_call *call, void *ctx) {
    begin_call(call, ctx, CLOSE_DONE, &turn_stream_wire);
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
    turn->wire = &turn_invoke_wire;
    turn->resumes = true;
    if (read_resume(turn, &e)) {
        turn_enter(turn);
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
