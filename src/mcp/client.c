#include "mcp/client.h"

#include "base/list.h"
#include "base/mem.h"
#include "mcp/asked.h"
#include "mcp/param_headers.h"
#include "mcp/sending.h"

#include <stdlib.h>

#define RESUMES_MAX 5 /* in vain, of one call */
#define ROUNDS_MAX 8  /* in which a server asks for more, in one call */
#define NOTE_MS 10000
#define NOTES_MAX 64

struct mcp_call {
    struct list link;  /* in its session's waiting */
    struct list among; /* the calls of the client */
    struct mcp_client *client;
    struct mcp_session *session;
    struct mcp_caller caller; /* in `texts`, as are name and schema */
    const char *method;
    struct str name, schema;
    struct buf texts;
    struct buf params; /* as posted, without `_meta` */
    mcp_progress_fn *progress;
    unsigned rounds;
    uint64_t total_ms, id;
    unsigned generation; /* of its session, when it was posted */
    bool repeatable, greeted_again, sent_again;
    struct post post;
    uint64_t posted_ms;
    struct mcp_stream *stream; /* resumes the post's; NULL: it does not */
    struct task refused;       /* reports why it could not be sent */
    struct err why;
    mcp_done_fn *done;
    void *ctx;
};

/* A notification, which has no answer. */
struct note {
    struct list link;
    struct mcp_client *client;
    struct post post;
};

/* --- notes -------------------------------------------------------------------------------- */

static void free_note(struct note *note) {
    list_remove(&note->link);
    note->client->note_count--;
    post_stop(&note->post);
    free(note);
}

static void on_note_done(struct post *post, enum post_outcome outcome, void *ctx) {
    (void)post;
    (void)outcome; /* a server that missed it continues as before */
    free_note(ctx);
}

static void on_note_asked(const struct jsonrpc *message, void *ctx) {
    (void)message; /* an answer to a notification is ignored */
    (void)ctx;
}

static const struct post_sink note_sink = {on_note_done, on_note_asked};

static void send_note(const struct mcp_session *session, const struct mcp_caller *caller,
                      struct str body) {
    struct mcp_client *client = session->client;
    struct err e;
    if (client->note_count == NOTES_MAX) return;
    struct note *note = MEM_NEW(struct note);
    note->client = client;
    client->note_count++;
    list_append(&client->notes, &note->link);
    struct mcp_sending sending = {
        .caller = caller, .session = session, .body = body, .total_ms = NOTE_MS};
    if (!mcp_send(client, &sending, &note->post, &note_sink, note, &e)) free_note(note);
}

/* A stateless server over HTTP learns it from the end of the request. */
static void report_cancelled(const struct mcp_call *call) {
    const struct mcp_client *client = call->client;
    if (client->generation == MCP_STATELESS && !client->pipe_posts.pipe) return;
    struct buf params, body;
    buf_init(&params, KIB);
    buf_init(&body, 2 * KIB);
    struct json_writer w = json_writer(&params);
    json_open_object(&w);
    json_member_u64(&w, "requestId", call->id);
    json_member_str(&w, "reason", STR("the turn was cancelled"));
    json_close(&w);
    jsonrpc_write_notification(&body, "notifications/cancelled", buf_str(&params));
    send_note(call->session, &call->caller, buf_str(&body));
    buf_done(&params);
    buf_done(&body);
}

static void take_notice(const struct mcp_client *client, const struct jsonrpc *message) {
    const struct mcp_options *options = &client->options;
    bool changed = json_is(message->method, STR("notifications/tools/list_changed"));
    if (changed && options->changed) options->changed(options->ctx);
}

/* At once, so that no call waits for it. A stateless server asks nothing here, and is answered
 * nothing. */
static void answer_server(const struct mcp_session *session, const struct mcp_caller *caller,
                          const struct jsonrpc *message) {
    const struct mcp_client *client = session->client;
    struct buf result, body;
    if (message->kind == JSONRPC_NOTIFICATION) {
        take_notice(client, message);
        return;
    }
    if (client->generation == MCP_STATELESS) return;
    buf_init(&result, POST_ANSWER_MAX_BYTES);
    buf_init(&body, SIZE_MAX);
    if (mcp_reply(message->method, message->params, client->options.elicitation, &result) &&
        buf_ok(&result)) {
        jsonrpc_write_result(&body, message->id.raw, buf_str(&result));
    } else {
        jsonrpc_write_error(&body, message->id.raw, JSONRPC_METHOD_NOT_FOUND,
                            STR("this client does not do that"));
    }
    send_note(session, caller, buf_str(&body));
    buf_done(&result);
    buf_done(&body);
}

/* --- calls -------------------------------------------------------------------------------- */

