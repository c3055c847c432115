#include "postgres/postgres.h"

#include "base/clock.h"
#include "base/mem.h"
#include "loop/job.h"
#include "postgres/login.h"
#include "postgres/pipeline.h"
#include "postgres/sqlstate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define POSTGRES_MAGIC 0x70677071u
#define WAIT_MS 1500    /* how long a request may wait for a connection */
#define TICK_MS 100     /* how often deadlines are looked at, while there are requests */
#define GRACE_MS 500    /* beyond a deadline, for the server to notice it first */
#define PAUSE_MIN_MS 50 /* between two attempts to connect; doubled each time */
#define PAUSE_MAX_MS 2000
#define AGAIN_MS 10  /* before a request that met others is sent again */
#define SENT_MAX 512 /* requests on the wire at once */

struct postgres {
    unsigned magic;
    enum postgres_state state;
    struct postgres_options options;
    struct login login;
    struct job job;
    struct pipeline *pipeline;
    struct list waiting;
    struct list failing; /* refused, and not yet reported */
    size_t count;        /* requests that are not done */
    size_t sent_count;
    struct timer tick, again;
    struct timer pause; /* before the next attempt to connect */
    struct task fail;
    unsigned attempts; /* that failed, one after the other */
    bool draining;     /* the connection is of no use: send nothing more on it */
    struct err why;    /* why it is not ready */
    unsigned holds;    /* the pipeline and the job, when closed */
    struct mail mail;  /* about being closed */
    task_fn *closed;
    void *closed_ctx;
    uint64_t random;
};

/* --- states ------------------------------------------------------------------------------------------ */

const struct state postgres_states[POSTGRES_STATE_COUNT] = {
    /* clang-format off */
    [POSTGRES_CONNECTING] = {"connecting", TO(POSTGRES_READY) | TO(POSTGRES_PAUSED) |
                                           TO(POSTGRES_CLOSED)},
    [POSTGRES_READY]      = {"ready",      TO(POSTGRES_PAUSED) | TO(POSTGRES_CLOSED)},
    [POSTGRES_PAUSED]     = {"paused",     TO(POSTGRES_CONNECTING) |
                                           TO(POSTGRES_CLOSED)},
    [POSTGRES_CLOSED]     = {"closed",     0},
    /* clang-format on */
};

const struct state postgres_request_states[POSTGRES_REQUEST_STATE_COUNT] = {
    /* clang-format off */
    [POSTGRES_IDLE]    = {"idle",    TO(POSTGRES_WAITING) | TO(POSTGRES_FAILING)},
    [POSTGRES_WAITING] = {"waiting", TO(POSTGRES_SENT) | TO(POSTGRES_FAILING)},
    [POSTGRES_SENT]    = {"sent",    TO(POSTGRES_WAITING) | TO(POSTGRES_FAILING) |
                                 TO(POSTGRES_IDLE)},
    [POSTGRES_FAILING] = {"failing", TO(POSTGRES_IDLE)},
    /* clang-format on */
};

static void postgres_move(struct postgres *postgres, enum postgres_state next) {
    assert(states_allow(postgres_states, postgres->state, next));
    postgres->state = next;
}

static void request_move(struct postgres_request *request, enum postgres_request_state next) {
    assert(states_allow(postgres_request_states, request->state, next));
    request->state = next;
}

/* --- ending requests ----------------------------------------------------------------------------------- */

/* on_done may begin the request again, or free it. */
static void postgres_finish(struct postgres *postgres, struct postgres_request *request,
                            const struct err *failed) {
    void *results[POSTGRES_STEPS_MAX];
    size_t count = request->step_count, bytes = request->result_bytes;
    struct err why = {0};
    if (failed) why = *failed;
    memcpy(results, request->results, count * sizeof(results[0]));
    list_remove(&request->link);
    postgres->count--;
    request_move(request, POSTGRES_IDLE);
    request->on_done(request, failed ? &why : NULL, request->ctx);
    for (size_t i = 0; i < count; i++) {
        if (results[i]) libpq_loaded()->PQclear(results[i]);
    }
    mem_uncount(bytes);
}

static void drop_results(struct postgres_request *request) {
    for (size_t i = 0; i < request->step_count; i++) {
        if (request->results[i]) libpq_loaded()->PQclear(request->results[i]);
        request->results[i] = NULL;
    }
    mem_uncount(request->result_bytes);
    request->result_bytes = 0;
    request->aborted = false;
    request->sqlstate[0] = '\0';
}

static void fail_refused(void *ctx) {
    struct postgres *postgres = ctx;
    struct list *link;
    while ((link = list_pop(&postgres->failing))) {
        struct postgres_request *request = CONTAINER_OF(link, struct postgres_request, link);
        postgres_finish(postgres, request, &request->failed);
    }
}

