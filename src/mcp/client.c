#include "mcp/client.h"

#include "base/list.h"
#include "base/mem.h"
#include "mcp/generation.h"
#include "mcp/param_headers.h"
#include "mcp/post.h"
#include "mcp/rounds.h"

#include <assert.h>
#include <stdlib.h>

#define GREETING_MS 15000
#define PROBE_MS 5000
#define PROBE_PIPE_MS 2000 /* a program of the other generation may say nothing at all */
#define ROUNDS_MAX 8       /* in which a server asks for more, in one call */
#define NOTE_MS 10000
#define NOTES_MAX 64
#define SESSIONS_MAX 256

/* The session of one user. */
struct session {
    struct list link; /* most recently used first */
    struct mcp_client *client;
    enum mcp_session_state state;
    unsigned generation; /* counts how often it was opened */
    char *user, *workspace, *conversation;
    struct buf id;       /* empty: the server uses no ids */
    const char *version; /* NULL: not negotiated yet */
    struct list waiting; /* calls that wait for the greeting */
    size_t calls;        /* number of calls that belong to it */
    struct post post;    /* carries the greeting */
};

struct mcp_client {
    unsigned refs;
    struct http_pool *pool;
    struct loop *loop;
    char *endpoint;
    struct mcp_options options;
    enum mcp_generation generation; /* of the server, as far as it is known */
    bool may_listen;
    struct post_desk desk; /* for a program; its pipe is NULL over HTTP */
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
    struct buf params; /* as posted, without `_meta` */
    char *schema;
    mcp_progress_fn *progress;
    unsigned rounds;
    uint64_t total_ms, id;
    unsigned generation; /* of its session, when it was posted */
    bool repeatable, greeted_again, sent_again;
    struct post post;
    struct task refused; /* reports why it could not be sent */
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

#define TO(state) (1u << (state))

/* After any error the session is fresh; the next call opens it again. */
static const struct {
    const char *name;
    unsigned may_become;
} states[MCP_SESSION_STATE_COUNT] = {
    /* clang-format off */
    [MCP_SESSION_FRESH]    = {"fresh",    TO(MCP_SESSION_PROBING) | TO(MCP_SESSION_GREETING) |
                                          TO(MCP_SESSION_READY)},
    [MCP_SESSION_PROBING]  = {"probing",  TO(MCP_SESSION_GREETING) | TO(MCP_SESSION_READY) |
                                          TO(MCP_SESSION_FRESH)},
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
    const struct session *session; /* provides id and version; NULL: no session yet */
    const char *version;           /* in place of the session's; NULL: that */
    struct str body, method, name;
    const struct http_header *more; /* headers */
    size_t more_count;
    uint64_t id, total_ms;
    bool once;
};

static size_t headers_for(const struct mcp_client *client, const struct sending *sending,
                          struct http_header *out) {
    const struct mcp_options *options = &client->options;
    const struct mcp_caller *caller = sending->caller;
    size_t room = POST_HEADERS_MAX - 2 - sending->more_count;
    const struct http_header of_caller[] = {
        {options->user_header, caller->user},
        {options->conversation_header, caller->conversation},
    };
    size_t count = 0;
    for (; count < options->header_count && count < room; count++)
        out[count] = options->headers[count];
    for (size_t i = 0; i < ARRAY_LEN(of_caller); i++) {
        if (of_caller[i].name.len && of_caller[i].value.len) out[count++] = of_caller[i];
    }
    for (size_t i = 0; i < sending->more_count; i++) out[count++] = sending->more[i];
    return count;
}

static bool send_post(struct mcp_client *client, const struct sending *sending,
                      struct post *post, const struct post_sink *sink, void *ctx,
                      struct err *e) {
    const struct session *session = sending->session;
    const char *version = sending->version;
    struct http_header headers[POST_HEADERS_MAX];
    struct buf authorization;
    buf_init(&authorization, 8 * KIB);
    bool authorized =
        !client->options.authorize ||
        client->options.authorize(sending->caller, &authorization, client->options.ctx, e);
    if (!version && session) version = session->version;
    if (authorized) {
        post_stop(post);
        post_start(post, client->pool, client->loop,
                   &(struct post_request){
                       .desk = client->desk.pipe ? &client->desk : NULL,
                       .url = str_from(client->endpoint),
                       .headers = headers,
                       .header_count = headers_for(client, sending, headers),
                       .authorization = buf_str(&authorization),
                       .session = session ? buf_str(&session->id) : STR_EMPTY,
                       .version = str_from(version),
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
    (void)message; /* an answer to a notification is ignored */
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

/* A stateless server over HTTP learns it from the end of the request. */
static void tell_cancelled(const struct mcp_call *call) {
    const struct mcp_client *client = call->client;
    if (client->generation == MCP_STATELESS && !client->desk.pipe) return;
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

/* A server may ask whether we are there; what else it asks we never said we could do. A stateless
 * one asks nothing, and is answered nothing. */
static void answer_server(const struct session *session, const struct mcp_caller *caller,
                          const struct jsonrpc *message) {
    const struct mcp_options *options = &session->client->options;
    struct buf body;
    if (message->kind == JSONRPC_NOTIFICATION) {
        bool changed = json_is(message->method, STR("notifications/tools/list_changed"));
        if (changed && options->changed) options->changed(options->ctx);
        return;
    }
    if (session->client->generation == MCP_STATELESS) return;
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
    free(call->schema);
    free(call->user);
    free(call->workspace);
    free(call->conversation);
    free(call->name);
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

static void open_session(struct session *session);
static void post_call(struct mcp_call *call);

/* Post the call now, or wait while its session is being opened. */
static void go(struct mcp_call *call) {
    struct session *session = call->session;
    if (session->state == MCP_SESSION_READY) {
        post_call(call);
        return;
    }
    list_append(&session->waiting, &call->link);
    if (session->state == MCP_SESSION_FRESH) open_session(session);
}

/* The server no longer knows the session. All its calls notice; only the first one resets
 * it. */
static void lose_session(struct session *session, unsigned generation) {
    if (session->state != MCP_SESSION_READY || session->generation != generation) return;
    session_move(session, MCP_SESSION_FRESH);
    session->version = NULL;
    buf_clear(&session->id);
}

/* A server that was stateless refuses what only such a one understands: it is another one now. */
static bool is_another(const struct mcp_call *call, enum post_outcome outcome) {
    const struct post *post = &call->post;
    bool stateless = call->client->generation == MCP_STATELESS && !call->client->desk.pipe;
    bool refused = post->status == 400 || post->status == 404 || post->status == 405;
    return stateless && outcome == POST_FAILED && refused && !call->greeted_again &&
           mcp_generation_of_error(post->refusal_code, post->refusal_data) == MCP_UNKNOWN;
}

static bool goes_again(struct mcp_call *call, enum post_outcome outcome) {
    if (is_another(call, outcome)) {
        call->client->generation = MCP_UNKNOWN;
        lose_session(call->session, call->generation);
        call->greeted_again = true;
        return true;
    }
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

/* --- a server that asks for more ---------------------------------------------------------- */

static void go_another_round(struct mcp_call *call, struct json result) {
    struct buf params;
    struct err e;
    buf_init(&params, SIZE_MAX);
    bool goes = ++call->rounds <= ROUNDS_MAX
                    ? mcp_write_round(buf_str(&call->params), result, &params, &e)
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

static void on_call_done(struct post *post, enum post_outcome outcome, void *ctx) {
    struct mcp_call *call = ctx;
    if (goes_again(call, outcome)) {
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

static bool is_progress(const struct jsonrpc *message) {
    return message->kind == JSONRPC_NOTIFICATION &&
           json_is(message->method, STR("notifications/progress"));
}

/* The token of a call is its id. */
static void take_progress(struct mcp_call *call, const struct jsonrpc *message) {
    int64_t token;
    bool of_it = json_i64(json_find(message->params, STR("progressToken")), &token) &&
                 token >= 0 && (uint64_t)token == call->id;
    if (of_it && call->progress) call->progress(message->params, call->ctx);
}

static void on_call_asked(const struct jsonrpc *message, void *ctx) {
    struct mcp_call *call = ctx;
    if (is_progress(message)) {
        take_progress(call, message);
        return;
    }
    struct mcp_caller caller = caller_of(call);
    answer_server(call->session, &caller, message);
}

static const struct post_sink call_sink = {on_call_done, on_call_asked};

/* Arguments that go as headers, too. `room` holds them until they were sent. */
static size_t param_headers_of(const struct mcp_call *call, struct buf *room,
                               struct http_header ret[PARAM_HEADERS_MAX]) {
    const struct mcp_client *client = call->client;
    if (client->generation != MCP_STATELESS || client->desk.pipe || !call->schema[0]) return 0;
    struct json args = json_find(json_of(buf_str(&call->params)), STR("arguments"));
    return param_headers_write(json_of(str_from(call->schema)), args, room, ret);
}

static void post_call(struct mcp_call *call) {
    struct mcp_caller caller = caller_of(call);
    struct http_header more[PARAM_HEADERS_MAX];
    struct buf body, params, room;
    buf_init(&body, SIZE_MAX);
    buf_init(&params, SIZE_MAX);
    buf_init(&room, 64 * KIB);
    call->id = ++call->client->last_id;
    call->generation = call->session->generation;
    mcp_write_params(call->client->generation, buf_str(&call->params),
                     call->progress ? call->id : 0, &params);
    jsonrpc_write_request(&body, call->id, call->method, buf_str(&params));
    struct sending sending = {.caller = &caller,
                              .session = call->session,
                              .body = buf_str(&body),
                              .method = str_from(call->method),
                              .name = str_from(call->name),
                              .more = more,
                              .more_count = param_headers_of(call, &room, more),
                              .id = call->id,
                              .total_ms = call->total_ms,
                              .once = !call->repeatable};
    if (!send_post(call->client, &sending, &call->post, &call_sink, call, &call->why))
        loop_defer(call->client->loop, &call->refused);
    buf_done(&body);
    buf_done(&params);
    buf_done(&room);
}

/* --- sessions ----------------------------------------------------------------------------- */

/* Fail all calls that wait now; not those that begin to wait meanwhile. */
static void fail_session(struct session *session, const struct err *why) {
    struct err copy = *why;
    struct mcp_client *client = mcp_client_ref(session->client);
    struct list failed, *link;
    list_init(&failed);
    list_move(&session->waiting, &failed);
    session_move(session, MCP_SESSION_FRESH);
    session->version = NULL;
    buf_clear(&session->id);
    while ((link = list_pop(&failed)))
        fail_call(CONTAINER_OF(link, struct mcp_call, link), &copy);
    mcp_client_unref(client);
}

static void on_session_asked(const struct jsonrpc *message, void *ctx) {
    (void)message; /* nothing may be requested before the greeting is over */
    (void)ctx;
}

/* What waits goes. */
static void become_ready(struct session *session) {
    struct list ready, *link;
    struct mcp_client *client = mcp_client_ref(session->client);
    session_move(session, MCP_SESSION_READY);
    list_init(&ready);
    list_move(&session->waiting, &ready);
    while ((link = list_pop(&ready))) post_call(CONTAINER_OF(link, struct mcp_call, link));
    mcp_client_unref(client);
}

static void on_notified(struct post *post, enum post_outcome outcome, void *ctx) {
    struct session *session = ctx;
    if (outcome != POST_ACCEPTED) {
        if (outcome == POST_LOST)
            err_set(&post->why, ERR_UNAVAILABLE, "the MCP server lost its new session");
        fail_session(session, &post->why);
        return;
    }
    session->client->generation = MCP_HANDSHAKE;
    become_ready(session);
}

static const struct post_sink notice_sink = {on_notified, on_session_asked};

static bool no_version(struct err *e) {
    return err_set(e, ERR_UNIMPLEMENTED,
                   "the MCP server speaks no protocol version that we know; ours are " STR_FMT
                   " and " MCP_STATELESS_VERSION,
                   STR_ARG(mcp_offered_version()));
}

static bool agree(struct session *session, struct json result, struct err *e) {
    session->version = mcp_known_version(json_find(result, STR("protocolVersion")));
    return session->version || no_version(e);
}

static bool tell_initialized(struct session *session, struct err *e) {
    struct mcp_caller caller = session_caller(session);
    struct buf body;
    buf_init(&body, KIB);
    jsonrpc_write_notification(&body, "notifications/initialized", STR_EMPTY);
    struct sending sending = {
        .caller = &caller, .session = session, .body = buf_str(&body), .total_ms = GREETING_MS};
    session_move(session, MCP_SESSION_TELLING);
    bool sent = send_post(session->client, &sending, &session->post, &notice_sink, session, e);
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
    if (greeted) return;
    session->client->generation = MCP_UNKNOWN; /* it may have been too slow for the probe */
    fail_session(session, &e);
}

static const struct post_sink greeting_sink = {on_greeted, on_session_asked};

static void write_greeting(struct buf *out, uint64_t id) {
    struct buf params;
    buf_init(&params, KIB);
    struct json_writer w = json_writer(&params);
    json_open_object(&w);
    json_member_str(&w, "protocolVersion", mcp_offered_version());
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

static bool send_greeting(struct session *session, struct err *e) {
    struct mcp_client *client = session->client;
    struct mcp_caller caller = session_caller(session);
    struct buf body;
    uint64_t id = ++client->last_id;
    buf_init(&body, 2 * KIB);
    write_greeting(&body, id);
    session_move(session, MCP_SESSION_GREETING);
    struct sending sending = {
        .caller = &caller, .body = buf_str(&body), .id = id, .total_ms = GREETING_MS};
    bool sent = send_post(client, &sending, &session->post, &greeting_sink, session, e);
    buf_done(&body);
    return sent;
}

/* --- is it stateless? --------------------------------------------------------------------- */

static void become_stateless(struct session *session) {
    session->client->generation = MCP_STATELESS;
    session->version = MCP_STATELESS_VERSION;
    become_ready(session);
}

static enum mcp_generation discovered(struct mcp_client *client, struct json result) {
    struct json version,
        tools = json_find(json_find(result, STR("capabilities")), STR("tools"));
    struct json_reader all = json_enter(json_find(result, STR("supportedVersions")));
    bool changes = false;
    client->may_listen = json_bool(json_find(tools, STR("listChanged")), &changes) && changes;
    while (json_next_item(&all, &version)) {
        if (json_is(version, STR(MCP_STATELESS_VERSION))) return MCP_STATELESS;
    }
    return MCP_HANDSHAKE;
}

/* Any other refusal, and silence, is what a server of the handshake may answer. */
static void on_probed(struct post *post, enum post_outcome outcome, void *ctx) {
    struct session *session = ctx;
    struct err e = post->why;
    enum mcp_generation found =
        outcome == POST_ANSWERED
            ? discovered(session->client, post->result)
            : mcp_generation_of_error(post->refusal_code, post->refusal_data);
    bool gone = outcome == POST_FAILED && post->cut;
    if (found == MCP_STATELESS) {
        become_stateless(session);
    } else if (gone || !send_greeting(session, &e)) {
        fail_session(session, &e);
    }
}

static const struct post_sink probe_sink = {on_probed, on_session_asked};

static bool send_probe(struct session *session, struct err *e) {
    struct mcp_client *client = session->client;
    struct mcp_caller caller = session_caller(session);
    struct buf params, body;
    uint64_t id = ++client->last_id;
    buf_init(&params, KIB);
    buf_init(&body, 2 * KIB);
    mcp_write_params(MCP_STATELESS, STR_EMPTY, 0, &params);
    jsonrpc_write_request(&body, id, "server/discover", buf_str(&params));
    session_move(session, MCP_SESSION_PROBING);
    struct sending sending = {.caller = &caller,
                              .version = MCP_STATELESS_VERSION,
                              .body = buf_str(&body),
                              .method = STR("server/discover"),
                              .id = id,
                              .total_ms = client->desk.pipe ? PROBE_PIPE_MS : PROBE_MS};
    bool sent = send_post(client, &sending, &session->post, &probe_sink, session, e);
    buf_done(&params);
    buf_done(&body);
    return sent;
}

/* --- its beginning ------------------------------------------------------------------------ */

static bool begin_session(struct session *session, struct err *e) {
    struct mcp_client *client = session->client;
    if (client->desk.pipe && !pipe_start(client->desk.pipe, e)) return false;
    if (client->generation == MCP_STATELESS) {
        become_stateless(session);
        return true;
    }
    bool probes = client->options.probes && client->generation == MCP_UNKNOWN;
    return probes ? send_probe(session, e) : send_greeting(session, e);
}

/* Open the session for its waiting calls. The conversation of the first one is sent with the
 * greeting. */
static void open_session(struct session *session) {
    const struct mcp_call *first = CONTAINER_OF(session->waiting.next, struct mcp_call, link);
    struct err e;
    free(session->conversation);
    session->conversation = str_dup(str_from(first->conversation));
    session->generation++;
    if (begin_session(session, &e)) return;
    if (session->state != MCP_SESSION_FRESH) session_move(session, MCP_SESSION_FRESH);
    LIST_EACH(&session->waiting, link) {
        struct mcp_call *call = CONTAINER_OF(link, struct mcp_call, link);
        call->why = e;
        loop_defer(session->client->loop, &call->refused);
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

/* With too many users, forget the least recently used idle sessions. */
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

/* Whose call it is, its token says. */
static void pass_progress(struct mcp_client *client, const struct jsonrpc *message) {
    int64_t token;
    if (!json_i64(json_find(message->params, STR("progressToken")), &token)) return;
    LIST_EACH(&client->desk.waiting, link) {
        struct post *post = CONTAINER_OF(link, struct post, link);
        if (post->sink != &call_sink || token < 0 || post->id != (uint64_t)token) continue;
        take_progress(CONTAINER_OF(post, struct mcp_call, post), message);
        return;
    }
}

static void on_pipe_message(struct json value, void *ctx) {
    struct mcp_client *client = mcp_client_ref(ctx);
    static const struct mcp_caller everybody = {STR_INIT(""), STR_INIT(""), STR_INIT("")};
    struct jsonrpc message;
    struct err e;
    if (!post_take(&client->desk, value) && jsonrpc_read(value, &message, &e)) {
        if (is_progress(&message)) {
            pass_progress(client, &message);
        } else {
            answer_server(only_session(client), &everybody, &message);
        }
    }
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

/* --- public functions --------------------------------------------------------------------- */

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

bool mcp_client_is_http(const struct mcp_client *client) {
    return client->desk.pipe == NULL;
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
    call->schema = str_dup(request->schema);
    call->progress = request->progress;
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
