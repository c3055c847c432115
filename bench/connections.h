/* connections: what the server holds for connections without a request.
 *
 * Threads  none.
 */
#ifndef WEIR_BENCH_CONNECTIONS_H
#define WEIR_BENCH_CONNECTIONS_H

#include "base/err.h"

#include <sys/types.h>

struct connections_options {
    int port; /* a listener that speaks both HTTP/1.1 and HTTP/2 and answers GET /health */
    pid_t server;
    size_t count; /* of each kind */
};

/* Open HTTP/2 connections, each until SETTINGS went both ways, and then connections of HTTP/1.1
 * that are kept after one GET /health. Print one JSON object: the server's growth for each. */
MUST_CHECK bool connections_measure(const struct connections_options *options, struct err *e);

#endif
