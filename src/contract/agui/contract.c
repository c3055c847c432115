#include "contract/agui/contract.h"

#include "base/mem.h"
#include "contract/agui/agent_run.h"
#include "contract/guest.h"

#include <stdlib.h>

static bool agui_wanted(const struct config *config) {
    return guest_options(config, &agui_rows)->enabled;
}

static bool agui_read(const struct contract_source *from, void **ret, struct err *e) {
    struct guest_settings *settings = MEM_NEW(struct guest_settings);
    (void)e;
    *settings = guest_settings_of(from, guest_options(from->config, &agui_rows));
    *ret = settings;
    return true;
}

static const struct route rows[] = {
    {STR_INIT("POST"), STR_INIT("/agui"), agent_run, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"), STR_INIT("/agui/{agent}"), agent_run, ROUTE_GUARDED, ROUTE_JSON},
};

static void agui_routes(void *guest, struct route_table *ret) {
    guest_table(guest, rows, ARRAY_LEN(rows), NULL, ret);
}

static const struct contract_routes routes[] = {{"http", agui_routes}};

const struct contract agui_contract = {
    .name = STR_INIT(AGUI_CONTRACT),
    .rows = &agui_rows,
    .wanted = agui_wanted,
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = agui_read, .drop = free},
    .instance = {.init = guest_new,
                 .use = guest_use,
                 .serving = guest_serving,
                 .stopping = guest_stopping,
                 .cut = guest_cut,
                 .done = free},
};
