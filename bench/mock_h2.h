/* mock_h2: one HTTP/2 connection of the mock, with or without TLS.
 *
 * It cuts frames itself and reads no header: each stream whose request is whole is a POST to be
 * answered. What is said between two flushes leaves in one write, and with TLS in one record for each
 * 16 KiB. A client that lets the socket fill up is cut off.
 *
 * Memory   the caller owns the connection and its calls; the calls end with it, or at on_end.
 * Threads  none.
 * Source   RFC 9113; RFC 7541, appendix A.
 */
#ifndef WEIR_BENCH_MOCK_H2_H
#define WEIR_BENCH_MOCK_H2_H

#include "base/buf.h"
#include "base/list.h"

struct mock_h2;

struct mock_call {
    struct list link;    /* the caller's */
    struct mock_h2 *h2;  /* NULL: HTTP/1.1 */
    struct list sibling; /* in its connection */
    uint32_t id;
    int64_t window;
    unsigned said;
    bool asked; /* on_ask came */
};

typedef void mock_ask_fn(struct mock_call *call, void *ctx);

struct ssl_ctx_st;

/* NULL: the files cannot be read. */
struct ssl_ctx_st *mock_h2_tls(const char *certificate, const char *key);

/* `fd` is connected, does not block, and is taken. tls  NULL: cleartext. */
struct mock_h2 *mock_h2_new(int fd, struct ssl_ctx_st *tls, mock_ask_fn *on_ask, void *ctx);
void mock_h2_free(struct mock_h2 *h2);

/* These return false when the connection is of no use any more; free it. */
bool mock_h2_read(struct mock_h2 *h2);
bool mock_h2_flush(struct mock_h2 *h2);

/* Whether the windows let as many bytes through. */
bool mock_h2_has_room(const struct mock_call *call, size_t len);

/* The head of the answer; bytes of its body; bytes and the end, after which the call is gone. */
void mock_h2_begin(struct mock_call *call);
void mock_h2_say(struct mock_call *call, struct str text);
void mock_h2_end(struct mock_call *call, struct str text);

#endif
