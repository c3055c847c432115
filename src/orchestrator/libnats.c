#include "orchestrator/libnats.h"

#include "base/buf.h"
#include "base/shared_library.h"

#include <stdlib.h>

#define CLIENT "crawbl-orchestrator"
#define RECONNECT_MS 2000
#define CONNECT_MS 2000

static struct libnats nats;

#define SYMBOL(name) SHARED_SYMBOL(struct libnats, name),
static const struct shared_symbol symbols[] = {NATS_FUNCTIONS(SYMBOL)};

static struct shared_library library_of_nats = {
    .file = "libnats.so.3.4",
    .title = "libnats",
    .needs = "NATS needs libnats.so.3.4",
    .package = "libnats3.4",
    .code = ERR_UNAVAILABLE,
    .symbols = symbols,
    .symbols_count = ARRAY_LEN(symbols),
    .table = &nats,
};

const struct libnats *libnats_load(struct err *e) {
    return shared_library_load(&library_of_nats, e) ? &nats : NULL;
}

bool libnats_fail(const struct libnats *library, natsStatus status, const char *what,
                  struct err *e) {
    return err_set(e, ERR_UNAVAILABLE, "NATS: %s: %s", what,
                   library->natsStatus_GetText(status));
}

static natsStatus libnats_set_options(const struct libnats *library, natsOptions *options,
                                      const char *url) {
    natsStatus status = library->natsOptions_SetURL(options, url);
    if (status == NATS_OK) status = library->natsOptions_SetName(options, CLIENT);
    if (status == NATS_OK) status = library->natsOptions_SetMaxReconnect(options, -1);
    if (status == NATS_OK)
        status = library->natsOptions_SetReconnectWait(options, RECONNECT_MS);
    if (status == NATS_OK) status = library->natsOptions_SetTimeout(options, CONNECT_MS);
    return status;
}

bool libnats_dial(const struct libnats *library, struct str url,
                  natsConnection **ret_connection, jsCtx **ret_context, struct err *e) {
    natsOptions *options = NULL;
    natsConnection *connection = NULL;
    jsCtx *context = NULL;
    char *text = str_dup(url);
    natsStatus status = library->natsOptions_Create(&options);
    if (status == NATS_OK) status = libnats_set_options(library, options, text);
    if (status == NATS_OK) status = library->natsConnection_Connect(&connection, options);
    if (status == NATS_OK)
        status = library->natsConnection_JetStream(&context, connection, NULL);
    library->natsOptions_Destroy(options);
    free(text);
    if (status != NATS_OK) {
        libnats_hang_up(library, connection, context);
        return libnats_fail(library, status, "no connection", e);
    }
    *ret_connection = connection;
    *ret_context = context;
    return true;
}

void libnats_hang_up(const struct libnats *library, natsConnection *connection,
                     jsCtx *context) {
    library->jsCtx_Destroy(context);
    library->natsConnection_Destroy(connection);
}
