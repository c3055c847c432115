/* One turn: it is asked for at /stream, for the refusals that this has, and then read from the
 * run's journal, which has everything and can be read on after a broken connection. */
#include "cli/chat.h"
#include "cli/follow.h"

#include <string.h>

#define BODY_MAX_BYTES (32 * MIB)
#define REFUSAL_MAX_BYTES (64 * KIB)
#define LOOK_MS 50 /* how long Ctrl-C may wait for us */
#define TRIES 10   /* to read on, about half a minute */

struct chat_turn {
    struct chat *chat;
    struct http_call *post, *cancel;
    struct run_follow *follow;
    struct chat_question *question; /* its `run` is this turn's */
    struct buf refusal;
    unsigned status;
    struct timer look; /* for Ctrl-C */
    bool cancelled, cancels_sent;
    enum chat_end end;
    struct err *e;
};

void chat_question_init(struct chat_question *question) {
    question->after[0] = '\0';
    buf_init(&question->event, BODY_MAX_BYTES);
    buf_init(&question->id, 64);
    buf_init(&question->run, 64);
}

void chat_question_done(struct chat_question *question) {
    buf_done(&question->event);
    buf_done(&question->id);
    buf_done(&question->run);
}

static void turn_over(struct chat_turn *turn, enum chat_end end) {
    turn->end = end;
    loop_stop(turn->chat->loop);
}

/* --- events ------------------------------------------------------------------------------- */

/* The run waits from here on, and may leave the daemon's memory meanwhile. */
static void chat_turn_take_question(struct chat_turn *turn, struct json event) {
    struct chat_question *question = turn->question;
    int64_t seq = 0;
    struct str place = run_follow_place(turn->follow);
    if (!json_i64(json_find(event, STR("seq")), &seq)) return;
    buf_clear(&question->event);
    buf_append(&question->event, event.raw);
    buf_clear(&question->id);
    buf_printf(&question->id, STR_FMT "-%lld", STR_ARG(buf_str(&question->run)),
               (long long)seq);
    snprintf(question->after, sizeof(question->after), STR_FMT, STR_ARG(place));
    turn->end = CHAT_ASKS;
    run_follow_stop(turn->follow);
}

static enum chat_end end_of(struct json type, const struct chat_turn *turn) {
    if (json_is(type, STR("failed"))) return CHAT_FAILED;
    if (json_is(type, STR("cancelled"))) return turn->cancelled ? CHAT_CANCELLED : CHAT_FAILED;
    return json_is(type, STR("done")) ? CHAT_DONE : turn->end;
}

static void chat_turn_event(struct str text, void *ctx) {
    struct chat_turn *turn = ctx;
    struct chat *chat = turn->chat;
    struct json event;
    struct err e;
    if (!json_read(text, &event, &e)) return;
    struct json type = json_find(event, STR("type"));
    bool asks = json_is(type, STR("approval"));
    if (chat->options->json) {
        show_json(stdout, event.raw);
        fflush(stdout);
    } else if (!asks) {
        event_show(&chat->show, event);
    }
    turn->end = end_of(type, turn);
    if (asks) chat_turn_take_question(turn, event);
}

static void turn_broken(const struct err *why, void *ctx) {
    struct chat_turn *turn = ctx;
    if (turn->chat->options->json) return;
    event_show_line(&turn->chat->show, "weir: trying again: ", err_text(why));
}

static void turn_read(const struct err *failed, void *ctx) {
    struct chat_turn *turn = ctx;
    if (failed) *turn->e = *failed;
    turn_over(turn, failed ? CHAT_BROKEN : turn->end);
}

static void turn_follow_run(struct chat_turn *turn, struct str after) {
    struct chat *chat = turn->chat;
    turn->follow =
        run_follow_start(&(struct run_follow_options){.pool = chat->pool,
                                                      .loop = chat->loop,
                                                      .target = &chat->target,
                                                      .run = buf_str(&turn->question->run),
                                                      .after = after,
                                                      .tries = TRIES,
                                                      .on_event = chat_turn_event,
                                                      .on_broken = turn_broken,
                                                      .on_end = turn_read,
                                                      .ctx = turn});
}

/* --- cancelling --------------------------------------------------------------------------- */

static void cancel_head(const struct http_head *head, void *ctx) {
    (void)head;
    (void)ctx;
}

static void cancel_body(struct lent bytes, void *ctx) {
    (void)bytes;
    (void)ctx;
}

/* The run's last event says what became of it. */
static void cancel_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct chat_turn *turn = ctx;
    (void)failed;
    (void)stage;
    turn->cancel = NULL;
}

static const struct http_sink cancel_sink = {cancel_head, cancel_body, cancel_end};

static void send_cancel(struct chat_turn *turn) {
    struct chat *chat = turn->chat;
    struct http_header headers[2];
    struct buf url;
    turn->cancels_sent = true;
    buf_init(&url, 32 * KIB);
    buf_append(&url, buf_str(&chat->target.base));
    buf_append(&url, STR("/weir/v1/runs/"));
    buf_append_percent(&url, buf_str(&turn->question->run), "-._~");
    buf_append(&url, STR("/cancel"));
    size_t count = daemon_target_headers(&chat->target, STR_EMPTY, headers);
    turn->cancel = http_start(chat->pool, chat->loop,
                              &(struct http_request){.method = STR("POST"),
                                                     .url = buf_str(&url),
                                                     .headers = headers,
                                                     .header_count = count,
                                                     .total_ms = 10000},
                              &cancel_sink, turn);
    buf_done(&url);
}

