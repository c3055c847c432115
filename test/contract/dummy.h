/* dummy: a complete contract, as small as possible: two listeners, a route and a method, each
 * behind a guard, and its own settings.
 */
#ifndef WEIR_TEST_CONTRACT_DUMMY_H
#define WEIR_TEST_CONTRACT_DUMMY_H

#include "contract/contract.h"

#include "base/mem.h"
#include "config/config.h"
#include "config/setting.h"

#include <stdlib.h>

#define DUMMY_TOKEN "Bearer open sesame"

struct dummy_instance {
    struct str greeting;
    bool serving;
};

/* --- the route ---------------------------------------------------------------------------- */

static enum route_entry dummy_guard(struct route_call *call, const struct route *row, void *ctx,
                                    struct route_failure *ret) {
    (void)row, (void)ctx;
    struct str given = lent_read(route_header(call, STR("authorization")));
    if (str_equal(given, STR(DUMMY_TOKEN))) return ENTRY_PROVED;
    *ret = (struct route_failure){401, STR("UNAUTHORIZED"), STR("say the word"), STR_EMPTY};
    return ENTRY_REFUSED;
}

static void dummy_greet(struct route_call *call, void *ctx) {
    const struct dummy_instance *instance = ctx;
    route_reply(call, instance->serving ? 200 : 503, STR("text/plain"), instance->greeting);
}

static void dummy_routes(void *instance, struct route_table *ret) {
    static const struct route rows[] = {
        {STR_INIT("GET"), STR_INIT("/greet"), dummy_greet, ROUTE_GUARDED, ROUTE_PLAIN}};
    *ret = (struct route_table){
        .rows = rows, .row_count = ARRAY_LEN(rows), .guard = dummy_guard, .ctx = instance};
}

/* --- the method --------------------------------------------------------------------------- */

static bool dummy_authenticate(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                               struct err *e) {
    (void)ctx, (void)ret;
    struct str given = lent_read(rpc_metadata(call, STR("authorization"), NULL));
    return str_equal(given, STR(DUMMY_TOKEN)) ||
           err_set(e, ERR_UNAUTHENTICATED, "say the word");
}

static void *dummy_open(struct rpc_call *call, void *instance) {
    (void)call;
    return instance;
}

static void dummy_asked(struct rpc_call *call, void *ctx) {
    const struct dummy_instance *instance = ctx;
    rpc_send(call, instance->greeting);
    rpc_end(call, ERR_NONE, STR_EMPTY);
}

static void dummy_service(void *instance, struct rpc_service *ret) {
    static const struct rpc_handler handler = {.open = dummy_open, .half_closed = dummy_asked};
    static const struct rpc_method methods[] = {{.path = STR_INIT("/dummy.v1.Dummy/Greet"),
                                                 .kind = RPC_UNARY,
                                                 .handler = &handler,
                                                 .established = RPC_BY_HANDLER,
                                                 .auth = RPC_TOKEN,
                                                 .request_max_bytes = KIB}};
    *ret = (struct rpc_service){.name = STR("dummy.v1.Dummy"),
                                .methods = methods,
                                .method_count = ARRAY_LEN(methods),
                                .authenticate = dummy_authenticate,
                                .ctx = instance};
}

/* --- its settings --- */

struct dummy_values {
    struct str greeting;
    struct str http, grpc;
};

#define DUMMY_AT(member)                                                                       \
    .offset = offsetof(struct dummy_values, member), .width = sizeof(struct str)

/* clang-format off */
static const struct setting dummy_settings[] = {
    {.key = "dummy.greeting", .group = "Dummy", .flag = "dummy-greeting", .env = {"DUMMY_GREETING"},
     .kind = SETTING_TEXT, DUMMY_AT(greeting), .preset = "hello", .help = "what it says"},
    {.key = "dummy.http", .kind = SETTING_ADDRESS, DUMMY_AT(http), .preset = "127.0.0.1:0",
     .help = "where its route is", .fixed = true},
    {.key = "dummy.grpc", .kind = SETTING_ADDRESS, DUMMY_AT(grpc), .preset = "127.0.0.1:0",
     .help = "where its method is", .fixed = true},
};
/* clang-format on */

static const struct setting_rows dummy_rows = {.rows = dummy_settings,
                                               .count = ARRAY_LEN(dummy_settings),
                                               .size = sizeof(struct dummy_values)};

/* --- its life ----------------------------------------------------------------------------- */

static bool dummy_read(const struct contract_source *from, void **ret, struct err *e) {
    (void)e;
    *ret = MEM_NEW(struct str);
    const struct dummy_values *values = config_values(from->config, &dummy_rows);
    *(struct str *)*ret = values->greeting;
    return true;
}

static void dummy_use(void *ctx, const void *settings) {
    struct dummy_instance *instance = ctx;
    instance->greeting = *(const struct str *)settings;
}

static void *dummy_init(const struct contract_loop *loop, const void *settings, void *state) {
    (void)loop, (void)state;
    struct dummy_instance *instance = MEM_NEW(struct dummy_instance);
    dummy_use(instance, settings);
    return instance;
}

static void dummy_serving(void *ctx) {
    ((struct dummy_instance *)ctx)->serving = true;
}

static struct str dummy_http(const struct config *config) {
    const struct dummy_values *values = config_values(config, &dummy_rows);
    return values->http;
}

static struct str dummy_grpc(const struct config *config) {
    const struct dummy_values *values = config_values(config, &dummy_rows);
    return values->grpc;
}

static const struct contract dummy_contract = {
    .name = STR_INIT("dummy"),
    .rows = &dummy_rows,
    .listeners =
        (const struct contract_listener[]){
            {.name = "dummy_http", .wire = CONTRACT_HTTP, .address = dummy_http},
            {.name = "dummy_grpc", .wire = CONTRACT_GRPC, .address = dummy_grpc}},
    .listener_count = 2,
    .services = (const struct contract_service[]){{"dummy_grpc", NULL, dummy_service}},
    .service_count = 1,
    .routes = (const struct contract_routes[]){{"dummy_http", dummy_routes}},
    .routes_count = 1,
    .settings = {.read = dummy_read, .drop = free},
    .instance = {.init = dummy_init, .use = dummy_use, .serving = dummy_serving, .done = free},
};

#endif
