#include "orchestrator/libnats.h"

#include "base/buf.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LIBNATS "libnats.so.3.4"
#define CLIENT "crawbl-orchestrator"
#define RECONNECT_MS 2000
#define CONNECT_MS 2000

static struct libnats nats;
static struct err failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* dlsym() returns an object pointer even for a function. POSIX guarantees that copying the bits
 * works. */
static bool libnats_find(void *library, const char *name, void *ret) {
    void *found = dlsym(library, name);
    if (!found)
        return err_set(&failed, ERR_UNAVAILABLE, "the installed libnats has no %s()", name);
    memcpy(ret, &found, sizeof(found));
    return true;
}

static bool find_all(void *library) {
#define FIND(name)                                                                             \
    if (!libnats_find(library, #name, &nats.name)) return false;
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

const struct libnats *libnats_load(struct err *e) {
    pthread_once(&once, load);
    if (!failed.code) return &nats;
    *e = failed;
    return NULL;
}

bool libnats_fail(const struct libnats *library, natsStatus status, const char *what,
                  struct err *e) {
    return err_set(e, ERR_UNAVAILABLE, "NATS: %s: %s", what,
                   library->natsStatus_GetText(status));
}

static natsStatus set_options(const struct libnats *library, natsOptions *options,
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
    if (status == NATS_OK) status = set_options(library, options, text);
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
