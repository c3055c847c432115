/* tokens: the reader of what model_mock says, directly or through a server in between.
 *
 * Opens many connections and asks one turn on each, or many turns on few HTTP/2 connections, and takes the stamps out of the answers:
 * how long each token was under way, and that none is missing, doubled or out of order. What
 * a stamp is wrapped in does not matter, so raw chunks and a server's own events read alike.
 *
 * Threads  none.
 */
#ifndef WEIR_BENCH_TOKENS_H
#define WEIR_BENCH_TOKENS_H

#include "base/err.h"

#include <sys/types.h>

struct tokens_options {
    int port;
    pid_t server;       /* whose CPU and memory; 0: nobody's */
    const char *path;   /* "/stream", "/v1/chat/completions" */
    size_t turns;       /* at the same time */
    size_t connections; /* HTTP/2, for all turns; 0: HTTP/1.1, a connection a turn */
    unsigned tokens;    /* in each turn */
    unsigned seconds;   /* of it */
};

/* Print one JSON object, one line: CPU a token, delays, memory a turn.
 * errors  ERR_DATA_LOSS a token is missing, doubled or out of order
 *         ERR_UNAVAILABLE a turn was refused or broke off, or nothing came for 10 s */
MUST_CHECK bool tokens_measure(const struct tokens_options *options, struct err *e);

#endif
