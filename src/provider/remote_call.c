/* remote_call: one request to a model API, from the request to its ending. */
#include "base/log.h"
#include "base/mem.h"
#include "provider/gate.h"
#include "provider/remote_inner.h"

#include <assert.h>
#include <stdlib.h>

#define BODY_MAX_BYTES (64 * MIB) /* no model accepts a longer conversation */
#define URL_MAX_BYTES (8 * KIB)

/* Of a response that is not a stream; its error is at the beginning. */
#define REFUSAL_MAX_BYTES (64 * KIB)

/* How long to wait for the end of the connection's response after the reply's end. If it comes
 * in time, the connection can be reused. */
#define CLOSE_MS 500

/* How long to wait for more after the finish reason, if the stream has no end marker. Usage may
 * follow, and then comes at once. */
#define FINISH_MS 1000

struct provider_call {
    struct remote *remote;
    struct loop *loop;
    struct gate gate; /* in front of the listener */

    /* the events of a stream: close to each other, as each of them touches these */
    struct sse *sse; /* NULL unless the response is a stream */
    struct reply *reply;
    uint64_t heard_ms; /* when it last said something, or the call was resumed */
    struct http_call *http;
    enum remote_state state;
    unsigned inside;         /* callbacks on the stack; the last one to return frees the call */
    struct json_pairs pairs; /* across the events of the stream */
    bool spoiled;            /* the reply failed before its end */
    bool closing;            /* the reply is over; the timer waits for the response's end */
    bool ended;              /* the gate has the ending */
    struct buf mended;       /* an event, without halves of pairs */

    const struct provider_request *request;
    struct task task;     /* continues after the start or a pause */
    bool whole;           /* asks for a response that is not a stream */
    bool refused_stream;  /* the reason: the server refused to stream */
    struct buf url, body; /* the same for each attempt */
    struct attempts attempts;
    struct timer timer; /* before a retry; and after the reply has finished */
    bool due;           /* the timer fired during a pause */

    struct buf type, refusal; /* of a response that is not a stream */
    bool answered;            /* it is a whole answer */
    struct buf answer;

    struct str model;
    struct reply_failure failure;
};

static const struct remote_options *remote_call_options_of(const struct provider_call *call) {
    return &call->remote->options;
}

/* --- states ------------------------------------------------------------------------------- */

/* clang-format off */
const struct state remote_states[REMOTE_STATE_COUNT] = {
    [REMOTE_ASKING]    = {"asking",    TO(REMOTE_WAITING) | TO(REMOTE_STREAMING) |
                                       TO(REMOTE_OVER)},
    [REMOTE_WAITING]   = {"waiting",   TO(REMOTE_ASKING) | TO(REMOTE_OVER)},
    [REMOTE_STREAMING] = {"streaming", TO(REMOTE_OVER)},
    [REMOTE_OVER]      = {"over",      0},
};
/* clang-format on */

/* The only function that writes call->state after the start. */
static void remote_call_move(struct provider_call *call, enum remote_state next) {
    assert(states_allow(remote_states, call->state, next));
    call->state = next;
}

static void remote_call_free(struct provider_call *call) {
    timer_stop(&call->timer);
    task_cancel(&call->task);
    if (call->http) http_cancel(call->http);
    if (call->reply) remote_call_options_of(call)->dialect->reader->free(call->reply);
    sse_free(call->sse);
    gate_done(&call->gate);
    buf_done(&call->url);
    buf_done(&call->body);
    buf_done(&call->type);
    buf_done(&call->refusal);
    buf_done(&call->answer);
    buf_done(&call->mended);
    free(call);
}

/* Encloses everything that can call the listener, which may cancel the call. The call is not
 * freed until remote_call_leave(). */
static void remote_call_enter(struct provider_call *call) {
    call->inside++;
}

static void remote_call_leave(struct provider_call *call) {
    call->inside--;
    if (call->state == REMOTE_OVER && !call->inside) remote_call_free(call);
}

static void stop_http(struct provider_call *call) {
    struct http_call *http = call->http;
    call->http = NULL;
    if (http) http_cancel(http);
}

/* --- endings ------------------------------------------------------------------------------ */

static struct failure_reader reader_of(const struct provider_call *call) {
    return (struct failure_reader){call->request->run, call->request->by_operator};
}

static void remote_note(struct provider_call *call, struct str text) {
    gate_take(&(struct reply_event){REPLY_NOTE, .text = text}, &call->gate);
}

static struct reply_event failed_event(const struct provider_call *call) {
    return reply_event_failed(&call->failure.why, str_from(call->failure.reason));
}

