/* tickets: what servers gave us to come back with.
 *
 * A ticket resumes TLS with the server that gave it, without a look at its certificate. So it
 * counts for one host and port, is used once (TLS 1.3; RFC 8446 C.4), and grows old here sooner
 * than the server says: what was true of a certificate is looked at again within the hour.
 *
 * Memory   the caller has the struct; tickets_done() frees what is in it. At most TICKETS_MAX,
 *          and TICKETS_SERVER_MAX of a server; the oldest goes first.
 * Threads  those of its owner; no clock.
 */
#ifndef WEIR_TLS_TICKETS_H
#define WEIR_TLS_TICKETS_H

#include "base/list.h"
#include "base/str.h"

#define TICKETS_MAX 64
#define TICKETS_SERVER_MAX 4
#define TICKETS_AGE_MS (UINT64_C(3600) * 1000)

struct ssl_session_st;

struct tickets {
    struct list all; /* the oldest first */
    size_t count;
};

void tickets_init(struct tickets *tickets);
void tickets_done(struct tickets *tickets);

/* Takes `ticket`. */
void tickets_put(struct tickets *tickets, struct str host, uint16_t port,
                 struct ssl_session_st *ticket, uint64_t now_ms);

/* The newest, the caller's from now on (visit_init() takes it); or NULL. */
struct ssl_session_st *tickets_take(struct tickets *tickets, struct str host, uint16_t port,
                                    uint64_t now_ms);

#endif
