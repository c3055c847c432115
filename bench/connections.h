/* connections: what the server holds for connections without a request.
 *
 * Threads  none.
 */
#ifndef WEIR_BENCH_CONNECTIONS_H
#define WEIR_BENCH_CONNECTIONS_H

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

struct connections_options {
    int port; /* a listener that speaks both HTTP/1.1 and HTTP/2 and answers GET /health */
    pid_t server;
    size_t count;   /* of each kind */
    bool calls;     /* the listener is gRPC's: calls instead of HTTP/1.1 */
    struct str key; /* signs the tokens of the calls */
};

/* Open HTTP/2 connections, each until SETTINGS went both ways, and then connections of HTTP/1.1
 * that are kept after one GET /health; or, with `calls`, make a health check on each, and then a
 * turn of Converse, each in a session of its own. Print one JSON object: the server's growth for
 * each, of connections that have rested.
 * errors  ERR_UNAVAILABLE the server closed one of them */
MUST_CHECK bool connections_measure(const struct connections_options *options, struct err *e);

#endif