/* All events are in the gate; pass the ending to it. */
static void remote_end(struct provider_call *call, const struct reply_event *ending) {
    call->ended = true;
    gate_take(ending, &call->gate);
    if (call->gate.over) remote_call_move(call, REMOTE_OVER);
}

static void settle_failed(struct provider_call *call) {
    failure_word(call->remote, reader_of(call), &call->failure);
    struct reply_event ending = failed_event(call);
    remote_end(call, &ending);
}

static void settle_done(struct provider_call *call, enum reply_outcome outcome,
                        struct str model) {
    if (outcome == OUTCOME_CUT) remote_note(call, STR(PROVIDER_CUT_NOTE));
    remote_end(call, &(struct reply_event){REPLY_DONE, .model = model});
}

/* --- asking, and asking again ------------------------------------------------------------- */

static const struct http_sink http_sink;

static void remote_call_ask(struct provider_call *call) {
    const struct remote_options *options = remote_call_options_of(call);
    char parent[TRACE_PARENT_BYTES + 1];
    struct http_request request = attempts_next(&call->attempts);
    request.url = buf_str(&call->url);
    struct http_header *headers = remote_headers(
        call->remote, call->whole, call->request->trace, parent, &request.header_count);
    request.headers = headers;
    request.body = buf_str(&call->body);
    request.body_max_bytes = options->reply_max_bytes;
    request.once = options->party != NULL;
    request.shared = options->http2;
    /* Without streaming, the head may come only when the whole answer is ready. */
    if (call->whole && !options->party) request.first_byte_ms = 0;
    call->answered = false;
    buf_clear(&call->refusal);
    buf_clear(&call->type);
    buf_clear(&call->answer);
    call->http = http_start(options->pool, call->loop, &request, &http_sink, call);
    free(headers);
}

static void settle_late(struct provider_call *call, enum http_stage stage) {
    failure_timeout(remote_call_options_of(call), stage, attempts_expired(&call->attempts),
                    &call->failure);
    settle_failed(call);
}

static void remote_call_ask_again(struct provider_call *call) {
    call->due = false;
    if (attempts_expired(&call->attempts)) { /* a slow listener's pause lasted too long */
        settle_late(call, HTTP_WAITING);
        return;
    }
    remote_call_move(call, REMOTE_ASKING);
    remote_call_ask(call);
}

/* False: there will be no retry. */
static bool wait_and_ask_again(struct provider_call *call) {
    if (!attempts_wait(&call->attempts, call->failure.reason, &call->timer)) return false;
    remote_call_move(call, REMOTE_WAITING);
    return true;
}

static void close_stream(struct provider_call *call);

static void remote_call_on_due(void *ctx) {
    struct provider_call *call = ctx;
    remote_call_enter(call);
    if (call->state == REMOTE_STREAMING) {
        if (!call->ended) close_stream(call);
    } else {
        call->due = true;
        if (!call->gate.closed) remote_call_ask_again(call);
    }
    remote_call_leave(call);
}

/* --- no answer ---------------------------------------------------------------------------- */

static void unanswered(struct provider_call *call, const struct err *failed,
                       enum http_stage stage) {
    bool again = attempts_unanswered(&call->attempts, failed, stage, &call->failure);
    if (again && wait_and_ask_again(call)) return;
    settle_failed(call);
}

/* --- the request -------------------------------------------------------------------------- */

/* False: the request cannot be written; the failure is set. */
static bool write_request(struct provider_call *call) {
    const struct remote_options *options = remote_call_options_of(call);
    struct dialect_settings settings = options->settings;
    struct err e;
    settings.whole = call->whole;
    buf_clear(&call->url);
    buf_clear(&call->body);
    options->dialect->url(&settings, call->request, &call->url);
    call->failure.reason = PROVIDER_REJECTED;
    if (!options->dialect->body(&settings, call->request, &call->body, &e)) {
        if (e.code == ERR_UNIMPLEMENTED) {
            e.code = ERR_INVALID_ARGUMENT;
            call->failure.reason = MODEL_CANNOT_CARRY;
        }
        call->failure.why = e;
        return false;
    }
    if (buf_ok(&call->body) && buf_ok(&call->url)) return true;
    call->failure.reason = MODEL_CONTEXT;
    return err_set(&call->failure.why, ERR_INVALID_ARGUMENT, "the request is too long to send");
}

/* --- an answer that is no stream ---------------------------------------------------------- */

