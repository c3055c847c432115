#include "agent/converse_turn.h"

#include "agent/kind.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/grpc_keep.h"

#include <assert.h>
#include <stdlib.h>

#define METHOD "/crawbl.agentruntime.v1.AgentRuntime/Converse"

/* A decoded event repeats its message and has an object for each part. */
#define EVENT_MAX_BYTES (32 * MIB)
#define REQUEST_MAX_BYTES (32 * MIB)

#define RETRIES_MAX 2
#define PAUSE_MS 200
#define PAUSE_LAST_MS 1000

struct converse_turn {
    struct loop *loop;
    const struct converse_target *target;
    const struct converse_question *question;
    const struct converse_sink *sink;
    void *ctx;
    enum converse_turn_state state;
    struct grpc_call *stream; /* set during ASKING and READING */
    bool kept;                /* the stream has served a turn before */
    bool sent;                /* on_sent was called */
    bool paused;
    unsigned retries;
    struct task task;   /* starts the turn */
    struct timer timer; /* ASKING, READING: silence; WAITING: next attempt */
};

/* --- states ------------------------------------------------------------------------------- */

const struct state converse_turn_states[CONVERSE_TURN_STATE_COUNT] = {
    [CONVERSE_TURN_ASKING] = {"asking", TO(CONVERSE_TURN_WAITING) | TO(CONVERSE_TURN_READING) |
                                            TO(CONVERSE_TURN_OVER)},
    [CONVERSE_TURN_WAITING] = {"waiting", TO(CONVERSE_TURN_ASKING) | TO(CONVERSE_TURN_OVER)},
    [CONVERSE_TURN_READING] = {"reading", TO(CONVERSE_TURN_OVER)},
    [CONVERSE_TURN_OVER] = {"over", 0},
};

/* The only function that writes turn->state. */
static void converse_turn_move(struct converse_turn *turn, enum converse_turn_state next) {
    assert(states_allow(converse_turn_states, turn->state, next));
    turn->state = next;
}

/* --- who asks about what ------------------------------------------------------------------ */

/* Whether its stream serves no other turn. */
static bool is_alone(const struct converse_turn *turn) {
    return turn->target->per_turn || turn->question->trace;
}

/* A stream serves one conversation of one user. Ids contain no line break. */
static void append_stream_name(const struct converse_turn *turn, struct buf *out) {
    const struct converse_question *question = turn->question;
    const struct str parts[] = {turn->target->name, turn->target->address, question->workspace,
                                question->user};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        buf_append(out, parts[i]);
        buf_append_byte(out, '\n');
    }
    buf_append(out, question->session);
}

static bool append_request(const struct converse_question *question, struct buf *out,
                           struct err *e) {
    const struct crawbl_converse_request request = {
        .session_id = question->session,
        .message = question->message,
        .agent_id = question->agent,
        .system_prompt = question->system,
        .workspace_id = question->workspace,
        .user_id = question->user,
    };
    return pb_encode(&crawbl_converse_request_table, &request, out) ||
           err_set(e, ERR_TOO_LARGE, "the message is larger than %zu bytes", REQUEST_MAX_BYTES);
}

/* --- the end ------------------------------------------------------------------------------ */

static void converse_turn_free(struct converse_turn *turn) {
    converse_turn_move(turn, CONVERSE_TURN_OVER);
    timer_stop(&turn->timer);
    task_cancel(&turn->task);
    free(turn);
}

/* Fail the turn. The stream is over, or is cancelled here. */
static void turn_fail(struct converse_turn *turn, const struct converse_failure *failure) {
    const struct converse_sink *sink = turn->sink;
    struct grpc_call *stream = turn->stream;
    void *ctx = turn->ctx;
    converse_turn_free(turn);
    if (stream) grpc_call_cancel(stream);
    sink->on_failed(failure, ctx);
}

/* Park the stream for the conversation's next turn, or end it. */
static void leave_stream(struct converse_turn *turn) {
    const struct converse_target *target = turn->target;
    struct grpc_call *stream = turn->stream;
    turn->stream = NULL;
    if (is_alone(turn)) {
        grpc_keep_end(target->http, turn->loop, stream);
        return;
    }
    struct buf name;
    buf_init(&name, 64 * KIB);
    append_stream_name(turn, &name);
    grpc_keep_put(target->http, turn->loop, target->address, buf_str(&name), stream);
    buf_done(&name);
}

/* --- the answer --------------------------------------------------------------------------- */

