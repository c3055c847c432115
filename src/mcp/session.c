#include "mcp/session.h"

#include "base/log.h"
#include "base/mem.h"
#include "mcp/sending.h"

#include <assert.h>
#include <stdlib.h>

#define GREETING_MS 15000
#define PROBE_MS 5000
#define PROBE_PIPE_MS 2000 /* a program of the other generation may say nothing at all */
/* How long calls wait for the stream: what the server took for the greeting tells how busy it is. */
#define LISTEN_GREETINGS 10
#define LISTEN_MIN_MS 1000
#define LISTEN_MAX_MS 5000
#define SESSIONS_MAX 256

/* After any error the session is fresh; the next call opens it again. */
const struct state mcp_session_states[MCP_SESSION_STATE_COUNT] = {
    /* clang-format off */
    [MCP_SESSION_FRESH]    = {"fresh",    TO(MCP_SESSION_PROBING) | TO(MCP_SESSION_GREETING) |
                                          TO(MCP_SESSION_READY)},
    [MCP_SESSION_PROBING]  = {"probing",  TO(MCP_SESSION_GREETING) | TO(MCP_SESSION_READY) |
                                          TO(MCP_SESSION_FRESH)},
    [MCP_SESSION_GREETING] = {"greeting", TO(MCP_SESSION_TELLING) | TO(MCP_SESSION_FRESH)},
    [MCP_SESSION_TELLING]  = {"telling",  TO(MCP_SESSION_LISTENING) | TO(MCP_SESSION_READY) |
                                          TO(MCP_SESSION_FRESH)},
    [MCP_SESSION_LISTENING] = {"listening", TO(MCP_SESSION_READY) | TO(MCP_SESSION_FRESH)},
    [MCP_SESSION_READY]    = {"ready",    TO(MCP_SESSION_FRESH)},
    /* clang-format on */
};

/* The only function that writes session->state. */
static void session_move(struct mcp_session *session, enum mcp_session_state next) {
    assert(states_allow(mcp_session_states, session->state, next));
    session->state = next;
}

struct mcp_caller mcp_session_caller(const struct mcp_session *session) {
    return (struct mcp_caller){str_from(session->user), str_from(session->workspace),
                               str_from(session->conversation)};
}

/* --- its end ------------------------------------------------------------------------------ */

static void stop_listening(struct mcp_session *session) {
    mcp_stream_stop(session->stream);
    session->stream = NULL;
    timer_stop(&session->patience);
}

static void mcp_session_forget(struct mcp_session *session) {
    session_move(session, MCP_SESSION_FRESH);
    stop_listening(session);
    session->version = NULL;
    buf_clear(&session->id);
}

void mcp_session_lose(struct mcp_session *session, unsigned generation) {
    if (session->state == MCP_SESSION_READY && session->generation == generation)
        mcp_session_forget(session);
}

static void fail_session(struct mcp_session *session, const struct err *why) {
    struct err copy = *why;
    mcp_session_forget(session);
    session->client->events->failed(session, &copy);
}

/* --- what the server sends outside calls -------------------------------------------------- */

static void become_ready(struct mcp_session *session) {
    session_move(session, MCP_SESSION_READY);
    session->client->events->ready(session);
}

/* Calls wait for it, because a server may send a question of a call on this stream. */
static void on_listening(void *ctx) {
    struct mcp_session *session = ctx;
    timer_stop(&session->patience);
    if (session->state == MCP_SESSION_LISTENING) become_ready(session);
}

/* A server that answers a GET only with its first event is not waited for again. */
static void on_impatient(void *ctx) {
    struct mcp_session *session = ctx;
    session->client->streams_slow = true;
    on_listening(session);
}

static bool session_take_message(const struct jsonrpc *message, void *ctx) {
    struct mcp_session *session = ctx;
    bool asks = message->kind == JSONRPC_REQUEST || message->kind == JSONRPC_NOTIFICATION;
    if (asks) session->client->events->asked(session, message);
    return session->stream != NULL;
}

static void on_stream_event(struct str data, void *ctx) {
    struct mcp_session *session = ctx;
    struct buf room;
    buf_init(&room, POST_ANSWER_MAX_BYTES);
    session->hearing = true;
    jsonrpc_each(data, &room, session_take_message, session);
    buf_done(&room);
    session->hearing = false;
}

static void on_stream_over(enum mcp_stream_end end, const struct err *why, void *ctx) {
    struct mcp_session *session = ctx;
    log_debug("the MCP server '" STR_FMT "' has no stream outside calls: %s",
              STR_ARG(session->client->options.name), why->text);
    stop_listening(session);
    if (end == MCP_STREAM_REFUSED) session->client->streams_refused = true;
    if (session->state == MCP_SESSION_LISTENING) {
        become_ready(session);
    } else if (end == MCP_STREAM_LOST) { /* it was started again, perhaps with other tools */
        const struct mcp_options *options = &session->client->options;
        mcp_session_lose(session, session->generation);
        if (options->changed) options->changed(options->ctx);
    }
}

