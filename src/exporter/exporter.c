#include "exporter/exporter.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "client/http.h"
#include "exporter/answer.h"
#include "exporter/batch.h"
#include "loop/loop.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define EVERY_MS 1000
#define SEND_MS 10000
#define PAUSE_MS UINT64_C(1000) /* before the second try; then twice as long each time */
#define PAUSE_MAX_MS 16000
#define STOP_PAUSE_MS UINT64_C(100) /* the same at the stop */
#define RETRY_AFTER_MAX_MS 300000
#define ANSWER_MAX_BYTES (64 * KIB)
#define MESSAGE_MAX_BYTES 300 /* of a collector, in the log */

/* clang-format off */
const struct state exporter_states[EXPORTER_STATE_COUNT] = {
    [EXPORTER_IDLE]    = {"idle",    TO(EXPORTER_SENDING)},
    [EXPORTER_SENDING] = {"sending", TO(EXPORTER_IDLE) | TO(EXPORTER_WAITING)},
    [EXPORTER_WAITING] = {"waiting", TO(EXPORTER_SENDING)},
};
/* clang-format on */

struct exporter {
    struct exporter_options options;
    struct loop *loop;
    struct http_pool *pool;
    pthread_t thread;
    struct text url;
    struct http_header headers[1 + EXPORTER_HEADERS_MAX];
    size_t header_count;
    enum exporter_state state;
    atomic_bool woken; /* `wake` is on its way */
    struct mail wake, stop;
    struct timer due;   /* to send a chunk that is not full */
    struct timer again; /* while waiting */
    struct timer end;
    struct http_call *call;
    struct spans_chunk *chunk; /* NULL: none */
    size_t sent;               /* bytes of it that are over, taken or lost */
    struct spans_part part;    /* of it, which is out or waits */
    size_t part_max_bytes;
    struct batch_resource resource;
    struct str body;        /* of the part, in the chunk; the call borrows it */
    unsigned tries, status; /* of the part */
    int64_t retry_after_ms; /* -1: the collector did not say */
    struct buf answer;
    uint64_t random;
    bool flushing; /* what is not full is sent, too, until there is nothing more */
    bool stopping;
};

/* The only function that writes exporter->state. */
static void exporter_move(struct exporter *exporter, enum exporter_state next) {
    assert(states_allow(exporter_states, exporter->state, next));
    exporter->state = next;
}

/* --- chunks and their parts ------------------------------------------------------------------- */

static void drop_chunk(struct exporter *exporter) {
    spans_chunk_free(exporter->chunk);
    exporter->chunk = NULL;
    exporter->sent = 0;
}

static bool take_chunk(struct exporter *exporter) {
    uint64_t dropped;
    exporter->chunk = spans_take(exporter->flushing ? SPANS_ANY : SPANS_FULL, &dropped);
    if (dropped)
        log_often(LOG_WARNING, "%llu spans were dropped: the collector is too slow",
                  (unsigned long long)dropped);
    return exporter->chunk != NULL;
}

/* The next part of the chunk, or of the next chunk. False: nothing is to be sent now. */
static bool take_part(struct exporter *exporter) {
    exporter->tries = 0;
    while (exporter->chunk || take_chunk(exporter)) {
        exporter->part =
            spans_chunk_part(exporter->chunk, exporter->sent, exporter->part_max_bytes);
        if (exporter->part.count) return true;
        drop_chunk(exporter);
    }
    return false;
}

/* --- sending ---------------------------------------------------------------------------------- */

static void exporter_next(struct exporter *exporter);
static void on_end(const struct err *failed, enum http_stage stage, void *ctx);

static void on_head(const struct http_head *head, void *ctx) {
    struct exporter *exporter = ctx;
    exporter->status = head->status;
    exporter->retry_after_ms = head->retry_after_ms;
}

static void on_body(struct lent bytes, void *ctx) {
    struct exporter *exporter = ctx;
    buf_append(&exporter->answer, lent_read(bytes));
}

static const struct http_sink sink = {on_head, on_body, on_end};

static void send_part(struct exporter *exporter) {
    const struct http_request request = {.method = STR("POST"),
                                         .url = text_str(exporter->url),
                                         .headers = exporter->headers,
                                         .header_count = exporter->header_count,
                                         .body = exporter->body,
                                         .total_ms = SEND_MS,
                                         .body_max_bytes = ANSWER_MAX_BYTES};
    exporter_move(exporter, EXPORTER_SENDING);
    exporter->status = 0;
    exporter->retry_after_ms = -1;
    exporter->tries++;
    buf_clear(&exporter->answer);
    exporter->call = http_start(exporter->pool, exporter->loop, &request, &sink, exporter);
}

