#include "mcp/client.h"

#include "base/list.h"
#include "base/mem.h"
#include "mcp/post.h"

#include <assert.h>
#include <stdlib.h>

#define GREETING_MS 15000
#define NOTE_MS 10000
#define NOTES_MAX 64
#define SESSIONS_MAX 256

/* The newest is offered; a server may answer with any of them. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

/* One user's. */
struct session {
    struct list link; /* the last one used is the first */
    struct mcp_client *client;
    enum mcp_session_state state;
    unsigned generation; /* how often it was opened */
    char *user, *workspace, *conversation;
    struct buf id;       /* empty: the server keeps none */
    const char *version; /* NULL: not agreed on */
    struct list waiting; /* calls */
    size_t calls;        /* that belong to it */
    struct post post;    /* the greeting */
};

struct mcp_client {
    unsigned refs;
    struct http_pool *pool;
    struct loop *loop;
    char *endpoint;
    struct mcp_options options;
    struct post_desk desk; /* of a program; its pipe is NULL over HTTP */
    uint64_t last_id;
    struct list sessions, notes;
    size_t session_count, note_count;
};

struct mcp_call {
    struct list link; /* in its session's waiting */
    struct mcp_client *client;
    struct session *session;
    char *user, *workspace, *conversation;
    const char *method;
    char *name;
    struct buf params;
    uint64_t total_ms, id;
    unsigned generation; /* of the session it was posted in */
    bool repeatable, greeted_again, sent_again;
    struct post post;
    struct task refused; /* tells why nothing could be sent */
    struct err why;
    mcp_done_fn *done;
    void *ctx;
};

/* A message without an answer. */
struct note {
    struct list link;
    struct mcp_client *client;
    struct post post;
};

#define TO(state) (1u << (state))

/* Whatever goes wrong makes it fresh: the next call opens it again. */
static const struct {
    const char *name;
    unsigned may_become;
} states[MCP_SESSION_STATE_COUNT] = {
    /* clang-format off */
    [MCP_SESSION_FRESH]    = {"fresh",    TO(MCP_SESSION_GREETING)},
    [MCP_SESSION_GREETING] = {"greeting", TO(MCP_SESSION_TELLING) | TO(MCP_SESSION_FRESH)},
    [MCP_SESSION_TELLING]  = {"telling",  TO(MCP_SESSION_READY) | TO(MCP_SESSION_FRESH)},
    [MCP_SESSION_READY]    = {"ready",    TO(MCP_SESSION_FRESH)},
    /* clang-format on */
};

struct str mcp_session_state_name(enum mcp_session_state state) {
    return str_from(states[state].name);
}

bool mcp_session_may_become(enum mcp_session_state state, enum mcp_session_state next) {
    return (states[state].may_become & TO(next)) != 0;
}

/* The only function that writes session->state. */
static void session_move(struct session *session, enum mcp_session_state next) {
    assert(mcp_session_may_become(session->state, next));
    session->state = next;
}

/* --- sending ------------------------------------------------------------------------------ */

struct sending {
    const struct mcp_caller *caller;
    const struct session *session; /* its id and version are sent; NULL: there is none yet */
    struct str body, method, name;
    uint64_t id, total_ms;
    bool once;
};

static size_t headers_for(const struct mcp_client *client, const struct mcp_caller *caller,
                          struct http_header *out) {
    const struct mcp_options *options = &client->options;
    const struct http_header of_caller[] = {
        {options->user_header, caller->user},
        {options->conversation_header, caller->conversation},
    };
    size_t count = 0;
    for (; count < options->header_count && count < POST_HEADERS_MAX - 2; count++)
        out[count] = options->headers[count];
    for (size_t i = 0; i < ARRAY_LEN(of_caller); i++) {
        if (of_caller[i].name.len) out[count++] = of_caller[i];
    }
    return count;
}

