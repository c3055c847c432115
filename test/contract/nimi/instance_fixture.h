/* instance_fixture: an instance of nimi.runtime.v1 on a fake loop: what its tests share.
 *
 * nimi_open(), then the test's own `settings`, then nimi_serve(). Whatever the test adds, such
 * as a store, it makes before and frees after.
 */
#ifndef WEIR_TEST_CONTRACT_NIMI_INSTANCE_FIXTURE_H
#define WEIR_TEST_CONTRACT_NIMI_INSTANCE_FIXTURE_H

#include "contract/nimi/nimi.h"

#include "fake/exchange_fake.h"
#include "helper/assert_str.h"
#include "session/session.h"
#include "turn/host.h"

#define FRESH __attribute__((unused)) static

FRESH struct loop *loop;
FRESH struct agent agent;
FRESH struct engine engine;
FRESH struct run_host host;
FRESH struct nimi_runtime *runtime;
FRESH struct nimi_settings settings;
FRESH struct nimi_instance instance;
FRESH struct rpc_service services[NIMI_SERVICES];
FRESH struct rpc_site *site;

/* A runtime that is ready, with one agent. The model, the store and the keeper may be NULL. */
FRESH void nimi_open(struct provider *model, struct store *store, struct keeper *keeper) {
    static const struct scheduler_limits slots = {
        .global = 8, .per_app = 2, .background = 8, .queue_max = 16, .queue_per_app = 4};
    agent = (struct agent){.slug = STR("manager"), .provider = model};
    engine = (struct engine){.agents = &agent,
                             .agent_count = 1,
                             .store = store,
                             .sessions = session_table_new(keeper ? store : NULL),
                             .limits = run_limits_default,
                             .refs = 1};
    run_host_init(&host, &engine, loop, keeper);
    runtime = nimi_runtime_new(&slots);
    nimi_runtime_move(runtime, LIFE_STARTING, "starting");
    nimi_runtime_move(runtime, LIFE_READY, "ready");
}

FRESH void nimi_serve(void) {
    nimi_instance_init(&instance, &settings, &host, runtime);
    nimi_services(&instance, services);
    site = rpc_site_new(loop, services, NIMI_SERVICES);
}

/* No call and no job may keep the engine. */
FRESH void nimi_close(void) {
    rpc_site_free(site);
    nimi_instance_done(&instance);
    nimi_runtime_free(runtime);
    run_host_done(&host);
    assert_int_equal(engine.refs, 1);
    session_table_free(engine.sessions);
}

FRESH void serve(struct exchange *exchange, void *ctx) {
    rpc_serve(ctx, exchange);
}

#endif
