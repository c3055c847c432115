#include "orchestrator/sockets.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "orchestrator/jsonb.h"
#include "orchestrator/request.h"

#include <assert.h>
#include <stdlib.h>

#define NAMESPACE STR("/v1")
#define JSON_MAX_BYTES (4 * MIB)
#define ARENA_MAX_BYTES (8 * MIB)
/* An answer comes twice, in pieces and as a message, and one of the other agents meanwhile. */
#define QUEUE_MAX_BYTES (16 * MIB)
#define WORKSPACES_MAX 64
/* Requests of one client that wait for the database or a talk; one that has more is cut off. */
#define ASKED_MAX 64

struct sockets {
    struct orchestrator *orchestrator;
    struct loop *loops[1];
    struct socketio *server;
    struct socketio_namespace spaces[1];
    bool stopping;
};

/* One socket. */
struct client {
    unsigned refs; /* the socket's, and one for each thing that is asked */
    struct sockets *sockets;
    struct socketio_socket *socket; /* NULL: it is gone */
    struct text user, workspace;    /* as struct orchestrator_caller */
    struct list talks;              /* requests that have a talk, in the order they began */
    size_t asked_count;             /* requests that wait */
};

/* A request of a client, while the database or a talk is asked. */
struct asked {
    struct client *client;
    struct arena *arena;
    struct request request;
    struct str message; /* with the questions; of message.answers */
    struct str answers; /* JSON */
    int64_t ack;        /* that the client wants; -1: none */
    struct list link;   /* in client->talks */
    struct talk *talk;  /* NULL: it has not begun, or is over */
    bool stored;        /* its message is a row */
};

/* --- clients ------------------------------------------------------------------------------------ */

static void client_unref(struct client *client) {
    if (--client->refs) return;
    text_done(&client->user);
    text_done(&client->workspace);
    free(client);
}

static struct asked *asked_new(struct client *client, int64_t ack) {
    struct asked *asked = MEM_NEW(struct asked);
    asked->client = client;
    asked->ack = ack;
    list_init(&asked->link);
    if (++client->asked_count > ASKED_MAX && client->socket)
        socketio_disconnect(client->socket);
    asked->arena = arena_new(ARENA_MAX_BYTES);
    client->refs++;
    return asked;
}

static void asked_free(struct asked *asked) {
    struct client *client = asked->client;
    list_remove(&asked->link);
    client->asked_count--;
    arena_free(asked->arena);
    free(asked);
    client_unref(client);
}

static struct str sockets_keep(struct asked *asked, struct str text) {
    struct str own;
    return arena_str(asked->arena, text, &own) ? own : STR_EMPTY;
}

static struct workspace_question question_of(const struct client *client, struct str workspace,
                                             struct str conversation) {
    const struct orchestrator_caller caller = {.user = text_str(client->user),
                                               .workspace = text_str(client->workspace)};
    return orchestrator_question(&caller, id_ok(workspace) ? workspace : STR_EMPTY,
                                 id_ok(conversation) ? conversation : STR_EMPTY);
}

static void sockets_refuse(struct socketio_socket *socket) {
    log_often(LOG_INFO, "a Socket.IO client at " STR_FMT " does not prove who it is",
              STR_ARG(socketio_peer(socket)));
    socketio_refuse(socket, STR("unauthorized"), STR("\"missing authentication\""));
}

/* A header of the opening request, or {"token": ...} of the CONNECT packet, as pages in browsers
 * can set no header. */
static void on_connect(struct socketio_socket *socket, struct json auth, void *ctx) {
    struct sockets *sockets = ctx;
    struct orchestrator_caller caller;
    struct str header = socketio_header(socket, STR("authorization"));
    struct buf bearer;
    struct err e;
    assert(socketio_loop(socket) == sockets->orchestrator->loop);
    buf_init(&bearer, 8 * KIB);
    if (header.len) {
        buf_append(&bearer, header);
    } else if (auth.kind == JSON_OBJECT) {
        buf_append(&bearer, STR("Bearer "));
        (void)json_text(json_find(auth, STR("token")), &bearer);
    }
    struct str uid = str_trim(socketio_header(socket, STR("x-firebase-uid")));
    bool known = sockets->orchestrator->talks && !sockets->stopping &&
                 orchestrator_caller(sockets->orchestrator, uid, buf_str(&bearer),
                                     bearer.len ? 1 : 0, &caller, &e);
    if (known) {
        struct client *client = MEM_NEW(struct client);
        *client = (struct client){.refs = 1,
                                  .sockets = sockets,
                                  .socket = socket,
                                  .user = text_copy(caller.user),
                                  .workspace = text_copy(caller.workspace)};
        list_init(&client->talks);
        socketio_accept(socket, client);
    } else {
        sockets_refuse(socket);
    }
    buf_done(&bearer);
}

