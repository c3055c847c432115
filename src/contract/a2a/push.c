#include "contract/a2a/push.h"

#include "base/log.h"
#include "session/session_table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#define BODY_MAX_BYTES (64 * MIB)
#define ANSWER_MAX_BYTES (64 * KIB) /* of what a webhook says, which is not read */
#define CONNECT_MS 10000
#define TOTAL_MS 30000
#define RETRY_AFTER_MAX_MS (60 * 60 * 1000)
#define NO_HEARTBEAT_MS (UINT64_C(1000) * 60 * 60 * 24)
#define HEADERS_MAX 4

/* --- states ------------------------------------------------------------------------------- */

const struct state push_states[PUSH_STATE_COUNT] = {
    [PUSH_WATCHING] = {"watching", TO(PUSH_ASKING) | TO(PUSH_SENDING) | TO(PUSH_SETTLED)},
    [PUSH_ASKING] = {"asking", TO(PUSH_SENDING) | TO(PUSH_PAUSING)},
    [PUSH_SENDING] = {"sending", TO(PUSH_WATCHING) | TO(PUSH_PAUSING)},
    [PUSH_PAUSING] = {"pausing", TO(PUSH_WATCHING)},
    [PUSH_SETTLED] = {"settled", 0},
};

static void push_move(struct push *push, enum push_state next) {
    assert(states_allow(push_states, push->state, next));
    push->state = next;
}

/* --- a post ------------------------------------------------------------------------------- */

static void push_go_on(void *ctx);
static void on_pause_over(void *ctx);
static void push_send(struct push *push);

/* In 1.0 the task is one of the things that a stream may say. */
static void write_body(struct push *push) {
    const struct a2a_view view = {push->dialect, push->long_history ? 0 : -1,
                                  !push->task.passes_on};
    struct json_writer w = json_writer(&push->body);
    buf_clear(&push->body);
    if (push->dialect == A2A_1_0) {
        json_open_object(&w);
        json_key(&w, STR("task"));
    }
    a2a_task_write(&push->task, &view, &w);
    if (push->dialect == A2A_1_0) json_close(&w);
}

/* The token has a name in the Python and JavaScript SDKs, and another one in Go's. */
static size_t write_headers(const struct push *push, struct buf *room,
                            struct http_header headers[static HEADERS_MAX]) {
    const struct webhook *webhook = &push->webhook;
    size_t count = 0;
    headers[count++] = (struct http_header){
        STR("content-type"),
        push->dialect == A2A_1_0 ? STR("application/a2a+json") : STR("application/json")};
    if (webhook->token.len) {
        headers[count++] =
            (struct http_header){STR("x-a2a-notification-token"), webhook->token};
        headers[count++] = (struct http_header){STR("a2a-notification-token"), webhook->token};
    }
    if (!webhook->scheme.len || !webhook->credentials.len) return count;
    buf_append(room, webhook->scheme);
    buf_append_byte(room, ' ');
    buf_append(room, webhook->credentials);
    headers[count++] = (struct http_header){STR("authorization"), buf_str(room)};
    return count;
}

static void push_sent(struct push *push) {
    push->sent = push->sending;
    push->attempts = 0;
    push_move(push, PUSH_WATCHING);
    push->progress(push);
    push_go_on(push);
}

/* The webhook's answer says that the same again would not help. */
static bool is_refused(const struct push *push, const struct err *failed) {
    if (failed && !push->status)
        return failed->code == ERR_PERMISSION_DENIED || failed->code == ERR_INVALID_ARGUMENT;
    bool later = push->status == 408 || push->status == 425 || push->status == 429;
    return push->status >= 300 && push->status < 500 && !later;
}

static void give_up(struct push *push, const struct err *failed) {
    char status[32];
    snprintf(status, sizeof(status), "it answered %u", push->status);
    log_warning("a2a: a webhook of task %" PRIu64 " misses a state after %u attempts: %s",
                push->run, push->attempts, failed ? failed->text : status);
    push_sent(push);
}

uint64_t push_pause_ms(unsigned attempts, uint64_t random) {
    uint64_t most = PUSH_PAUSE_MAX_MS;
    if (attempts <= 8) most = (uint64_t)PUSH_PAUSE_FIRST_MS << (attempts ? attempts - 1 : 0);
    return most / 2 + random % (most / 2 + 1);
}

static void push_rest(struct push *push) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0) random = 0;
    uint64_t pause_ms = push_pause_ms(push->attempts, random);
    bool asked = push->retry_after_ms > 0 && push->retry_after_ms <= RETRY_AFTER_MAX_MS;
    if (asked) pause_ms += (uint64_t)push->retry_after_ms;
    push_move(push, PUSH_PAUSING);
    timer_start(&push->pause, pause_ms);
}

static void push_on_head(const struct http_head *head, void *ctx) {
    struct push *push = ctx;
    push->status = head->status;
    push->retry_after_ms = head->retry_after_ms;
}

static void push_on_body(struct lent bytes, void *ctx) {
    (void)bytes;
    (void)ctx;
}

/* Once the head says that it was taken, it does not matter how the body ends. */
static void push_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct push *push = ctx;
    bool taken = push->status >= 200 && push->status < 300;
    (void)stage;
    push->http = NULL;
    buf_release(&push->body);
    push->attempts++;
    if (taken) {
        push_sent(push);
    } else if (is_refused(push, failed) || push->attempts == PUSH_ATTEMPTS_MAX) {
        give_up(push, failed);
    } else {
        push_rest(push);
    }
}