static const struct mcp_stream_sink stream_sink = {on_listening, on_stream_event,
                                                   on_stream_over};

static uint64_t listen_ms(const struct mcp_session *session) {
    uint64_t wait_ms = LISTEN_GREETINGS * session->greeting_ms;
    if (wait_ms < LISTEN_MIN_MS) return LISTEN_MIN_MS;
    return wait_ms < LISTEN_MAX_MS ? wait_ms : LISTEN_MAX_MS;
}

static void listen(struct mcp_session *session) {
    session_move(session, MCP_SESSION_LISTENING);
    session->stream = mcp_stream_start(
        &(struct mcp_stream_options){.session = session, .caller = mcp_session_caller(session)},
        &stream_sink, session);
    if (session->client->streams_slow) {
        on_listening(session);
    } else {
        timer_start(&session->patience, listen_ms(session));
    }
}

/* --- greeting ----------------------------------------------------------------------------- */

static void on_session_asked(const struct jsonrpc *message, void *ctx) {
    (void)message; /* nothing may be requested before the greeting is over */
    (void)ctx;
}

static void on_notified(struct post *post, enum post_outcome outcome, void *ctx) {
    struct mcp_session *session = ctx;
    if (outcome != POST_ACCEPTED) {
        if (outcome == POST_LOST)
            err_set(&post->why, ERR_UNAVAILABLE, "the MCP server lost its new session");
        fail_session(session, &post->why);
        return;
    }
    session->client->generation = MCP_HANDSHAKE;
    if (session->client->options.streams && !session->client->streams_refused) {
        listen(session);
    } else {
        become_ready(session);
    }
}

static const struct post_sink notice_sink = {on_notified, on_session_asked};

static bool no_version(struct err *e) {
    return err_set(e, ERR_UNIMPLEMENTED,
                   "the MCP server speaks no protocol version that we know; ours are " STR_FMT
                   " and " MCP_STATELESS_VERSION,
                   STR_ARG(mcp_offered_version()));
}

static bool agree(struct mcp_session *session, struct json result, struct err *e) {
    session->version = mcp_known_version(json_find(result, STR("protocolVersion")));
    return session->version || no_version(e);
}

static bool report_initialized(struct mcp_session *session, struct err *e) {
    struct mcp_caller caller = mcp_session_caller(session);
    struct buf body;
    buf_init(&body, KIB);
    jsonrpc_write_notification(&body, "notifications/initialized", STR_EMPTY);
    struct mcp_sending sending = {
        .caller = &caller, .session = session, .body = buf_str(&body), .total_ms = GREETING_MS};
    session_move(session, MCP_SESSION_TELLING);
    bool sent = mcp_send(session->client, &sending, &session->post, &notice_sink, session, e);
    buf_done(&body);
    return sent;
}

static void on_greeted(struct post *post, enum post_outcome outcome, void *ctx) {
    struct mcp_session *session = ctx;
    struct err e = post->why;
    bool greeted = outcome == POST_ANSWERED;
    if (greeted) {
        session->greeting_ms = loop_now_ms(session->client->loop) - session->greeted_ms;
        buf_append(&session->id, buf_str(&post->session));
        greeted = agree(session, post->result, &e) && report_initialized(session, &e);
    }
    if (greeted) return;
    session->client->generation = MCP_UNKNOWN; /* it may have been too slow for the probe */
    session->client->streams_refused = false;
    fail_session(session, &e);
}

static const struct post_sink greeting_sink = {on_greeted, on_session_asked};

static void write_greeting(uint64_t id, enum mcp_elicitation elicitation, struct buf *out) {
    struct buf params;
    buf_init(&params, KIB);
    struct json_writer w = json_writer(&params);
    json_open_object(&w);
    json_member_str(&w, "protocolVersion", mcp_offered_version());
    json_member_object(&w, "capabilities");
    mcp_write_capabilities(&w, elicitation);
    json_close(&w);
    json_member_object(&w, "clientInfo");
    json_member_str(&w, "name", STR("weir"));
    json_member_str(&w, "version", STR("0.1.0"));
    json_close(&w);
    json_close(&w);
    jsonrpc_write_request(out, id, "initialize", buf_str(&params));
    buf_done(&params);
}

