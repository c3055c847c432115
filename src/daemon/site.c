#include "daemon/site.h"

#include "base/mem.h"
#include "proto/health.pb.h"
#include "rpc/health.h"
#include "rpc/reflection.h"

#include <stdlib.h>
#include <string.h>

struct site {
    struct contract_table contracts;
    void *const *instances;
    size_t owner;
    const struct contract_listener *listener;
    /* gRPC. */
    struct rpc_service *services; /* the contracts', health, reflection */
    struct health *health;
    struct reflection *reflection; /* NULL: switched off */
    struct rpc_site *grpc;
    /* HTTP. */
    struct route_table *tables;
    const struct route_table **list;
    struct route_site *http;
    struct audit_writer *audit;
};

static bool is_here(const struct site *site, const char *listener) {
    return strcmp(site->listener->name, listener) == 0;
}

/* --- refused callers ---------------------------------------------------------------------- */

static void audit_refused(struct site *site, struct str place, struct str reason,
                          enum err_code outcome) {
    struct audit_record record = {
        .texts = {[AUDIT_CONTRACT] = site->contracts.rows[site->owner]->name,
                  [AUDIT_CAPABILITY] = place,
                  [AUDIT_REASON] = reason}};
    audit_set(&record, AUDIT_OUTCOME, outcome);
    audit_writer_refused(site->audit, &record);
}

static void on_rpc_refused(const struct rpc_method *method, const struct err *why, void *ctx) {
    audit_refused(ctx, method->path, err_name(why->code), why->code);
}

/* The guards answer 401 to callers without a token, 403 to those with a bad one, and something
 * else when no caller is let in. */
static void on_route_refused(const struct route *route, const struct route_failure *failure,
                             void *ctx) {
    if (failure->status == 401)
        audit_refused(ctx, route->path, failure->code, ERR_UNAUTHENTICATED);
    else if (failure->status == 403)
        audit_refused(ctx, route->path, failure->code, ERR_PERMISSION_DENIED);
}

/* --- gRPC --------------------------------------------------------------------------------- */

typedef void service_fn(struct site *site, size_t contract,
                        const struct contract_service *service, size_t index);

/* Call fn for each service served here, with its contract and its index in that contract. */
static size_t each_service(struct site *site, service_fn *fn) {
    size_t count = 0;
    for (size_t i = 0; i < site->contracts.count; i++) {
        const struct contract *contract = site->contracts.rows[i];
        for (size_t n = 0; site->instances[i] && n < contract->service_count; n++) {
            if (!is_here(site, contract->services[n].listener)) continue;
            if (fn) fn(site, i, &contract->services[n], count);
            count++;
        }
    }
    return count;
}

static void fill_service(struct site *site, size_t contract,
                         const struct contract_service *service, size_t index) {
    service->fill(site->instances[contract], &site->services[index]);
}

static void say_not_yet(struct site *site, size_t contract,
                        const struct contract_service *service, size_t index) {
    (void)contract, (void)service;
    health_set(site->health, site->services[index].name, HEALTH_NOT_SERVING);
}

static void site_describe(struct site *site, size_t contract,
                          const struct contract_service *service, size_t index) {
    (void)contract, (void)index;
    if (service->descriptor) reflection_add(site->reflection, *service->descriptor);
}

/* Add reflection after the existing `count` services. Returns the number of services added. */
static size_t add_reflection(struct site *site, size_t count) {
    site->reflection = reflection_new();
    each_service(site, site_describe);
    reflection_add(site->reflection, grpc_health_descriptor);
    reflection_services(site->reflection, &site->services[count]);
    reflection_list(site->reflection, site->services, count + REFLECTION_SERVICES);
    return REFLECTION_SERVICES;
}

