/* exchange_fake: the other end of an exchange, without a server.
 *
 * Defines every function of server/exchange.h, so a test that is linked with it drives rpc/
 * or route/ with only a fake loop: the test decides what the peer sends, reads and does, and
 * inspects what was answered. It is stricter than a server: lent memory is freed afterwards, so
 * a sanitizer finds who kept it, and calls that the header forbids fail an assert.
 *
 *     struct exchange *x = fake_new(loop, "POST", "/pkg.Service/Method");
 *     fake_field(x, "content-type", "application/grpc");
 *     fake_start(x, serve, site);        header section complete
 *     fake_body(x, STR("..."));
 *     fake_body_end(x);
 *     fake_settle(loop);                 turns, until all is written and closed
 *     assert_str(fake_sent(x), "...");
 *     fake_free(x);
 *
 * Memory   the test frees it, after on_closed.
 * Threads  none.
 */
#ifndef WEIR_TEST_FAKE_EXCHANGE_FAKE_H
#define WEIR_TEST_FAKE_EXCHANGE_FAKE_H

#include "loop/loop.h"
#include "server/exchange.h"

/* Text for a test is short-lived and small; whatever does not fit is the test's mistake. */
#define FAKE_FIELDS_MAX 32
#define FAKE_QUEUE_BYTES (64 * KIB)

struct exchange *fake_new(struct loop *loop, const char *method, const char *path);
void fake_free(struct exchange *exchange);

/* Before fake_start(): */
void fake_field(struct exchange *exchange, const char *name, const char *value);
void fake_http(struct exchange *exchange, enum exchange_http http);
void fake_listener(struct exchange *exchange, enum exchange_reach reach, const char *authority);
void fake_room(struct exchange *exchange, size_t queue_bytes); /* not FAKE_QUEUE_BYTES */

/* Offer the request to its listener. */
void fake_start(struct exchange *exchange, exchange_start_fn *start, void *ctx);

/* --- what the peer does ------------------------------------------------------------------ */

void fake_body(struct exchange *exchange, struct str bytes);
void fake_body_end(struct exchange *exchange);
void fake_leave(struct exchange *exchange); /* reset, or the connection broke */

/* From now on it reads nothing, or at most `bytes` more, or again all. */
void fake_stop_reading(struct exchange *exchange);
void fake_read(struct exchange *exchange, size_t bytes);
void fake_read_all(struct exchange *exchange);

/* Turn the loop until what was said has been written and what is over is closed. */
void fake_settle(struct loop *loop);

/* --- what it saw ------------------------------------------------------------------------- */

int fake_status(const struct exchange *exchange);            /* 0: no head yet */
struct str fake_head(const struct exchange *exchange);       /* "name: value\n" each */
struct str fake_sent(const struct exchange *exchange);       /* body bytes that got out */
struct str fake_trailers(const struct exchange *exchange);   /* as fake_head */
struct str fake_value(struct str section, const char *name); /* at == NULL: not there */

bool fake_ended(const struct exchange *exchange);        /* the response is whole */
bool fake_closed(const struct exchange *exchange);       /* on_closed has run */
int fake_aborted(const struct exchange *exchange);       /* enum exchange_abort, or -1 */
size_t fake_unconsumed(const struct exchange *exchange); /* what the window is short of */
bool fake_forgotten(const struct exchange *exchange);
bool fake_authenticated(const struct exchange *exchange);

#endif