static void free_call(struct mcp_call *call) {
    list_remove(&call->link);
    list_remove(&call->among);
    task_cancel(&call->refused);
    mcp_stream_stop(call->stream);
    if (call->session) call->session->calls--;
    post_stop(&call->post);
    buf_done(&call->params);
    buf_done(&call->texts);
    mcp_client_unref(call->client);
    free(call);
}

/* `why` is copied first, because the owner may free what holds it. */
static void fail_call(struct mcp_call *call, const struct err *why) {
    struct err copy = *why;
    call->done((struct json){.kind = JSON_NONE}, &copy, call->ctx);
    free_call(call);
}

static void on_call_refused(void *ctx) {
    struct mcp_call *call = ctx;
    fail_call(call, &call->why);
}

static void post_call(struct mcp_call *call);

/* Post the call now, or wait while its session is being opened. */
static void go(struct mcp_call *call) {
    struct mcp_session *session = call->session;
    if (session->state == MCP_SESSION_READY) {
        post_call(call);
        return;
    }
    list_append(&session->waiting, &call->link);
    if (session->state == MCP_SESSION_FRESH)
        mcp_session_open(session, call->caller.conversation);
}

/* A server that was stateless refuses what only such a one understands: it is another one now. */
static bool is_another(const struct mcp_call *call, enum post_outcome outcome) {
    const struct post *post = &call->post;
    bool stateless =
        call->client->generation == MCP_STATELESS && !call->client->pipe_posts.pipe;
    bool refused = post->status == 400 || post->status == 404 || post->status == 405;
    return stateless && outcome == POST_FAILED && refused && !call->greeted_again &&
           mcp_generation_of_error(post->refusal_code, post->refusal_data) == MCP_UNKNOWN;
}

static bool is_sent_again(struct mcp_call *call, enum post_outcome outcome) {
    if (is_another(call, outcome)) {
        call->client->generation = MCP_UNKNOWN;
        mcp_session_lose(call->session, call->generation);
        call->greeted_again = true;
        return true;
    }
    if (outcome == POST_LOST) {
        mcp_session_lose(call->session, call->generation);
        if (call->greeted_again) return false;
        call->greeted_again = true;
        return true;
    }
    bool harmless = call->post.unsent || (call->post.cut && call->repeatable);
    if (outcome != POST_FAILED || !harmless || call->sent_again) return false;
    call->sent_again = true;
    return true;
}

/* --- a server that asks for more ---------------------------------------------------------- */

static void go_another_round(struct mcp_call *call, struct json result) {
    struct buf params;
    struct err e;
    buf_init(&params, SIZE_MAX);
    bool goes = ++call->rounds <= ROUNDS_MAX
                    ? mcp_write_round(buf_str(&call->params), result,
                                      call->client->options.elicitation, &params, &e)
                    : err_set(&e, ERR_RESOURCE_EXHAUSTED,
                              "the MCP server asks for more again and again");
    if (goes) {
        buf_done(&call->params);
        call->params = params;
        go(call);
    } else {
        buf_done(&params);
        fail_call(call, &e);
    }
}

static void take_answer(struct mcp_call *call, struct json result) {
    bool asks = call->client->generation == MCP_STATELESS &&
                json_is(json_find(result, STR("resultType")), STR("input_required"));
    if (asks) {
        go_another_round(call, result);
        return;
    }
    call->done(result, NULL, call->ctx);
    free_call(call);
}

static void call_over(struct mcp_call *call, enum post_outcome outcome) {
    struct post *post = &call->post;
    if (is_sent_again(call, outcome)) {
        go(call);
    } else if (outcome == POST_ANSWERED) {
        take_answer(call, post->result);
    } else {
        if (outcome == POST_LOST)
            err_set(&post->why, ERR_UNAVAILABLE, "the MCP server keeps losing its session");
        if (post->unsure && !call->repeatable) post->why.code = ERR_EFFECT_UNKNOWN;
        fail_call(call, &post->why);
    }
}

/* --- a stream that broke off -------------------------------------------------------------- */

static void on_resumed_event(struct str data, void *ctx) {
    struct mcp_call *call = ctx;
    post_hear(&call->post, data);
}

static void on_resumed_over(enum mcp_stream_end end, const struct err *why, void *ctx) {
    struct mcp_call *call = ctx;
    struct post *post = &call->post;
    post->why = *why;
    mcp_stream_stop(call->stream);
    call->stream = NULL;
    if (end == MCP_STREAM_LOST) mcp_session_lose(call->session, call->generation);
    call_over(call, POST_FAILED);
}

static const struct mcp_stream_sink resumed_sink = {NULL, on_resumed_event, on_resumed_over};

