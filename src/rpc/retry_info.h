/* retry_info: when a client that was refused may come again, as gRPC says it.
 *
 *     grpc-retry-pushback-ms   for a client library that repeats calls by itself
 *     grpc-status-details-bin  google.rpc.Status with one google.rpc.RetryInfo, for the program
 *
 * Threads  the call's loop.
 * Source   gRFC A6 "Pushback"; google/rpc/error_details.proto.
 */
#ifndef WEIR_RPC_RETRY_INFO_H
#define WEIR_RPC_RETRY_INFO_H

#include "rpc/rpc.h"

/* Append google.protobuf.Any with the RetryInfo: one of the details of a google.rpc.Status. */
void retry_info_any(uint32_t retry_after_ms, struct buf *out);

/* Add both trailers, if the failure says when. */
void retry_info_add(struct rpc_call *call, const struct err *why);

/* Add the pushback alone, for a contract that writes the details itself. */
void retry_info_push_back(struct rpc_call *call, const struct err *why);

#endif
