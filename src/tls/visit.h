/* visit: the client's side of one TLS connection.
 *
 * It names the server to reach and the protocols offered (ALPN), checks the server's
 * certificate (authorities, time, purpose, name), and describes in a sentence what is wrong
 * with it.
 *
 * A name is compared with the certificate's DNS names, where "*." stands for one label at the
 * left. An address is compared with its IP addresses, and no name is sent (SNI). The subject's
 * common name does not count.
 *
 * A ticket resumes an earlier connection to the same server, which saves most of the handshake
 * and the check of the certificate. So tickets are kept per host and port, and only briefly.
 *
 * Memory   the caller has the struct, and ends it with visit_done().
 * Threads  the loop's of the connection.
 * Source   RFC 6125, 9525 (names); 6066 3 (SNI); 7301 (ALPN); 8446 2.2 and C.4 (tickets). */
#ifndef WEIR_TLS_VISIT_H
#define WEIR_TLS_VISIT_H

#include "base/text.h"
#include "tls/records.h"
#include "tls/trust.h"

struct ssl_session_st; /* a ticket */

enum { VISIT_HTTP_1 = 1, VISIT_HTTP_2 = 2 }; /* bits: what is offered, what was chosen */

/* Takes the ticket. Called while bytes are received. */
typedef void visit_ticket_fn(struct ssl_session_st *ticket, void *ctx);

struct visit_options {
    struct str host;               /* a name, or an address without brackets */
    unsigned protocols;            /* offered; later bits are preferred */
    struct ssl_session_st *ticket; /* NULL: none; taken */
    visit_ticket_fn *on_ticket;    /* NULL: tickets are dropped */
    void *ctx;
};

struct visit {
    struct records *records; /* NULL: unused */
    visit_ticket_fn *on_ticket;
    void *ctx;
    struct text problem; /* what is wrong with the certificate, in a sentence */
};

void visit_init(struct visit *visit, const struct trust *trust,
                const struct visit_options *options);
void visit_done(struct visit *visit); /* also of a zeroed one */

/* Continue the connection in another place. `from` is as zeroed; tickets go to `ctx`. */
void visit_move(struct visit *to, struct visit *from, visit_ticket_fn *on_ticket, void *ctx);

/* The server's choice, once the handshake is over. Without a choice it is HTTP/1.1. */
unsigned visit_protocol(const struct visit *visit);

/* Whether the server accepted the ticket. */
bool visit_was_resumed(const struct visit *visit);

/* Why the connection failed: ERR_UNAVAILABLE, with what, why and the fix. */
void visit_explain(const struct visit *visit, struct err *ret);

#endif
