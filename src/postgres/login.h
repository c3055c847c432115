/* login: make a connection, on a worker.
 *
 * Loading libpq, looking up names, TLS and logging in block. What comes out is a connection in
 * pipeline mode that blocks no longer, or one that still blocks.
 *
 * Private to postgres/.
 *
 * Memory   the struct owns its texts; the connection belongs to its taker.
 * Threads  login_work(): any; it blocks for up to LOGIN_S seconds for each address of the server.
 */
#ifndef WEIR_POSTGRES_LOGIN_H
#define WEIR_POSTGRES_LOGIN_H

#include "postgres/libpq.h"

#define LOGIN_S "3"

struct login {
    char *url, *schema;
    uint64_t timeout_ms; /* of a statement */
    bool blocks;         /* leave it as it is: neither pipeline mode nor nonblocking */
    PGconn *conn;        /* the result; NULL: `failed` says why */
    struct err failed;
};

void login_work(void *ctx);
void login_done(struct login *login);

/* libpq's text without its line ends and hints, at most `size` bytes with NUL. */
void login_said(const char *text, char *ret, size_t size);

#endif