static bool send_post(struct mcp_client *client, const struct sending *sending,
                      struct post *post, const struct post_sink *sink, void *ctx,
                      struct err *e) {
    const struct session *session = sending->session;
    struct http_header headers[POST_HEADERS_MAX];
    struct buf authorization;
    buf_init(&authorization, 8 * KIB);
    bool authorized =
        !client->options.authorize ||
        client->options.authorize(sending->caller, &authorization, client->options.ctx, e);
    if (authorized) {
        post_stop(post);
        post_start(post, client->pool, client->loop,
                   &(struct post_request){
                       .desk = client->desk.pipe ? &client->desk : NULL,
                       .url = str_from(client->endpoint),
                       .headers = headers,
                       .header_count = headers_for(client, sending->caller, headers),
                       .authorization = buf_str(&authorization),
                       .session = session ? buf_str(&session->id) : STR_EMPTY,
                       .version = session ? str_from(session->version) : STR_EMPTY,
                       .method = sending->method,
                       .name = sending->name,
                       .body = sending->body,
                       .id = sending->id,
                       .total_ms = sending->total_ms,
                       .once = sending->once,
                   },
                   sink, ctx);
    }
    buf_done(&authorization);
    return authorized;
}

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
    (void)message; /* an answer to a note is not read */
    (void)ctx;
}

static const struct post_sink note_sink = {on_note_done, on_note_asked};

static void send_note(const struct session *session, const struct mcp_caller *caller,
                      struct str body) {
    struct mcp_client *client = session->client;
    struct err e;
    if (client->note_count == NOTES_MAX) return;
    struct note *note = MEM_NEW(struct note);
    note->client = client;
    client->note_count++;
    list_append(&client->notes, &note->link);
    struct sending sending = {
        .caller = caller, .session = session, .body = body, .total_ms = NOTE_MS};
    if (!send_post(client, &sending, &note->post, &note_sink, note, &e)) free_note(note);
}

static struct mcp_caller caller_of(const struct mcp_call *call) {
    return (struct mcp_caller){str_from(call->user), str_from(call->workspace),
                               str_from(call->conversation)};
}

static struct mcp_caller session_caller(const struct session *session) {
    return (struct mcp_caller){str_from(session->user), str_from(session->workspace),
                               str_from(session->conversation)};
}

static void tell_cancelled(const struct mcp_call *call) {
    struct mcp_caller caller = caller_of(call);
    struct buf params, body;
    buf_init(&params, KIB);
    buf_init(&body, 2 * KIB);
    struct json_writer w = json_writer(&params);
    json_open_object(&w);
    json_member_u64(&w, "requestId", call->id);
    json_member_str(&w, "reason", STR("the turn was cancelled"));
    json_close(&w);
    jsonrpc_write_notification(&body, "notifications/cancelled", buf_str(&params));
    send_note(call->session, &caller, buf_str(&body));
    buf_done(&params);
    buf_done(&body);
}

/* A server may ask whether we are there; what else it asks we never said we could do. */
static void answer_server(const struct session *session, const struct mcp_caller *caller,
                          const struct jsonrpc *message) {
    const struct mcp_options *options = &session->client->options;
    struct buf body;
    if (message->kind == JSONRPC_NOTIFICATION) { /* of progress: nobody asked for it */
        bool changed = json_is(message->method, STR("notifications/tools/list_changed"));
        if (changed && options->changed) options->changed(options->ctx);
        return;
    }
    buf_init(&body, 4 * KIB);
    if (json_is(message->method, STR("ping"))) {
        jsonrpc_write_result(&body, message->id.raw, STR("{}"));
    } else {
        jsonrpc_write_error(&body, message->id.raw, JSONRPC_METHOD_NOT_FOUND,
                            STR("this client does not do that"));
    }
    if (buf_ok(&body)) send_note(session, caller, buf_str(&body));
    buf_done(&body);
}

/* --- calls -------------------------------------------------------------------------------- */

static void free_call(struct mcp_call *call) {
    list_remove(&call->link);
    task_cancel(&call->refused);
    if (call->session) call->session->calls--;
    post_stop(&call->post);
    buf_done(&call->params);
    free(call->user);
    free(call->workspace);
    free(call->conversation);
    free(call->name);
    mcp_client_unref(call->client);
    free(call);
}

/* What is told is copied first: the owner may let go of everything inside. */
static void fail_call(struct mcp_call *call, const struct err *why) {
    struct err told = *why;
    call->done((struct json){.kind = JSON_NONE}, &told, call->ctx);
    free_call(call);
}

static void on_call_refused(void *ctx) {
    struct mcp_call *call = ctx;
    fail_call(call, &call->why);
}

static void open_session(struct session *session);
static void post_call(struct mcp_call *call);

