#include "orchestrator/usage_stream.h"

#include "base/mem.h"
#include "orchestrator/libnats.h"

#include <stdlib.h>

#define CONSUMER "usage-writer"
#define FILTER NATS_USAGE_SUBJECT ">"
#define FETCH_MS 500
/* Longer than a commit takes; a process that died holds its messages for this long. */
#define ACK_WAIT_NS (INT64_C(10) * 1000000000)
#define PENDING_MAX 1024

struct usage_stream {
    const struct libnats *nats;
    natsConnection *connection;
    jsCtx *context;
    natsSubscription *subscription;
    natsMsgList batch;
    uint64_t last; /* of the stream when it was opened */
};

static natsStatus need_consumer(const struct usage_stream *stream) {
    const struct libnats *nats = stream->nats;
    jsConsumerConfig config;
    jsConsumerInfo *info = NULL;
    jsErrCode code;
    natsStatus status = nats->js_GetConsumerInfo(&info, stream->context, NATS_USAGE_STREAM,
                                                 CONSUMER, NULL, &code);
    nats->jsConsumerInfo_Destroy(info);
    if (status != NATS_NOT_FOUND) return status;
    nats->jsConsumerConfig_Init(&config);
    config.Durable = CONSUMER;
    config.AckPolicy = js_AckExplicit;
    config.AckWait = ACK_WAIT_NS;
    config.MaxAckPending = PENDING_MAX;
    config.FilterSubject = FILTER;
    return nats->js_AddConsumer(NULL, stream->context, NATS_USAGE_STREAM, &config, NULL, &code);
}

static natsStatus subscribe(struct usage_stream *stream) {
    const struct libnats *nats = stream->nats;
    jsSubOptions options;
    jsErrCode code;
    natsStatus status = need_consumer(stream);
    if (status != NATS_OK) return status;
    nats->jsSubOptions_Init(&options);
    options.Stream = NATS_USAGE_STREAM;
    options.Consumer = CONSUMER;
    return nats->js_PullSubscribe(&stream->subscription, stream->context, FILTER, CONSUMER,
                                  NULL, &options, &code);
}

static natsStatus read_last(struct usage_stream *stream) {
    const struct libnats *nats = stream->nats;
    jsStreamInfo *info = NULL;
    jsErrCode code;
    natsStatus status =
        nats->js_GetStreamInfo(&info, stream->context, NATS_USAGE_STREAM, NULL, &code);
    if (status == NATS_OK) stream->last = info->State.LastSeq;
    nats->jsStreamInfo_Destroy(info);
    return status;
}

bool usage_stream_open(struct str url, struct usage_stream **ret, struct err *e) {
    const struct libnats *nats = libnats_load(e);
    if (!nats) return false;
    struct usage_stream *stream = MEM_NEW(struct usage_stream);
    stream->nats = nats;
    if (!libnats_dial(nats, url, &stream->connection, &stream->context, e)) {
        free(stream);
        return false;
    }
    natsStatus status = read_last(stream);
    if (status == NATS_OK) status = subscribe(stream);
    if (status == NATS_OK) {
        *ret = stream;
        return true;
    }
    usage_stream_close(stream);
    if (status == NATS_NOT_FOUND)
        return err_set(e, ERR_UNAVAILABLE,
                       "NATS has no stream " NATS_USAGE_STREAM
                       ": weir orchestrate --nats makes "
                       "it when it publishes the first usage");
    return libnats_fail(nats, status, "no consumer " CONSUMER, e);
}

void usage_stream_close(struct usage_stream *stream) {
    stream->nats->natsMsgList_Destroy(&stream->batch);
    stream->nats->natsSubscription_Destroy(stream->subscription);
    libnats_hang_up(stream->nats, stream->connection, stream->context);
    free(stream);
}

bool usage_stream_take(struct usage_stream *stream, struct str ret[USAGE_BATCH_MAX],
                       size_t *ret_count, struct err *e) {
    const struct libnats *nats = stream->nats;
    jsErrCode code;
    natsStatus status = nats->natsSubscription_Fetch(&stream->batch, stream->subscription,
                                                     USAGE_BATCH_MAX, FETCH_MS, &code);
    if (status != NATS_OK && status != NATS_TIMEOUT)
        return libnats_fail(nats, status, "no messages", e);
    *ret_count = status == NATS_OK ? (size_t)stream->batch.Count : 0;
    for (size_t i = 0; i < *ret_count; i++)
        ret[i] = str_of(nats->natsMsg_GetData(stream->batch.Msgs[i]),
                        (size_t)nats->natsMsg_GetDataLength(stream->batch.Msgs[i]));
    return true;
}

/* One that gets lost is repaired by the next delivery. */
void usage_stream_done(struct usage_stream *stream) {
    for (int i = 0; i < stream->batch.Count; i++)
        (void)stream->nats->natsMsg_Ack(stream->batch.Msgs[i], NULL);
    stream->nats->natsMsgList_Destroy(&stream->batch);
}

bool usage_stream_is_read(struct usage_stream *stream, bool *ret, struct err *e) {
    const struct libnats *nats = stream->nats;
    jsConsumerInfo *info = NULL;
    jsErrCode code;
    natsStatus status = nats->js_GetConsumerInfo(&info, stream->context, NATS_USAGE_STREAM,
                                                 CONSUMER, NULL, &code);
    if (status != NATS_OK) return libnats_fail(nats, status, "no consumer " CONSUMER, e);
    *ret = info->AckFloor.Stream >= stream->last ||
           (info->NumPending == 0 && info->NumAckPending == 0);
    nats->jsConsumerInfo_Destroy(info);
    return true;
}
