#include "contract/contract.h"

#include <string.h>

bool contract_is_wanted(const struct contract *contract, const struct config *config) {
    return !contract->wanted || contract->wanted(config);
}

size_t contract_listeners(const struct contract_table *table, const struct config *config) {
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct contract *row = table->rows[i];
        for (size_t n = 0; contract_is_wanted(row, config) && n < row->listener_count; n++)
            count += row->listeners[n].address(config).len > 0;
    }
    return count;
}

size_t contract_find(const struct contract_table *table, struct str name) {
    for (size_t i = 0; i < table->count; i++) {
        if (str_equal(table->rows[i]->name, name)) return i;
    }
    return table->count;
}

const struct setting_rows *contract_rows(size_t index, const void *ctx) {
    const struct contract_table *table = ctx;
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i]->rows && index-- == 0) return table->rows[i]->rows;
    }
    return NULL;
}

/* --- is the table whole? ------------------------------------------------------------------ */

/* Number of listeners in the table with this name and, if given, this wire. */
static size_t count_listeners(const struct contract_table *table, const char *name,
                              const enum contract_wire *wire) {
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct contract *row = table->rows[i];
        for (size_t n = 0; n < row->listener_count; n++)
            count += strcmp(row->listeners[n].name, name) == 0 &&
                     (!wire || row->listeners[n].wire == *wire);
    }
    return count;
}

static bool listeners_ok(const struct contract_table *table, const struct contract *row) {
    for (size_t i = 0; i < row->listener_count; i++) {
        const struct contract_listener *listener = &row->listeners[i];
        if (!listener->address || count_listeners(table, listener->name, NULL) != 1)
            return false;
    }
    return true;
}

static bool served_ok(const struct contract_table *table, const struct contract *row) {
    static const enum contract_wire grpc = CONTRACT_GRPC, http = CONTRACT_HTTP;
    for (size_t i = 0; i < row->service_count; i++) {
        const struct contract_service *service = &row->services[i];
        if (!service->fill || count_listeners(table, service->listener, &grpc) != 1)
            return false;
    }
    for (size_t i = 0; i < row->routes_count; i++) {
        const struct contract_routes *routes = &row->routes[i];
        if (!routes->fill || count_listeners(table, routes->listener, &http) != 1) return false;
    }
    return true;
}

bool contract_table_ok(const struct contract_table *table) {
    size_t job_takers = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct contract *row = table->rows[i];
        if (contract_find(table, row->name) != i || !row->instance.init) return false;
        if (!listeners_ok(table, row) || !served_ok(table, row)) return false;
        job_takers += row->instance.take_job != NULL;
    }
    return job_takers <= 1;
}
