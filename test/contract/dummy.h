/* dummy: a whole contract, to show what one costs: two listeners, a route and a method, each
 * behind a guard, and what both answer taken from the settings.
 */
#ifndef WEIR_TEST_CONTRACT_DUMMY_H
#define WEIR_TEST_CONTRACT_DUMMY_H

#include "contract/contract.h"

#include "base/mem.h"
#include "config/config.h"

#include <stdlib.h>

#define DUMMY_TOKEN "Bearer open sesame"

struct dummy_desk {
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
    const struct dummy_desk *desk = ctx;
    route_reply(call, desk->serving ? 200 : 503, STR("text/plain"), desk->greeting);
}

static void dummy_routes(void *desk, struct route_table *ret) {
    static const struct route rows[] = {
        {STR_INIT("GET"), STR_INIT("/greet"), dummy_greet, ROUTE_GUARDED, ROUTE_PLAIN}};
    *ret = (struct route_table){
        .rows = rows, .row_count = ARRAY_LEN(rows), .guard = dummy_guard, .ctx = desk};
}

/* --- the method --------------------------------------------------------------------------- */

static bool dummy_authenticate(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                               struct err *e) {
    (void)ctx, (void)ret;
    struct str given = lent_read(rpc_metadata(call, STR("authorization"), NULL));
    return str_equal(given, STR(DUMMY_TOKEN)) ||
           err_set(e, ERR_UNAUTHENTICATED, "say the word");
}

static void *dummy_open(struct rpc_call *call, void *desk) {
    (void)call;
    return desk;
}

static void dummy_asked(struct rpc_call *call, void *ctx) {
    const struct dummy_desk *desk = ctx;
    rpc_send(call, desk->greeting);
    rpc_end(call, ERR_NONE, STR_EMPTY);
}

static void dummy_service(void *desk, struct rpc_service *ret) {
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
                                .ctx = desk};
}

/* --- its life ----------------------------------------------------------------------------- */

static bool dummy_read(const struct contract_source *from, void **ret, struct err *e) {
    (void)e;
    *ret = MEM_NEW(struct str);
    *(struct str *)*ret = from->config->agent.name;
    return true;
}

static void dummy_use(void *ctx, const void *settings) {
    struct dummy_desk *desk = ctx;
    desk->greeting = *(const struct str *)settings;
}

static void *dummy_init(const struct contract_loop *loop, const void *settings, void *state) {
    (void)loop, (void)state;
    struct dummy_desk *desk = MEM_NEW(struct dummy_desk);
    dummy_use(desk, settings);
    return desk;
}

static void dummy_serving(void *ctx) {
    ((struct dummy_desk *)ctx)->serving = true;
}

static struct str dummy_address(const struct config *config) {
    (void)config;
    return STR("127.0.0.1:0");
}

static const struct contract dummy_contract = {
    .name = STR_INIT("dummy"),
    .listeners =
        (const struct contract_listener[]){
            {.name = "dummy_http", .wire = CONTRACT_HTTP, .address = dummy_address},
            {.name = "dummy_grpc", .wire = CONTRACT_GRPC, .address = dummy_address}},
    .listener_count = 2,
    .services = (const struct contract_service[]){{"dummy_grpc", NULL, dummy_service}},
    .service_count = 1,
    .routes = (const struct contract_routes[]){{"dummy_http", dummy_routes}},
    .routes_count = 1,
    .settings = {.read = dummy_read, .drop = free},
    .desk = {.init = dummy_init, .use = dummy_use, .serving = dummy_serving, .done = free},
};

#endif
