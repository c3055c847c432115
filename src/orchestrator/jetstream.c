#include "orchestrator/jetstream.h"

#include "base/mem.h"
#include "orchestrator/libnats.h"

#include <stdlib.h>

#define STREAM NATS_USAGE_STREAM
#define SUBJECT NATS_USAGE_SUBJECT
#define SUBJECT_MAX_BYTES KIB /* three bytes for each of the longest id */
#define WAIT_MS 5000
#define KEPT_NS (INT64_C(7) * 86400 * 1000000000)

struct jetstream {
    const struct libnats *nats;
    natsConnection *connection;
    jsCtx *context;
    bool has_stream;
};

bool jetstream_open(struct str url, struct jetstream **ret, struct err *e) {
    const struct libnats *nats = libnats_load(e);
    if (!nats) return false;
    struct jetstream *jetstream = MEM_NEW(struct jetstream);
    jetstream->nats = nats;
    if (!libnats_dial(nats, url, &jetstream->connection, &jetstream->context, e)) {
        free(jetstream);
        return false;
    }
    *ret = jetstream;
    return true;
}

void jetstream_close(struct jetstream *jetstream) {
    libnats_hang_up(jetstream->nats, jetstream->connection, jetstream->context);
    free(jetstream);
}

/* The stream, unless it exists. */
static natsStatus need_stream(struct jetstream *jetstream) {
    const struct libnats *nats = jetstream->nats;
    static const char *subjects[] = {SUBJECT ">"};
    jsStreamInfo *info = NULL;
    jsStreamConfig config;
    jsErrCode code;
    natsStatus status = nats->js_GetStreamInfo(&info, jetstream->context, STREAM, NULL, &code);
    if (status == NATS_NOT_FOUND) {
        nats->jsStreamConfig_Init(&config);
        config.Name = STREAM;
        config.Subjects = subjects;
        config.SubjectsLen = 1;
        config.Storage = js_FileStorage;
        config.Retention = js_LimitsPolicy;
        config.MaxAge = KEPT_NS;
        status = nats->js_AddStream(&info, jetstream->context, &config, NULL, &code);
    }
    nats->jsStreamInfo_Destroy(info);
    jetstream->has_stream = status == NATS_OK;
    return status;
}

void jetstream_subject(struct str workspace, struct buf *out) {
    buf_append(out, STR(SUBJECT));
    buf_append_percent(out, workspace, "-_");
}

bool jetstream_publish(struct jetstream *jetstream, struct str workspace, struct str id,
                       struct str payload, struct err *e) {
    const struct libnats *nats = jetstream->nats;
    jsPubOptions options;
    jsPubAck *ack = NULL;
    jsErrCode code = 0;
    natsStatus status = jetstream->has_stream ? NATS_OK : need_stream(jetstream);
    if (status != NATS_OK) return libnats_fail(nats, status, "no stream " STREAM, e);
    struct buf subject;
    char *text = str_dup(id);
    buf_init(&subject, SUBJECT_MAX_BYTES);
    jetstream_subject(workspace, &subject);
    buf_append_byte(&subject, '\0');
    nats->jsPubOptions_Init(&options);
    options.MsgId = text;
    options.MaxWait = WAIT_MS;
    status = nats->js_Publish(&ack, jetstream->context, subject.at, payload.at,
                              (int)payload.len, &options, &code);
    nats->jsPubAck_Destroy(ack);
    free(text);
    buf_done(&subject);
    if (status == NATS_MAX_PAYLOAD || code == JSStreamMessageExceedsMaximumErr)
        return err_set(e, ERR_TOO_LARGE, "the NATS server takes no event of %zu bytes",
                       payload.len);
    if (status != NATS_OK) jetstream->has_stream = false;
    return status == NATS_OK || libnats_fail(nats, status, "an event was not acknowledged", e);
}
