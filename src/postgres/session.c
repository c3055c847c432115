#include "postgres/session.h"

#include "base/clock.h"
#include "base/mem.h"
#include "postgres/login.h"
#include "postgres/sqlstate.h"
#include "postgres/statements.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define GRACE_MS 500 /* beyond the deadline, for the server to notice it first */

struct postgres_session {
    const struct libpq *pq;
    PGconn *conn;
    uint64_t timeout_ms;
    bool broken;
    uint64_t asked;
    struct statements statements;
    char name[320];
};

bool postgres_session_open(const struct postgres_session_options *options,
                           struct postgres_session **ret, struct err *e) {
    struct login login = {.url = str_dup(options->url),
                          .schema = str_dup(options->schema),
                          .timeout_ms = options->timeout_ms,
                          .blocks = true};
    login_work(&login);
    if (login.conn) {
        struct postgres_session *session = MEM_NEW(struct postgres_session);
        session->pq = libpq_loaded();
        session->conn = login.conn;
        session->timeout_ms = options->timeout_ms;
        snprintf(session->name, sizeof(session->name), "%s:%s/%s",
                 session->pq->PQhost(login.conn), session->pq->PQport(login.conn),
                 session->pq->PQdb(login.conn));
        *ret = session;
        login.conn = NULL;
        login_done(&login);
        return true;
    }
    *e = login.failed;
    login_done(&login);
    return false;
}

void postgres_session_close(struct postgres_session *session) {
    if (!session) return;
    session->pq->PQfinish(session->conn);
    statements_done(&session->statements);
    free(session);
}

bool postgres_session_broken(const struct postgres_session *session) {
    return session->broken;
}

bool postgres_session_lost(struct postgres_session *session) {
    struct pollfd poll_for = {.fd = session->pq->PQsocket(session->conn), .events = POLLIN};
    if (!session->broken && poll(&poll_for, 1, 0) > 0 &&
        !session->pq->PQconsumeInput(session->conn))
        session->broken = true;
    return session->broken;
}

bool postgres_session_in_transaction(const struct postgres_session *session) {
    return session->pq->PQtransactionStatus(session->conn) != PQTRANS_IDLE;
}

