#include "agent/converse.h"

#include "agent/answer.h"
#include "agent/converse_event.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/grpc_keep.h"
#include "wire/token.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define TO(state) (1u << (state))

#define METHOD "/crawbl.agentruntime.v1.AgentRuntime/Converse"

/* A decoded event repeats its message and has an object for each part. */
#define EVENT_MAX_BYTES (32 * MIB)
#define REQUEST_MAX_BYTES (32 * MIB)
#define SAID_MAX_BYTES ((size_t)400)

#define RETRIES_MAX 2
#define PAUSE_MS 200
#define PAUSE_LAST_MS 1000

struct converse_provider {
    struct provider base;
    struct text name, address, agent;
    struct str host; /* in the address */
    uint16_t port;
    struct token_keys *keys; /* NULL: no token is sent */
    bool secure;             /* over TLS */
    bool per_turn;           /* each turn has its own stream */
    uint64_t stall_ms;
    struct http_pool *http;
};

struct provider_call {
    struct converse_provider *provider;
    struct loop *loop;
    const struct provider_request *request;
    enum converse_state state;
    struct grpc_call *stream; /* set during ASKING and READING */
    bool kept;                /* the stream has served a turn before */
    unsigned retries;
    struct answer answer;
    struct task task;   /* starts the call, and continues after a pause */
    struct timer timer; /* ASKING, READING: silence; WAITING: next attempt */
    struct buf speaker; /* the agent that spoke last */
    bool spoke;         /* some text has arrived */
    bool apart;         /* a call was shown since; a paragraph begins */
};

/* --- states ------------------------------------------------------------------------------- */

static const struct {
    struct str name;
    unsigned may_become;
} states[CONVERSE_STATE_COUNT] = {
    [CONVERSE_ASKING] = {STR_INIT("asking"),
                         TO(CONVERSE_WAITING) | TO(CONVERSE_READING) | TO(CONVERSE_OVER)},
    [CONVERSE_WAITING] = {STR_INIT("waiting"), TO(CONVERSE_ASKING) | TO(CONVERSE_OVER)},
    [CONVERSE_READING] = {STR_INIT("reading"), TO(CONVERSE_OVER)},
    [CONVERSE_OVER] = {STR_INIT("over"), 0},
};

bool converse_may_become(enum converse_state state, enum converse_state next) {
    return states[state].may_become & TO(next);
}

struct str converse_state_name(enum converse_state state) {
    return states[state].name;
}

/* The only function that writes call->state. */
static void converse_move(struct provider_call *call, enum converse_state next) {
    assert(converse_may_become(call->state, next));
    call->state = next;
}

/* --- who asks about what ------------------------------------------------------------------ */

static struct str or_else(struct str text, const char *usual) {
    return text.len ? text : str_from(usual);
}

static struct str user_of(const struct provider_call *call) {
    return or_else(call->request->user, "anonymous");
}

static struct str workspace_of(const struct provider_call *call) {
    return or_else(call->request->workspace, "default");
}

static void append_session(const struct provider_call *call, struct buf *out) {
    const struct provider_request *request = call->request;
    if (request->session.len)
        buf_append(out, request->session);
    else
        buf_printf(out, "run-%llu", (unsigned long long)request->run);
}

/* A stream serves one conversation of one user. Ids contain no line break. */
static void append_stream_name(const struct provider_call *call, struct buf *out) {
    const struct str parts[] = {text_str(call->provider->name),
                                text_str(call->provider->address), workspace_of(call),
                                user_of(call)};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        buf_append(out, parts[i]);
        buf_append_byte(out, '\n');
    }
    append_session(call, out);
}

static struct str message_of(const struct provider_request *request) {
    size_t at = agent_asked_at(request);
    return at < request->message_count ? request->messages[at].text : STR_EMPTY;
}

static bool append_request(const struct provider_call *call, struct buf *out, struct err *e) {
    struct buf session;
    buf_init(&session, KIB);
    append_session(call, &session);
    const struct crawbl_converse_request request = {
        .session_id = buf_str(&session),
        .message = message_of(call->request),
        .agent_id = text_str(call->provider->agent),
        .system_prompt = call->request->system,
        .workspace_id = workspace_of(call),
        .user_id = user_of(call),
    };
    bool fits = pb_encode(&crawbl_converse_request_table, &request, out);
    buf_done(&session);
    return fits ||
           err_set(e, ERR_TOO_LARGE, "the message is larger than %zu bytes", REQUEST_MAX_BYTES);
}

