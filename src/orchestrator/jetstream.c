#include "orchestrator/jetstream.h"

#include "base/buf.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <nats/nats.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LIBNATS "libnats.so.3.4"
#define STREAM "CRAWBL_USAGE"
#define SUBJECT "crawbl.usage.v1."
#define CLIENT "crawbl-orchestrator"
#define RECONNECT_MS 2000
#define CONNECT_MS 2000
#define WAIT_MS 5000
#define KEPT_NS (INT64_C(7) * 86400 * 1000000000)

/* clang-format off */
#define NATS_FUNCTIONS(USE)                                                                    \
    USE(natsOptions_Create) USE(natsOptions_Destroy) USE(natsOptions_SetURL)                   \
    USE(natsOptions_SetName) USE(natsOptions_SetMaxReconnect)                                  \
    USE(natsOptions_SetReconnectWait) USE(natsOptions_SetTimeout) USE(natsConnection_Connect)  \
    USE(natsConnection_Destroy) USE(natsConnection_JetStream) USE(jsCtx_Destroy)               \
    USE(jsStreamConfig_Init) USE(js_AddStream) USE(js_GetStreamInfo) USE(jsStreamInfo_Destroy) \
    USE(jsPubOptions_Init) USE(js_Publish) USE(jsPubAck_Destroy) USE(natsStatus_GetText)
/* clang-format on */

static struct {
#define MEMBER(name) __typeof__(name) *name;
    NATS_FUNCTIONS(MEMBER)
#undef MEMBER
} nats;

static struct err failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct jetstream {
    natsConnection *connection;
    jsCtx *context;
    bool has_stream;
};

/* dlsym() returns an object pointer even for a function. POSIX guarantees that copying the bits
 * works. */
static bool nats_find(void *library, const char *name, void *ret) {
    void *found = dlsym(library, name);
    if (!found)
        return err_set(&failed, ERR_UNAVAILABLE, "the installed libnats has no %s()", name);
    memcpy(ret, &found, sizeof(found));
    return true;
}

static bool find_all(void *library) {
#define FIND(name)                                                                             \
    if (!nats_find(library, #name, &nats.name)) return false;
    NATS_FUNCTIONS(FIND)
#undef FIND
    return true;
}

static void load(void) {
    void *library = dlopen(LIBNATS, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        err_set(&failed, ERR_UNAVAILABLE,
                "NATS needs " LIBNATS ", and it cannot be loaded: install the package "
                "libnats3.4");
    else if (!find_all(library))
        return; /* the reason is in `failed` */
}

static bool fail(natsStatus status, const char *what, struct err *e) {
    return err_set(e, ERR_UNAVAILABLE, "NATS: %s: %s", what, nats.natsStatus_GetText(status));
}

static natsStatus set_options(natsOptions *options, const char *url) {
    natsStatus status = nats.natsOptions_SetURL(options, url);
    if (status == NATS_OK) status = nats.natsOptions_SetName(options, CLIENT);
    if (status == NATS_OK) status = nats.natsOptions_SetMaxReconnect(options, -1);
    if (status == NATS_OK) status = nats.natsOptions_SetReconnectWait(options, RECONNECT_MS);
    if (status == NATS_OK) status = nats.natsOptions_SetTimeout(options, CONNECT_MS);
    return status;
}

static natsStatus dial(struct jetstream *jetstream, struct str url) {
    natsOptions *options = NULL;
    char *text = str_dup(url);
    natsStatus status = nats.natsOptions_Create(&options);
    if (status == NATS_OK) status = set_options(options, text);
    if (status == NATS_OK)
        status = nats.natsConnection_Connect(&jetstream->connection, options);
    if (status == NATS_OK)
        status =
            nats.natsConnection_JetStream(&jetstream->context, jetstream->connection, NULL);
    nats.natsOptions_Destroy(options);
    free(text);
    return status;
}

bool jetstream_open(struct str url, struct jetstream **ret, struct err *e) {
    pthread_once(&once, load);
    if (failed.code) {
        *e = failed;
        return false;
    }
    struct jetstream *jetstream = MEM_NEW(struct jetstream);
    natsStatus status = dial(jetstream, url);
    if (status != NATS_OK) {
        jetstream_close(jetstream);
        return fail(status, "no connection", e);
    }
    *ret = jetstream;
    return true;
}

void jetstream_close(struct jetstream *jetstream) {
    nats.jsCtx_Destroy(jetstream->context);
    nats.natsConnection_Destroy(jetstream->connection);
    free(jetstream);
}

/* The stream, unless somebody has made it. */
static natsStatus need_stream(struct jetstream *jetstream) {
    static const char *subjects[] = {SUBJECT ">"};
    jsStreamInfo *info = NULL;
    jsStreamConfig config;
    jsErrCode code;
    natsStatus status = nats.js_GetStreamInfo(&info, jetstream->context, STREAM, NULL, &code);
    if (status == NATS_NOT_FOUND) {
        nats.jsStreamConfig_Init(&config);
        config.Name = STREAM;
        config.Subjects = subjects;
        config.SubjectsLen = 1;
        config.Storage = js_FileStorage;
        config.Retention = js_LimitsPolicy;
        config.MaxAge = KEPT_NS;
        status = nats.js_AddStream(&info, jetstream->context, &config, NULL, &code);
    }
    nats.jsStreamInfo_Destroy(info);
    jetstream->has_stream = status == NATS_OK;
    return status;
}

/* "*", ">", "." and space have a meaning in a subject. */
static void append_token(struct buf *out, struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.at[i];
        bool plain = str_is_alnum(byte) || byte == '-' || byte == '_';
        buf_append_byte(out, plain ? byte : '_');
    }
}

bool jetstream_publish(struct jetstream *jetstream, struct str workspace, struct str id,
                       struct str payload, struct err *e) {
    jsPubOptions options;
    jsPubAck *ack = NULL;
    jsErrCode code;
    natsStatus status = jetstream->has_stream ? NATS_OK : need_stream(jetstream);
    if (status != NATS_OK) return fail(status, "no stream " STREAM, e);
    struct buf subject;
    char *text = str_dup(id);
    buf_init(&subject, KIB);
    buf_append(&subject, STR(SUBJECT));
    append_token(&subject, workspace);
    buf_append_byte(&subject, '\0');
    nats.jsPubOptions_Init(&options);
    options.MsgId = text;
    options.MaxWait = WAIT_MS;
    status = nats.js_Publish(&ack, jetstream->context, subject.at, payload.at, (int)payload.len,
                             &options, &code);
    nats.jsPubAck_Destroy(ack);
    free(text);
    buf_done(&subject);
    if (status != NATS_OK) jetstream->has_stream = false;
    return status == NATS_OK || fail(status, "an event was not acknowledged", e);
}