/* Repeat the request without streaming. False: that is not possible. */
static bool ask_for_whole(struct provider_call *call) {
    call->whole = call->refused_stream = true;
    if (!write_request(call)) return false;
    log_often(LOG_INFO, "%s '" STR_FMT "' refuses to stream, asking it without",
              remote_noun(remote_call_options_of(call)),
              STR_ARG(remote_call_options_of(call)->name));
    remote_call_ask(call);
    if (call->gate.closed) http_pause(call->http);
    return true;
}

static bool is_redirected(const struct provider_call *call) {
    unsigned status = call->attempts.status;
    return !remote_call_options_of(call)->party && status >= 301 && status <= 308 &&
           status != 304;
}

static void refused(struct provider_call *call) {
    struct str said = buf_str(&call->refusal);
    if (is_redirected(call)) {
        failure_redirected(remote_call_options_of(call)->dialect, call->attempts.status,
                           &call->failure);
        settle_failed(call);
        return;
    }
    failure_refused(remote_call_options_of(call)->dialect, call->attempts.status,
                    buf_str(&call->type), said, &call->failure);
    const struct dialect *dialect = remote_call_options_of(call)->dialect;
    bool streamless = failure_is_of_stream(&call->failure, call->attempts.status, said) ||
                      failure_is_streamless(dialect, call->attempts.status);
    if (!call->whole && streamless && ask_for_whole(call)) return;
    if (attempts_refused(&call->attempts, &call->failure) && wait_and_ask_again(call)) return;
    settle_failed(call);
}

static void take_refusal(struct provider_call *call, struct str bytes) {
    struct str head = str_head(bytes, REFUSAL_MAX_BYTES - call->refusal.len);
    buf_append(&call->refusal, head);
    if (call->refusal.len < REFUSAL_MAX_BYTES) return;
    stop_http(call);
    refused(call);
}

/* --- an answer that is a stream ----------------------------------------------------------- */

static void on_event(const struct sse_event *event, void *ctx) {
    struct provider_call *call = ctx;
    struct sse_event readable = *event;
    call->heard_ms = loop_now_ms(call->loop);
    buf_clear(&call->mended);
    if (json_pairs_mend(&call->pairs, event->data, &call->mended))
        readable.data = buf_str(&call->mended);
    if (remote_call_options_of(call)->dialect->reader->feed(call->reply, &readable)) return;
    call->spoiled = true;
    sse_stop(call->sse);
}

static bool is_of_type(struct str type, struct str wanted) {
    struct str rest;
    return str_equal_nocase(str_trim(str_split(type, ';', &rest)), wanted);
}

static size_t reply_max_bytes(const struct provider_call *call) {
    size_t max = remote_call_options_of(call)->reply_max_bytes;
    return max ? max : remote_defaults.reply_max_bytes;
}

static void begin_reply(struct provider_call *call) {
    remote_call_move(call, REMOTE_STREAMING);
    call->reply = remote_call_options_of(call)->dialect->reader->begin(gate_take, &call->gate);
}

static void begin_stream(struct provider_call *call) {
    begin_reply(call);
    size_t own_max = remote_call_options_of(call)->event_max_bytes;
    call->sse = sse_new(own_max ? own_max : reply_max_bytes(call), on_event, call);
}

static void settle_spoiled(struct provider_call *call) {
    call->failure = call->reply->failure;
    settle_failed(call);
}

static void settle_broken(struct provider_call *call, const struct err *why) {
    failure_broken(why, &call->failure);
    settle_failed(call);
}

/* A finished reply is given less time than one that stalls. */
static void await_end(struct provider_call *call) {
    const struct reply *reply = call->reply;
    if (!reply->finished && !reply->over) return;
    if (reply->over && call->closing) return; /* bytes after the end do not extend it */
    call->closing = reply->over;
    timer_start(&call->timer, reply->over ? CLOSE_MS : FINISH_MS);
}

static void take_stream(struct provider_call *call, struct str bytes) {
    struct err e;
    bool fits = sse_feed(call->sse, bytes, &e);
    if (call->state == REMOTE_OVER) return; /* cancelled in a callback */
    if (fits && !call->spoiled) {
        await_end(call);
        return;
    }
    stop_http(call);
    if (call->spoiled) {
        settle_spoiled(call);
    } else {
        settle_broken(call, &e);
    }
}

/* The stream broke off or ran out of time before its end. */
static void stream_broke(struct provider_call *call, const struct err *failed,
                         enum http_stage stage) {
    if (failed->code == ERR_DEADLINE_EXCEEDED) {
        settle_late(call, stage);
    } else {
        settle_broken(call, failed);
    }
}

