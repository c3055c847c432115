/* secure: what TLS needs on one loop.
 *
 * The trusted authorities are the same for the whole process. The first link that needs them
 * starts a thread, which loads OpenSSL and reads them, and waits for it. Tickets and the buffer
 * for decrypted bytes belong to the loop.
 *
 *     secure_trust ─▶ there already
 *                  └▶ NULL: secure_await ─▶ fn, in a later turn
 *
 * A file or folder named by a setting replaces the system's authorities. Without one,
 * SSL_CERT_FILE (a file) and SSL_CERT_DIR (folders, separated by ':') in the environment do. A
 * failure is not kept: the next call tries again.
 *
 * Private to client/.
 *
 * Memory   authorities are counted: a thread may still be reading when the pool is gone.
 * Threads  the loop's; authorities_*() any. */
#ifndef WEIR_CLIENT_SECURE_H
#define WEIR_CLIENT_SECURE_H

#include "base/buf.h"
#include "base/err.h"
#include "loop/loop.h"
#include "tls/tickets.h"
#include "tls/trust.h"

struct authorities;
struct secure_load;

struct authorities *authorities_new(void);

/* Use `path`, a file or a folder; empty: no setting. Call it before anything is loaded. */
void authorities_set(struct authorities *authorities, struct str path);

/* Where they are read from; both empty: the system's. The views stay valid. */
struct trust_options authorities_source(const struct authorities *authorities);
void authorities_unref(struct authorities *authorities); /* accepts NULL */

struct secure {
    struct loop *loop;
    struct authorities *authorities;
    struct trust *trust; /* NULL: not needed so far */
    struct list waiting;
    struct secure_load *load; /* NULL: none is running */
    struct tickets tickets;
    struct buf plain; /* decrypted bytes of one read of a link; only during that read */
};

/* trust, or NULL and why. */
typedef void secure_fn(struct trust *trust, const struct err *why, void *ctx);

struct secure_wait {
    struct list link;
    secure_fn *fn;
    void *ctx;
};

void secure_init(struct secure *secure, struct loop *loop, struct authorities *authorities);
void secure_leave(struct secure *secure); /* forget everything; no wait is left */
void secure_done(struct secure *secure);

struct trust *secure_trust(const struct secure *secure);

void secure_wait_init(struct secure_wait *wait, secure_fn *fn, void *ctx);
void secure_await(struct secure *secure, struct secure_wait *wait);
void secure_wait_cancel(struct secure_wait *wait); /* harmless when it does not wait */

#endif
