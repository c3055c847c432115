/* interop_server: the test service on our server, for clients of other implementations.
 *
 *     interop_server [name=value ...]     prints "port N", ends with SIGTERM
 *
 *     port=0  streams=100  keepalive_ms=0  keepalive_timeout_ms=0  idle_ms=300000
 *     opened=0    1: prints at the end how many calls reached a handler
 */
#include "server/server.h"
#include "base/log.h"
#include "interop/service.h"
#include "loop/loop.h"
#include "proto/health.pb.h"
#include "rpc/health.h"
#include "rpc/reflection.h"
#include "test/interop.pb.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define STOP_WITHIN_MS 2000

struct interop {
    struct loop *loop;
    struct server *server;
    struct rpc_site *site;
    struct health *health;
    struct reflection *reflection;
    struct rpc_service services[2 + REFLECTION_SERVICES];
    struct server_limits limits;
    size_t opened;
    uint64_t port, tells_opened;
    uv_signal_t signals[2];
};

static void on_request(struct exchange *exchange, void *ctx) {
    struct interop *interop = ctx;
    rpc_serve(interop->site, exchange);
}

static void on_stopped(void *ctx) {
    struct interop *interop = ctx;
    for (size_t i = 0; i < ARRAY_LEN(interop->signals); i++)
        uv_close((uv_handle_t *)&interop->signals[i], NULL);
    loop_stop(interop->loop);
}

static void on_signal(uv_signal_t *handle, int number) {
    struct interop *interop = handle->data;
    (void)number;
    health_set_all(interop->health, HEALTH_NOT_SERVING);
    rpc_site_stop(interop->site);
    server_stop(interop->server, STOP_WITHIN_MS, on_stopped, interop);
}

static bool set(struct interop *interop, struct str argument) {
    struct str value, name = str_split(argument, '=', &value);
    const struct {
        const char *name;
        uint64_t *place;
    } numbers[] = {
        {"port", &interop->port},
        {"opened", &interop->tells_opened},
        {"keepalive_ms", &interop->limits.keepalive_ms},
        {"keepalive_timeout_ms", &interop->limits.keepalive_timeout_ms},
        {"idle_ms", &interop->limits.idle_timeout_ms},
    };
    uint64_t number;
    if (!value.at || !str_to_u64(value, &number)) return false;
    if (str_equal(name, STR("streams"))) {
        interop->limits.streams_max = interop->limits.streams_max_stranger = number;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (!str_equal(name, str_from(numbers[i].name))) continue;
        *numbers[i].place = number;
        return true;
    }
    return false;
}

static void serve(struct interop *interop) {
    interop->health = health_new();
    health_set(interop->health, STR(""), HEALTH_SERVING);
    interop->services[0] = interop_service(&interop->opened);
    interop->services[1] = health_service(interop->health);
    interop->reflection = reflection_new();
    reflection_add(interop->reflection, interop_descriptor);
    reflection_add(interop->reflection, grpc_health_descriptor);
    reflection_services(interop->reflection, &interop->services[2]);
    reflection_list(interop->reflection, interop->services, ARRAY_LEN(interop->services));
    interop->site =
        rpc_site_new(interop->loop, interop->services, ARRAY_LEN(interop->services));
    static const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uv_signal_init(loop_uv(interop->loop), &interop->signals[i]);
        interop->signals[i].data = interop;
        uv_signal_start(&interop->signals[i], on_signal, numbers[i]);
    }
}

static bool listen_on(struct interop *interop, struct err *e) {
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)interop->port);
    return server_listen(interop->server,
                         &(struct listener_options){.name = STR("grpc"),
                                                    .address = str_from(address),
                                                    .limits = &interop->limits,
                                                    .on_request = on_request,
                                                    .ctx = interop},
                         e);
}

int main(int argc, char **argv) {
    struct interop interop = {.limits = server_limits_default};
    struct err e;
    interop.limits.streams_max = interop.limits.streams_max_stranger = 100;
    for (int i = 1; i < argc; i++) {
        if (set(&interop, str_from(argv[i]))) continue;
        fprintf(stderr, "interop_server: '%s' is not a name=number\n", argv[i]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    interop.loop = loop_new();
    interop.server = server_new(&interop.loop, 1);
    if (!listen_on(&interop, &e)) {
        fprintf(stderr, "interop_server: %s\n", e.text);
        return 1;
    }
    serve(&interop);
    printf("port %d\n", server_port(interop.server, STR("grpc")));
    fflush(stdout);
    loop_run(interop.loop);
    if (interop.tells_opened) printf("opened %zu\n", interop.opened);

    server_free(interop.server);
    rpc_site_free(interop.site);
    reflection_free(interop.reflection);
    health_free(interop.health);
    loop_free(interop.loop);
    return 0;
}