static bool send_greeting(struct mcp_session *session, struct err *e) {
    struct mcp_client *client = session->client;
    struct mcp_caller caller = mcp_session_caller(session);
    struct buf body;
    uint64_t id = ++client->last_id;
    buf_init(&body, 2 * KIB);
    write_greeting(id, client->options.elicitation, &body);
    session_move(session, MCP_SESSION_GREETING);
    session->greeted_ms = loop_now_ms(client->loop);
    struct mcp_sending sending = {
        .caller = &caller, .body = buf_str(&body), .id = id, .total_ms = GREETING_MS};
    bool sent = mcp_send(client, &sending, &session->post, &greeting_sink, session, e);
    buf_done(&body);
    return sent;
}

/* --- is it stateless? --------------------------------------------------------------------- */

static void become_stateless(struct mcp_session *session) {
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
    struct mcp_session *session = ctx;
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

static bool send_probe(struct mcp_session *session, struct err *e) {
    struct mcp_client *client = session->client;
    struct mcp_caller caller = mcp_session_caller(session);
    struct buf params, body;
    uint64_t id = ++client->last_id;
    buf_init(&params, KIB);
    buf_init(&body, 2 * KIB);
    mcp_write_params(MCP_STATELESS, client->options.elicitation, STR_EMPTY, 0, &params);
    jsonrpc_write_request(&body, id, "server/discover", buf_str(&params));
    session_move(session, MCP_SESSION_PROBING);
    struct mcp_sending sending = {.caller = &caller,
                                  .version = MCP_STATELESS_VERSION,
                                  .body = buf_str(&body),
                                  .method = STR("server/discover"),
                                  .id = id,
                                  .total_ms =
                                      client->pipe_posts.pipe ? PROBE_PIPE_MS : PROBE_MS};
    bool sent = mcp_send(client, &sending, &session->post, &probe_sink, session, e);
    buf_done(&params);
    buf_done(&body);
    return sent;
}

/* --- its beginning ------------------------------------------------------------------------ */

static bool begin_session(struct mcp_session *session, struct err *e) {
    struct mcp_client *client = session->client;
    if (client->pipe_posts.pipe && !pipe_start(client->pipe_posts.pipe, e)) return false;
    if (client->generation == MCP_STATELESS) {
        become_stateless(session);
        return true;
    }
    bool probes = client->options.probes && client->generation == MCP_UNKNOWN;
    return probes ? send_probe(session, e) : send_greeting(session, e);
}

static void session_on_refused(void *ctx) {
    struct mcp_session *session = ctx;
    session->client->events->failed(session, &session->why);
}

void mcp_session_open(struct mcp_session *session, struct str conversation) {
    char *kept = str_dup(conversation);
    free(session->conversation);
    session->conversation = kept;
    session->generation++;
    task_cancel(&session->refused);
    if (begin_session(session, &session->why)) return;
    if (session->state != MCP_SESSION_FRESH) session_move(session, MCP_SESSION_FRESH);
    loop_defer(session->client->loop, &session->refused);
}

void mcp_session_free(struct mcp_session *session) {
    assert(session->calls == 0 && list_empty(&session->waiting));
    list_remove(&session->link);
    session->client->session_count--;
    post_stop(&session->post);
    task_cancel(&session->refused);
    stop_listening(session);
    buf_done(&session->id);
    free(session->user);
    free(session->workspace);
    free(session->conversation);
    free(session);
}

/* With too many users, forget the least recently used idle sessions. */
static void session_make_room(struct mcp_client *client) {
    for (struct list *link = client->sessions.prev; link != &client->sessions;) {
        struct mcp_session *session = CONTAINER_OF(link, struct mcp_session, link);
        link = link->prev;
        if (client->session_count < SESSIONS_MAX) return;
        if (!session->calls && !session->hearing) mcp_session_free(session);
    }
}

struct mcp_session *mcp_session_for(struct mcp_client *client,
                                    const struct mcp_caller *wanted) {
    static const struct mcp_caller everybody = {STR_INIT(""), STR_INIT(""), STR_INIT("")};
    const struct mcp_caller *caller = client->pipe_posts.pipe ? &everybody : wanted;
    LIST_EACH(&client->sessions, link) {
        struct mcp_session *session = CONTAINER_OF(link, struct mcp_session, link);
        if (!str_equal(str_from(session->user), caller->user) ||
            !str_equal(str_from(session->workspace), caller->workspace))
            continue;
        list_remove(link);
        list_prepend(&client->sessions, link);
        return session;
    }
    session_make_room(client);
    struct mcp_session *session = MEM_NEW(struct mcp_session);
    session->client = client;
    session->user = str_dup(caller->user);
    session->workspace = str_dup(caller->workspace);
    buf_init(&session->id, POST_SESSION_MAX_BYTES);
    list_init(&session->waiting);
    task_init(&session->refused, session_on_refused, session);
    timer_init(&session->patience, client->loop, on_impatient, session);
    list_prepend(&client->sessions, &session->link);
    client->session_count++;
    return session;
}