/* --- sending ------------------------------------------------------------------------------------------- */

static void send_waiting(struct postgres *postgres) {
    while (postgres->state == POSTGRES_READY && !postgres->draining &&
           postgres->sent_count < SENT_MAX) {
        struct list *link = list_pop(&postgres->waiting);
        if (!link) return;
        struct postgres_request *request = CONTAINER_OF(link, struct postgres_request, link);
        request_move(request, POSTGRES_SENT);
        postgres->sent_count++;
        pipeline_send(postgres->pipeline, request);
    }
}

static void send_again(void *ctx) {
    send_waiting(ctx);
}

/* Its on_done follows with fail_refused(). */
static void postgres_refuse(struct postgres *postgres, struct postgres_request *request,
                            enum err_code code, const char *text) {
    list_remove(&request->link);
    err_set(&request->failed, code, "%s", text);
    request_move(request, POSTGRES_FAILING);
    list_append(&postgres->failing, &request->link);
}

static void postgres_wait(struct postgres *postgres, struct postgres_request *request) {
    request_move(request, POSTGRES_WAITING);
    list_append(&postgres->waiting, &request->link);
    if (!timer_waits(&postgres->tick)) timer_start(&postgres->tick, TICK_MS);
}

void postgres_ask(struct postgres *postgres, struct postgres_request *request) {
    assert(postgres->magic == POSTGRES_MAGIC && request->step_count > 0);
    assert(request->step_count <= POSTGRES_STEPS_MAX && request->state == POSTGRES_IDLE);
    uint64_t timeout_ms =
        request->timeout_ms ? request->timeout_ms : postgres->options.timeout_ms;
    assert(postgres->state != POSTGRES_CLOSED);
    request->deadline_ms = loop_now_ms(postgres->options.loop) + timeout_ms;
    memset(request->results, 0, sizeof(request->results));
    request->result_bytes = 0;
    request->aborted = request->met_others = false;
    request->sqlstate[0] = '\0';
    list_init(&request->link);
    if (postgres->count++ < postgres->options.waiting_max) {
        postgres_wait(postgres, request);
        send_waiting(postgres);
        return;
    }
    postgres_refuse(postgres, request, ERR_UNAVAILABLE,
                    "PostgreSQL: too many requests wait for it; try again later");
    loop_defer(postgres->options.loop, &postgres->fail);
}

/* --- time ------------------------------------------------------------------------------------------------ */

static uint64_t jittered(struct postgres *postgres, uint64_t ms) {
    postgres->random = postgres->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return ms / 2 + (postgres->random >> 33) % (ms + 1);
}

/* A request waits for a connection no longer than WAIT_MS; for its turn, to its deadline. */
static bool waited_too_long(const struct postgres *postgres,
                            const struct postgres_request *request, uint64_t now_ms) {
    uint64_t timeout_ms =
        request->timeout_ms ? request->timeout_ms : postgres->options.timeout_ms;
    uint64_t asked_ms = request->deadline_ms - timeout_ms;
    if (now_ms >= request->deadline_ms) return true;
    return postgres->state != POSTGRES_READY && now_ms >= asked_ms + WAIT_MS;
}

static void fail_waiting(struct postgres *postgres, uint64_t now_ms) {
    LIST_EACH(&postgres->waiting, link) {
        struct postgres_request *request = CONTAINER_OF(link, struct postgres_request, link);
        if (!waited_too_long(postgres, request, now_ms)) continue;
        if (request->met_others)
            postgres_refuse(postgres, request, ERR_ABORTED,
                            "PostgreSQL: others came between again and again; try again later");
        else
            postgres_refuse(postgres, request, ERR_UNAVAILABLE,
                            postgres->why.code != ERR_NONE
                                ? postgres->why.text
                                : "PostgreSQL: it did not answer in time");
    }
    fail_refused(postgres);
}

static void lose(struct postgres *postgres, const struct err *why, bool untouched);

static void end_hung(struct postgres *postgres, uint64_t now_ms) {
    struct err why;
    if (postgres->state != POSTGRES_READY) return;
    LIST_EACH(pipeline_sent(postgres->pipeline), link) {
        struct postgres_request *request = CONTAINER_OF(link, struct postgres_request, link);
        if (now_ms < request->deadline_ms + GRACE_MS) continue;
        err_set(&why, ERR_UNAVAILABLE, "PostgreSQL: it did not answer in time");
        lose(postgres, &why, false);
        return;
    }
}

