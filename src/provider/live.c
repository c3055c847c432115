#include "provider/live.h"

#include "base/mem.h"
#include "provider/live_inner.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define URL_MAX_BYTES (8 * KIB)
#define OUT_MAX_BYTES (16 * MIB) /* one event of ours; a message may be escaped sixfold */
#define ID_MAX_BYTES 256

/* --- what can be talked to ----------------------------------------------------------------- */

struct live_model *live_model_new(const struct live_model_options *options) {
    struct live_model *model = MEM_NEW(struct live_model);
    model->provider = remote_provider_new(options->remote);
    model->which = options->which;
    model->voice = text_copy(options->voice);
    return model;
}

void live_model_free(struct live_model *model) {
    if (!model) return;
    provider_free(model->provider);
    text_done(&model->voice);
    free(model);
}

bool live_model_speaks(const struct live_model *model, struct str name) {
    static const struct str word = STR_INIT("realtime");
    if (!model || model->which == LIVE_NEVER) return false;
    return model->which == LIVE_ALWAYS || str_find_nocase(name, word) < name.len;
}

/* --- states, and the end ------------------------------------------------------------------ */

/* clang-format off */
const struct state live_states[LIVE_STATE_COUNT] = {
    [LIVE_OPENING]   = {"opening",   TO(LIVE_SETTING) | TO(LIVE_OVER)},
    [LIVE_SETTING]   = {"setting",   TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_READY]     = {"ready",     TO(LIVE_ASKED) | TO(LIVE_STOPPING) | TO(LIVE_OVER)},
    [LIVE_ASKED]     = {"asked",     TO(LIVE_ANSWERING) | TO(LIVE_STOPPING) |
                                     TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_ANSWERING] = {"answering", TO(LIVE_READY) | TO(LIVE_STOPPING) | TO(LIVE_OVER)},
    [LIVE_STOPPING]  = {"stopping",  TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_OVER]      = {"over",      0},
};
/* clang-format on */

void live_move(struct live *live, enum live_state next) {
    assert(states_allow(live_states, live->state, next));
    live->state = next;
}

bool live_is_over(const struct live *live) {
    return live->state == LIVE_OVER;
}

static void drop_socket(struct live *live) {
    struct websocket_call *socket = live->socket;
    live->socket = NULL;
    websocket_call_free(socket);
}

void live_free(struct live *live) {
    if (!live) return;
    if (live->state != LIVE_OVER) live_move(live, LIVE_OVER);
    drop_socket(live);
    live->freed = true;
    live_release(live);
}

void live_end(struct live *live, struct reply_failure *failure) {
    const struct failure_reader reader = {.run = 0, .by_operator = false};
    struct reply_failure told = *failure;
    bool lost = live->heard_bytes > 0;
    if (live->state == LIVE_OVER) return;
    live_move(live, LIVE_OVER);
    drop_socket(live);
    live->inside++;
    live_call_fail(live, failure);
    failure_word(live_remote(live->model), reader, &told);
    if (!live->freed) live->events->on_over(&told, lost, live->ctx);
    live->inside--;
    live_release(live);
}

/* --- sending ------------------------------------------------------------------------------ */

struct str live_event_id(const struct live *live, const char *what, char ret[40]) {
    int len = snprintf(ret, 40, "turn_%u_%s", live->turn, what);
    return str_of(ret, (size_t)len);
}

bool live_send(struct live *live) {
    struct reply_failure failure = {.reason = PROVIDER_BROKEN};
    if (live->state == LIVE_OVER) return false;
    if (!live->socket) { /* its end is reported when what came before it was read */
        buf_release(&live->out);
        return true;
    }
    bool sent = buf_ok(&live->out) && websocket_call_send(live->socket, buf_str(&live->out));
    buf_release(&live->out);
    if (sent) return true;
    err_set(&failure.why, ERR_UNAVAILABLE,
            "too much waits to be sent to it; it seems not to read");
    live_end(live, &failure);
    return false;
}

void live_stop_answer(struct live *live) {
    char id[40];
    live_move(live, LIVE_STOPPING);
    live_ask_cancel(&live->out, live_event_id(live, "cancel", id));
    (void)live_send(live);
}