/* False: this stream cannot be resumed. */
static bool client_resume(struct mcp_call *call) {
    struct str last_id = post_last_id(&call->post);
    uint64_t retry_ms;
    bool stands = call->session->state == MCP_SESSION_READY &&
                  call->session->generation == call->generation &&
                  call->client->generation == MCP_HANDSHAKE;
    if (!call->client->options.streams || !stands || !last_id.len) return false;
    bool wished = post_retry_ms(&call->post, &retry_ms);
    struct mcp_stream_options options = {
        .session = call->session,
        .caller = call->caller,
        .last_id = last_id,
        .retry_ms = wished ? &retry_ms : NULL,
        .deadline_ms = call->total_ms ? call->posted_ms + call->total_ms : 0,
        .vain_max = RESUMES_MAX};
    call->stream = mcp_stream_start(&options, &resumed_sink, call);
    return true;
}

static void on_call_done(struct post *post, enum post_outcome outcome, void *ctx) {
    struct mcp_call *call = ctx;
    bool cut = outcome == POST_FAILED && post->cut;
    if (!cut || !client_resume(call)) call_over(call, outcome);
}

/* --- what a server says of a call --------------------------------------------------------- */

static bool is_progress(const struct jsonrpc *message) {
    return message->kind == JSONRPC_NOTIFICATION &&
           json_is(message->method, STR("notifications/progress"));
}

/* The token of a call is its id. */
static void pass_progress(const struct mcp_session *session, const struct jsonrpc *message) {
    int64_t token;
    if (!json_i64(json_find(message->params, STR("progressToken")), &token)) return;
    LIST_EACH(&session->client->calls, link) {
        struct mcp_call *call = CONTAINER_OF(link, struct mcp_call, among);
        if (call->session != session || token < 0 || call->id != (uint64_t)token) continue;
        if (call->progress) call->progress(message->params, call->ctx);
        return;
    }
}

static void take_asked(const struct mcp_session *session, const struct mcp_caller *caller,
                       const struct jsonrpc *message) {
    if (is_progress(message)) {
        pass_progress(session, message);
    } else {
        answer_server(session, caller, message);
    }
}

static void on_call_asked(const struct jsonrpc *message, void *ctx) {
    struct mcp_call *call = ctx;
    take_asked(call->session, &call->caller, message);
}

static const struct post_sink call_sink = {on_call_done, on_call_asked};

/* Arguments that go as headers, too. `room` holds them until they were sent. */
static size_t param_headers_of(const struct mcp_call *call, struct buf *room,
                               struct http_header ret[PARAM_HEADERS_MAX]) {
    const struct mcp_client *client = call->client;
    if (client->generation != MCP_STATELESS || client->pipe_posts.pipe || !call->schema.len)
        return 0;
    struct json args = json_find(json_of(buf_str(&call->params)), STR("arguments"));
    return param_headers_write(json_of(call->schema), args, room, ret);
}

static void post_call(struct mcp_call *call) {
    struct http_header more[PARAM_HEADERS_MAX];
    struct buf body, params, room;
    buf_init(&body, SIZE_MAX);
    buf_init(&params, SIZE_MAX);
    buf_init(&room, 64 * KIB);
    mcp_stream_stop(call->stream);
    call->stream = NULL;
    call->posted_ms = loop_now_ms(call->client->loop);
    call->id = ++call->client->last_id;
    call->generation = call->session->generation;
    mcp_write_params(call->client->generation, call->client->options.elicitation,
                     buf_str(&call->params), call->progress ? call->id : 0, &params);
    jsonrpc_write_request(&body, call->id, call->method, buf_str(&params));
    struct mcp_sending sending = {.caller = &call->caller,
                                  .session = call->session,
                                  .body = buf_str(&body),
                                  .method = str_from(call->method),
                                  .name = call->name,
                                  .more = more,
                                  .more_count = param_headers_of(call, &room, more),
                                  .id = call->id,
                                  .total_ms = call->total_ms,
                                  .once = !call->repeatable};
    if (!mcp_send(call->client, &sending, &call->post, &call_sink, call, &call->why))
        loop_defer(call->client->loop, &call->refused);
    buf_done(&body);
    buf_done(&params);
    buf_done(&room);
}

/* --- calls that wait for their session ---------------------------------------------------- */

static void take_waiting(struct mcp_session *session, struct list *ret) {
    list_init(ret);
    list_move(&session->waiting, ret);
}

static void on_session_ready(struct mcp_session *session) {
    struct mcp_client *client = mcp_client_ref(session->client);
    struct list ready, *link;
    take_waiting(session, &ready);
    while ((link = list_pop(&ready))) post_call(CONTAINER_OF(link, struct mcp_call, link));
    mcp_client_unref(client);
}

/* Except for calls that begin to wait meanwhile. */
static void on_session_failed(struct mcp_session *session, const struct err *why) {
    struct mcp_client *client = mcp_client_ref(session->client);
    struct list failed, *link;
    struct err copy = *why;
    take_waiting(session, &failed);
    while ((link = list_pop(&failed)))
        fail_call(CONTAINER_OF(link, struct mcp_call, link), &copy);
    mcp_client_unref(client);
}

