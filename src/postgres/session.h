/* session: one connection to PostgreSQL for a thread that may block.
 *
 * One statement at a time: it is sent, and the call returns with its rows. A connection that
 * breaks stays broken; its owner opens another one. Whether a transaction whose COMMIT was under
 * way took effect is for the owner to find out.
 *
 * Memory   owns the connection. Rows are valid until postgres_session_free_rows().
 * Threads  one session belongs to one thread; every call may block up to its deadline.
 */
#ifndef WEIR_POSTGRES_SESSION_H
#define WEIR_POSTGRES_SESSION_H

#include "postgres/postgres.h"

struct postgres_session;

struct postgres_session_options {
    struct str url;
    struct str schema;   /* the search path, one name; empty: the server's */
    uint64_t timeout_ms; /* of a statement */
};

/* errors  ERR_UNAVAILABLE, ERR_FAILED_PRECONDITION as login.h has them */
MUST_CHECK bool postgres_session_open(const struct postgres_session_options *options,
                                      struct postgres_session **ret, struct err *e);
void postgres_session_close(struct postgres_session *session); /* accepts NULL */

/* Run one statement. Its preparation is kept under the address of its text (postgres.h).
 * errors  as the server said (sqlstate.h); ERR_UNAVAILABLE when the connection broke */
MUST_CHECK bool postgres_session_ask(struct postgres_session *session,
                                     const struct postgres_step *step,
                                     struct postgres_rows *ret, struct err *e);

/* How many such statements there were. */
uint64_t postgres_session_asked(const struct postgres_session *session);

/* Run several statements, with no values. */
MUST_CHECK bool postgres_session_run(struct postgres_session *session, const char *sql,
                                     struct err *e);

void postgres_session_free_rows(struct postgres_rows *rows); /* accepts what was freed */

/* Whether the connection is of no use any more. */
bool postgres_session_broken(const struct postgres_session *session);

/* Between two statements: whether the server has closed the connection. Does not block. */
bool postgres_session_lost(struct postgres_session *session);

/* Whether a transaction is open, failed or not. */
bool postgres_session_in_transaction(const struct postgres_session *session);

/* NOTIFY on a channel that LISTEN named. Both texts are lent. */
typedef void postgres_session_notified_fn(struct str channel, struct str payload, void *ctx);

/* Wait for notifications, at most `for_ms` or until `other` (a file descriptor, or -1) can be
 * read, and call fn for each.
 * errors  ERR_UNAVAILABLE the connection broke */
MUST_CHECK bool postgres_session_wait(struct postgres_session *session, uint64_t for_ms,
                                      int other, postgres_session_notified_fn *fn, void *ctx,
                                      struct err *e);

/* "host:port/database", for messages. */
struct str postgres_session_name(const struct postgres_session *session);

#endif
