#include "contract/guest.h"

#include "base/mem.h"
#include "config/config.h"

/* --- settings ----------------------------------------------------------------------------- */

const struct guest_options *guest_options(const struct config *config,
                                          const struct setting_rows *rows) {
    static const struct guest_options none = {.workspace = STR_INIT("")};
    const struct guest_options *options = config_values(config, rows);
    return options ? options : &none;
}

struct guest_settings guest_settings_of(const struct contract_source *from,
                                        const struct guest_options *options) {
    const struct config *config = from->config;
    return (struct guest_settings){
        .workspace = options->workspace,
        .rules = {.busy = config->session.busy,
                  .stall_ms = config->limits.server.write_stall_ms,
                  .heartbeat_ms = config->limits.heartbeat_ms,
                  .keys_kept_ms = config->limits.idempotency_ms,
                  .on_disconnect = options->on_disconnect,
                  .keyed_outlives = true},
        .body_max_bytes = config->limits.body_bytes,
        .body_stretch_ms = from->body_stretch_ms,
        .body_stretch_bytes = from->body_stretch_bytes,
    };
}

/* --- its life ----------------------------------------------------------------------------- */

void guest_use(void *ctx, const void *settings) {
    struct guest *guest = ctx;
    guest->settings = settings;
    guest->site.rules = guest->settings->rules;
}

void guest_init(struct guest *guest, const struct contract_loop *loop,
                const struct guest_settings *settings) {
    *guest = (struct guest){.callers = loop->callers};
    http_turn_site_init(&guest->site, loop->host);
    guest_use(guest, settings);
}

void *guest_new(const struct contract_loop *loop, const void *settings, void *state) {
    struct guest *guest = MEM_NEW(struct guest);
    (void)state;
    guest_init(guest, loop, settings);
    return guest;
}

void guest_serving(void *ctx) {
    ((struct guest *)ctx)->loaded = true;
}

void guest_stopping(void *ctx) {
    ((struct guest *)ctx)->stopping = true;
}

void guest_cut(void *ctx) {
    http_turn_site_cut(&((struct guest *)ctx)->site);
}

/* --- who may enter ------------------------------------------------------------------------ */

static bool guest_is_shut(struct route_call *call, const struct guest *guest,
                          struct route_failure *ret) {
    if (guest->loaded && !guest->stopping) return false;
    route_field(call, STR("retry-after"), STR("1"));
    *ret = (struct route_failure){503, STR("UNAVAILABLE"),
                                  guest->stopping ? STR("the server is stopping; try again")
                                                  : STR("the store is being opened; try again"),
                                  STR_EMPTY};
    return true;
}

static bool guest_admit(struct route_call *call, const struct guest *guest,
                        struct contract_caller *ret, struct route_failure *ret_failure) {
    struct str key = STR_EMPTY;
    if (guest_is_shut(call, guest, ret_failure)) return false;
    if (guest->settings->takes_api_key) key = lent_read(route_header(call, STR("x-api-key")));
    return key.len ? contract_caller_of(call, &guest->callers, key, ret, ret_failure)
                   : contract_caller_find(call, &guest->callers, ret, ret_failure);
}

static bool guest_find(struct route_call *call, const struct guest *guest,
                       struct contract_caller *ret, struct route_failure *ret_failure) {
    bool found = guest_admit(call, guest, ret, ret_failure);
    if (!found && guest->refused) guest->refused(guest, ret_failure);
    return found;
}

static enum route_entry guest_guard(struct route_call *call, const struct route *row, void *ctx,
                                    struct route_failure *ret) {
    struct contract_caller caller;
    (void)row;
    if (!guest_find(call, ctx, &caller, ret)) return ENTRY_REFUSED;
    return caller.proved ? ENTRY_PROVED : ENTRY_TRUSTED;
}

void guest_table(struct guest *guest, const struct route *rows, size_t count,
                 void (*failure_body)(const struct route_failure *failure, struct buf *out),
                 struct route_table *ret) {
    *ret = (struct route_table){.rows = rows,
                                .row_count = count,
                                .body_max_bytes = guest->settings->body_max_bytes,
                                .body_stretch_ms = guest->settings->body_stretch_ms,
                                .body_stretch_bytes = guest->settings->body_stretch_bytes,
                                .guard = guest_guard,
                                .failure_body = failure_body,
                                .ctx = guest};
}

bool guest_enter(struct route_call *call, const struct guest *guest,
                 struct contract_caller *ret) {
    struct route_failure failure;
    if (guest_find(call, guest, ret, &failure)) return true;
    route_fail(call, &failure);
    return false;
}

struct str guest_workspace(const struct guest *guest, const struct contract_caller *caller) {
    return caller->proved ? caller->identity.workspace : guest->settings->workspace;
}

struct str guest_user(const struct contract_caller *caller) {
    struct str user = caller->identity.user;
    return caller->proved && user.len ? user : STR("anonymous");
}