static void on_again(void *ctx) {
    send_part(ctx);
}

static void part_over(struct exporter *exporter) {
    exporter->sent += exporter->part.len;
    exporter_next(exporter);
}

/* --- what became of it ------------------------------------------------------------------------ */

enum outcome { TAKEN, AGAIN, TOO_LARGE, LOST };

static enum outcome outcome_of(const struct exporter *exporter, const struct err *failed) {
    unsigned status = exporter->status;
    bool later = failed || status == 429 || status == 502 || status == 503 || status == 504;
    if (!failed && status / 100 == 2) return TAKEN;
    if (!failed && status == 413 && exporter->part.count > 1) return TOO_LARGE;
    return later && exporter->tries < EXPORTER_TRIES_MAX ? AGAIN : LOST;
}

static struct str log_text(struct str message) {
    return str_head(message, utf8_cut(message, MESSAGE_MAX_BYTES));
}

static void log_taken(const struct exporter *exporter) {
    struct arena *arena = arena_new(ANSWER_MAX_BYTES);
    struct exporter_answer answer = exporter_answer_taken(buf_str(&exporter->answer), arena);
    struct str message = log_text(answer.message);
    if (answer.rejected > 0 || message.len)
        log_often(LOG_WARNING, "a collector refused %lld of %zu spans: " STR_FMT,
                  (long long)answer.rejected, exporter->part.count, STR_ARG(message));
    arena_free(arena);
}

static void log_refused(const struct exporter *exporter, const struct err *failed, bool lost) {
    struct arena *arena = arena_new(ANSWER_MAX_BYTES);
    struct exporter_answer answer = exporter_answer_refused(buf_str(&exporter->answer), arena);
    struct str message = log_text(failed ? err_text(failed) : answer.message);
    log_often(LOG_WARNING, "a collector did not take %zu spans%s: status %u%s" STR_FMT,
              exporter->part.count, lost ? ", which are lost" : "", exporter->status,
              message.len ? ", " : "", STR_ARG(message));
    arena_free(arena);
}

/* What the collector asks for, or a pause that doubles; with some jitter, so that the programs of
 * a fleet do not come back at once. A stop has no time for either. */
static uint64_t pause_ms(struct exporter *exporter) {
    uint64_t pause = (exporter->stopping ? STOP_PAUSE_MS : PAUSE_MS) << (exporter->tries - 1);
    if (pause > PAUSE_MAX_MS) pause = PAUSE_MAX_MS;
    exporter->random = exporter->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    pause = pause - pause / 4 + (exporter->random >> 33) % (pause / 2 + 1);
    if (exporter->stopping || exporter->retry_after_ms < (int64_t)pause) return pause;
    return exporter->retry_after_ms < RETRY_AFTER_MAX_MS ? (uint64_t)exporter->retry_after_ms
                                                         : RETRY_AFTER_MAX_MS;
}

static void wait_for_it(struct exporter *exporter) {
    uint64_t in_ms = pause_ms(exporter);
    exporter_move(exporter, EXPORTER_WAITING);
    log_debug("spans are sent again in %llu ms", (unsigned long long)in_ms);
    timer_start(&exporter->again, in_ms);
}

/* Its limit is that of all that follows. */
static void make_parts_smaller(struct exporter *exporter) {
    exporter->part_max_bytes = exporter->part.len / 2;
    exporter_next(exporter);
}

static void on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct exporter *exporter = ctx;
    (void)stage;
    exporter->call = NULL;
    enum outcome outcome = outcome_of(exporter, failed);
    if (outcome == TAKEN)
        log_taken(exporter);
    else
        log_refused(exporter, failed, outcome == LOST);
    switch (outcome) {
    case AGAIN: wait_for_it(exporter); break;
    case TOO_LARGE: make_parts_smaller(exporter); break;
    case LOST:
    case TAKEN: part_over(exporter); break;
    }
}

/* Send the next part. If there is none the exporter is idle, and at the stop it ends. */
static void exporter_next(struct exporter *exporter) {
    if (exporter->state != EXPORTER_IDLE) exporter_move(exporter, EXPORTER_IDLE);
    if (!take_part(exporter)) {
        exporter->flushing = false;
        if (exporter->stopping) loop_stop(exporter->loop);
        return;
    }
    exporter->body = batch_body(&exporter->part, &exporter->resource);
    send_part(exporter);
}

/* --- when ------------------------------------------------------------------------------------- */

static void on_due(void *ctx) {
    struct exporter *exporter = ctx;
    exporter->flushing = true;
    if (exporter->state == EXPORTER_IDLE) exporter_next(exporter);
}