/* --- the end ------------------------------------------------------------------------------ */

static void call_free(struct answer *answer) {
    struct provider_call *call = CONTAINER_OF(answer, struct provider_call, answer);
    timer_stop(&call->timer);
    task_cancel(&call->task);
    buf_done(&call->speaker);
    answer_done(answer);
    free(call);
}

/* It is no longer asked, whatever its answer was. */
static void call_close(struct provider_call *call) {
    converse_move(call, CONVERSE_OVER);
    timer_stop(&call->timer);
}

/* Fail the turn. The stream is over, or is cancelled here. */
static void call_fail(struct provider_call *call, enum err_code code, const char *reason,
                      const char *what, struct str why) {
    struct err e;
    struct grpc_call *stream = call->stream;
    call->stream = NULL;
    call_close(call);
    if (stream) grpc_call_cancel(stream);
    err_set(&e, code, "the agent '" STR_FMT "' %s%s" STR_FMT,
            STR_ARG(text_str(call->provider->name)), what, why.len ? ": " : "",
            STR_ARG(str_head(why, SAID_MAX_BYTES)));
    log_often(LOG_WARNING, "%s", e.text);
    const struct reply_event failed = reply_event_failed(&e, str_from(reason));
    (void)answer_give(&call->answer, &failed);
}

/* --- the answer --------------------------------------------------------------------------- */

/* False: the call is cancelled, and may be freed. */
static bool give_text(struct provider_call *call, enum reply_kind kind, struct str text) {
    const struct reply_event event = {.kind = kind, .text = text};
    return !text.len || answer_give(&call->answer, &event);
}

/* Another agent of the runtime has the turn. Some runtimes separate its text from the one
 * before, others do not. */
static bool give_speaker(struct provider_call *call, const struct converse_event *event) {
    bool same = !event->agent.len || str_equal(event->agent, buf_str(&call->speaker));
    bool first = !call->speaker.len;
    if (same) return true;
    buf_clear(&call->speaker);
    buf_append(&call->speaker, str_head(event->agent, SAID_MAX_BYTES));
    if (first) return true;
    struct buf text;
    buf_init(&text, KIB);
    buf_printf(&text, "its agent '" STR_FMT "' goes on", STR_ARG(buf_str(&call->speaker)));
    bool goes_on = give_text(call, REPLY_NOTE, buf_str(&text));
    buf_done(&text);
    bool joins = event->kind == CONVERSE_TEXT && !str_starts(event->text, STR("\n"));
    if (!goes_on || !joins || !call->spoke || call->apart) return goes_on;
    return give_text(call, REPLY_TEXT, STR("\n\n"));
}

/* After a call our contracts begin a paragraph, so line breaks of the runtime are dropped there. */
static void take_text(struct provider_call *call, const struct converse_event *event) {
    struct str text = event->text;
    if (!give_speaker(call, event)) return;
    while (call->apart && str_starts(text, STR("\n"))) text = str_skip(text, 1);
    if (!text.len) return;
    call->apart = false;
    call->spoke = true;
    (void)give_text(call, REPLY_TEXT, text);
}

static void take_thinking(struct provider_call *call, const struct converse_event *event) {
    if (give_speaker(call, event)) (void)give_text(call, REPLY_THINKING, event->text);
}

static void take_call(struct provider_call *call, const struct converse_event *event) {
    const struct reply_event made = {.kind = REPLY_OWN_CALL,
                                     .call_id = event->call_id,
                                     .tool = event->tool,
                                     .args = event->args};
    if (!give_speaker(call, event)) return;
    call->apart = call->spoke;
    (void)answer_give(&call->answer, &made);
}

static void take_result(struct provider_call *call, const struct converse_event *event) {
    const struct reply_event came = {.kind = REPLY_OWN_RESULT,
                                     .call_id = event->call_id,
                                     .text = event->text,
                                     .reason = event->error ? event->why : STR_EMPTY};
    (void)answer_give(&call->answer, &came);
}