/* --- events of the server ----------------------------------------------------------------- */

/* Whether an event belongs to the answer under way. Some servers leave the id out. */
static bool is_current(const struct live *live, const struct live_event *event) {
    return !event->response.len || !live->response.len ||
           str_equal(event->response, buf_str(&live->response));
}

static bool is_heard(const struct live *live, const struct live_event *event) {
    return live->state == LIVE_ANSWERING && live->call && !live->call->interrupted &&
           is_current(live, event);
}

static void on_session_created(struct live *live, const struct live_event *event) {
    if (live->state != LIVE_OPENING) return;
    live->session.beta = event->beta;
    live_move(live, LIVE_SETTING);
    live_ask_session(&live->out, &live->session, STR("session"));
    (void)live_send(live);
}

static void on_session_updated(struct live *live, const struct live_event *event) {
    (void)event;
    if (live->state != LIVE_SETTING) return;
    live_move(live, LIVE_READY);
    live->events->on_ready(live->ctx);
    if (!live->freed) live_call_go_on(live);
}

/* Whether an answer that comes is that of the call: the call may be new, and the question that is
 * out one that was cancelled. */
static bool is_awaited(const struct live *live) {
    return live->call && live->call->sent;
}

/* One that no call waits for is stopped at once. */
static void on_response_created(struct live *live, const struct live_event *event) {
    bool asked = live->state == LIVE_ASKED;
    if (!asked && live->state != LIVE_READY) return;
    buf_clear(&live->response);
    buf_append(&live->response, str_head(event->response, ID_MAX_BYTES));
    if (asked && is_awaited(live))
        live_move(live, LIVE_ANSWERING);
    else
        live_stop_answer(live);
}

static void live_on_text(struct live *live, const struct live_event *event) {
    if (!is_heard(live, event)) return;
    live->call->spoke = true;
    live_call_report(live, &(struct reply_event){REPLY_TEXT, .text = event->text});
}

static void on_sound(struct live *live, const struct live_event *event) {
    const struct media_artifact sound = {.content_type = live_sound_type(live->session.out),
                                         .sample_rate_hz =
                                             live_sound_rate_hz(live->session.out),
                                         .channels = 1,
                                         .bytes = event->text};
    if (is_heard(live, event) && live->session.out != LIVE_SOUND_NONE)
        live_call_report(live, &(struct reply_event){REPLY_ARTIFACT, .artifact = &sound});
}

static void on_call(struct live *live, const struct live_event *event) {
    if (is_heard(live, event))
        live_call_report(live, &(struct reply_event){REPLY_TOOL_CALL, .call_id = event->call_id,
                                                     .tool = event->tool, .args = event->text});
}

static void on_response_done(struct live *live, const struct live_event *event) {
    bool wanted = live->state == LIVE_ANSWERING || live->state == LIVE_ASKED;
    if ((!wanted && live->state != LIVE_STOPPING) || !is_current(live, event)) return;
    live_move(live, LIVE_READY);
    buf_clear(&live->response);
    if (wanted && is_awaited(live)) live_call_done(live, event);
    if (!live->freed) live_call_go_on(live);
}

/* An error names the event of ours that it is about. One of an earlier turn, or about a cancel that
 * came too late, has no effect. */
static void on_error_of_turn(struct live *live, const struct live_event *event,
                             struct reply_failure *failure) {
    char name[40];
    bool create = str_equal(event->event_id, live_event_id(live, "create", name));
    bool cancel = str_equal(event->event_id, live_event_id(live, "cancel", name));
    struct str turn = live_event_id(live, "", name);
    bool ours = !event->event_id.len || str_starts(event->event_id, turn);
    if (live->state == LIVE_STOPPING && (cancel || !event->event_id.len)) {
        live_move(live, LIVE_READY); /* there was nothing to cancel any more */
        live_call_go_on(live);
        return;
    }
    if (!ours || cancel) return;
    bool asked = is_awaited(live);
    if (live->state == LIVE_ASKED && (create || !event->event_id.len))
        live_move(live, LIVE_READY);
    if (live->state == LIVE_ANSWERING && asked) live_stop_answer(live);
    if (asked) live_call_fail(live, failure);
    if (!live->freed) live_call_go_on(live);
}

