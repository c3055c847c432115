/* A call of nimi.runtime.v1, as a hostile peer may make it: whatever its headers and its body
 * say, it ends once, with one status, and the same one however the body is cut.
 *
 *     METHOD CUT         which row of the table, and where the body is cut
 *     name: value \n ... beside the content type
 *     \n
 *     body               as it comes on the stream, with gRPC's prefixes
 */
#include "contract/nimi/nimi.h"

#include "fake/exchange_fake.h"
#include "fake/provider_fake.h"
#include "session/session.h"
#include "turn/host.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No store and no media: what needs one is refused. */
struct house {
    struct loop *loop;
    struct provider *model;
    struct agent agent;
    struct engine engine;
    struct run_host host;
    struct nimi_runtime *runtime;
    struct nimi_connector connector;
    struct nimi_settings settings;
    struct nimi_instance instance;
    struct rpc_service services[NIMI_SERVICES];
    struct rpc_site *site;
};

static void open_house(struct house *house) {
    static const struct scheduler_limits slots = {
        .global = 8, .per_app = 2, .queue_max = 16, .queue_per_app = 4};
    house->loop = loop_new_fake();
    house->model = fake_provider_new();
    house->agent = (struct agent){.slug = STR("manager"), .provider = house->model};
    house->engine = (struct engine){.agents = &house->agent,
                                    .agent_count = 1,
                                    .sessions = session_table_new(NULL),
                                    .limits = run_limits_default,
                                    .refs = 1};
    run_host_init(&house->host, &house->engine, house->loop, NULL);
    house->runtime = nimi_runtime_new(&slots);
    nimi_runtime_move(house->runtime, LIFE_STARTING, "starting");
    nimi_runtime_move(house->runtime, LIFE_READY, "ready");
    house->connector = (struct nimi_connector){.id = STR("local"),
                                               .provider = house->model,
                                               .local = true,
                                               .enabled = true,
                                               .has_credential = true};
    house->settings = (struct nimi_settings){.connectors = &house->connector,
                                             .connector_count = 1,
                                             .version = STR("0.1.0"),
                                             .message_max_bytes = 64 * KIB,
                                             .stall_ms = 30000,
                                             .text = {60000, 30000, 120000},
                                             .speech = {60000, 30000, 45000},
                                             .embedding = {60000, 30000, 20000}};
    nimi_instance_init(&house->instance, &house->settings, &house->host, house->runtime);
    nimi_services(&house->instance, house->services);
    house->site = rpc_site_new(house->loop, house->services, NIMI_SERVICES);
    nimi_site(&house->instance, house->site);
}

static void close_house(struct house *house) {
    fake_settle(house->loop);
    rpc_site_free(house->site);
    nimi_instance_done(&house->instance);
    nimi_runtime_free(house->runtime);
    run_host_done(&house->host);
    assert(house->engine.refs == 1);
    session_table_free(house->engine.sessions);
    provider_free(house->model);
    loop_free(house->loop);
}

static void serve(struct exchange *exchange, void *ctx) {
    rpc_serve(ctx, exchange);
}

static const struct rpc_method *method_of(const struct house *house, size_t index) {
    size_t count = 0;
    for (size_t i = 0; i < NIMI_SERVICES; i++) count += house->services[i].method_count;
    index %= count;
    for (size_t i = 0;; i++) {
        if (index < house->services[i].method_count) return &house->services[i].methods[index];
        index -= house->services[i].method_count;
    }
}

static struct exchange *begin(struct house *house, unsigned char method, struct str *input) {
    char *path = str_dup(method_of(house, method)->path);
    struct exchange *x = fake_new(house->loop, "POST", path);
    free(path);
    fake_field(x, "content-type", "application/grpc");
    for (int count = 1; input->at && count < FAKE_FIELDS_MAX; count++) {
        struct str line = str_split(*input, '\n', input);
        if (line.len == 0) break;
        size_t colon = str_find(line, STR(": "));
        char *name = str_dup(str_head(line, colon));
        char *value = str_dup(str_skip(line, colon + 2));
        if (str_starts(str_from(name), STR("x-nimi-"))) fake_field(x, name, value);
        free(name);
        free(value);
    }
    fake_start(x, serve, house->site);
    return x;
}

/* The status that it ends with, after the model has said something to those who asked it; -1
 * for none: then it is a stream that goes on, and is left. */
static int run(unsigned char method, struct str input, size_t cut) {
    struct house house;
    open_house(&house);
    struct exchange *x = begin(&house, method, &input);
    struct str body = input.at ? input : STR_EMPTY, rest = str_skip(body, cut);
    struct str first = str_head(body, cut);
    if (first.len) fake_body(x, first);
    fake_settle(house.loop);
    if (rest.len && !fake_closed(x)) fake_body(x, rest);
    if (!fake_closed(x)) fake_body_end(x);
    fake_settle(house.loop);
    if (fake_calls(house.model)) {
        fake_text(fake_call(house.model, 0), STR("some words"));
        fake_done(fake_call(house.model, 0), "m");
    }
    for (int turns = 0; turns < 4; turns++) fake_settle(house.loop);
    struct str said = fake_value(fake_trailers(x), "grpc-status");
    if (!said.at) said = fake_value(fake_head(x), "grpc-status");
    uint64_t status = 0;
    bool ended = said.at && str_to_u64(said, &status);
    assert(!ended || status <= 16);
    if (!fake_closed(x)) fake_leave(x);
    fake_settle(house.loop);
    assert(fake_closed(x));
    fake_free(x);
    close_house(&house);
    return ended ? (int)status : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    struct str input = str_of((const char *)data + 2, size - 2);
    int whole = run(data[0], input, 0);
    assert(run(data[0], input, data[1]) == whole);
    return 0;
}
