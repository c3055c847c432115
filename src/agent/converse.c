#include "agent/converse.h"

#include "agent/answer.h"
#include "agent/converse_turn.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/token.h"

#include <stdlib.h>

#define SAID_MAX_BYTES ((size_t)400)

struct converse_provider {
    struct provider base;
    struct text name, address, agent;
    struct token_keys *keys; /* NULL: no token is sent */
    struct converse_target target;
};

struct provider_call {
    struct converse_provider *provider;
    struct loop *loop;
    const struct provider_request *request;
    struct converse_question question;
    struct buf session;         /* that the question names */
    struct converse_turn *turn; /* NULL: it is over */
    struct answer answer;
    struct task task;   /* continues after a pause */
    struct buf speaker; /* the agent that spoke last */
    bool spoke;         /* some text has arrived */
    bool apart;         /* a call was shown since; a paragraph begins */
};

/* --- who asks about what ------------------------------------------------------------------ */

static struct str or_else(struct str text, const char *usual) {
    return text.len ? text : str_from(usual);
}

static struct str message_of(const struct provider_request *request) {
    size_t at = agent_asked_at(request);
    return at < request->message_count ? request->messages[at].text : STR_EMPTY;
}

static void converse_write_question(struct provider_call *call) {
    const struct provider_request *request = call->request;
    if (request->session.len)
        buf_append(&call->session, request->session);
    else
        buf_printf(&call->session, "run-%llu", (unsigned long long)request->run);
    call->question = (struct converse_question){
        .session = buf_str(&call->session),
        .message = message_of(request),
        .agent = text_str(call->provider->agent),
        .system = request->system,
        .workspace = or_else(request->workspace, "default"),
        .user = or_else(request->user, "anonymous"),
        .trace = request->trace,
    };
}

/* --- the end ------------------------------------------------------------------------------ */

static void converse_call_free(struct answer *answer) {
    struct provider_call *call = CONTAINER_OF(answer, struct provider_call, answer);
    task_cancel(&call->task);
    buf_done(&call->speaker);
    buf_done(&call->session);
    answer_done(answer);
    free(call);
}

/* Fail the call, whose turn is over. */
static void call_fail(struct provider_call *call, enum err_code code, const char *reason,
                      const char *what, struct str why) {
    struct err e;
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
static void converse_take_text(struct provider_call *call, const struct converse_event *event) {
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

static void converse_take_call(struct provider_call *call, const struct converse_event *event) {
    const struct reply_event made = {.kind = REPLY_OWN_CALL,
                                     .call_id = event->call_id,
                                     .tool = event->tool,
                                     .args = event->args};
    if (!give_speaker(call, event)) return;
    call->apart = call->spoke;
    (void)answer_give(&call->answer, &made);
}

static void converse_take_result(struct provider_call *call,
                                 const struct converse_event *event) {
    const struct reply_event came = {.kind = REPLY_OWN_RESULT,
                                     .call_id = event->call_id,
                                     .text = event->text,
                                     .reason = event->error ? event->why : STR_EMPTY};
    (void)answer_give(&call->answer, &came);
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
    if (!call->spoke && !give_turns(call, event)) return;
    buf_init(&model, KIB);
    buf_append(&model, event->model.len ? str_head(event->model, SAID_MAX_BYTES)
                                        : buf_str(&call->answer.model));
    const struct reply_event done = {.kind = REPLY_DONE, .model = buf_str(&model)};
    (void)answer_give(&call->answer, &done);
    buf_done(&model);
}

static void converse_on_event(const struct converse_event *event, void *ctx) {
    struct provider_call *call = ctx;
    switch (event->kind) {
    case CONVERSE_TEXT: converse_take_text(call, event); return;
    case CONVERSE_THINKING: take_thinking(call, event); return;
    case CONVERSE_CALL: converse_take_call(call, event); return;
    case CONVERSE_RESULT: converse_take_result(call, event); return;
    case CONVERSE_USAGE: answer_count(&call->answer, &event->usage, event->usage.model); return;
    case CONVERSE_DONE:
        call->turn = NULL;
        take_done(call, event);
        return;
    case CONVERSE_ERROR:
        call->turn = NULL;
        call_fail(call, event->code, AGENT_FAILED, "failed", event->text);
        return;
    case CONVERSE_OTHER: return;
    }
}

/* Our caller has no part in whom the runtime knows. */
static enum err_code code_for_caller(enum err_code code) {
    bool ours = code == ERR_UNAUTHENTICATED || code == ERR_PERMISSION_DENIED;
    return ours ? ERR_FAILED_PRECONDITION : code;
}

static void converse_on_failed(const struct converse_failure *failure, void *ctx) {
    struct provider_call *call = ctx;
    call->turn = NULL;
    call_fail(call, code_for_caller(failure->code), failure->reason, failure->what,
              failure->why);
}

static const struct converse_sink sink = {.on_event = converse_on_event,
                                          .on_failed = converse_on_failed};

/* --- the provider's calls ----------------------------------------------------------------- */

/* Report what a pause has held back. While there is a turn no end is kept, so the call outlives
 * what is reported. */
static void converse_go_on(void *ctx) {
    struct provider_call *call = ctx;
    bool asked = call->turn != NULL;
    if (answer_release(&call->answer) && asked && !answer_paused(&call->answer))
        converse_turn_resume(call->turn);
}

static struct provider_call *agent_converse_start(struct provider *provider, struct loop *loop,
                                                  const struct provider_request *request,
                                                  reply_event_fn *on_reply, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->provider = CONTAINER_OF(provider, struct converse_provider, base);
    call->loop = loop;
    call->request = request;
    buf_init(&call->speaker, KIB);
    buf_init(&call->session, KIB);
    answer_init(&call->answer, on_reply, ctx, converse_call_free);
    task_init(&call->task, converse_go_on, call);
    converse_write_question(call);
    call->turn =
        converse_turn_start(loop, &call->provider->target, &call->question, &sink, call);
    return call;
}

static void converse_pause_call(struct provider_call *call) {
    call->answer.gate.closed = true;
    if (call->turn) converse_turn_pause(call->turn);
}

static void resume_call(struct provider_call *call) {
    call->answer.gate.closed = false;
    loop_defer(call->loop, &call->task);
}

static void converse_cancel(struct provider_call *call) {
    struct converse_turn *turn = call->turn;
    call->turn = NULL;
    if (turn) converse_turn_cancel(turn);
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
                                          .start = agent_converse_start,
                                          .pause = converse_pause_call,
                                          .resume = resume_call,
                                          .cancel = converse_cancel,
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

static bool converse_make(const struct agent_options *options, struct provider **ret,
                          struct err *e) {
    struct converse_provider *own = MEM_NEW(struct converse_provider);
    own->name = text_copy(options->name);
    own->address = text_copy(options->address);
    own->agent = text_copy(options->remote_agent);
    own->base = (struct provider){&kind, text_str(own->name)};
    struct converse_target *target = &own->target;
    *target = (struct converse_target){.name = text_str(own->name),
                                       .address = text_str(own->address),
                                       .secure = options->tls,
                                       .per_turn = options->stream_per_turn,
                                       .stall_ms = options->silence_ms,
                                       .http = options->http};
    if (!converse_read_address(target->address, &target->host, &target->port, e) ||
        !make_keys(options->key, &own->keys, e)) {
        free_provider(&own->base);
        return false;
    }
    target->keys = own->keys;
    *ret = &own->base;
    return true;
}

const struct agent_kind converse_agent = {"converse", "address", converse_make};
