#include "contract/admin/contract.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "contract/admin/options.h"
#include "metrics/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define METRICS_TYPE STR("text/plain; version=0.0.4; charset=utf-8")
#define METRICS_MAX_BYTES (METRICS_TEXT_MAX_BYTES + MIB)
#define MS_A_S 1000.0
#define NS_A_S 1e9

struct admin_process {
    const struct server *server;
    double started_s;
};

struct admin_instance {
    const struct admin_process *process;
    bool serving, stopping;
};

/* --- the process -------------------------------------------------------------------------- */

static struct str admin_address(const struct config *config) {
    return admin_options(config)->address;
}

static bool admin_wanted(const struct config *config) {
    return admin_address(config).len > 0;
}

static void *admin_open(const struct contract_process *process) {
    struct admin_process *own = MEM_NEW(struct admin_process);
    *own = (struct admin_process){process->server, (double)clock_unix_ms() / MS_A_S};
    metrics_start();
    return own;
}

static void admin_close(void *state) {
    metrics_stop();
    free(state);
}

/* --- an instance -------------------------------------------------------------------------- */

static void *admin_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct admin_instance *instance = MEM_NEW(struct admin_instance);
    (void)loop, (void)settings;
    instance->process = state;
    return instance;
}

static void admin_serving(void *ctx) {
    ((struct admin_instance *)ctx)->serving = true;
}

static void admin_stopping(void *ctx) {
    ((struct admin_instance *)ctx)->stopping = true;
}

/* --- what this process uses, as Prometheus names it --------------------------------------- */

/* "Process metrics" of prometheus.io/docs/instrumenting/writing_clientlibs. What the system does not
 * tell is left out. */
static void append_cpu(struct buf *out) {
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used)) return;
    metrics_append_value(out, "process_cpu_seconds_total", METRIC_COUNTER,
                         "Processor time of this process.", "",
                         (double)used.tv_sec + (double)used.tv_nsec / NS_A_S);
}

/* The first line of /proc/self/statm: pages of the address space, then those in memory. */
static bool read_pages(unsigned long *ret_all, unsigned long *ret_resident) {
    char line[256];
    FILE *file = fopen("/proc/self/statm", "re");
    bool there = file && fgets(line, sizeof(line), file);
    if (file) fclose(file);
    if (!there) return false;
    char *end;
    *ret_all = strtoul(line, &end, 10);
    *ret_resident = strtoul(end, NULL, 10);
    return *ret_resident > 0;
}

static void append_memory(struct buf *out) {
    unsigned long all, resident;
    if (!read_pages(&all, &resident)) return;
    double page = (double)sysconf(_SC_PAGESIZE);
    metrics_append_value(out, "process_virtual_memory_bytes", METRIC_GAUGE,
                         "Address space of this process.", "", (double)all * page);
    metrics_append_value(out, "process_resident_memory_bytes", METRIC_GAUGE,
                         "Memory of this process that is in use.", "", (double)resident * page);
}

static void append_files(struct buf *out) {
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;
    if (!folder) return;
    const struct dirent *entry;
    while ((entry = readdir(folder))) { /* NOLINT(concurrency-mt-unsafe): our own list */
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    metrics_append_value(out, "process_open_fds", METRIC_GAUGE, "Open file descriptors.", "",
                         (double)(count - 1)); /* without the one that reads the folder */
}

static void append_process(struct buf *out, double started_s) {
    append_cpu(out);
    append_memory(out);
    append_files(out);
    metrics_append_value(out, "process_start_time_seconds", METRIC_GAUGE,
                         "When this process started, in seconds since 1970.", "", started_s);
}

/* --- routes ------------------------------------------------------------------------------- */

static void livez(struct route_call *call, void *ctx) {
    (void)ctx;
    route_reply(call, 200, STR("application/json"), STR("{\"ok\":true}"));
}

static void readyz(struct route_call *call, void *ctx) {
    const struct admin_instance *instance = ctx;
    struct str type = STR("application/json");
    if (instance->stopping) {
        route_reply(call, 503, type, STR("{\"ok\":false,\"status\":\"STOPPING\"}"));
    } else if (!instance->serving) {
        route_reply(call, 503, type, STR("{\"ok\":false,\"status\":\"STARTING\"}"));
    } else {
        route_reply(call, 200, type, STR("{\"ok\":true,\"status\":\"READY\"}"));
    }
}

static void append_server(struct buf *out, const struct server *server) {
    struct server_counts counts = server_counts(server);
    metrics_append_value(out, "weir_connections", METRIC_GAUGE, "Open connections.", "",
                         (double)counts.connections);
    metrics_append_value(out, "weir_requests_open", METRIC_GAUGE,
                         "Requests and streams that have not ended.", "",
                         (double)counts.exchanges);
    metrics_append_value(out, "weir_connections_accepted_total", METRIC_COUNTER,
                         "Connections since the start.", "", (double)counts.accepted);
    metrics_append_value(out, "weir_requests_total", METRIC_COUNTER,
                         "Requests and streams since the start.", "", (double)counts.requests);
}

static void append_own(struct buf *out) {
    metrics_append_value(
        out, "weir_build_info", METRIC_GAUGE,
        "The version, and that of the conventions its metrics follow.",
        "{version=\"" WEIR_VERSION "\",conventions=\"" METRICS_CONVENTIONS "\"}", 1);
    metrics_append_value(out, "weir_memory_counted_bytes", METRIC_GAUGE,
                         "Memory that counts against limits.memory.", "",
                         (double)mem_counted());
    metrics_append_value(out, "weir_log_lines_dropped_total", METRIC_COUNTER,
                         "Log lines that the reader of the log was too slow for.", "",
                         (double)log_dropped());
}

static void metrics(struct route_call *call, void *ctx) {
    const struct admin_instance *instance = ctx;
    struct buf text;
    buf_init(&text, METRICS_MAX_BYTES);
    append_own(&text);
    append_server(&text, instance->process->server);
    append_process(&text, instance->process->started_s);
    if (metrics_append(&text)) {
        route_reply(call, 200, METRICS_TYPE, buf_str(&text));
    } else {
        route_reply(call, 500, STR("text/plain"), STR("the metrics are too long\n"));
    }
    buf_done(&text);
}

/* Open: probes and Prometheus servers have no token, and nothing here is about a caller. */
static const struct route rows[] = {
    {STR_INIT("GET"), STR_INIT("/livez"), livez, ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("GET"), STR_INIT("/readyz"), readyz, ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("GET"), STR_INIT("/healthz"), readyz, ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("GET"), STR_INIT("/metrics"), metrics, ROUTE_OPEN, ROUTE_HEAD},
};

static const struct field always[] = {
    {STR_INIT("cache-control"), STR_INIT("no-store")},
    {STR_INIT("x-content-type-options"), STR_INIT("nosniff")},
};

static void admin_table(void *ctx, struct route_table *ret) {
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .always = always,
                                .always_count = ARRAY_LEN(always),
                                .body_max_bytes = 4 * KIB,
                                .ctx = ctx};
}

static const struct contract_listener listeners[] = {
    {.name = "admin", .wire = CONTRACT_HTTP, .address = admin_address},
};

static const struct contract_routes routes[] = {{"admin", admin_table}};

const struct contract admin_contract = {
    .name = STR_INIT("admin"),
    .listeners = listeners,
    .listener_count = ARRAY_LEN(listeners),
    .rows = &admin_rows,
    .wanted = admin_wanted,
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .process = {.open = admin_open, .close = admin_close},
    .instance = {.init = admin_init,
                 .serving = admin_serving,
                 .stopping = admin_stopping,
                 .done = free},
};
