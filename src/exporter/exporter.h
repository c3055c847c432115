/* exporter: sends the spans of this process to an OpenTelemetry collector.
 *
 * It has a thread and a loop of its own, so a slow collector takes nothing from a turn. A chunk of
 * spans is one request: as soon as it is full, or a second after it was begun. Without spans the
 * thread sleeps. What a collector refuses for a while (429, 502, 503, 504), or does not get, is sent
 * again after a growing pause, or after the one that its Retry-After names. A request that is too
 * large for it (413) is sent in halves, and so are all that follow. Anything else is lost, counted
 * and logged.
 *
 *     idle ⇄ sending ⇄ waiting    stop: what is out may end, and the rest is sent, within
 *                                 EXPORTER_STOP_MS; then the thread ends
 *
 * Memory   one chunk and its request, beside the bounded queue of spans/.
 * Threads  exporter_start() and exporter_stop(): before and after those that report spans.
 * Source   the OTLP specification, "OTLP/HTTP", "Binary Protobuf Encoding", "Retryable Response
 *          Codes", "OTLP/HTTP Throttling".
 */
#ifndef WEIR_EXPORTER_EXPORTER_H
#define WEIR_EXPORTER_EXPORTER_H

#include "base/states.h"
#include "exporter/headers.h"

#define EXPORTER_STOP_MS 3000
#define EXPORTER_TRIES_MAX 7

enum exporter_state { EXPORTER_IDLE, EXPORTER_SENDING, EXPORTER_WAITING, EXPORTER_STATE_COUNT };

extern const struct state exporter_states[EXPORTER_STATE_COUNT];

struct exporter;

struct exporter_options {
    struct str endpoint;                    /* http: or https:, without /v1/traces */
    bool whole;                             /* it is the whole URL */
    const struct exporter_headers *headers; /* borrowed until exporter_stop() */
    struct str service;                     /* service.name; borrowed likewise */
    struct str version;                     /* service.version, likewise; or empty */
    struct str trust;                       /* as http_pool_trust() */
};

/* From now on spans are wanted.
 * errors  ERR_UNAVAILABLE there is no thread */
MUST_CHECK bool exporter_start(const struct exporter_options *options, struct exporter **ret,
                               struct err *e);

/* Send what is left, and end. Accepts NULL. Blocks, EXPORTER_STOP_MS at most. */
void exporter_stop(struct exporter *exporter);

#endif