static void remote_call_stream_ended(struct provider_call *call) {
    struct str model = STR_EMPTY;
    enum reply_outcome outcome =
        remote_call_options_of(call)->dialect->reader->end(call->reply, &model);
    if (call->state == REMOTE_OVER) return; /* cancelled in the last callback */
    if (outcome == OUTCOME_FAILED) {
        settle_spoiled(call);
        return;
    }
    if (call->reply->calls_passed_over)
        remote_note(call,
                    STR("the model asked for too many tools in one reply, the last ones were "
                        "passed over"));
    settle_done(call, outcome, model.len ? model : call->model);
}

/* The reply is complete but the connection's response has not ended: end it here. */
static void close_stream(struct provider_call *call) {
    stop_http(call);
    remote_call_stream_ended(call);
}

/* --- an answer that came as a whole ------------------------------------------------------- */

/* The response is not an answer in this dialect. It is reported like any other page. */
static void settle_strange(struct provider_call *call) {
    struct str said = str_head(buf_str(&call->answer), REFUSAL_MAX_BYTES);
    failure_refused(remote_call_options_of(call)->dialect, call->attempts.status,
                    buf_str(&call->type), said, &call->failure);
    settle_failed(call);
}

static void read_whole(struct provider_call *call, struct json answer) {
    begin_reply(call);
    if (!remote_call_options_of(call)->party) remote_note(call, STR(PROVIDER_WHOLE_NOTE));
    bool fine = remote_call_options_of(call)->dialect->reader->read(call->reply, answer);
    if (call->state == REMOTE_OVER) return; /* cancelled in a callback */
    if (fine) {
        remote_call_stream_ended(call);
    } else {
        settle_spoiled(call);
    }
}

/* Whether the body is an answer; an error may come with status 200 too. */
static bool holds_answer(struct json body) {
    struct json object = body.kind == JSON_ARRAY ? json_at(body, 0) : body;
    struct json error = json_find(object, STR("error"));
    return object.kind == JSON_OBJECT && json_count(object) > 0 && json_is_absent(error);
}

static void remote_call_whole_ended(struct provider_call *call, const struct err *failed,
                                    enum http_stage stage) {
    struct json answer;
    struct err e;
    if (failed) {
        stream_broke(call, failed, stage);
    } else if (json_read_mended(buf_str(&call->answer), &call->mended, &answer, &e) &&
               holds_answer(answer)) {
        read_whole(call, answer);
    } else {
        settle_strange(call);
    }
}

/* --- what the HTTP side reports ----------------------------------------------------------- */

static void remote_call_look(const struct provider_call *call, const struct http_head *head) {
    const struct dialect *dialect = remote_call_options_of(call)->dialect;
    struct remote *remote = call->remote;
    if (!dialect->check_head || atomic_load(&remote->looked)) return;
    if (!dialect->check_head(head, remote->options.name)) atomic_store(&remote->looked, true);
}

static void remote_call_on_head(const struct http_head *head, void *ctx) {
    struct provider_call *call = ctx;
    call->heard_ms = loop_now_ms(call->loop);
    if (head->status == 200) remote_call_look(call, head);
    if (call->refused_stream && head->status == 200) atomic_store(&call->remote->whole, true);
    if (head->status == 200 && is_of_type(head->content_type, STR("text/event-stream"))) {
        begin_stream(call);
        return;
    }
    bool json = is_of_type(head->content_type, STR("application/json"));
    call->answered = head->status == 200 && (json || call->whole);
    call->attempts.status = head->status;
    call->attempts.retry_after_ms = head->retry_after_ms;
    buf_append(&call->type, str_head(head->content_type, KIB));
}

/* Whether an agent sends bytes and says nothing: comments that keep the connection open, pieces of
 * a line that never ends, blank lines in front of a whole answer. */
static bool is_silent(const struct provider_call *call) {
    const struct remote_options *options = remote_call_options_of(call);
    bool complete = call->reply && (call->reply->over || call->reply->finished);
    bool watched = options->party && options->stall_ms && !complete;
    bool asks = call->http && call->state != REMOTE_OVER;
    return watched && asks && loop_now_ms(call->loop) - call->heard_ms >= options->stall_ms;
}

/* A line of an answer that is no stream. */
static void hear_line(struct provider_call *call, struct str bytes) {
    bool line = str_find_byte(bytes, '\n') < bytes.len && str_trim(bytes).len > 0;
    if (line) call->heard_ms = loop_now_ms(call->loop);
}