static void live_on_error(struct live *live, const struct live_event *event) {
    struct reply_failure failure = {.cut = false};
    reply_failure_of(live_remote(live->model)->options.dialect->title, 0, event->error,
                     &failure);
    if (live->state == LIVE_OPENING || live->state == LIVE_SETTING)
        live_end(live, &failure);
    else
        on_error_of_turn(live, event, &failure);
}

typedef void handle_fn(struct live *live, const struct live_event *event);

static handle_fn *const handlers[LIVE_EVENT_KIND_COUNT] = {
    [LIVE_EVENT_SESSION_CREATED] = on_session_created,
    [LIVE_EVENT_SESSION_UPDATED] = on_session_updated,
    [LIVE_EVENT_RESPONSE_CREATED] = on_response_created,
    [LIVE_EVENT_TEXT] = live_on_text,
    [LIVE_EVENT_SOUND] = on_sound,
    [LIVE_EVENT_CALL] = on_call,
    [LIVE_EVENT_RESPONSE_DONE] = on_response_done,
    [LIVE_EVENT_ERROR] = live_on_error,
};

static void live_read(struct live *live, struct str text) {
    struct reply_failure failure = {.reason = PROVIDER_BROKEN};
    struct live_event event;
    if (!live_event_read(text, &live->room, &event, &failure.why)) {
        err_add(&failure.why, "its event cannot be read");
        live_end(live, &failure);
    } else if (handlers[event.kind]) {
        handlers[event.kind](live, &event);
    }
    if (live->room.room > LIVE_UNSENT_BYTES) buf_release(&live->room);
}

/* --- what came while nothing was wanted ---------------------------------------------------- */

static bool is_held(const struct live *live) {
    return live->held && live->call;
}

static void live_keep(struct live *live, struct str text) {
    struct live_message *message = MEM_NEW(struct live_message);
    message->text = text_copy(text);
    list_append(&live->messages, &message->link);
}

static void live_read_kept(struct live *live) {
    while (!list_empty(&live->messages) && !is_held(live) && live->state != LIVE_OVER) {
        struct live_message *message =
            CONTAINER_OF(list_pop(&live->messages), struct live_message, link);
        live_read(live, text_str(message->text));
        text_done(&message->text);
        free(message);
    }
}

static void on_go_on(void *ctx) {
    struct live *live = ctx;
    live->inside++;
    live_call_go_on(live);
    live_read_kept(live);
    if (!is_held(live) && live->state != LIVE_OVER) {
        if (live->ended)
            live_end(live, &live->end);
        else if (live->socket)
            websocket_call_resume(live->socket);
    }
    live->inside--;
    live_release(live);
}

/* --- the socket --------------------------------------------------------------------------- */

static void live_on_open(void *ctx) {
    (void)ctx; /* the server speaks first */
}

static void live_on_message(struct str data, enum websocket_kind kind, void *ctx) {
    struct live *live = ctx;
    if (kind != WEBSOCKET_TEXT || live->state == LIVE_OVER) return;
    live->inside++;
    if (is_held(live) || !list_empty(&live->messages))
        live_keep(live, data);
    else
        live_read(live, data);
    live->inside--;
    live_release(live);
}

static void live_on_sent(void *ctx) {
    struct live *live = ctx;
    if (!live->refused_sound || live->state == LIVE_OVER) return;
    live->refused_sound = false;
    live->inside++;
    live->events->on_room(live->ctx);
    live->inside--;
    live_release(live);
}

static void live_failure_of(const struct live *live, const struct websocket_end *end,
                            struct reply_failure *ret) {
    const struct remote_options *options = &live_remote(live->model)->options;
    *ret = (struct reply_failure){.cut = false};
    if (end->status && end->status != 101) {
        failure_refused(options->dialect, end->status, STR_EMPTY, end->body, ret);
    } else if (end->opened) {
        struct err why = end->why;
        why.code =
            ERR_UNAVAILABLE; /* also after a message that was too long: it is connected again */
        failure_broken(&why, ret);
    } else if (end->why.code == ERR_DEADLINE_EXCEEDED) {
        failure_timeout(options, HTTP_CONNECTING, false, ret);
    } else {
        failure_unreachable(&end->why, ret);
    }
}