/* End the talks of a client, but for this one. stored_only: and for those whose message is no row
 * yet, because they began after it. */
static void cancel_talks(struct client *client, const struct asked *but, bool stored_only) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
    LIST_EACH(&client->talks, link) {
        struct asked *asked = CONTAINER_OF(link, struct asked, link);
        if (asked == but || (stored_only && !asked->stored)) continue;
        talk_cancel(asked->talk);
        asked_free(asked);
    }
}

static void on_disconnected(struct socketio_socket *socket, enum socketio_reason why,
                            void *ctx) {
    struct client *client = socketio_user(socket);
    (void)why;
    (void)ctx;
    if (!client) return;
    client->socket = NULL;
    client->refs++;
    cancel_talks(client, NULL, false);
    client->refs--;
    client_unref(client);
}

/* --- workspaces ----------------------------------------------------------------------------------- */

static void room_of(struct str workspace, struct buf *out) {
    buf_append(out, STR("workspace:"));
    buf_append(out, workspace);
}

/* Those of a list that are owned. */
struct subscription {
    struct asked *asked;
    size_t left;
    struct buf owned; /* items of a JSON array */
};

static void subscription_end(struct subscription *subscription) {
    struct client *client = subscription->asked->client;
    if (--subscription->left) return;
    if (client->socket && subscription->owned.len) {
        struct buf json;
        buf_init(&json, JSON_MAX_BYTES);
        buf_printf(&json, "{\"workspace_ids\":[" STR_FMT "]}",
                   STR_ARG(buf_str(&subscription->owned)));
        socketio_send(client->socket, STR("workspace.subscribed"), buf_str(&json));
        socketio_ack(client->socket, subscription->asked->ack, buf_str(&json));
        buf_done(&json);
    } else if (client->socket) {
        socketio_ack(client->socket, subscription->asked->ack, STR("{\"workspace_ids\":[]}"));
    }
    buf_done(&subscription->owned);
    asked_free(subscription->asked);
    free(subscription);
}

static void add_owned(struct subscription *subscription, struct str workspace) {
    if (subscription->owned.len) buf_append_byte(&subscription->owned, ',');
    json_put_str(&subscription->owned, workspace);
}

static bool has_joined(const struct socketio_socket *socket, struct str workspace) {
    struct buf room;
    buf_init(&room, KIB);
    room_of(workspace, &room);
    bool joined = socketio_is_in(socket, buf_str(&room));
    buf_done(&room);
    return joined;
}

static void on_owned(struct workspace *found, const struct err *failed, void *ctx) {
    struct subscription *subscription = ctx;
    struct client *client = subscription->asked->client;
    (void)failed;
    if (found && client->socket) {
        struct buf room;
        buf_init(&room, KIB);
        room_of(found->id, &room);
        if (socketio_join(client->socket, buf_str(&room))) add_owned(subscription, found->id);
        buf_done(&room);
    }
    workspace_unref(found);
    subscription_end(subscription);
}

static void on_subscribe(struct socketio_socket *socket, const struct socketio_message *message,
                         void *ctx) {
    struct client *client = socketio_user(socket);
    struct subscription *subscription = MEM_NEW(struct subscription);
    struct json_reader reader = json_enter(json_find(message->data, STR("workspace_ids")));
    struct json item;
    (void)ctx;
    subscription->asked = asked_new(client, message->ack);
    subscription->left = 1;
    buf_init(&subscription->owned, JSON_MAX_BYTES);
    for (size_t i = 0; i < WORKSPACES_MAX && json_next_item(&reader, &item); i++) {
        struct str id;
        if (!json_str(item, subscription->asked->arena, &id)) continue;
        const struct workspace_question question = question_of(client, id, STR_EMPTY);
        if (!question.id.len) continue;
        if (has_joined(socket, id)) { /* it was found to be the user's before */
            add_owned(subscription, id);
            continue;
        }
        subscription->left++;
        workspace_find(&client->sockets->orchestrator->queries, &question, on_owned,
                       subscription);
    }
    subscription_end(subscription);
}

