#include "contract/anthropic/contract.h"

#include "base/mem.h"
#include "contract/anthropic/message_error.h"
#include "contract/anthropic/messages.h"
#include "contract/guest.h"

#include <stdlib.h>

static bool anthropic_wanted(const struct config *config) {
    return guest_options(config, &anthropic_rows)->enabled;
}

static bool anthropic_read(const struct contract_source *from, void **ret, struct err *e) {
    struct guest_settings *settings = MEM_NEW(struct guest_settings);
    (void)e;
    *settings = guest_settings_of(from, guest_options(from->config, &anthropic_rows));
    settings->takes_api_key = true;
    *ret = settings;
    return true;
}

/* --- routes ------------------------------------------------------------------------------- */

static const struct route rows[] = {
    /* clang-format off */
    {STR_INIT("POST"), STR_INIT("/v1/messages"),              messages_create,       ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"), STR_INIT("/v1/messages/count_tokens"), messages_count_tokens, ROUTE_GUARDED, ROUTE_JSON},
    /* clang-format on */
};

static void anthropic_routes(void *guest, struct route_table *ret) {
    guest_table(guest, rows, ARRAY_LEN(rows), message_error_failure_body, ret);
    ret->rated = message_error_rated;
}

static const struct contract_routes routes[] = {{"http", anthropic_routes}};

const struct contract anthropic_contract = {
    .name = STR_INIT(ANTHROPIC_CONTRACT),
    .rows = &anthropic_rows,
    .wanted = anthropic_wanted,
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = anthropic_read, .drop = free},
    .instance = {.init = guest_new,
                 .use = guest_use,
                 .serving = guest_serving,
                 .stopping = guest_stopping,
                 .cut = guest_cut,
                 .done = free},
};