/* A chunk was begun, so the one before is full. */
static void on_wake(void *ctx) {
    struct exporter *exporter = ctx;
    atomic_store(&exporter->woken, false);
    if (exporter->stopping) return;
    if (!timer_waits(&exporter->due)) timer_start(&exporter->due, EVERY_MS);
    if (exporter->state == EXPORTER_IDLE) exporter_next(exporter);
}

/* On a thread that reports spans. */
static void on_chunk(void *ctx) {
    struct exporter *exporter = ctx;
    if (!atomic_exchange(&exporter->woken, true))
        loop_post(exporter->loop, &exporter->wake, on_wake, exporter);
}

/* --- the stop --------------------------------------------------------------------------------- */

static void on_late(void *ctx) {
    struct exporter *exporter = ctx;
    log_warning("spans are lost: the collector did not take them within %d ms of the stop",
                EXPORTER_STOP_MS);
    loop_stop(exporter->loop);
}

static void on_stop(void *ctx) {
    struct exporter *exporter = ctx;
    exporter->stopping = exporter->flushing = true;
    timer_stop(&exporter->due);
    timer_start(&exporter->end, EXPORTER_STOP_MS);
    if (exporter->state == EXPORTER_WAITING) {
        timer_stop(&exporter->again);
        send_part(exporter);
    } else if (exporter->state == EXPORTER_IDLE) {
        exporter_next(exporter);
    }
}

/* --- the thread ------------------------------------------------------------------------------- */

static void *run_thread(void *ctx) {
    struct exporter *exporter = ctx;
    struct err e;
    if (!http_pool_need(exporter->pool, &e)) log_warning("no spans can be sent: %s", e.text);
    loop_run(exporter->loop);
    timer_stop(&exporter->due);
    timer_stop(&exporter->again);
    timer_stop(&exporter->end);
    if (exporter->call) http_cancel(exporter->call);
    http_pool_leave(exporter->pool, exporter->loop);
    return NULL;
}

static struct text url_of(const struct exporter_options *options) {
    struct buf url;
    struct str base = options->endpoint;
    while (str_ends(base, STR("/"))) base = str_head(base, base.len - 1);
    buf_init(&url, base.len + 64);
    buf_append(&url, base);
    if (!options->whole) buf_append(&url, STR("/v1/traces"));
    struct text text = text_copy(buf_str(&url));
    buf_done(&url);
    return text;
}

static void set_headers(struct exporter *exporter) {
    const struct exporter_headers *more = exporter->options.headers;
    exporter->headers[exporter->header_count++] =
        (struct http_header){STR("Content-Type"), STR("application/x-protobuf")};
    for (size_t i = 0; i < more->count; i++)
        exporter->headers[exporter->header_count++] =
            (struct http_header){text_str(more->names[i]), text_str(more->values[i])};
}

static void exporter_free(struct exporter *exporter) {
    drop_chunk(exporter);
    spans_stop();
    loop_free(exporter->loop);
    http_pool_free(exporter->pool);
    text_done(&exporter->url);
    buf_done(&exporter->answer);
    free(exporter);
}

/* Signals belong to the process's first thread. */
static bool start_thread(struct exporter *exporter, struct err *e) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&exporter->thread, NULL, run_thread, exporter);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed || err_set(e, ERR_UNAVAILABLE, "cannot start a thread to send spans: %s",
                              strerrordesc_np(failed));
}

bool exporter_start(const struct exporter_options *options, struct exporter **ret,
                    struct err *e) {
    struct exporter *exporter = MEM_NEW(struct exporter);
    exporter->options = *options;
    exporter->loop = loop_new();
    exporter->pool = http_pool_new();
    http_pool_trust(exporter->pool, options->trust);
    http_pool_add(exporter->pool, exporter->loop);
    exporter->url = url_of(options);
    exporter->part_max_bytes = SPANS_CHUNK_BYTES;
    exporter->random = clock_mono_us();
    set_headers(exporter);
    batch_resource_init(&exporter->resource, options->service, options->version);
    buf_init(&exporter->answer, ANSWER_MAX_BYTES);
    timer_init(&exporter->due, exporter->loop, on_due, exporter);
    timer_init(&exporter->again, exporter->loop, on_again, exporter);
    timer_init(&exporter->end, exporter->loop, on_late, exporter);
    spans_start(on_chunk, exporter);
    if (start_thread(exporter, e)) {
        *ret = exporter;
        return true;
    }
    http_pool_leave(exporter->pool, exporter->loop);
    exporter_free(exporter);
    return false;
}

void exporter_stop(struct exporter *exporter) {
    if (!exporter) return;
    loop_post(exporter->loop, &exporter->stop, on_stop, exporter);
    pthread_join(exporter->thread, NULL);
    exporter_free(exporter);
}