static void on_unsubscribe(struct socketio_socket *socket,
                           const struct socketio_message *message, void *ctx) {
    struct json_reader reader = json_enter(json_find(message->data, STR("workspace_ids")));
    struct json item;
    (void)ctx;
    while (json_next_item(&reader, &item)) {
        struct buf room;
        buf_init(&room, KIB);
        buf_append(&room, STR("workspace:"));
        if (json_text(item, &room)) socketio_leave(socket, buf_str(&room));
        buf_done(&room);
    }
}

/* --- messages --------------------------------------------------------------------------------------- */

/* As the event of the sheet, and as the acknowledgement if the client wants one. */
static void send_answer(struct asked *asked, const char *event, const struct buf *json) {
    struct socketio_socket *socket = asked->client->socket;
    if (!socket) return;
    socketio_send(socket, str_from(event), buf_str(json));
    socketio_ack(socket, asked->ack, buf_str(json));
    asked->ack = -1; /* a later failure is an event only */
}

static void tell_error(struct asked *asked, const char *text) {
    bool answers = asked->message.len > 0;
    struct buf json;
    buf_init(&json, JSON_MAX_BYTES);
    struct json_writer writer = json_writer(&json);
    json_open_object(&writer);
    json_member_str(&writer, "local_id", asked->request.local_id);
    if (answers)
        json_member_str(&writer, "message_id", asked->message);
    else
        json_member_str(&writer, "conversation_id", asked->request.conversation);
    json_member_str(&writer, "error", str_from(text));
    json_close(&writer);
    send_answer(asked, answers ? "message.answers.error" : "message.send.error", &json);
    buf_done(&json);
}

/* A message that is new ends the turn of the one before. */
static void on_stored(struct str message, bool again, void *ctx) {
    struct asked *asked = ctx;
    bool answers = asked->message.len > 0;
    struct buf json;
    asked->stored = true;
    if (!again) cancel_talks(asked->client, asked, true);
    buf_init(&json, JSON_MAX_BYTES);
    struct json_writer writer = json_writer(&json);
    json_open_object(&writer);
    json_member_str(&writer, "local_id", asked->request.local_id);
    json_member_str(&writer, "message_id", answers ? asked->message : message);
    if (!answers) json_member_str(&writer, "conversation_id", asked->request.conversation);
    json_member_str(&writer, "status", answers ? STR("recorded") : STR("sent"));
    json_close(&writer);
    send_answer(asked, answers ? "message.answers.ack" : "message.send.ack", &json);
    buf_done(&json);
}

static void sockets_on_over(const struct shown_message *answer,
                            const struct talk_failure *failure, void *ctx) {
    struct asked *asked = ctx;
    (void)answer;
    asked->talk = NULL;
    if (failure)
        tell_error(asked,
                   asked->message.len ? "failed to process answers" : "message send failed");
    asked_free(asked);
}

static size_t sockets_queued(void *ctx) {
    const struct asked *asked = ctx;
    const struct socketio_socket *socket = asked->client->socket;
    return socket ? socketio_queued(socket) : 0;
}

static const struct talk_sink talk_sink = {
    .on_stored = on_stored, .on_over = sockets_on_over, .queued = sockets_queued};

static void sockets_fail(struct asked *asked, const char *text) {
    tell_error(asked, text);
    asked_free(asked);
}

static void on_conversation(struct workspace *found, const struct err *failed, void *ctx) {
    struct asked *asked = ctx;
    struct client *client = asked->client;
    struct talk_mention mentions[REQUEST_MENTIONS_MAX];
    (void)failed;
    if (!found || !client->socket) {
        sockets_fail(asked,
                     asked->message.len ? "failed to process answers" : "message send failed");
    } else {
        const struct talk_request request = request_for(&asked->request, found, mentions);
        list_append(&client->talks, &asked->link);
        asked->talk =
            talk_start(client->sockets->orchestrator->talks, &request, &talk_sink, asked);
    }
    workspace_unref(found);
}