struct str postgres_session_name(const struct postgres_session *session) {
    return str_from(session->name);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static bool session_break(struct postgres_session *session, const char *why, struct err *e) {
    char said[320];
    session->broken = true;
    login_said(session->pq->PQerrorMessage(session->conn), said, sizeof(said));
    return err_set(e, ERR_UNAVAILABLE, "PostgreSQL %s: %s; check the server and the way to it",
                   session->name, why ? why : said);
}

static bool wait_readable(struct postgres_session *session, uint64_t until_ms, struct err *e) {
    uint64_t now_ms = clock_mono_ms();
    if (now_ms >= until_ms) return session_break(session, "it did not answer in time", e);
    struct pollfd poll_for = {.fd = session->pq->PQsocket(session->conn), .events = POLLIN};
    int ready = poll(&poll_for, 1, (int)(until_ms - now_ms));
    if (ready < 0 && errno != EINTR) return session_break(session, "waiting failed", e);
    if (ready > 0 && !session->pq->PQconsumeInput(session->conn))
        return session_break(session, NULL, e);
    return true;
}

static const char *field(struct postgres_session *session, const PGresult *result, int code) {
    const char *text = session->pq->PQresultErrorField(result, code);
    return text ? text : "";
}

static bool server_refused(struct postgres_session *session, const PGresult *result,
                           struct err *e) {
    const char *code = field(session, result, PG_DIAG_SQLSTATE);
    struct sqlstate means = sqlstate_means(str_from(code));
    if (!code[0] || means.way == SQLSTATE_RECONNECT) session->broken = true;
    if (!code[0]) return session_break(session, NULL, e);
    return err_set(e, means.code, "PostgreSQL %s: %s (%s)%s%s", session->name,
                   field(session, result, PG_DIAG_MESSAGE_PRIMARY), code, means.fix ? "; " : "",
                   means.fix ? means.fix : "");
}

/* Wait for the end of what was sent. The last result is kept when all went well. */
static bool await_result(struct postgres_session *session, PGresult **ret, struct err *e) {
    const struct libpq *pq = session->pq;
    uint64_t until_ms = clock_mono_ms() + session->timeout_ms + GRACE_MS;
    PGresult *last = NULL;
    bool ok = true;
    for (;;) {
        while (ok && pq->PQisBusy(session->conn)) {
            if (!wait_readable(session, until_ms, e)) ok = false;
        }
        PGresult *result = session->broken ? NULL : pq->PQgetResult(session->conn);
        if (!result) break;
        ExecStatusType status = pq->PQresultStatus(result);
        if (ok && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            ok = server_refused(session, result, e);
        pq->PQclear(last);
        last = result;
    }
    if (pq->PQstatus(session->conn) != CONNECTION_OK) session->broken = true;
    if (ok) *ret = last;
    if (!ok) pq->PQclear(last);
    return ok;
}

/* --- statements --------------------------------------------------------------------------------- */

static bool session_prepare(struct postgres_session *session, const struct postgres_step *step,
                            const struct encoded *encoded, struct err *e) {
    PGresult *result;
    if (!session->pq->PQsendPrepare(session->conn, encoded->name, step->sql,
                                    (int)step->value_count, encoded->types))
        return session_break(session, NULL, e);
    if (!await_result(session, &result, e)) return false;
    session->pq->PQclear(result);
    return true;
}

bool postgres_session_ask(struct postgres_session *session, const struct postgres_step *step,
                          struct postgres_rows *ret, struct err *e) {
    struct encoded encoded;
    PGresult *result;
    if (session->broken)
        return err_set(e, ERR_UNAVAILABLE, "PostgreSQL %s: the connection is lost",
                       session->name);
    session->asked++;
    statements_encode(&session->statements, step, &encoded);
    if (encoded.is_new && !session_prepare(session, step, &encoded, e)) {
        statements_forget(&session->statements, encoded.number);
        return false;
    }
    if (!session->pq->PQsendQueryPrepared(session->conn, encoded.name, (int)step->value_count,
                                          encoded.values, encoded.lengths, encoded.formats,
                                          ENCODE_BINARY))
        return session_break(session, NULL, e);
    if (!await_result(session, &result, e)) return false;
    *ret = postgres_rows_of(result);
    return true;
}

uint64_t postgres_session_asked(const struct postgres_session *session) {
    return session->asked;
}

bool postgres_session_run(struct postgres_session *session, const char *sql, struct err *e) {
    PGresult *result;
    if (session->broken || !session->pq->PQsendQuery(session->conn, sql))
        return session_break(session, NULL, e);
    if (!await_result(session, &result, e)) return false;
    session->pq->PQclear(result);
    return true;
}

static bool take_notifications(struct postgres_session *session,
                               postgres_session_notified_fn *fn, void *ctx) {
    PGnotify *notice;
    bool any = false;
    while ((notice = session->pq->PQnotifies(session->conn))) {
        any = true;
        fn(str_from(notice->relname), str_from(notice->extra), ctx);
        session->pq->PQfreemem(notice);
    }
    return any;
}

/* Some may have come with the answer to a statement. */
bool postgres_session_wait(struct postgres_session *session, uint64_t for_ms, int other,
                           postgres_session_notified_fn *fn, void *ctx, struct err *e) {
    struct pollfd wait_for[] = {
        {.fd = session->pq->PQsocket(session->conn), .events = POLLIN},
        {.fd = other, .events = POLLIN}, /* poll() skips what is below 0 */
    };
    if (session->broken) return session_break(session, "the connection is lost", e);
    if (take_notifications(session, fn, ctx)) return true;
    int ready = poll(wait_for, ARRAY_LEN(wait_for), (int)for_ms);
    if (ready < 0 && errno != EINTR) return session_break(session, "waiting failed", e);
    if (ready > 0 && wait_for[0].revents && !session->pq->PQconsumeInput(session->conn))
        return session_break(session, NULL, e);
    take_notifications(session, fn, ctx);
    return true;
}

void postgres_session_free_rows(struct postgres_rows *rows) {
    /* libpq takes what it frees without const. */
    if (rows->result) libpq_loaded()->PQclear((PGresult *)(uintptr_t)rows->result);
    *rows = (struct postgres_rows){0};
}
