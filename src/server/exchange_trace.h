/* exchange_trace: the trace that a request belongs to, whichever door it came by.
 *
 * gRPC metadata are headers, too.
 *
 * Memory   the caller's.
 * Threads  the exchange's loop.
 * Source   W3C Trace Context Level 2, "Processing Model".
 */
#ifndef WEIR_SERVER_EXCHANGE_TRACE_H
#define WEIR_SERVER_EXCHANGE_TRACE_H

#include "server/exchange.h"
#include "wire/trace_context.h"

/* Read the headers, while the exchange still has them. NULL: there is not exactly one traceparent,
 * or it is not valid. The caller ends the result with free(). */
struct trace_context *exchange_trace(const struct exchange *exchange);

#endif