/* Wait for a session that is being opened, or go at once. */
static void go(struct mcp_call *call) {
    struct session *session = call->session;
    if (session->state == MCP_SESSION_READY) {
        post_call(call);
        return;
    }
    list_append(&session->waiting, &call->link);
    if (session->state == MCP_SESSION_FRESH) open_session(session);
}

/* The server has forgotten the session: for everybody in it, but only once. */
static void lose_session(struct session *session, unsigned generation) {
    if (session->state != MCP_SESSION_READY || session->generation != generation) return;
    session_move(session, MCP_SESSION_FRESH);
    session->version = NULL;
    buf_clear(&session->id);
}

static bool goes_again(struct mcp_call *call, enum post_outcome outcome) {
    if (outcome == POST_LOST) {
        lose_session(call->session, call->generation);
        if (call->greeted_again) return false;
        call->greeted_again = true;
        return true;
    }
    bool harmless = call->post.unsent || (call->post.cut && call->repeatable);
    if (outcome != POST_FAILED || !harmless || call->sent_again) return false;
    call->sent_again = true;
    return true;
}

static void on_call_done(struct post *post, enum post_outcome outcome, void *ctx) {
    struct mcp_call *call = ctx;
    if (goes_again(call, outcome)) {
        go(call);
    } else if (outcome == POST_ANSWERED) {
        call->done(post->result, NULL, call->ctx);
        free_call(call);
    } else {
        if (outcome == POST_LOST)
            err_set(&post->why, ERR_UNAVAILABLE, "the MCP server keeps losing its session");
        if (post->unsure && !call->repeatable) post->why.code = ERR_EFFECT_UNKNOWN;
        fail_call(call, &post->why);
    }
}

static void on_call_asked(const struct jsonrpc *message, void *ctx) {
    struct mcp_call *call = ctx;
    struct mcp_caller caller = caller_of(call);
    answer_server(call->session, &caller, message);
}

static const struct post_sink call_sink = {on_call_done, on_call_asked};

static void post_call(struct mcp_call *call) {
    struct mcp_caller caller = caller_of(call);
    struct buf body;
    buf_init(&body, SIZE_MAX);
    call->id = ++call->client->last_id;
    call->generation = call->session->generation;
    jsonrpc_write_request(&body, call->id, call->method, buf_str(&call->params));
    struct sending sending = {.caller = &caller,
                              .session = call->session,
                              .body = buf_str(&body),
                              .method = str_from(call->method),
                              .name = str_from(call->name),
                              .id = call->id,
                              .total_ms = call->total_ms,
                              .once = !call->repeatable};
    if (!send_post(call->client, &sending, &call->post, &call_sink, call, &call->why))
        loop_defer(call->client->loop, &call->refused);
    buf_done(&body);
}

/* --- sessions ----------------------------------------------------------------------------- */

/* Everybody who waits is told; who begins to wait meanwhile is not. */
static void fail_session(struct session *session, const struct err *why) {
    struct err told = *why;
    struct mcp_client *client = mcp_client_ref(session->client);
    struct list failed, *link;
    list_init(&failed);
    list_move(&session->waiting, &failed);
    session_move(session, MCP_SESSION_FRESH);
    session->version = NULL;
    buf_clear(&session->id);
    while ((link = list_pop(&failed)))
        fail_call(CONTAINER_OF(link, struct mcp_call, link), &told);
    mcp_client_unref(client);
}

static void on_session_asked(const struct jsonrpc *message, void *ctx) {
    (void)message; /* nothing may be asked before the greeting is over */
    (void)ctx;
}

static void on_told(struct post *post, enum post_outcome outcome, void *ctx) {
    struct session *session = ctx;
    struct list ready, *link;
    struct mcp_client *client = session->client;
    if (outcome != POST_ACCEPTED) {
        if (outcome == POST_LOST)
            err_set(&post->why, ERR_UNAVAILABLE, "the MCP server lost its session at once");
        fail_session(session, &post->why);
        return;
    }
    session_move(session, MCP_SESSION_READY);
    list_init(&ready);
    list_move(&session->waiting, &ready);
    mcp_client_ref(client);
    while ((link = list_pop(&ready))) post_call(CONTAINER_OF(link, struct mcp_call, link));
    mcp_client_unref(client);
}