static void live_on_end(const struct websocket_end *end, void *ctx) {
    struct live *live = ctx;
    live->socket = NULL;
    live->ended = true;
    live_failure_of(live, end, &live->end);
    if (is_held(live) || !list_empty(&live->messages)) return; /* on_go_on() reports it */
    live->inside++;
    live_end(live, &live->end);
    live->inside--;
    live_release(live);
}

static const struct websocket_sink socket_sink = {live_on_open, live_on_message, live_on_sent,
                                                  live_on_end};

/* --- starting ----------------------------------------------------------------------------- */

static void live_put_url(const struct dialect_settings *settings, struct str model,
                         struct buf *out) {
    buf_append(out, settings->base_url);
    buf_append(out, STR("/realtime?model="));
    buf_append_percent(out, model, "-._~");
    if (settings->query.len) buf_append_byte(out, '&');
    buf_append(out, settings->query);
}

static void live_dial(struct live *live, struct http_pool *pool) {
    const struct remote *remote = live_remote(live->model);
    struct buf url;
    buf_init(&url, URL_MAX_BYTES);
    live_put_url(&remote->options.settings, text_str(live->name), &url);
    const struct websocket_request request = {.url = buf_str(&url),
                                              .headers = remote->headers,
                                              .header_count = remote->header_count,
                                              .reach = remote->options.reach,
                                              .open_ms = remote->options.connect_ms,
                                              .message_max_bytes = LIVE_MESSAGE_MAX_BYTES};
    live->socket = websocket_call_start(pool, live->loop, &request, &socket_sink, live);
    buf_done(&url);
}

struct live *live_new(struct live_model *model, const struct live_options *options) {
    struct live *live = MEM_NEW(struct live);
    struct http_pool *pool = options->pool;
    live->model = model;
    live->loop = options->loop;
    live->name = text_copy(options->model);
    live->instructions = text_copy(options->instructions);
    live->session = (struct live_session){.model = text_str(live->name),
                                          .instructions = text_str(live->instructions),
                                          .voice = text_str(model->voice),
                                          .in = options->in,
                                          .out = options->out};
    live->events = options->events;
    live->ctx = options->ctx;
    live->base = (struct provider){.kind = &live_kind, .name = text_str(live->name)};
    list_init(&live->messages);
    task_init(&live->go_on, on_go_on, live);
    buf_init(&live->response, ID_MAX_BYTES);
    buf_init(&live->out, OUT_MAX_BYTES);
    buf_init(&live->room, LIVE_EVENT_ROOM * LIVE_MESSAGE_MAX_BYTES);
    live_dial(live, pool ? pool : live_remote(model)->options.pool);
    return live;
}

struct provider *live_provider(struct live *live) {
    return &live->base;
}

void live_next(struct live *live, const struct live_more *more) {
    live->more = *more;
}

/* --- sound -------------------------------------------------------------------------------- */

bool live_hear(struct live *live, struct str sound) {
    bool ready = live->state >= LIVE_READY && live->state < LIVE_OVER;
    if (!ready || (live->socket && websocket_call_unsent(live->socket) > LIVE_UNSENT_BYTES)) {
        live->refused_sound = ready;
        return false;
    }
    while (sound.len) {
        struct str piece = str_head(sound, LIVE_PIECE_BYTES);
        live_ask_sound(&live->out, piece);
        if (!live_send(live)) return true; /* it is over, which was reported */
        live->heard_bytes += piece.len;
        sound = str_skip(sound, piece.len);
    }
    return true;
}

void live_interrupt(struct live *live) {
    char id[40];
    bool under_way = live->state == LIVE_ASKED || live->state == LIVE_ANSWERING;
    if (!under_way || !live->call || live->call->interrupted) return;
    live->call->interrupted = true;
    live_ask_cancel(&live->out, live_event_id(live, "cancel", id));
    (void)live_send(live);
}
