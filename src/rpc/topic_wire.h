/* topic_wire: how the frames of a topic leave through a call.
 *
 * The members of a struct topic_wire that every gRPC subscription has in common. Their ctx points
 * to a struct that begins with a pointer to its rpc_call, which must not compress.
 *
 * Memory   of the call.
 * Threads  the call's loop.
 */
#ifndef WEIR_RPC_TOPIC_WIRE_H
#define WEIR_RPC_TOPIC_WIRE_H

#include "rpc/rpc.h"

char *rpc_topic_room(size_t bytes, void *ctx);
void rpc_topic_put(size_t bytes, void *ctx);
size_t rpc_topic_queued(void *ctx);
void rpc_topic_wake_at(size_t low, void *ctx);

#endif