static void take_whole(struct provider_call *call, struct str bytes) {
    if (call->answered) {
        buf_append(&call->answer, bytes);
    } else {
        take_refusal(call, bytes);
    }
}

static void remote_call_on_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct provider_call *call = ctx;
    remote_call_enter(call);
    if (call->state == REMOTE_STREAMING) {
        take_stream(call, bytes);
    } else {
        hear_line(call, bytes);
        take_whole(call, bytes);
    }
    if (is_silent(call)) {
        stop_http(call);
        settle_late(call, HTTP_READING);
    }
    remote_call_leave(call);
}

static void remote_call_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct provider_call *call = ctx;
    call->http = NULL;
    remote_call_enter(call);
    if (call->state == REMOTE_STREAMING) {
        timer_stop(&call->timer);
        bool incomplete = !call->reply->over && !call->reply->finished;
        if (failed && incomplete) {
            stream_broke(call, failed, stage);
        } else {
            remote_call_stream_ended(call);
        }
    } else if (call->answered) {
        remote_call_whole_ended(call, failed, stage);
    } else if (call->attempts.status) {
        refused(call); /* even if the body broke off: the status is enough */
    } else {
        unanswered(call, failed, stage);
    }
    remote_call_leave(call);
}

static const struct http_sink http_sink = {remote_call_on_head, remote_call_on_body,
                                           remote_call_on_end};

/* --- what the run does with a call -------------------------------------------------------- */

/* Callbacks must not run before start() has returned, nor from inside resume(). */
static void remote_call_go_on(void *ctx) {
    struct provider_call *call = ctx;
    remote_call_enter(call);
    gate_release(&call->gate);
    if (call->gate.over) remote_call_move(call, REMOTE_OVER);
    if (call->state != REMOTE_OVER && !call->gate.closed) {
        if (call->due) {
            remote_call_ask_again(call);
        } else if (call->http) {
            if (call->reply) await_end(call);
            call->heard_ms = loop_now_ms(call->loop);
            http_resume(call->http);
        }
    }
    remote_call_leave(call);
}

/* A request that cannot be made ends the call in the first turn after its start. */
static void remote_call_fail_later(struct provider_call *call) {
    failure_word_unasked(call->remote, reader_of(call), &call->failure);
    struct reply_event ending = failed_event(call);
    call->ended = true;
    gate_keep(&call->gate, &ending);
    loop_defer(call->loop, &call->task);
}

struct provider_call *remote_call_start(struct provider *provider, struct loop *loop,
                                        const struct provider_request *request,
                                        reply_event_fn *on_reply, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->remote = CONTAINER_OF(provider, struct remote, base);
    call->request = request;
    call->loop = loop;
    const struct dialect *dialect = remote_call_options_of(call)->dialect;
    call->whole =
        atomic_load(&call->remote->whole) || (dialect->is_whole && dialect->is_whole(request));
    attempts_init(&call->attempts, remote_call_options_of(call), loop);
    call->model =
        request->model.len ? request->model : remote_call_options_of(call)->settings.model;
    gate_init(&call->gate, on_reply, ctx);
    task_init(&call->task, remote_call_go_on, call);
    timer_init(&call->timer, loop, remote_call_on_due, call);
    buf_init(&call->url, URL_MAX_BYTES);
    buf_init(&call->body, BODY_MAX_BYTES);
    buf_init(&call->type, KIB);
    buf_init(&call->refusal, REFUSAL_MAX_BYTES);
    buf_init(&call->answer, reply_max_bytes(call));
    buf_init(&call->mended, SIZE_MAX); /* no more than what is mended */
    if (write_request(call)) {
        remote_call_ask(call);
    } else {
        remote_call_fail_later(call);
    }
    return call;
}

void remote_call_pause(struct provider_call *call) {
    if (call->gate.closed) return;
    call->gate.closed = true;
    task_cancel(&call->task);
    if (call->http) http_pause(call->http);
    if (call->reply && !call->reply->over) timer_stop(&call->timer); /* counts may wait there */
}

void remote_call_resume(struct provider_call *call) {
    if (!call->gate.closed) return;
    call->gate.closed = false;
    loop_defer(call->loop, &call->task);
}

void remote_call_cancel(struct provider_call *call) {
    remote_call_move(call, REMOTE_OVER);
    call->gate.shut = true;
    if (call->reply) call->reply->stopped = true;
    if (call->sse) sse_stop(call->sse);
    timer_stop(&call->timer);
    task_cancel(&call->task);
    stop_http(call);
    if (!call->inside) remote_call_free(call);
}