static const struct post_sink told_sink = {on_told, on_session_asked};

static bool agree(struct session *session, struct json result, struct err *e) {
    struct json version = json_find(result, STR("protocolVersion"));
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        if (json_is(version, str_from(versions[i]))) session->version = versions[i];
    }
    return session->version ||
           err_set(e, ERR_UNIMPLEMENTED,
                   "the MCP server speaks no protocol version that we know; ours is %s",
                   versions[0]);
}

static bool tell_initialized(struct session *session, struct err *e) {
    struct mcp_caller caller = session_caller(session);
    struct buf body;
    buf_init(&body, KIB);
    jsonrpc_write_notification(&body, "notifications/initialized", STR_EMPTY);
    struct sending sending = {
        .caller = &caller, .session = session, .body = buf_str(&body), .total_ms = GREETING_MS};
    session_move(session, MCP_SESSION_TELLING);
    bool sent = send_post(session->client, &sending, &session->post, &told_sink, session, e);
    buf_done(&body);
    return sent;
}

static void on_greeted(struct post *post, enum post_outcome outcome, void *ctx) {
    struct session *session = ctx;
    struct err e = post->why;
    bool greeted = outcome == POST_ANSWERED;
    if (greeted) {
        buf_append(&session->id, buf_str(&post->session));
        greeted = agree(session, post->result, &e) && tell_initialized(session, &e);
    }
    if (!greeted) fail_session(session, &e);
}

static const struct post_sink greeting_sink = {on_greeted, on_session_asked};

static void write_greeting(struct buf *out, uint64_t id) {
    struct buf params;
    buf_init(&params, KIB);
    struct json_writer w = json_writer(&params);
    json_open_object(&w);
    json_member_str(&w, "protocolVersion", str_from(versions[0]));
    json_member_object(&w, "capabilities");
    json_close(&w);
    json_member_object(&w, "clientInfo");
    json_member_str(&w, "name", STR("weir"));
    json_member_str(&w, "version", STR("0.1.0"));
    json_close(&w);
    json_close(&w);
    jsonrpc_write_request(out, id, "initialize", buf_str(&params));
    buf_done(&params);
}

/* The first call is already waiting; its caller is used to open the session. */
static void open_session(struct session *session) {
    struct mcp_client *client = session->client;
    const struct mcp_call *first = CONTAINER_OF(session->waiting.next, struct mcp_call, link);
    struct buf body;
    struct err e;
    free(session->conversation);
    session->conversation = str_dup(str_from(first->conversation));
    struct mcp_caller caller = session_caller(session);
    buf_init(&body, 2 * KIB);
    uint64_t id = ++client->last_id;
    write_greeting(&body, id);
    session->generation++;
    session_move(session, MCP_SESSION_GREETING);
    struct sending sending = {
        .caller = &caller, .body = buf_str(&body), .id = id, .total_ms = GREETING_MS};
    bool sent = (!client->desk.pipe || pipe_start(client->desk.pipe, &e)) &&
                send_post(client, &sending, &session->post, &greeting_sink, session, &e);
    buf_done(&body);
    if (sent) return;
    session_move(session, MCP_SESSION_FRESH);
    LIST_EACH(&session->waiting, link) {
        struct mcp_call *call = CONTAINER_OF(link, struct mcp_call, link);
        call->why = e;
        loop_defer(client->loop, &call->refused);
    }
}

static void free_session(struct session *session) {
    assert(session->calls == 0 && list_empty(&session->waiting));
    list_remove(&session->link);
    session->client->session_count--;
    post_stop(&session->post);
    buf_done(&session->id);
    free(session->user);
    free(session->workspace);
    free(session->conversation);
    free(session);
}

/* Of many users, those who were quiet longest are forgotten. */
static void make_room(struct mcp_client *client) {
    for (struct list *link = client->sessions.prev; link != &client->sessions;) {
        struct session *session = CONTAINER_OF(link, struct session, link);
        link = link->prev;
        if (client->session_count < SESSIONS_MAX) return;
        if (!session->calls) free_session(session);
    }
}