/* What can be no conversation is not looked for: the question would be for the workspace alone. When
 * the process stops, turns that run end, and no other begins. */
static void start_talk(struct asked *asked) {
    const struct workspace_question question =
        question_of(asked->client, asked->request.workspace, asked->request.conversation);
    if (!question.id.len || !question.conversation.len ||
        asked->client->sockets->orchestrator->stopping) {
        on_conversation(NULL, NULL, asked);
        return;
    }
    workspace_find(&asked->client->sockets->orchestrator->queries, &question, on_conversation,
                   asked);
}

/* The message's JSON is kept, because the texts of the request lie in it. */
static bool sockets_read_request(struct asked *asked, struct json data) {
    struct str own = sockets_keep(asked, data.raw);
    struct err e;
    return request_read(own.len ? json_of(own) : data, asked->arena, &asked->request, &e);
}

static void on_send(struct socketio_socket *socket, const struct socketio_message *message,
                    void *ctx) {
    struct asked *asked = asked_new(socketio_user(socket), message->ack);
    const struct request *request = &asked->request;
    (void)ctx;
    if (!sockets_read_request(asked, message->data))
        sockets_fail(asked, "invalid payload");
    else if (!request->workspace.len || !request->conversation.len ||
             !str_trim(request->text).len)
        sockets_fail(asked, "workspace_id, conversation_id, and content.text are required");
    else
        start_talk(asked);
}

/* --- answers to questions ------------------------------------------------------------------------------ */

#define CARDS                                                                                  \
    "messages WHERE id = $1 AND content->>'type' = 'questions' AND conversation_id IN "        \
    "(SELECT c.id FROM conversations c JOIN workspaces w ON w.id = c.workspace_id "            \
    "WHERE w.id = $2 AND w.user_id = $3)"

static const char find_card[] = "SELECT conversation_id, content::text FROM " CARDS;

/* What was sent before, with this local id, changes nothing. */
static const char record_answers[] =
    "UPDATE messages SET content = jsonb_set(content, '{answers}', $2::jsonb), "
    "updated_at = clock_timestamp() WHERE id = $1 AND NOT EXISTS (SELECT FROM messages sent "
    "WHERE sent.conversation_id = messages.conversation_id AND sent.role = 'user' AND "
    "sent.local_id = $3)";

static void on_recorded(const struct postgres_request *answer, const struct err *failed,
                        void *ctx) {
    (void)answer;
    if (failed)
        sockets_fail(ctx, "failed to process answers");
    else
        start_talk(ctx);
}

static void record(struct asked *asked) {
    struct query *query = query_new();
    QUERY_STEP(query, record_answers, postgres_text(asked->message),
               postgres_text(asked->answers), query_text_or_null(asked->request.local_id));
    query_ask(query, &asked->client->sockets->orchestrator->queries, QUERY_REPEATABLE,
              on_recorded, asked);
}

/* Read what the user says with these answers. False: the card does not offer them. */
static bool read_answers(struct asked *asked, struct postgres_rows rows) {
    struct json content, answers;
    struct buf text;
    struct err e;
    if (!rows.count || !json_read(postgres_content(rows, 0, 1), &content, &e) ||
        !json_read(asked->answers, &answers, &e) || !sockets_answers_fit(content, answers))
        return false;
    buf_init(&text, JSON_MAX_BYTES);
    sockets_answer_text(content, answers, &text);
    asked->request.conversation = sockets_keep(asked, postgres_content(rows, 0, 0));
    asked->request.text = sockets_keep(asked, buf_str(&text));
    buf_done(&text);
    return asked->request.text.len > 0;
}

static void on_card(const struct postgres_request *answer, const struct err *failed,
                    void *ctx) {
    struct asked *asked = ctx;
    if (!failed && read_answers(asked, postgres_rows(answer, 0)))
        record(asked);
    else
        sockets_fail(asked, "failed to process answers");
}