/* Park the stream for the conversation's next turn, or end it. */
static void leave_stream(struct provider_call *call) {
    const struct converse_provider *provider = call->provider;
    struct grpc_call *stream = call->stream;
    call->stream = NULL;
    if (provider->per_turn) {
        grpc_keep_end(provider->http, call->loop, stream);
        return;
    }
    struct buf name;
    buf_init(&name, 64 * KIB);
    append_stream_name(call, &name);
    grpc_keep_put(provider->http, call->loop, text_str(provider->address), buf_str(&name),
                  stream);
    buf_done(&name);
}

/* A runtime that does not stream sends its text only here. */
static bool give_turns(struct provider_call *call, const struct converse_event *event) {
    for (size_t i = 0; i < event->turn_count; i++) {
        if (i && !give_text(call, REPLY_TEXT, STR("\n\n"))) return false;
        if (!give_text(call, REPLY_TEXT, event->turns[i].text)) return false;
    }
    return true;
}

/* Each callback may cancel the call. The end is reported once. */
static void take_done(struct provider_call *call, const struct converse_event *event) {
    struct buf model;
    leave_stream(call);
    if (!call->spoke && !give_turns(call, event)) return;
    buf_init(&model, KIB);
    buf_append(&model, event->model.len ? str_head(event->model, SAID_MAX_BYTES)
                                        : buf_str(&call->answer.model));
    call_close(call);
    const struct reply_event done = {.kind = REPLY_DONE, .model = buf_str(&model)};
    (void)answer_give(&call->answer, &done);
    buf_done(&model);
}

/* The turn has failed, and the stream goes on. */
static void take_error(struct provider_call *call, const struct converse_event *event) {
    leave_stream(call);
    call_fail(call, event->code, AGENT_FAILED, "failed", event->text);
}

static void act(struct provider_call *call, const struct converse_event *event) {
    switch (event->kind) {
    case CONVERSE_TEXT: take_text(call, event); return;
    case CONVERSE_THINKING: take_thinking(call, event); return;
    case CONVERSE_CALL: take_call(call, event); return;
    case CONVERSE_RESULT: take_result(call, event); return;
    case CONVERSE_USAGE: answer_count(&call->answer, &event->usage, event->usage.model); return;
    case CONVERSE_DONE: take_done(call, event); return;
    case CONVERSE_ERROR: take_error(call, event); return;
    case CONVERSE_OTHER: return;
    }
}

static void on_message(struct lent message, void *ctx) {
    struct provider_call *call = ctx;
    struct arena *arena = arena_new(EVENT_MAX_BYTES);
    struct converse_event event;
    struct err why;
    if (call->state == CONVERSE_ASKING) converse_move(call, CONVERSE_READING);
    timer_start(&call->timer, call->provider->stall_ms);
    if (converse_event_read(message, arena, &event, &why))
        act(call, &event);
    else
        call_fail(call, ERR_INTERNAL, AGENT_PROTOCOL, "says what is no ConverseEvent",
                  err_text(&why));
    arena_free(arena);
}

/* --- a stream that ends ------------------------------------------------------------------- */

static uint64_t pause_ms(unsigned retry) {
    uint64_t pause = retry == 0 ? PAUSE_MS : PAUSE_LAST_MS;
    /* enough to spread callers that failed together */
    return pause - pause / 4 + (uint64_t)clock_unix_us() * 2654435761u % (pause / 2 + 1);
}

/* Only if the runtime cannot have seen the request. */
static bool may_ask_again(const struct provider_call *call, const struct grpc_call_end *end) {
    return end->never_seen && !call->kept && call->state == CONVERSE_ASKING &&
           call->retries < RETRIES_MAX;
}

static void ask_later(struct provider_call *call, const struct grpc_call_end *end) {
    uint64_t wait_ms = pause_ms(call->retries++);
    log_often(LOG_INFO,
              "agent '" STR_FMT "' cannot be reached (" STR_FMT "), asking again in %llu ms",
              STR_ARG(text_str(call->provider->name)), STR_ARG(end->text),
              (unsigned long long)wait_ms);
    converse_move(call, CONVERSE_WAITING);
    timer_start(&call->timer, wait_ms);
}

/* Our caller has no part in whom the runtime knows. */
static enum err_code code_for_caller(enum err_code code) {
    bool ours = code == ERR_UNAUTHENTICATED || code == ERR_PERMISSION_DENIED;
    return ours ? ERR_FAILED_PRECONDITION : code;
}

