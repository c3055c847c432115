/* server: listeners, connections, and their loops.
 *
 * One libuv loop per core. Each address has one listening socket, on the first loop; an
 * accepted socket goes to the loop with the fewest connections and stays there. HTTP/1.1 and
 * HTTP/2 by prior knowledge share every socket: the HTTP/2 preface distinguishes them. A
 * listener with certificates speaks only TLS; the first one loads OpenSSL.
 *
 * Memory   server_new() borrows `loops` until server_free().
 * Threads  server_* belong to the thread of loops[0], unless said otherwise. The start
 *          function of a listener runs on the loop of the connection.
 */
#ifndef WEIR_SERVER_SERVER_H
#define WEIR_SERVER_SERVER_H

#include "base/states.h"
#include "server/exchange.h"

struct server;

/*     serving ─▶ draining ─▶ closing */
enum server_phase {
    SERVER_SERVING,
    SERVER_DRAINING, /* earlier connections finish; new ones are accepted while one is left */
    SERVER_CLOSING,  /* no more connections are accepted */
    SERVER_PHASE_COUNT,
};

extern const struct state server_phases[SERVER_PHASE_COUNT];

/* Filled from the settings "limits"; the defaults are server_limits_default. Each limit applies
 * per listener. */
struct server_limits {
    size_t fields_max;           /* header fields */
    size_t fields_max_bytes;     /* name + value + 32 each */
    size_t target_max_bytes;     /* request target */
    size_t streams_max;          /* per connection */
    size_t streams_max_stranger; /* until a call has authenticated; 0 = no such rule */
    size_t connections_max;
    size_t connection_max_bytes;   /* of write buffers per connection */
    uint64_t header_timeout_ms;    /* for a complete header section */
    uint64_t write_stall_ms;       /* without progress while bytes wait */
    uint64_t answer_bytes_per_s;   /* minimum while output waits (pace.h); 0 = no minimum */
    uint64_t idle_timeout_ms;      /* without a stream */
    uint64_t keepalive_ms;         /* HTTP/2: ping after this silence, 0 = off */
    uint64_t keepalive_timeout_ms; /* and close if unanswered for this long */
    uint64_t ping_apart_ms;        /* minimum between two pings of a peer, 0 = no minimum */
};

extern const struct server_limits server_limits_default;

/* Files in PEM form. */
struct tls_options {
    struct str cert; /* the certificate, followed by its intermediate certificates */
    struct str key;
    struct str ca; /* must have signed the peer's certificate; empty = none is requested */
};

/* How a listener answers input that never became a request: not HTTP, or over a limit. */
struct refusal_form {
    struct str content_type;
    /* Append the body; `text` is the status in words. */
    void (*body)(int status, struct str text, struct buf *out);
    const struct field *always; /* more fields; constant */
    size_t always_count;
};

struct listener_options {
    struct str name;                    /* "http", "grpc": for logs and the ports file */
    struct str address;                 /* host:port, port 0 allowed; unix:/path */
    const struct server_limits *limits; /* borrowed; NULL = defaults */
    exchange_start_fn *on_request;
    void *ctx;                          /* for on_request */
    const struct tls_options *tls;      /* borrowed during the call; NULL = none */
    const struct refusal_form *refusal; /* constant; NULL = a line of text */
    enum exchange_reach reach;          /* worked out from the address by server_listen() */
};

struct server *server_new(struct loop **loops, size_t loop_count);
/* All connections must be closed (server_stop has called back). */
void server_free(struct server *server);

/* Bind and listen. The error text names the address, the process that may hold it, and the fix.
 * Blocks while certificates are read.
 * errors  ERR_INVALID_ARGUMENT not an address, or bad certificates; ERR_UNAVAILABLE taken,
 *         not ours, or no OpenSSL */
MUST_CHECK bool server_listen(struct server *server, const struct listener_options *options,
                              struct err *e);

/* Whether server_listen() could use these files. Blocks.
 * errors  ERR_INVALID_ARGUMENT bad certificates; ERR_UNAVAILABLE no OpenSSL */
MUST_CHECK bool server_check_tls(const struct tls_options *options, struct err *e);

/* Reload certificates and keys for new connections. If any of them is bad, every listener keeps
 * what it has. Any thread, one at a time; blocks. */
MUST_CHECK bool server_reload_tls(struct server *server, struct err *e);

/* The port a listener is bound to (0 for unix sockets and unknown names). */
int server_port(const struct server *server, struct str name);

/* A listener as it is bound. The texts are the server's. */
struct server_listener {
    struct str name, address;
    int port; /* 0: a unix socket */
    bool tls;
};

/* All listeners, in the order in which they were opened, `max` at most. */
size_t server_listeners(const struct server *server, struct server_listener *ret, size_t max);

/* Close the listeners of a server that is not to serve after all, because the start failed later
 * on: no connection is accepted any more, and server_free() may follow. On loops[0], before it
 * runs. */
void server_unlisten(struct server *server);

/* Send GOAWAY and close idle connections. Let exchanges finish for up to `within_ms`, then cut
 * the rest. Connections that arrive meanwhile are served; the owner of the requests decides
 * which ones it still answers. Once all earlier connections have closed, no more are accepted,
 * and late ones get a moment to finish. on_stopped(ctx) runs once, on loops[0], when no
 * connection is left. Calling this again with less time shortens the wait. */
void server_stop(struct server *server, uint64_t within_ms, void (*on_stopped)(void *ctx),
                 void *ctx);

/* A client that comes back for its answer, as one of long polling does, may have no connection when
 * the server stops. Whoever owes it one holds the server, which then stops as if a connection were
 * left. Before server_stop(); any thread. */
void server_hold(struct server *server);
void server_let_go(struct server *server);

struct server_counts {
    size_t connections, exchanges;
    uint64_t accepted, requests; /* since start */
    uint64_t slow_cut;           /* requests cut because their peer did not read */
};

/* Any thread; a snapshot. */
struct server_counts server_counts(const struct server *server);

#endif