static void on_tick(void *ctx) {
    struct postgres *postgres = ctx;
    uint64_t now_ms = loop_now_ms(postgres->options.loop);
    end_hung(postgres, now_ms);
    fail_waiting(postgres, now_ms);
    if (postgres->state == POSTGRES_CLOSED || postgres->count == 0) return;
    timer_start(&postgres->tick, TICK_MS);
}

/* --- connecting ------------------------------------------------------------------------------------------ */

static void answered(struct postgres_request *request, void *ctx);

static void broken(const struct err *why, bool untouched, void *ctx) {
    lose(ctx, why, untouched);
}

static void report_state(struct postgres *postgres, const struct err *failed) {
    if (postgres->options.on_state) postgres->options.on_state(failed, postgres->options.ctx);
}

static void try_again_later(struct postgres *postgres) {
    uint64_t pause_ms = PAUSE_MIN_MS;
    for (unsigned i = 0; i < postgres->attempts && pause_ms < PAUSE_MAX_MS; i++) pause_ms *= 2;
    if (pause_ms > PAUSE_MAX_MS) pause_ms = PAUSE_MAX_MS;
    postgres->attempts++;
    postgres_move(postgres, POSTGRES_PAUSED);
    timer_start(&postgres->pause, jittered(postgres, pause_ms));
    report_state(postgres, &postgres->why);
}

static void postgres_release(void *ctx) {
    struct postgres *postgres = ctx;
    if (--postgres->holds > 0) return;
    task_fn *closed = postgres->closed;
    void *closed_ctx = postgres->closed_ctx;
    login_done(&postgres->login);
    postgres->magic = 0;
    free(postgres);
    closed(closed_ctx);
}

static void on_logged_in(void *ctx) {
    struct postgres *postgres = CONTAINER_OF(ctx, struct postgres, login);
    if (postgres->state == POSTGRES_CLOSED) {
        postgres_release(postgres);
        return;
    }
    if (!postgres->login.conn) {
        postgres->why = postgres->login.failed;
        try_again_later(postgres);
        return;
    }
    struct pipeline_owner owner = {.answered = answered, .broken = broken, .ctx = postgres};
    postgres->pipeline = pipeline_new(postgres->options.loop, postgres->login.conn, &owner);
    postgres->login.conn = NULL;
    postgres->attempts = 0;
    postgres->draining = false;
    postgres->why.code = ERR_NONE;
    postgres_move(postgres, POSTGRES_READY);
    report_state(postgres, NULL);
    send_waiting(postgres);
}

/* The worker gets the login, and touches nothing else. */
static void postgres_log_in(struct postgres *postgres) {
    job_start(&postgres->job, postgres->options.loop, login_work, on_logged_in,
              &postgres->login);
}

static void login_again(void *ctx) {
    struct postgres *postgres = ctx;
    postgres_move(postgres, POSTGRES_CONNECTING);
    postgres_log_in(postgres);
}

/* --- answers, and a lost connection --------------------------------------------------------------------- */

static bool is_final(const struct postgres_request *request) {
    return request->aborted &&
           sqlstate_means(str_from(request->sqlstate)).way == SQLSTATE_FINAL;
}

/* The server refused it for good. */
static void refuse_final(struct postgres *postgres, struct postgres_request *request) {
    struct err e = request->failed;
    struct sqlstate means = sqlstate_means(str_from(request->sqlstate));
    if (means.fix) {
        size_t len = strlen(e.text);
        snprintf(e.text + len, sizeof(e.text) - len, "; %s", means.fix);
    }
    postgres_refuse(postgres, request, means.code, e.text);
}

/* Its transaction was undone through no fault of its own. */
static void postgres_repeat(struct postgres *postgres, struct postgres_request *request) {
    request->met_others = true;
    drop_results(request);
    postgres_wait(postgres, request);
}

static void settle_lost(struct postgres *postgres, struct postgres_request *request,
                        bool untouched) {
    char text[ERR_TEXT_BYTES + 64];
    if (is_final(request)) {
        refuse_final(postgres, request);
    } else if (request->aborted || untouched || request->repeatable) {
        drop_results(request);
        postgres_wait(postgres, request);
    } else {
        snprintf(text, sizeof(text), "%s; whether the request took effect is not known",
                 postgres->why.text);
        postgres_refuse(postgres, request, ERR_OUTCOME_UNKNOWN, text);
    }
}