static void push_send(struct push *push) {
    static const struct http_sink sink = {
        .on_head = push_on_head, .on_body = push_on_body, .on_end = push_on_end};
    struct http_header headers[HEADERS_MAX];
    struct buf room;
    push_move(push, PUSH_SENDING);
    push->sending = push->due;
    push->status = 0;
    push->retry_after_ms = -1;
    write_body(push);
    if (!buf_ok(&push->body)) {
        give_up(push, &(struct err){ERR_TOO_LARGE, .text = "the task is too large"});
        return;
    }
    buf_init(&room, WEBHOOK_SECRET_MAX_BYTES + KIB);
    const struct http_request request = {.method = STR("POST"),
                                         .url = push->webhook.url,
                                         .headers = headers,
                                         .header_count = write_headers(push, &room, headers),
                                         .body = buf_str(&push->body),
                                         .connect_ms = CONNECT_MS,
                                         .total_ms = TOTAL_MS,
                                         .body_max_bytes = ANSWER_MAX_BYTES,
                                         .reach = push->place->reach};
    push->http = http_start(push->place->pool, push->place->loop, &request, &sink, push);
    buf_done(&room);
}

void push_allow(struct push *push) {
    assert(push->state == PUSH_ASKING);
    push_send(push);
}

void push_wait(struct push *push) {
    assert(push->state == PUSH_ASKING);
    push->retry_after_ms = -1;
    push_rest(push);
}

/* --- the run ------------------------------------------------------------------------------ */

static void push_release(struct push *push) {
    follow_free(push->follow);
    push->follow = NULL;
    a2a_task_done(&push->task);
    a2a_task_init(&push->task, push->run);
    push->long_history = false;
}

void push_settle(struct push *push) {
    push_move(push, PUSH_SETTLED);
    push_release(push);
}

static void push_go_on(void *ctx) {
    struct push *push = ctx;
    if (push->state != PUSH_WATCHING) return;
    if (push->due > push->sent && push->ask) {
        push_move(push, PUSH_ASKING);
        push->ask(push);
    } else if (push->due > push->sent) {
        push_send(push);
    } else if (push->over) {
        push_settle(push);
        push->progress(push);
    }
}

/* What is too long to be posted need not be kept. */
static void push_bound(struct push *push) {
    struct a2a_task *task = &push->task;
    if (!task->passes_on && task->said > PUSH_TEXT_MAX_BYTES) {
        task->passes_on = true;
        buf_release(&task->answer);
    }
    if (task->line_bytes > PUSH_TEXT_MAX_BYTES) push->long_history = true;
    if (push->long_history) a2a_task_forget_lines(task);
}

static void push_note(struct push *push, const struct event *event) {
    enum a2a_state state = push->task.state;
    uint64_t question = push->task.question;
    (void)a2a_task_note(&push->task, event, event->seq);
    push_bound(push);
    push->over = a2a_state_is_terminal(push->task.state);
    if (push->task.state == state && push->task.question == question) return;
    push->due = event->seq;
    loop_defer(push->place->loop, &push->go_on);
}

static void push_project(const struct event *event, enum close_frame frame, void *ctx) {
    (void)frame;
    push_note(ctx, event);
}

/* A run that cannot be read any more changes no more. */
static void push_ended(struct close_ending ending, enum close_cause cause,
                       const struct event *last, void *ctx) {
    struct push *push = ctx;
    (void)ending;
    (void)cause;
    if (last && !push->over) push_note(push, last);
    push->over = true;
    loop_defer(push->place->loop, &push->go_on);
}

static void push_missing(const struct err *failed, void *ctx) {
    struct push *push = ctx;
    log_warning("a2a: a webhook is not told of task %" PRIu64 ": %s", push->run,
                failed ? failed->text : "the task is gone");
    push->over = true;
    push->gone = !failed;
    loop_defer(push->place->loop, &push->go_on);
}

static const struct stream_wire push_wire = {.project = push_project, .ended = push_ended};

/* --- its life ----------------------------------------------------------------------------- */

void push_init(struct push *push, const struct push_place *place, uint64_t run,
               enum a2a_dialect dialect, const struct webhook *webhook, uint64_t sent) {
    *push = (struct push){.place = place,
                          .run = run,
                          .dialect = dialect,
                          .webhook = *webhook,
                          .sent = sent,
                          .state = PUSH_WATCHING};
    struct webhook *own = &push->webhook;
    struct str *const texts[] = {&own->id, &own->url, &own->token, &own->scheme,
                                 &own->credentials};
    buf_keep_texts(&push->texts, texts, ARRAY_LEN(texts));
    buf_init(&push->body, BODY_MAX_BYTES);
    a2a_task_init(&push->task, run);
    task_init(&push->go_on, push_go_on, push);
    timer_init(&push->pause, place->loop, on_pause_over, push);
}

void push_start(struct push *push) {
    const struct push_place *place = push->place;
    push->follow = follow_new(&(struct follow_options){
        .loop = place->loop,
        .directory = session_table_directory(place->host->engine->sessions),
        .store = place->store,
        .run = push->run,
        .mode = CLOSE_DONE,
        .heartbeat_ms = NO_HEARTBEAT_MS,
        .wire = &push_wire,
        .missing = push_missing,
        .ctx = push});
}

/* The run is read again: what is posted is what there is now, and nothing of a run that was erased
 * meanwhile. */
static void on_pause_over(void *ctx) {
    struct push *push = ctx;
    push_release(push);
    push->over = false;
    push->due = 0;
    push_move(push, PUSH_WATCHING);
    push_start(push);
}

void push_stop(struct push *push) {
    task_cancel(&push->go_on);
    timer_stop(&push->pause);
    if (push->http) http_cancel(push->http);
    push->http = NULL;
    push_release(push);
}

void push_done(struct push *push) {
    push_stop(push);
    a2a_task_done(&push->task);
    buf_done(&push->body);
    buf_done(&push->texts);
}