static void make_grpc(struct site *site, const struct site_options *options) {
    const struct contract_listener *listener = site->listener;
    size_t count = each_service(site, NULL);
    site->services = mem_zero(count + 1 + REFLECTION_SERVICES, sizeof(struct rpc_service));
    site->health = health_new();
    health_set(site->health, STR(""), HEALTH_NOT_SERVING);
    each_service(site, fill_service);
    each_service(site, say_not_yet);
    site->services[count++] = health_service(site->health);
    if (listener->reflects && listener->reflects(options->config))
        count += add_reflection(site, count);
    site->grpc = rpc_site_new(options->loop, site->services, count);
    if (listener->prepare) listener->prepare(site->instances[site->owner], site->grpc);
    rpc_site_stall_limit(site->grpc, options->stall_ms);
    rpc_site_rates(site->grpc, options->rates);
    rpc_site_refused(site->grpc, on_rpc_refused, site);
    if (!listener->handlers_admit)
        rpc_site_admit(site->grpc, RPC_PROBES, STR("the server is starting; try again"));
}

/* --- HTTP --------------------------------------------------------------------------------- */

/* Fill in the route tables of a contract, starting at `index`. Without room, only count
 * them. */
static size_t fill_tables_of(struct site *site, size_t contract, size_t index) {
    const struct contract *row = site->contracts.rows[contract];
    size_t count = 0;
    for (size_t n = 0; site->instances[contract] && n < row->routes_count; n++) {
        if (!is_here(site, row->routes[n].listener)) continue;
        if (site->tables) {
            struct route_table *table = &site->tables[index + count];
            row->routes[n].fill(site->instances[contract], table);
            if (contract != site->owner && site->listener->sign) site->listener->sign(table);
        }
        count++;
    }
    return count;
}

/* Guests first, because the last table answers 404. */
static size_t fill_tables(struct site *site) {
    size_t count = 0;
    for (size_t i = 0; i < site->contracts.count; i++) {
        if (i != site->owner) count += fill_tables_of(site, i, count);
    }
    return count + fill_tables_of(site, site->owner, count);
}

static void use_pages(struct site *site, const void *settings) {
    if (site->listener->pages) route_site_pages(site->http, site->listener->pages(settings));
}

static void make_http(struct site *site, const struct site_options *options) {
    size_t count = fill_tables(site);
    site->tables = mem_zero(count, sizeof(struct route_table));
    site->list = mem_zero(count, sizeof(struct route_table *));
    fill_tables(site);
    for (size_t i = 0; i < count; i++) site->list[i] = &site->tables[i];
    site->http = route_site_new(options->loop, site->list, count);
    route_site_rates(site->http, options->rates);
    route_site_refused(site->http, on_route_refused, site);
    use_pages(site, options->settings);
}

/* --- gRPC and HTTP ------------------------------------------------------------------------ */

struct site *site_new(const struct site_options *options) {
    struct site *site = MEM_NEW(struct site);
    site->contracts = *options->contracts;
    site->instances = options->instances;
    site->owner = options->owner;
    site->listener = options->listener;
    site->audit = options->audit;
    if (site->listener->wire == CONTRACT_GRPC) {
        make_grpc(site, options);
    } else {
        make_http(site, options);
    }
    return site;
}

void site_free(struct site *site) {
    if (!site) return;
    route_site_free(site->http);
    rpc_site_free(site->grpc);
    reflection_free(site->reflection);
    health_free(site->health);
    free(site->services);
    free(site->tables);
    free(site->list);
    free(site);
}

void site_serve(struct site *site, struct exchange *exchange) {
    if (site->grpc) {
        rpc_serve(site->grpc, exchange);
    } else {
        route_serve(site->http, exchange);
    }
}

void site_use(struct site *site, const void *owner_settings) {
    if (site->grpc) {
        each_service(site, fill_service);
    } else {
        fill_tables(site);
        use_pages(site, owner_settings);
    }
}

void site_serving(struct site *site) {
    if (site->grpc && !site->listener->handlers_admit)
        rpc_site_admit(site->grpc, RPC_ACTS, STR_EMPTY);
}

void site_health(struct site *site, bool healthy) {
    if (site->health)
        health_set_all(site->health, healthy ? HEALTH_SERVING : HEALTH_NOT_SERVING);
}

void site_stopping(struct site *site) {
    site_health(site, false);
    if (site->http) {
        route_site_stop(site->http);
    } else if (site->listener->handlers_admit) {
        rpc_site_warn(site->grpc);
    } else {
        rpc_site_stop(site->grpc);
    }
}

void site_cut(struct site *site) {
    if (site->grpc) {
        rpc_site_cut(site->grpc);
    } else {
        route_site_cut(site->http);
    }
}
