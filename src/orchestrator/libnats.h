/* libnats: the client library of NATS, loaded when it is first needed.
 *
 * The library has threads of its own, and reconnects every two seconds for ever. A file that
 * includes this uses the library's types; its functions are members here.
 *
 * Memory   a connection is ended with libnats_hang_up().
 * Threads  any; everything blocks.
 */
#ifndef WEIR_ORCHESTRATOR_LIBNATS_H
#define WEIR_ORCHESTRATOR_LIBNATS_H

#include "base/err.h"
#include "base/str.h"

#include <nats/nats.h>

#define NATS_USAGE_STREAM "CRAWBL_USAGE"
#define NATS_USAGE_SUBJECT "crawbl.usage.v1."

/* clang-format off */
#define NATS_FUNCTIONS(USE)                                                                    \
    USE(natsOptions_Create) USE(natsOptions_Destroy) USE(natsOptions_SetURL)                   \
    USE(natsOptions_SetName) USE(natsOptions_SetMaxReconnect)                                  \
    USE(natsOptions_SetReconnectWait) USE(natsOptions_SetTimeout) USE(natsConnection_Connect)  \
    USE(natsConnection_Destroy) USE(natsConnection_JetStream) USE(jsCtx_Destroy)               \
    USE(jsStreamConfig_Init) USE(js_AddStream) USE(js_GetStreamInfo) USE(jsStreamInfo_Destroy) \
    USE(jsPubOptions_Init) USE(js_Publish) USE(jsPubAck_Destroy) USE(natsStatus_GetText)       \
    USE(jsSubOptions_Init) USE(js_PullSubscribe) USE(natsSubscription_Fetch)                   \
    USE(natsSubscription_Destroy) USE(js_GetConsumerInfo) USE(jsConsumerInfo_Destroy)          \
    USE(jsConsumerConfig_Init) USE(js_AddConsumer)                                             \
    USE(natsMsg_GetData) USE(natsMsg_GetDataLength) USE(natsMsg_Ack) USE(natsMsgList_Destroy)
/* clang-format on */

struct libnats {
#define MEMBER(name) __typeof__(name) *name;
    NATS_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* NULL: it failed.
 * errors  ERR_UNAVAILABLE the library is not installed */
const struct libnats *libnats_load(struct err *e);

/* errors  ERR_UNAVAILABLE the server */
MUST_CHECK bool libnats_dial(const struct libnats *nats, struct str url,
                             natsConnection **ret_connection, jsCtx **ret_context,
                             struct err *e);
void libnats_hang_up(const struct libnats *nats, natsConnection *connection, jsCtx *context);

/* ERR_UNAVAILABLE with what the library says. Returns false. */
bool libnats_fail(const struct libnats *nats, natsStatus status, const char *what,
                  struct err *e);

#endif