static void on_session_asked(struct mcp_session *session, const struct jsonrpc *message) {
    struct mcp_caller caller = mcp_session_caller(session);
    take_asked(session, &caller, message);
}

static const struct mcp_session_events session_events = {on_session_ready, on_session_failed,
                                                         on_session_asked};

/* --- a program beside us ------------------------------------------------------------------ */

static struct mcp_session *only_session(struct mcp_client *client) {
    static const struct mcp_caller everybody = {STR_INIT(""), STR_INIT(""), STR_INIT("")};
    return mcp_session_for(client, &everybody);
}

static void on_pipe_message(struct json value, void *ctx) {
    struct mcp_client *client = mcp_client_ref(ctx);
    struct jsonrpc message;
    struct err e;
    if (!post_take(&client->pipe_posts, value) && jsonrpc_read(value, &message, &e))
        on_session_asked(only_session(client), &message);
    mcp_client_unref(client);
}

static void on_pipe_down(const struct err *why, void *ctx) {
    (void)why; /* it is in the log */
    struct mcp_client *client = mcp_client_ref(ctx);
    struct mcp_session *session = only_session(client);
    mcp_session_lose(session, session->generation);
    post_pipe_down(&client->pipe_posts);
    if (client->options.down) client->options.down(client->options.ctx);
    mcp_client_unref(client);
}

static void on_pipe_unread(struct str line, void *ctx) {
    struct mcp_client *client = mcp_client_ref(ctx);
    post_take_unread(&client->pipe_posts, line);
    mcp_client_unref(client);
}

static const struct pipe_events pipe_events = {on_pipe_message, on_pipe_unread, on_pipe_down};

/* --- public functions --------------------------------------------------------------------- */

struct mcp_client *mcp_client_new(const struct mcp_options *options) {
    struct mcp_client *client = MEM_NEW(struct mcp_client);
    *client = (struct mcp_client){.refs = 1,
                                  .pool = options->pool,
                                  .loop = options->loop,
                                  .endpoint = str_dup(options->endpoint),
                                  .options = *options,
                                  .events = &session_events};
    list_init(&client->sessions);
    list_init(&client->calls);
    list_init(&client->notes);
    list_init(&client->pipe_posts.waiting);
    if (options->program)
        client->pipe_posts.pipe =
            pipe_new(&(struct pipe_options){.loop = options->loop,
                                            .name = options->name,
                                            .args = options->program,
                                            .environment = options->environment},
                     &pipe_events, client);
    return client;
}

bool mcp_client_is_http(const struct mcp_client *client) {
    return client->pipe_posts.pipe == NULL;
}

bool mcp_client_may_listen(const struct mcp_client *client) {
    return client->generation == MCP_STATELESS && client->may_listen;
}

struct mcp_client *mcp_client_ref(struct mcp_client *client) {
    client->refs++;
    return client;
}

void mcp_client_unref(struct mcp_client *client) {
    if (!client || --client->refs) return;
    LIST_EACH(&client->notes, link) free_note(CONTAINER_OF(link, struct note, link));
    LIST_EACH(&client->sessions, link)
    mcp_session_free(CONTAINER_OF(link, struct mcp_session, link));
    pipe_free(client->pipe_posts.pipe);
    free(client->endpoint);
    free(client);
}

struct mcp_call *mcp_call_start(struct mcp_client *client, const struct mcp_request *request,
                                mcp_done_fn *done, void *ctx) {
    struct mcp_call *call = MEM_NEW(struct mcp_call);
    call->client = mcp_client_ref(client);
    call->session = mcp_session_for(client, &request->caller);
    call->session->calls++;
    call->caller = request->caller;
    call->method = request->method;
    call->name = request->name;
    call->schema = request->schema;
    struct str *texts[] = {&call->caller.user, &call->caller.workspace,
                           &call->caller.conversation, &call->name, &call->schema};
    buf_keep_texts(&call->texts, texts, ARRAY_LEN(texts));
    call->total_ms = request->total_ms;
    call->repeatable = request->repeatable;
    call->progress = request->progress;
    call->done = done;
    call->ctx = ctx;
    list_init(&call->link);
    list_append(&client->calls, &call->among);
    task_init(&call->refused, on_call_refused, call);
    buf_init(&call->params, SIZE_MAX);
    buf_append(&call->params, request->params);
    if (mcp_caller_check(client, &request->caller, &call->why)) {
        go(call);
    } else {
        loop_defer(client->loop, &call->refused);
    }
    return call;
}

void mcp_call_cancel(struct mcp_call *call) {
    bool out = post_is_out(&call->post) || call->stream;
    if (out && call->session->state == MCP_SESSION_READY &&
        call->session->generation == call->generation)
        report_cancelled(call);
    free_call(call);
}