static struct session *session_for(struct mcp_client *client, const struct mcp_caller *wanted) {
    static const struct mcp_caller everybody = {STR_INIT(""), STR_INIT(""), STR_INIT("")};
    const struct mcp_caller *caller = client->desk.pipe ? &everybody : wanted;
    LIST_EACH(&client->sessions, link) {
        struct session *session = CONTAINER_OF(link, struct session, link);
        if (!str_equal(str_from(session->user), caller->user) ||
            !str_equal(str_from(session->workspace), caller->workspace))
            continue;
        list_remove(link);
        list_prepend(&client->sessions, link);
        return session;
    }
    make_room(client);
    struct session *session = MEM_NEW(struct session);
    session->client = client;
    session->user = str_dup(caller->user);
    session->workspace = str_dup(caller->workspace);
    buf_init(&session->id, KIB);
    list_init(&session->waiting);
    list_prepend(&client->sessions, &session->link);
    client->session_count++;
    return session;
}

/* --- a program beside us ------------------------------------------------------------------ */

static struct session *only_session(struct mcp_client *client) {
    static const struct mcp_caller everybody = {STR_INIT(""), STR_INIT(""), STR_INIT("")};
    return session_for(client, &everybody);
}

static void on_pipe_message(struct json value, void *ctx) {
    struct mcp_client *client = mcp_client_ref(ctx);
    static const struct mcp_caller everybody = {STR_INIT(""), STR_INIT(""), STR_INIT("")};
    struct jsonrpc message;
    struct err e;
    if (!post_take(&client->desk, value) && jsonrpc_read(value, &message, &e))
        answer_server(only_session(client), &everybody, &message);
    mcp_client_unref(client);
}

static void on_pipe_down(const struct err *why, void *ctx) {
    struct mcp_client *client = mcp_client_ref(ctx);
    struct session *session = only_session(client);
    lose_session(session, session->generation);
    post_desk_down(&client->desk, why);
    if (client->options.down) client->options.down(client->options.ctx);
    mcp_client_unref(client);
}

static const struct pipe_events pipe_events = {on_pipe_message, on_pipe_down};

/* --- the public story --------------------------------------------------------------------- */

struct mcp_client *mcp_client_new(const struct mcp_options *options) {
    struct mcp_client *client = MEM_NEW(struct mcp_client);
    *client = (struct mcp_client){.refs = 1,
                                  .pool = options->pool,
                                  .loop = options->loop,
                                  .endpoint = str_dup(options->endpoint),
                                  .options = *options};
    list_init(&client->sessions);
    list_init(&client->notes);
    list_init(&client->desk.waiting);
    if (options->program)
        client->desk.pipe =
            pipe_new(&(struct pipe_options){.loop = options->loop,
                                            .name = options->name,
                                            .args = options->program,
                                            .environment = options->environment},
                     &pipe_events, client);
    return client;
}

struct mcp_client *mcp_client_ref(struct mcp_client *client) {
    client->refs++;
    return client;
}

void mcp_client_unref(struct mcp_client *client) {
    if (!client || --client->refs) return;
    LIST_EACH(&client->notes, link) free_note(CONTAINER_OF(link, struct note, link));
    LIST_EACH(&client->sessions, link) free_session(CONTAINER_OF(link, struct session, link));
    pipe_free(client->desk.pipe);
    free(client->endpoint);
    free(client);
}

struct mcp_call *mcp_call_start(struct mcp_client *client, const struct mcp_request *request,
                                mcp_done_fn *done, void *ctx) {
    struct mcp_call *call = MEM_NEW(struct mcp_call);
    call->client = mcp_client_ref(client);
    call->session = session_for(client, &request->caller);
    call->session->calls++;
    call->user = str_dup(request->caller.user);
    call->workspace = str_dup(request->caller.workspace);
    call->conversation = str_dup(request->caller.conversation);
    call->method = request->method;
    call->name = str_dup(request->name);
    call->total_ms = request->total_ms;
    call->repeatable = request->repeatable;
    call->done = done;
    call->ctx = ctx;
    list_init(&call->link);
    task_init(&call->refused, on_call_refused, call);
    buf_init(&call->params, SIZE_MAX);
    buf_append(&call->params, request->params);
    go(call);
    return call;
}

void mcp_call_cancel(struct mcp_call *call) {
    bool out = post_is_out(&call->post);
    if (out && call->session->state == MCP_SESSION_READY &&
        call->session->generation == call->generation)
        tell_cancelled(call);
    free_call(call);
}