static void on_answers(struct socketio_socket *socket, const struct socketio_message *message,
                       void *ctx) {
    struct client *client = socketio_user(socket);
    struct asked *asked = asked_new(client, message->ack);
    struct json answers = json_find(message->data, STR("answers"));
    (void)ctx;
    bool read =
        sockets_read_request(asked, message->data) &&
        json_str(json_find(message->data, STR("message_id")), asked->arena, &asked->message);
    if (!read || !asked->message.len || answers.kind != JSON_ARRAY ||
        jsonb_has_nul(answers.raw)) {
        if (!asked->message.len) asked->message = STR(" ");
        sockets_fail(asked, "invalid payload");
        return;
    }
    asked->message = sockets_keep(asked, asked->message);
    asked->answers = sockets_keep(asked, answers.raw);
    const struct workspace_question question =
        question_of(client, asked->request.workspace, STR_EMPTY);
    struct query *query = query_new();
    QUERY_STEP(query, find_card, postgres_text(asked->message), postgres_text(question.id),
               postgres_text(text_str(client->user)));
    query_ask(query, &client->sockets->orchestrator->queries, QUERY_REPEATABLE, on_card, asked);
}

/* --- the server ------------------------------------------------------------------------------------------- */

static const struct socketio_event events[] = {
    {STR_INIT("workspace.subscribe"), on_subscribe},
    {STR_INIT("workspace.unsubscribe"), on_unsubscribe},
    {STR_INIT("message.send"), on_send},
    {STR_INIT("message.answers"), on_answers},
};

bool sockets_new(struct orchestrator *orchestrator, struct sockets **ret, struct err *e) {
    static const struct str headers[] = {STR_INIT("authorization"), STR_INIT("x-firebase-uid")};
    struct sockets *sockets = MEM_NEW(struct sockets);
    sockets->orchestrator = orchestrator;
    sockets->loops[0] = orchestrator->loop;
    sockets->spaces[0] = (struct socketio_namespace){.name = NAMESPACE,
                                                     .connect = on_connect,
                                                     .disconnected = on_disconnected,
                                                     .events = events,
                                                     .event_count = ARRAY_LEN(events),
                                                     .ctx = sockets};
    const struct socketio_options options = {.loops = sockets->loops,
                                             .loop_count = 1,
                                             .namespaces = sockets->spaces,
                                             .namespace_count = 1,
                                             .headers = headers,
                                             .header_count = ARRAY_LEN(headers),
                                             .queue_max_bytes = QUEUE_MAX_BYTES,
                                             .origins = socketio_default_origins,
                                             .origin_count =
                                                 ARRAY_LEN(socketio_default_origins)};
    if (!socketio_new(&options, &sockets->server, e)) {
        free(sockets);
        return false;
    }
    socketio_admit(sockets->server, false);
    *ret = sockets;
    return true;
}

void sockets_free(struct sockets *sockets) {
    if (!sockets) return;
    socketio_free(sockets->server);
    free(sockets);
}

void sockets_routes(void *instance, struct route_table *ret) {
    const struct orchestrator *orchestrator = instance;
    if (orchestrator->sockets)
        *ret = *socketio_routes(orchestrator->sockets->server);
    else
        orchestrator_routes(instance, ret);
}

void sockets_emit(struct sockets *sockets, struct str workspace, const char *event,
                  struct str json) {
    struct buf room;
    buf_init(&room, KIB);
    room_of(workspace, &room);
    socketio_emit(sockets->server, NAMESPACE, buf_str(&room), str_from(event), json);
    buf_done(&room);
}

void sockets_admit(struct sockets *sockets) {
    socketio_admit(sockets->server, true);
}

void sockets_drain(struct sockets *sockets) {
    socketio_drain(sockets->server);
}

bool sockets_owe(const struct sockets *sockets) {
    return socketio_waiting(sockets->server) > 0;
}

static void on_stopped(void *ctx) {
    orchestrator_let_go(((struct sockets *)ctx)->orchestrator);
}

void sockets_stop(struct sockets *sockets) {
    if (sockets->stopping) return;
    sockets->stopping = true;
    socketio_stop(sockets->server, on_stopped, sockets);
}