/* Requests that may be sent again keep their order, before those that were never sent. */
static void lose(struct postgres *postgres, const struct err *why, bool untouched) {
    struct list sent, waiting;
    struct list *link;
    if (postgres->state != POSTGRES_READY) return;
    postgres->why = *why;
    list_init(&sent);
    list_init(&waiting);
    list_move(pipeline_sent(postgres->pipeline), &sent);
    list_move(&postgres->waiting, &waiting);
    postgres->sent_count = 0;
    pipeline_close(postgres->pipeline, NULL, NULL);
    postgres->pipeline = NULL;
    while ((link = list_pop(&sent)))
        settle_lost(postgres, CONTAINER_OF(link, struct postgres_request, link), untouched);
    list_move(&waiting, &postgres->waiting);
    try_again_later(postgres);
    fail_refused(postgres);
}

static void take_undone(struct postgres *postgres, struct postgres_request *request) {
    enum sqlstate_way way = sqlstate_means(str_from(request->sqlstate)).way;
    if (way == SQLSTATE_FINAL) {
        refuse_final(postgres, request);
        fail_refused(postgres);
        return;
    }
    if (way == SQLSTATE_RECONNECT && !postgres->draining) {
        postgres->why = request->failed;
        postgres->why.code = ERR_UNAVAILABLE;
        postgres->draining = true;
    }
    postgres_repeat(postgres, request);
    timer_start(&postgres->again, jittered(postgres, AGAIN_MS));
}

static void answered(struct postgres_request *request, void *ctx) {
    struct postgres *postgres = ctx;
    postgres->sent_count--;
    if (request->aborted)
        take_undone(postgres, request);
    else
        postgres_finish(postgres, request, NULL);
    if (postgres->state != POSTGRES_READY) return;
    struct err why = postgres->why;
    if (postgres->draining && postgres->sent_count == 0) lose(postgres, &why, false);
    send_waiting(postgres);
}

/* --- life -------------------------------------------------------------------------------------------------- */

struct postgres *postgres_open(const struct postgres_options *options) {
    assert(loop_uv(options->loop) && str_is_plain(options->schema, "_"));
    struct postgres *postgres = MEM_NEW(struct postgres);
    postgres->magic = POSTGRES_MAGIC;
    postgres->state = POSTGRES_CONNECTING;
    postgres->options = *options;
    if (!options->timeout_ms) postgres->options.timeout_ms = POSTGRES_TIMEOUT_MS;
    if (!options->waiting_max) postgres->options.waiting_max = POSTGRES_WAITING_MAX;
    postgres->login = (struct login){.url = str_dup(options->url),
                                     .schema = str_dup(options->schema),
                                     .timeout_ms = postgres->options.timeout_ms};
    postgres->random = clock_mono_us() ^ (uintptr_t)postgres;
    list_init(&postgres->waiting);
    list_init(&postgres->failing);
    timer_init(&postgres->tick, options->loop, on_tick, postgres);
    timer_init(&postgres->again, options->loop, send_again, postgres);
    timer_init(&postgres->pause, options->loop, login_again, postgres);
    task_init(&postgres->fail, fail_refused, postgres);
    postgres_log_in(postgres);
    return postgres;
}

enum postgres_state postgres_state(const struct postgres *postgres) {
    assert(postgres->magic == POSTGRES_MAGIC);
    return postgres->state;
}

static void refuse_all(struct postgres *postgres, struct list *requests, bool sent) {
    LIST_EACH(requests, link) {
        struct postgres_request *request = CONTAINER_OF(link, struct postgres_request, link);
        bool doubt = sent && !request->repeatable && !request->aborted;
        postgres_refuse(postgres, request, doubt ? ERR_OUTCOME_UNKNOWN : ERR_UNAVAILABLE,
                        doubt ? "PostgreSQL: the connection was closed before the answer came"
                              : "PostgreSQL: the connection is closed");
    }
}

static void postgres_closing(struct postgres *postgres) {
    postgres->holds = 1;
    if (postgres->pipeline) {
        postgres->holds++;
        refuse_all(postgres, pipeline_sent(postgres->pipeline), true);
        pipeline_close(postgres->pipeline, postgres_release, postgres);
        postgres->pipeline = NULL;
    }
    if (!job_cancel(&postgres->job)) postgres->holds++;
}

void postgres_close(struct postgres *postgres, task_fn *closed, void *ctx) {
    assert(postgres->magic == POSTGRES_MAGIC);
    postgres_move(postgres, POSTGRES_CLOSED);
    postgres->closed = closed;
    postgres->closed_ctx = ctx;
    timer_stop(&postgres->tick);
    timer_stop(&postgres->again);
    timer_stop(&postgres->pause);
    task_cancel(&postgres->fail);
    postgres_closing(postgres);
    refuse_all(postgres, &postgres->waiting, false);
    fail_refused(postgres);
    loop_post(postgres->options.loop, &postgres->mail, postgres_release, postgres);
}