/* The first Ctrl-C cancels the turn, a second one leaves. */
static void look_for_interrupt(void *ctx) {
    struct chat_turn *turn = ctx;
    /* Without a reader of what it says the turn is of no use. */
    int count = chat_interrupts() + (ferror(stdout) ? 1 : 0);
    timer_start(&turn->look, LOOK_MS);
    if (count == 0) return;
    if (count > 1) {
        turn_over(turn, CHAT_LEFT);
        return;
    }
    turn->cancelled = true;
    if (turn->follow && !turn->cancels_sent) send_cancel(turn);
}

/* --- beginning ---------------------------------------------------------------------------- */

static void tell_program(const struct chat_turn *turn) {
    const struct chat *chat = turn->chat;
    struct buf line;
    buf_init(&line, 64 * KIB);
    struct json_writer json = json_writer(&line);
    json_open_object(&json);
    json_member_str(&json, "type", STR("turn"));
    json_member_str(&json, "run_id", buf_str(&turn->question->run));
    json_member_str(&json, "session_id", buf_str(&chat->session));
    json_close(&json);
    show_json(stdout, buf_str(&line));
    fflush(stdout);
    buf_done(&line);
}

/* From here on the run is read from its journal. The request stays open beside it: a daemon that
 * stops waits for the turns that a client has asked for. */
static void post_head(const struct http_head *head, void *ctx) {
    struct chat_turn *turn = ctx;
    turn->status = head->status;
    if (head->status >= 300 || !head->run.len) return;
    buf_append(&turn->question->run, head->run);
    if (turn->chat->options->json) tell_program(turn);
    turn_follow_run(turn, STR_EMPTY);
}

static void post_body(struct lent bytes, void *ctx) {
    struct chat_turn *turn = ctx;
    if (turn->status >= 300) buf_append(&turn->refusal, lent_read(bytes));
}

static void post_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct chat_turn *turn = ctx;
    (void)stage;
    turn->post = NULL;
    if (turn->follow) return; /* which knows more */
    if (failed) {
        *turn->e = *failed;
        err_add(turn->e, "ask the daemon at " STR_FMT,
                STR_ARG(daemon_target_where(&turn->chat->target)));
    } else if (turn->status >= 300) {
        (void)daemon_refused(turn->status, buf_str(&turn->refusal), turn->e);
    } else {
        err_set(turn->e, ERR_FAILED_PRECONDITION,
                "this server does not say which run it began: it is no weir");
    }
    turn_over(turn, CHAT_BROKEN);
}

static const struct http_sink post_sink = {post_head, post_body, post_end};

static void write_turn(const struct chat *chat, struct str text, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "input", text);
    json_member_str(&json, "session_id", buf_str(&chat->session));
    if (chat->agent.len) json_member_str(&json, "agent", buf_str(&chat->agent));
    if (chat->options->user) {
        json_member_object(&json, "config");
        json_member_object(&json, "configurable");
        json_member_str(&json, "user_id", str_from(chat->options->user));
        json_close(&json);
        json_close(&json);
    }
    json_close(&json);
}

static void post_turn(struct chat_turn *turn, struct str body) {
    struct chat *chat = turn->chat;
    struct http_header headers[3];
    struct buf url;
    buf_init(&url, 32 * KIB);
    buf_append(&url, buf_str(&chat->target.base));
    buf_append(&url, STR("/stream"));
    size_t count = daemon_target_headers(&chat->target, body, headers);
    headers[count++] = (struct http_header){STR("x-weir-on-disconnect"), STR("detach-for=10s")};
    turn->post = http_start(chat->pool, chat->loop,
                            &(struct http_request){.method = STR("POST"),
                                                   .url = buf_str(&url),
                                                   .headers = headers,
                                                   .header_count = count,
                                                   .body = body,
                                                   .connect_ms = 5000,
                                                   .stall_ms = 60000,
                                                   .once = true},
                            &post_sink, turn);
    buf_done(&url);
}

/* --- the turn ----------------------------------------------------------------------------- */

static void turn_init(struct chat_turn *turn, struct chat *chat, struct chat_question *question,
                      struct err *e) {
    *turn = (struct chat_turn){.chat = chat, .question = question, .end = CHAT_BROKEN, .e = e};
    buf_init(&turn->refusal, REFUSAL_MAX_BYTES);
    timer_init(&turn->look, chat->loop, look_for_interrupt, turn);
    chat_interrupts_forget();
    err_set(e, ERR_UNAVAILABLE, "the run's events ended before the run");
}

static enum chat_end turn_run(struct chat_turn *turn) {
    timer_start(&turn->look, LOOK_MS);
    loop_run(turn->chat->loop);
    timer_stop(&turn->look);
    if (turn->post) http_cancel(turn->post);
    if (turn->cancel) http_cancel(turn->cancel);
    run_follow_free(turn->follow);
    buf_done(&turn->refusal);
    event_show_end_line(&turn->chat->show);
    return turn->end;
}

enum chat_end chat_turn_say(struct chat *chat, struct str text,
                            struct chat_question *ret_question, struct err *e) {
    struct chat_turn turn;
    struct buf body;
    buf_init(&body, BODY_MAX_BYTES);
    write_turn(chat, text, &body);
    buf_clear(&ret_question->run);
    turn_init(&turn, chat, ret_question, e);
    post_turn(&turn, buf_str(&body));
    enum chat_end end = turn_run(&turn);
    buf_done(&body);
    return end;
}

enum chat_end chat_turn_go_on(struct chat *chat, struct chat_question *question,
                              struct err *e) {
    struct chat_turn turn;
    char after[CHAT_PLACE_BYTES];
    memcpy(after, question->after, sizeof(after));
    turn_init(&turn, chat, question, e);
    turn_follow_run(&turn, str_from(after));
    return turn_run(&turn);
}
