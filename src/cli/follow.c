#include "cli/follow.h"

#include "base/mem.h"
#include "wire/sse.h"

#include <stdlib.h>

#define EVENT_MAX_BYTES (160 * MIB) /* an event of the largest turn, as JSON */
#define REFUSAL_MAX_BYTES (64 * KIB)
#define PLACE_MAX_BYTES 64
#define SILENCE_MS 60000 /* of a daemon that sends a comment every few seconds */
#define REST_FIRST_MS 100
#define REST_MOST_MS 4000

struct run_follow {
    struct run_follow_options options;
    struct buf url, place, refusal;
    struct http_call *call; /* NULL: it rests, or is over */
    struct sse *sse;
    unsigned status;
    unsigned tries; /* since the last event */
    bool ended;     /* the run has */
    bool stopped;   /* the reader wants no more */
    struct timer again;
    struct task over;
    struct err failed;
};

static void follow_ask(void *ctx);

/* --- the end ------------------------------------------------------------------------------ */

static void follow_over(void *ctx) {
    struct run_follow *follow = ctx;
    struct err failed = follow->failed;
    follow->options.on_end(failed.code == ERR_NONE ? NULL : &failed, follow->options.ctx);
}

static void follow_finish(struct run_follow *follow) {
    loop_defer(follow->options.loop, &follow->over);
}

static bool follow_may_help(enum err_code code) {
    return code == ERR_UNAVAILABLE || code == ERR_DEADLINE_EXCEEDED || code == ERR_INTERNAL;
}

/* The stream ended without the run's last event. why: NULL for a clean end, as when the daemon
 * stops, or the run waits for a human. */
static void follow_rest(struct run_follow *follow, const struct err *why) {
    unsigned tries = ++follow->tries;
    bool too_often = follow->options.tries && tries >= follow->options.tries;
    if (why && (too_often || !follow_may_help(why->code))) {
        follow->failed = *why;
        follow_finish(follow);
        return;
    }
    if (why && follow->options.on_broken) follow->options.on_broken(why, follow->options.ctx);
    uint64_t rest_ms = tries > 6 ? REST_MOST_MS : (uint64_t)REST_FIRST_MS << (tries - 1);
    timer_start(&follow->again, rest_ms < REST_MOST_MS ? rest_ms : REST_MOST_MS);
}

/* --- what comes --------------------------------------------------------------------------- */

static bool is_last(struct str type) {
    return str_equal(type, STR("done")) || str_equal(type, STR("failed")) ||
           str_equal(type, STR("cancelled"));
}

static void keep_place(struct run_follow *follow, struct str id) {
    if (!id.len || id.len > PLACE_MAX_BYTES) return;
    buf_clear(&follow->place);
    buf_append(&follow->place, id);
}

/* `reset` has no event: its id is where the journal goes on. */
static void on_sse_event(const struct sse_event *event, void *ctx) {
    struct run_follow *follow = ctx;
    if (follow->stopped) return;
    follow->tries = 0;
    keep_place(follow, event->id);
    if (str_equal(event->type, STR("reset"))) return;
    follow->ended |= is_last(event->type);
    follow->options.on_event(event->data, follow->options.ctx);
}

static void follow_head(const struct http_head *head, void *ctx) {
    struct run_follow *follow = ctx;
    follow->status = head->status;
}

static void follow_body(struct lent lent, void *ctx) {
    struct run_follow *follow = ctx;
    struct str bytes = lent_read(lent);
    if (follow->status != 200) {
        buf_append(&follow->refusal, bytes);
    } else if (!sse_feed(follow->sse, bytes, &follow->failed)) {
        http_cancel(follow->call);
        follow->call = NULL;
        follow_finish(follow);
    } else if (follow->stopped) {
        http_cancel(follow->call);
        follow->call = NULL;
    }
}

static void follow_ended(const struct err *failed, enum http_stage stage, void *ctx) {
    struct run_follow *follow = ctx;
    struct err why;
    (void)stage;
    follow->call = NULL;
    if (follow->stopped) return; /* follow_finish() was called */
    if (follow->ended || follow->status == 204) {
        follow_finish(follow);
    } else if (failed) {
        why = *failed;
        err_add(&why, "read the run's events");
        follow_rest(follow, &why);
    } else if (follow->status != 200) {
        (void)daemon_refused(follow->status, buf_str(&follow->refusal), &why);
        follow_rest(follow, &why);
    } else {
        follow_rest(follow, NULL);
    }
}

static const struct http_sink follow_sink = {follow_head, follow_body, follow_ended};

/* --- asking ------------------------------------------------------------------------------- */

static void follow_ask(void *ctx) {
    struct run_follow *follow = ctx;
    const struct run_follow_options *options = &follow->options;
    struct http_header headers[3];
    size_t count = daemon_target_headers(options->target, STR_EMPTY, headers);
    if (follow->place.len)
        headers[count++] = (struct http_header){STR("last-event-id"), buf_str(&follow->place)};
    sse_free(follow->sse);
    follow->sse = sse_new(EVENT_MAX_BYTES, on_sse_event, follow);
    follow->status = 0;
    buf_clear(&follow->refusal);
    follow->call = http_start(options->pool, options->loop,
                              &(struct http_request){.method = STR("GET"),
                                                     .url = buf_str(&follow->url),
                                                     .headers = headers,
                                                     .header_count = count,
                                                     .connect_ms = 5000,
                                                     .stall_ms = SILENCE_MS},
                              &follow_sink, follow);
}

struct run_follow *run_follow_start(const struct run_follow_options *options) {
    struct run_follow *follow = MEM_NEW(struct run_follow);
    *follow = (struct run_follow){.options = *options, .failed = {.code = ERR_NONE}};
    buf_init(&follow->url, 32 * KIB);
    buf_init(&follow->place, PLACE_MAX_BYTES);
    buf_init(&follow->refusal, REFUSAL_MAX_BYTES);
    buf_append(&follow->url, buf_str(&options->target->base));
    buf_append(&follow->url, STR("/weir/v1/runs/"));
    buf_append_percent(&follow->url, options->run, "-._~");
    buf_append(&follow->url, STR("/events"));
    keep_place(follow, options->after);
    timer_init(&follow->again, options->loop, follow_ask, follow);
    task_init(&follow->over, follow_over, follow);
    follow_ask(follow);
    return follow;
}

void run_follow_stop(struct run_follow *follow) {
    if (follow->stopped || follow->ended) return;
    follow->stopped = true;
    timer_stop(&follow->again);
    follow_finish(follow);
}

struct str run_follow_place(const struct run_follow *follow) {
    return buf_str(&follow->place);
}

void run_follow_free(struct run_follow *follow) {
    if (!follow) return;
    timer_stop(&follow->again);
    task_cancel(&follow->over);
    if (follow->call) http_cancel(follow->call);
    sse_free(follow->sse);
    buf_done(&follow->url);
    buf_done(&follow->place);
    buf_done(&follow->refusal);
    free(follow);
}
