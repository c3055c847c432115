#include "postgres/pipeline.h"

#include "base/mem.h"
#include "postgres/login.h"
#include "postgres/statements.h"

#include <assert.h>
#include <stdlib.h>
#include <uv.h>

struct pipeline {
    const struct libpq *pq;
    PGconn *conn;
    struct loop *loop;
    struct pipeline_owner owner;
    uv_poll_t poll;
    int events;
    struct task flush;
    struct statements statements;
    struct list sent;
    /* Where the answer to the first of `sent` is. */
    size_t step;
    bool preparing;  /* at the preparation of the step */
    bool in_command; /* a result came, and not its end */
    bool untouched;
    bool lost, closed;
    task_fn *on_closed;
    void *closed_ctx;
};

static void pipeline_on_ready(uv_poll_t *poll, int status, int events);

static void pipeline_watch(struct pipeline *pipeline, int events) {
    if (pipeline->closed || events == pipeline->events) return;
    pipeline->events = events;
    uv_poll_start(&pipeline->poll, events, pipeline_on_ready);
}

/* --- sending -------------------------------------------------------------------------------------- */

/* The broken connection is reported from the loop: `flush` is deferred. */
static void pipeline_lost(struct pipeline *pipeline) {
    pipeline->lost = true;
    loop_defer(pipeline->loop, &pipeline->flush);
}

static void pipeline_break(struct pipeline *pipeline) {
    char said[320];
    struct err why;
    login_said(pipeline->pq->PQerrorMessage(pipeline->conn), said, sizeof(said));
    err_set(&why, ERR_UNAVAILABLE, "PostgreSQL: %s",
            said[0] ? said : "the connection was lost");
    pipeline->owner.broken(&why, pipeline->untouched, pipeline->owner.ctx);
}

