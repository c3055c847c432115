#include "rpc/topic_wire.h"

static struct rpc_call *topic_wire_call_of(void *ctx) {
    return *(struct rpc_call **)ctx;
}

char *rpc_topic_room(size_t bytes, void *ctx) {
    return rpc_messages_room(topic_wire_call_of(ctx), bytes);
}

void rpc_topic_put(size_t bytes, void *ctx) {
    rpc_messages_put(topic_wire_call_of(ctx), bytes);
}

size_t rpc_topic_queued(void *ctx) {
    return rpc_pressure(topic_wire_call_of(ctx));
}

void rpc_topic_wake_at(size_t low, void *ctx) {
    rpc_wake_at(topic_wire_call_of(ctx), low);
}
