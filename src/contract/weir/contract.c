#include "contract/weir/contract.h"

#include "base/clock.h"
#include "base/mem.h"
#include "config/config.h"

#include <stdlib.h>

#define PAGES_MAX_BYTES (16 * MIB)

static bool weir_read(const struct contract_source *from, void **ret, struct err *e) {
    const struct config *config = from->config;
    struct api_settings *settings = MEM_NEW(struct api_settings);
    (void)e;
    *settings = (struct api_settings){.config = config,
                                      .team = from->team,
                                      .stall_ms = config->limits.server.write_stall_ms,
                                      .heartbeat_ms = config->limits.heartbeat_ms,
                                      .body_stretch_ms = from->body_stretch_ms,
                                      .body_stretch_bytes = from->body_stretch_bytes,
                                      .busy = config->session.busy,
                                      .decision_words = config->limits.run.decision_words};
    *ret = settings;
    return true;
}

/* The shared encoded events of all loops use at most an eighth of the memory. */
static void *weir_open(const struct contract_process *process) {
    struct api_process *own = MEM_NEW(struct api_process);
    uint64_t memory_bytes = process->config->limits.memory_bytes;
    size_t most = PAGES_MAX_BYTES;
    *own = (struct api_process){
        .server = process->server, .counts = server_counts, .started_unix_ms = clock_unix_ms()};
    own->listener_count = server_listeners(process->server, own->listeners, API_LISTENERS_MAX);
    own->pages =
        pages_new(memory_bytes && memory_bytes / 8 < most ? (size_t)(memory_bytes / 8) : most);
    return own;
}

static void weir_close(void *state) {
    struct api_process *own = state;
    pages_free(own->pages);
    free(own);
}

static void *weir_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct api_instance *instance = MEM_NEW(struct api_instance);
    const struct api_process *process = state;
    struct session_table *sessions = loop->host->engine->sessions;
    *instance = (struct api_instance){.settings = settings,
                                      .process = process,
                                      .loop = loop->loop,
                                      .host = loop->host,
                                      .sessions = sessions,
                                      .directory = session_table_directory(sessions),
                                      .store = loop->store,
                                      .callers = loop->callers,
                                      .pages = process->pages};
    instance->share = share_new(&(struct share_options){.loop = loop->loop,
                                                        .directory = instance->directory,
                                                        .store = loop->store,
                                                        .pages = process->pages,
                                                        .encode = api_encode_event,
                                                        .ctx = loop->store});
    list_init(&instance->ends);
    list_init(&instance->forks);
    return instance;
}

static void weir_done(void *ctx) {
    struct api_instance *instance = ctx;
    api_forget_ends(instance);
    share_free(instance->share);
    free(instance);
}

static void weir_use(void *ctx, const void *settings) {
    struct api_instance *instance = ctx;
    instance->settings = settings;
}

static void weir_serving(void *ctx) {
    struct api_instance *instance = ctx;
    instance->loaded = true;
}

static void weir_stopping(void *ctx) {
    struct api_instance *instance = ctx;
    instance->stopping = true;
}

static const struct contract_routes routes[] = {{"http", api_table}};

const struct contract weir_contract = {
    .name = STR_INIT("weir"),
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = weir_read, .drop = free},
    .process = {.open = weir_open, .close = weir_close},
    .instance = {.init = weir_init,
                 .use = weir_use,
                 .serving = weir_serving,
                 .stopping = weir_stopping,
                 .done = weir_done},
};