static void fail_for(struct provider_call *call, const struct grpc_call_end *end) {
    enum err_code code = code_for_caller(end->code);
    bool nonsense =
        !end->from_server &&
        (end->code == ERR_INTERNAL || end->code == ERR_UNKNOWN || end->code == ERR_TOO_LARGE);
    if (end->code == ERR_NONE)
        call_fail(call, ERR_UNAVAILABLE, AGENT_ENDED,
                  "ended its stream without a DoneEvent for the turn", STR_EMPTY);
    else if (end->never_seen)
        call_fail(call, code, AGENT_UNREACHABLE, "cannot be reached", end->text);
    else if (nonsense)
        call_fail(call, code, AGENT_PROTOCOL, "broke off its answer", end->text);
    else if (call->state == CONVERSE_ASKING && end->from_server && !call->kept)
        call_fail(call, code, AGENT_UNREACHABLE, "refuses to be asked", end->text);
    else
        call_fail(call, code, AGENT_ENDED, "went away in the middle of the turn", end->text);
}

static void on_end(const struct grpc_call_end *end, void *ctx) {
    struct provider_call *call = ctx;
    call->stream = NULL;
    if (may_ask_again(call, end))
        ask_later(call, end);
    else
        fail_for(call, end);
}

static const struct grpc_call_sink sink = {.on_message = on_message, .on_end = on_end};

/* --- asking ------------------------------------------------------------------------------- */

static bool sign(const struct provider_call *call, struct buf *out, struct err *e) {
    buf_append(out, STR("Bearer "));
    return token_mint(call->provider->keys, user_of(call), workspace_of(call),
                      clock_unix_ms() / 1000, out, e);
}

static bool open_stream(struct provider_call *call, struct err *e) {
    const struct converse_provider *provider = call->provider;
    char room[4 * 1024];
    struct buf token = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    bool has_token = provider->keys != NULL;
    if (has_token && !sign(call, &token, e)) return false;
    const struct grpc_metadata authorization = {STR("authorization"), buf_str(&token)};
    const struct grpc_call_request request = {.host = provider->host,
                                              .port = provider->port,
                                              .secure = provider->secure,
                                              .path = STR(METHOD),
                                              .metadata = &authorization,
                                              .metadata_count = has_token ? 1 : 0};
    bool opened =
        grpc_call_start(provider->http, call->loop, &request, &sink, call, &call->stream, e);
    explicit_bzero(room, sizeof(room));
    if (opened && grpc_call_queues(call->stream))
        grpc_keep_make_room(provider->http, call->loop, text_str(provider->address));
    return opened;
}

static struct grpc_call *take_kept(struct provider_call *call) {
    struct buf name;
    buf_init(&name, 64 * KIB);
    append_stream_name(call, &name);
    struct grpc_call *stream =
        grpc_keep_take(call->provider->http, call->loop, buf_str(&name), &sink, call);
    buf_done(&name);
    return stream;
}

static bool send_request(struct provider_call *call, struct err *e) {
    struct buf message;
    buf_init(&message, REQUEST_MAX_BYTES);
    bool sent =
        append_request(call, &message, e) && grpc_call_send(call->stream, buf_str(&message), e);
    buf_done(&message);
    if (sent && call->provider->per_turn) grpc_call_finish(call->stream);
    return sent;
}

static void ask(struct provider_call *call) {
    struct err why;
    call->stream = take_kept(call);
    call->kept = call->stream != NULL;
    timer_start(&call->timer, call->provider->stall_ms);
    if ((!call->stream && !open_stream(call, &why)) || !send_request(call, &why)) {
        call_fail(call, why.code, AGENT_UNREACHABLE, "cannot be asked", err_text(&why));
        return;
    }
    if (answer_paused(&call->answer)) grpc_call_pause(call->stream);
}

static void on_timer(void *ctx) {
    struct provider_call *call = ctx;
    if (call->state == CONVERSE_WAITING) {
        converse_move(call, CONVERSE_ASKING);
        ask(call);
    } else if (answer_paused(&call->answer)) {
        timer_start(&call->timer, call->provider->stall_ms);
    } else {
        call_fail(call, ERR_DEADLINE_EXCEEDED, AGENT_STALLED, "said nothing for too long",
                  STR_EMPTY);
    }
}

/* --- the provider's calls ----------------------------------------------------------------- */

/* Start the call, or report what a pause has held back. While there is a stream no end is kept,
 * so the call outlives what is reported. */