static void converse_turn_report(struct converse_turn *turn,
                                 const struct converse_event *event) {
    const struct converse_sink *sink = turn->sink;
    void *ctx = turn->ctx;
    if (event->kind == CONVERSE_DONE || event->kind == CONVERSE_ERROR) {
        leave_stream(turn);
        converse_turn_free(turn);
    }
    sink->on_event(event, ctx);
}

static void converse_turn_on_message(struct lent message, void *ctx) {
    struct converse_turn *turn = ctx;
    struct arena *arena = arena_new(EVENT_MAX_BYTES);
    struct converse_event event;
    struct err why;
    if (turn->state == CONVERSE_TURN_ASKING) converse_turn_move(turn, CONVERSE_TURN_READING);
    timer_start(&turn->timer, turn->target->stall_ms);
    if (converse_event_read(message, arena, &event, &why))
        converse_turn_report(turn, &event);
    else
        turn_fail(turn, &(struct converse_failure){.code = ERR_INTERNAL,
                                                   .reason = AGENT_PROTOCOL,
                                                   .what = "says what is no ConverseEvent",
                                                   .why = err_text(&why)});
    arena_free(arena);
}

static void converse_turn_on_drained(void *ctx) {
    struct converse_turn *turn = ctx;
    if (turn->sent) return;
    turn->sent = true;
    if (turn->sink->on_sent) turn->sink->on_sent(turn->ctx);
}

/* --- a stream that ends ------------------------------------------------------------------- */

static uint64_t pause_ms(unsigned retry) {
    uint64_t pause = retry == 0 ? PAUSE_MS : PAUSE_LAST_MS;
    /* enough to spread callers that failed together */
    return pause - pause / 4 + (uint64_t)clock_unix_us() * 2654435761u % (pause / 2 + 1);
}

/* Only if the runtime cannot have seen the request. */
static bool may_ask_again(const struct converse_turn *turn, const struct grpc_call_end *end) {
    return end->never_seen && !turn->kept && turn->state == CONVERSE_TURN_ASKING &&
           turn->retries < RETRIES_MAX;
}

static void ask_later(struct converse_turn *turn, const struct grpc_call_end *end) {
    uint64_t wait_ms = pause_ms(turn->retries++);
    log_often(LOG_INFO,
              "agent '" STR_FMT "' cannot be reached (" STR_FMT "), asking again in %llu ms",
              STR_ARG(turn->target->name), STR_ARG(end->text), (unsigned long long)wait_ms);
    converse_turn_move(turn, CONVERSE_TURN_WAITING);
    timer_start(&turn->timer, wait_ms);
}

static struct converse_failure converse_turn_failure_of(const struct converse_turn *turn,
                                                        const struct grpc_call_end *end) {
    struct converse_failure failure = {.code = end->code,
                                       .reason = AGENT_ENDED,
                                       .what = "went away in the middle of the turn",
                                       .why = end->text,
                                       .never_seen = end->never_seen && !turn->kept};
    bool nonsense =
        !end->from_server &&
        (end->code == ERR_INTERNAL || end->code == ERR_UNKNOWN || end->code == ERR_TOO_LARGE);
    if (end->code == ERR_NONE) {
        failure.code = ERR_UNAVAILABLE;
        failure.what = "ended its stream without a DoneEvent for the turn";
        failure.why = STR_EMPTY;
    } else if (end->never_seen) {
        failure.reason = AGENT_UNREACHABLE;
        failure.what = "cannot be reached";
    } else if (nonsense) {
        failure.reason = AGENT_PROTOCOL;
        failure.what = "broke off its answer";
    } else if (turn->state == CONVERSE_TURN_ASKING && end->from_server && !turn->kept) {
        failure.reason = AGENT_UNREACHABLE;
        failure.what = "refuses to be asked";
    }
    return failure;
}

static void converse_turn_on_end(const struct grpc_call_end *end, void *ctx) {
    struct converse_turn *turn = ctx;
    turn->stream = NULL;
    if (may_ask_again(turn, end)) {
        ask_later(turn, end);
        return;
    }
    const struct converse_failure failure = converse_turn_failure_of(turn, end);
    turn_fail(turn, &failure);
}

static const struct grpc_call_sink call_sink = {.on_message = converse_turn_on_message,
                                                .on_drained = converse_turn_on_drained,
                                                .on_end = converse_turn_on_end};

/* --- asking ------------------------------------------------------------------------------- */

static bool sign(const struct converse_turn *turn, struct buf *out, struct err *e) {
    buf_append(out, STR("Bearer "));
    return token_mint(turn->target->keys, turn->question->user, turn->question->workspace,
                      clock_unix_ms() / 1000, out, e);
}

#define METADATA_MAX 3

