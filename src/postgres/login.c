#include "postgres/login.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVER_MIN 140000

void login_said(const char *text, char *ret, size_t size) {
    struct str line = str_from(text), rest;
    line = str_head(line, str_find(line, STR("\n\t")));
    line = str_split(str_trim(line), '\n', &rest);
    snprintf(ret, size, STR_FMT, STR_ARG(line));
}

/* Ours come before the address, which may name others. */
static PGconn *log_in(const struct libpq *pq, const struct login *login) {
    char settings[320];
    snprintf(settings, sizeof(settings),
             "-c statement_timeout=%" PRIu64 " -c client_connection_check_interval=2000"
             " -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3"
             " -c tcp_user_timeout=10000 -c idle_in_transaction_session_timeout=60000%s%s",
             login->timeout_ms, login->schema[0] ? " -c search_path=" : "", login->schema);
    const char *const names[] = {"connect_timeout",  "target_session_attrs",
                                 "gssencmode",       "application_name",
                                 "keepalives_idle",  "keepalives_interval",
                                 "keepalives_count", "tcp_user_timeout",
                                 "client_encoding",  "options",
                                 "dbname",           NULL};
    const char *const values[] = {LOGIN_S, "read-write", "disable", "weir",   "10",       "3",
                                  "3",     "10000",      "UTF8",    settings, login->url, NULL};
    return pq->PQconnectdbParams(names, values, 1);
}

static void ignore_notice(void *ctx, const PGresult *result) {
    (void)ctx, (void)result;
}

static bool login_refuse(const struct libpq *pq, PGconn *conn, struct err *e) {
    char said[320];
    login_said(pq->PQerrorMessage(conn), said, sizeof(said));
    return err_set(e, ERR_UNAVAILABLE,
                   "PostgreSQL: %s; check its address, user and password, and that it runs",
                   said);
}

static bool make_ready(const struct libpq *pq, PGconn *conn, const struct login *login,
                       struct err *e) {
    if (pq->PQstatus(conn) != CONNECTION_OK) return login_refuse(pq, conn, e);
    if (pq->PQserverVersion(conn) < SERVER_MIN)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "PostgreSQL at %s has version %d; weir needs PostgreSQL 14 or later",
                       pq->PQhost(conn), pq->PQserverVersion(conn) / 10000);
    pq->PQsetNoticeReceiver(conn, ignore_notice, NULL);
    if (login->blocks) return true;
    if (pq->PQsetnonblocking(conn, 1) != 0 || !pq->PQenterPipelineMode(conn))
        return login_refuse(pq, conn, e);
    return true;
}

void login_work(void *ctx) {
    struct login *login = ctx;
    const struct libpq *pq;
    login->conn = NULL;
    if (!libpq_load(&pq, &login->failed)) return;
    PGconn *conn = log_in(pq, login);
    if (conn && make_ready(pq, conn, login, &login->failed)) {
        login->conn = conn;
        return;
    }
    if (!conn) err_set(&login->failed, ERR_UNAVAILABLE, "PostgreSQL: memory ran out");
    pq->PQfinish(conn);
}

void login_done(struct login *login) {
    if (login->conn) libpq_loaded()->PQfinish(login->conn);
    free(login->url);
    free(login->schema);
}