static void go_on(void *ctx) {
    struct provider_call *call = ctx;
    bool begins = call->state == CONVERSE_ASKING && !call->stream;
    if (begins) {
        ask(call);
        return;
    }
    bool asked = call->stream != NULL;
    if (answer_release(&call->answer) && asked && !answer_paused(&call->answer))
        grpc_call_resume(call->stream);
}

static struct provider_call *start(struct provider *provider, struct loop *loop,
                                   const struct provider_request *request,
                                   reply_event_fn *on_reply, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->provider = CONTAINER_OF(provider, struct converse_provider, base);
    call->loop = loop;
    call->request = request;
    call->state = CONVERSE_ASKING;
    buf_init(&call->speaker, KIB);
    answer_init(&call->answer, on_reply, ctx, call_free);
    task_init(&call->task, go_on, call);
    timer_init(&call->timer, loop, on_timer, call);
    loop_defer(loop, &call->task);
    return call;
}

static void pause_call(struct provider_call *call) {
    call->answer.gate.closed = true;
    if (call->stream) grpc_call_pause(call->stream);
}

static void resume_call(struct provider_call *call) {
    call->answer.gate.closed = false;
    loop_defer(call->loop, &call->task);
}

static void cancel(struct provider_call *call) {
    struct grpc_call *stream = call->stream;
    call->stream = NULL;
    if (call->state != CONVERSE_OVER) call_close(call);
    if (stream) grpc_call_cancel(stream);
    answer_drop(&call->answer);
}

/* --- the provider ------------------------------------------------------------------------- */

static void free_provider(struct provider *provider) {
    struct converse_provider *own = CONTAINER_OF(provider, struct converse_provider, base);
    token_keys_free(own->keys);
    text_done(&own->name);
    text_done(&own->address);
    text_done(&own->agent);
    free(own);
}

static const struct provider_kind kind = {.name = "converse",
                                          .start = start,
                                          .pause = pause_call,
                                          .resume = resume_call,
                                          .cancel = cancel,
                                          .free = free_provider};

static bool is_host(struct str host) {
    for (size_t i = 0; i < host.len; i++) {
        char c = host.at[i];
        if (c <= ' ' || c > '~' || strchr("/?#@%\\", c)) return false;
    }
    return host.len > 0 && host.len <= 253;
}

bool converse_read_address(struct str address, struct str *ret_host, uint16_t *ret_port,
                           struct err *e) {
    uint64_t port = CONVERSE_PORT;
    bool six = str_starts(address, STR("["));
    struct str bare = str_skip(address, six ? 1 : 0);
    size_t len = str_find_byte(bare, six ? ']' : ':');
    struct str host = str_head(bare, len), rest = str_skip(bare, six ? len + 1 : len);
    bool good = is_host(host) && (!six || len < bare.len);
    if (good && rest.len)
        good = str_starts(rest, STR(":")) && str_to_u64(str_skip(rest, 1), &port);
    if (!good || port == 0 || port > UINT16_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is not an address; it is host:port, such as "
                       "agents.example:42618 or [::1]:42618, without http://",
                       STR_ARG(str_head(address, 100)));
    *ret_host = host;
    *ret_port = (uint16_t)port;
    return true;
}

/* One key signs. */
static bool make_keys(struct str key, struct token_keys **ret, struct err *e) {
    bool trimmed;
    if (!key.len) return true;
    *ret = token_keys_new(TOKEN_STRICT, TOKEN_WINDOW_S);
    return token_keys_add(*ret, key, &trimmed, e);
}

static bool make(const struct agent_options *options, struct provider **ret, struct err *e) {
    struct converse_provider *own = MEM_NEW(struct converse_provider);
    own->name = text_copy(options->name);
    own->address = text_copy(options->address);
    own->agent = text_copy(options->remote_agent);
    own->base = (struct provider){&kind, text_str(own->name)};
    own->secure = options->tls;
    own->per_turn = options->stream_per_turn;
    own->stall_ms = options->silence_ms;
    own->http = options->http;
    if (!converse_read_address(text_str(own->address), &own->host, &own->port, e) ||
        !make_keys(options->key, &own->keys, e)) {
        free_provider(&own->base);
        return false;
    }
    *ret = &own->base;
    return true;
}

const struct agent_kind converse_agent = {"converse", "address", make};