static void flush_now(void *ctx) {
    struct pipeline *pipeline = ctx;
    int left = pipeline->lost ? -1 : pipeline->pq->PQflush(pipeline->conn);
    if (left < 0) {
        pipeline_break(pipeline);
        return;
    }
    pipeline_watch(pipeline, left ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

static bool send_step(struct pipeline *pipeline, struct postgres_request *request,
                      size_t place) {
    const struct postgres_step *step = &request->steps[place];
    struct encoded encoded;
    statements_encode(&pipeline->statements, step, &encoded);
    request->numbers[place] = encoded.number;
    if (encoded.is_new) {
        request->prepares |= UINT64_C(1) << place;
        if (!pipeline->pq->PQsendPrepare(pipeline->conn, encoded.name, step->sql,
                                         (int)step->value_count, encoded.types))
            return false;
    }
    return pipeline->pq->PQsendQueryPrepared(pipeline->conn, encoded.name,
                                             (int)step->value_count, encoded.values,
                                             encoded.lengths, encoded.formats, ENCODE_BINARY);
}

static bool prepares(const struct postgres_request *request, size_t step) {
    return step < request->step_count && (request->prepares >> step & 1);
}

/* Begin to await the answer to the first request. */
static void await_first(struct pipeline *pipeline) {
    if (list_empty(&pipeline->sent)) return;
    const struct postgres_request *first =
        CONTAINER_OF(pipeline->sent.next, struct postgres_request, link);
    pipeline->step = 0;
    pipeline->preparing = prepares(first, 0);
}

void pipeline_send(struct pipeline *pipeline, struct postgres_request *request) {
    bool ok = !pipeline->lost, first = list_empty(&pipeline->sent);
    request->prepares = 0;
    for (size_t i = 0; ok && i < request->step_count; i++) ok = send_step(pipeline, request, i);
    ok = ok && pipeline->pq->PQpipelineSync(pipeline->conn);
    list_append(&pipeline->sent, &request->link);
    if (first) await_first(pipeline);
    if (!ok) pipeline_lost(pipeline);
    loop_defer(pipeline->loop, &pipeline->flush);
}

struct list *pipeline_sent(struct pipeline *pipeline) {
    return &pipeline->sent;
}

/* --- answers -------------------------------------------------------------------------------------- */

static const char *field(struct pipeline *pipeline, const PGresult *result, int code) {
    const char *text = pipeline->pq->PQresultErrorField(result, code);
    return text ? text : "";
}

/* The first error of a request is its error. One without a code comes from libpq: the
 * connection was lost, which is reported by itself. */
static void take_error(struct pipeline *pipeline, struct postgres_request *request,
                       const PGresult *result) {
    const char *code = field(pipeline, result, PG_DIAG_SQLSTATE);
    const char *severity = field(pipeline, result, PG_DIAG_SEVERITY_NONLOCALIZED);
    bool at_step = pipeline->step < request->step_count;
    if (code[0] && strcmp(severity, "FATAL") == 0) pipeline->untouched = at_step;
    if (!code[0] || request->aborted || (!at_step && strcmp(severity, "ERROR") != 0)) return;
    request->aborted = true;
    memcpy(request->sqlstate, code, sizeof(request->sqlstate) - 1);
    err_set(&request->failed, ERR_INTERNAL, "PostgreSQL: %s (%s)",
            field(pipeline, result, PG_DIAG_MESSAGE_PRIMARY), code);
}

static void take_rows(struct pipeline *pipeline, struct postgres_request *request,
                      PGresult *result) {
    size_t bytes = pipeline->pq->PQresultMemorySize(result);
    request->results[pipeline->step] = result;
    request->result_bytes += bytes;
    mem_count(bytes);
}

/* The end of a command's results. */
static void command_end(struct pipeline *pipeline, const struct postgres_request *request) {
    pipeline->in_command = false;
    if (pipeline->preparing) {
        pipeline->preparing = false;
        return;
    }
    pipeline->step++;
    pipeline->preparing = prepares(request, pipeline->step);
}

static void request_end(struct pipeline *pipeline, struct postgres_request *request) {
    list_remove(&request->link);
    await_first(pipeline);
    pipeline->owner.answered(request, pipeline->owner.ctx);
}

/* Returns whether `result` was kept. */
static bool pipeline_take_result(struct pipeline *pipeline, struct postgres_request *request,
                                 PGresult *result) {
    ExecStatusType status = pipeline->pq->PQresultStatus(result);
    pipeline->in_command = true;
    if (status == PGRES_FATAL_ERROR) take_error(pipeline, request, result);
    bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (pipeline->preparing && !ok)
        statements_forget(&pipeline->statements, request->numbers[pipeline->step]);
    if (pipeline->step >= request->step_count) {
        /* The commit itself failed, and libpq may have lost its place: begin again. */
        pipeline_lost(pipeline);
        return false;
    }
    if (!ok || pipeline->preparing || request->results[pipeline->step]) return false;
    take_rows(pipeline, request, result);
    return true;
}

/* One result, or the end of a command. False: there is no more now. */
static bool take_next(struct pipeline *pipeline) {
    if (pipeline->pq->PQisBusy(pipeline->conn)) return false;
    if (list_empty(&pipeline->sent)) return false;
    struct postgres_request *request =
        CONTAINER_OF(pipeline->sent.next, struct postgres_request, link);
    PGresult *result = pipeline->pq->PQgetResult(pipeline->conn);
    if (!result) {
        if (!pipeline->in_command) return false;
        command_end(pipeline, request);
        return true;
    }
    if (pipeline->pq->PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
        pipeline->pq->PQclear(result);
        request_end(pipeline, request);
        return true;
    }
    if (!pipeline_take_result(pipeline, request, result)) pipeline->pq->PQclear(result);
    return true;
}

static void pipeline_on_ready(uv_poll_t *poll, int status, int events) {
    struct pipeline *pipeline = poll->data;
    bool ok = status == 0;
    if (ok && (events & UV_READABLE)) ok = pipeline->pq->PQconsumeInput(pipeline->conn);
    while (!pipeline->closed && !pipeline->lost && take_next(pipeline)) continue;
    if (pipeline->closed) return;
    if (!ok || pipeline->pq->PQstatus(pipeline->conn) != CONNECTION_OK) pipeline_lost(pipeline);
    loop_defer(pipeline->loop, &pipeline->flush);
}

/* --- life ------------------------------------------------------------------------------------------ */

struct pipeline *pipeline_new(struct loop *loop, PGconn *conn,
                              const struct pipeline_owner *owner) {
    struct pipeline *pipeline = MEM_NEW(struct pipeline);
    pipeline->pq = libpq_loaded();
    pipeline->conn = conn;
    pipeline->loop = loop;
    pipeline->owner = *owner;
    pipeline->poll.data = pipeline;
    list_init(&pipeline->sent);
    task_init(&pipeline->flush, flush_now, pipeline);
    int failed = uv_poll_init(loop_uv(loop), &pipeline->poll, pipeline->pq->PQsocket(conn));
    assert(failed == 0); /* a fresh descriptor */
    (void)failed;
    pipeline_watch(pipeline, UV_READABLE);
    return pipeline;
}

static void on_poll_closed(uv_handle_t *handle) {
    struct pipeline *pipeline = handle->data;
    task_fn *closed = pipeline->on_closed;
    void *ctx = pipeline->closed_ctx;
    statements_done(&pipeline->statements);
    free(pipeline);
    if (closed) closed(ctx);
}

void pipeline_close(struct pipeline *pipeline, task_fn *closed, void *ctx) {
    assert(!pipeline->closed && list_empty(&pipeline->sent));
    pipeline->closed = true;
    pipeline->on_closed = closed;
    pipeline->closed_ctx = ctx;
    task_cancel(&pipeline->flush);
    /* Take the descriptor out of the loop before libpq closes it. */
    uv_close((uv_handle_t *)&pipeline->poll, on_poll_closed);
    pipeline->pq->PQfinish(pipeline->conn);
    pipeline->conn = NULL;
}