static bool open_stream(struct converse_turn *turn, struct err *e) {
    const struct converse_target *target = turn->target;
    const struct trace_context *trace = turn->question->trace;
    char room[4 * 1024];
    struct buf token = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    bool has_token = target->keys != NULL;
    if (has_token && !sign(turn, &token, e)) return false;
    char parent[TRACE_PARENT_BYTES + 1];
    struct grpc_metadata metadata[METADATA_MAX];
    size_t count = 0;
    if (has_token)
        metadata[count++] = (struct grpc_metadata){STR("authorization"), buf_str(&token)};
    if (trace) {
        trace_context_write(trace, parent);
        metadata[count++] = (struct grpc_metadata){STR("traceparent"), str_from(parent)};
    }
    if (trace && trace->state.len)
        metadata[count++] = (struct grpc_metadata){STR("tracestate"), trace->state};
    const struct grpc_call_request request = {.host = target->host,
                                              .port = target->port,
                                              .secure = target->secure,
                                              .path = STR(METHOD),
                                              .metadata = metadata,
                                              .metadata_count = count};
    bool opened =
        grpc_call_start(target->http, turn->loop, &request, &call_sink, turn, &turn->stream, e);
    explicit_bzero(room, sizeof(room));
    if (opened && grpc_call_queues(turn->stream))
        grpc_keep_make_room(target->http, turn->loop, target->address);
    return opened;
}

static struct grpc_call *take_kept(struct converse_turn *turn) {
    struct buf name;
    buf_init(&name, 64 * KIB);
    append_stream_name(turn, &name);
    struct grpc_call *stream =
        grpc_keep_take(turn->target->http, turn->loop, buf_str(&name), &call_sink, turn);
    buf_done(&name);
    return stream;
}

static bool send_request(struct converse_turn *turn, struct err *e) {
    struct buf message;
    buf_init(&message, REQUEST_MAX_BYTES);
    bool sent = append_request(turn->question, &message, e) &&
                grpc_call_send(turn->stream, buf_str(&message), e);
    buf_done(&message);
    if (sent && is_alone(turn)) grpc_call_finish(turn->stream);
    return sent;
}

static void converse_turn_ask(void *ctx) {
    struct converse_turn *turn = ctx;
    struct err why;
    turn->stream = is_alone(turn) ? NULL : take_kept(turn);
    turn->kept = turn->stream != NULL;
    timer_start(&turn->timer, turn->target->stall_ms);
    if ((!turn->stream && !open_stream(turn, &why)) || !send_request(turn, &why)) {
        turn_fail(turn, &(struct converse_failure){.code = why.code,
                                                   .reason = AGENT_UNREACHABLE,
                                                   .what = "cannot be asked",
                                                   .why = err_text(&why),
                                                   .never_seen = true});
        return;
    }
    if (turn->paused) grpc_call_pause(turn->stream);
}

static void converse_turn_on_timer(void *ctx) {
    struct converse_turn *turn = ctx;
    if (turn->state == CONVERSE_TURN_WAITING) {
        converse_turn_move(turn, CONVERSE_TURN_ASKING);
        converse_turn_ask(turn);
    } else if (turn->paused) {
        timer_start(&turn->timer, turn->target->stall_ms);
    } else {
        turn_fail(turn, &(struct converse_failure){.code = ERR_DEADLINE_EXCEEDED,
                                                   .reason = AGENT_STALLED,
                                                   .what = "said nothing for too long",
                                                   .why = STR_EMPTY});
    }
}

/* --- public functions --------------------------------------------------------------------- */

struct converse_turn *converse_turn_start(struct loop *loop,
                                          const struct converse_target *target,
                                          const struct converse_question *question,
                                          const struct converse_sink *sink, void *ctx) {
    struct converse_turn *turn = MEM_NEW(struct converse_turn);
    *turn = (struct converse_turn){.loop = loop,
                                   .target = target,
                                   .question = question,
                                   .sink = sink,
                                   .ctx = ctx,
                                   .state = CONVERSE_TURN_ASKING};
    task_init(&turn->task, converse_turn_ask, turn);
    timer_init(&turn->timer, loop, converse_turn_on_timer, turn);
    loop_defer(loop, &turn->task);
    return turn;
}

void converse_turn_pause(struct converse_turn *turn) {
    turn->paused = true;
    if (turn->stream) grpc_call_pause(turn->stream);
}

void converse_turn_resume(struct converse_turn *turn) {
    turn->paused = false;
    if (turn->stream) grpc_call_resume(turn->stream);
}

void converse_turn_cancel(struct converse_turn *turn) {
    struct grpc_call *stream = turn->stream;
    converse_turn_free(turn);
    if (stream) grpc_call_cancel(stream);
}
