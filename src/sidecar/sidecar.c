#include "sidecar/sidecar.h"

#include "base/log.h"
#include "base/mem.h"
#include "exporter/exporter.h"
#include "sidecar/door.h"
#include "sidecar/helpers.h"
#include "sidecar/programs.h"
#include "sidecar/relay.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#define SECOND_SIGNAL_MS 200
#define SIGNALS 2

struct process {
    struct sidecar sidecar;
    const struct sidecar_run *run;
    const char **environment; /* of programs; ends with NULL */
    uv_signal_t signals[SIGNALS];
    uint64_t stopped_ms;
    size_t open_signals;
};

/* --- health ----------------------------------------------------------------------------------- */

static void write_rules(const struct sidecar *sidecar, struct json_writer *json) {
    json_member_array(json, "guardrails");
    for (size_t i = 0; i < sidecar->rule_count; i++)
        json_write_str(json, guardrail_name(sidecar->rules[i]));
    json_close(json);
}

static void write_names(const struct sidecar_options *options, struct json_writer *json) {
    json_member_array(json, "a2a_peers");
    for (size_t i = 0; i < options->peer_count; i++)
        json_write_str(json, options->peers[i].name);
    json_close(json);
    json_member_array(json, "mcp_servers");
    for (size_t i = 0; i < options->tool_count; i++)
        json_write_str(json, options->tools[i].name);
    json_close(json);
}

static void write_rule_counts(const struct sidecar *sidecar, struct json_writer *json) {
    json_member_object(json, "guardrail_matches");
    for (size_t i = 0; i < sidecar->rule_count; i++) {
        json_key(json, guardrail_name(sidecar->rules[i]));
        json_write_u64(json, guardrail_counts(sidecar->rules[i]).matches);
    }
    json_close(json);
}

static void write_counts(const struct sidecar *sidecar, struct json_writer *json) {
    const struct sidecar_counts *counts = &sidecar->counts;
    write_rule_counts(sidecar, json);
    json_member_object(json, "counts");
    json_member_u64(json, "requests", counts->requests);
    json_member_u64(json, "refused", counts->refused);
    json_member_u64(json, "rate_limited", counts->limited);
    json_member_u64(json, "blocked", counts->blocked);
    json_member_u64(json, "replayed", counts->replayed);
    json_member_u64(json, "agent_unreachable", counts->unreachable);
    json_member_u64(json, "agent_late", counts->late);
    json_member_u64(json, "bodies_full", counts->full);
    json_member_u64(json, "bodies_bytes", sidecar->held.bytes);
    if (sidecar->deliveries) {
        struct delivery_counts events = deliveries_counts(sidecar->deliveries);
        json_member_u64(json, "events_waiting", events.waiting);
        json_member_u64(json, "events_sent", events.sent);
        json_member_u64(json, "events_refused", events.refused);
        json_member_u64(json, "events_dropped", events.dropped);
        json_member_u64(json, "event_attempts_failed", events.failed);
    }
    json_close(json);
}

void sidecar_write_health(const struct sidecar *sidecar, bool counts, struct buf *out) {
    const struct sidecar_options *options = sidecar->options;
    bool healthy = agent_health_is_healthy(sidecar->health) && !sidecar->stopping;
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "status", healthy ? STR("healthy") : STR("loading"));
    json_member_str(&json, "agent_name", options->agent_name);
    json_member_str(&json, "version",
                    options->agent_version.len ? options->agent_version : STR("0.1.0"));
    json_member_str(&json, "sidecar", STR("agentbreeder"));
    json_member_str(&json, "agent", options->agent_name);
    json_member_str(&json, "agent_version", options->agent_version);
    json_member_str(&json, "agent_url", options->agent_url);
    write_rules(sidecar, &json);
    json_member_bool(&json, "otel_enabled", sidecar->exporter != NULL);
    json_member_bool(&json, "cost_enabled", options->api_url.len > 0);
    write_names(options, &json);
    if (counts) write_counts(sidecar, &json);
    json_close(&json);
}

/* --- the parts -------------------------------------------------------------------------------- */

static bool add_rule(struct sidecar *sidecar, const struct guardrail_rule *rule,
                     struct err *e) {
    if (!guardrail_new(rule, &sidecar->rules[sidecar->rule_count], e))
        return err_add(e, "guardrail '" STR_FMT "'", STR_ARG(rule->name));
    sidecar->rule_count++;
    return true;
}

/* The default rules come first, and the one for cards may want a check digit. */
static bool make_rules(struct sidecar *sidecar, struct err *e) {
    const struct sidecar_options *options = sidecar->options;
    sidecar->rules =
        mem_zero(GUARDRAIL_PERSONAL_COUNT + options->rule_count, sizeof(struct guardrail *));
    for (size_t i = 0; options->default_rules && i < GUARDRAIL_PERSONAL_COUNT; i++) {
        struct guardrail_rule rule = guardrail_personal[i];
        rule.luhn |= options->luhn && str_find(rule.name, STR("credit-card")) < rule.name.len;
        if (!add_rule(sidecar, &rule, e)) return false;
    }
    for (size_t i = 0; i < options->rule_count; i++) {
        if (!add_rule(sidecar, &options->rules[i], e)) return false;
    }
    const struct guardrails all = {sidecar->rules, sidecar->rule_count};
    sidecar->request_rules = all;
    if (options->scan_answers) sidecar->answer_rules = all;
    return true;
}

/* Our tokens, and what may hold one: the arguments of other MCP servers, headers of telemetry. */
static bool sidecar_is_ours(const char *entry) {
    static const char *const prefixes[] = {"AGENT_AUTH_TOKEN=", "AGENTBREEDER_",
                                           "WEIR_SIDECAR_"};
    struct str value, name = str_split(str_from(entry), '=', &value);
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (str_starts(str_from(entry), str_from(prefixes[i]))) return true;
    }
    return str_starts(name, STR("OTEL_")) && str_ends(name, STR("_HEADERS"));
}

static void make_environment(struct process *process) {
    size_t count = 0, kept = 0;
    const char *const *from = process->run->environment;
    while (from[count]) count++;
    process->environment = mem_zero(count + 1, sizeof(*process->environment));
    for (size_t i = 0; i < count; i++) {
        if (!sidecar_is_ours(from[i])) process->environment[kept++] = from[i];
    }
}

static void make_programs(struct process *process) {
    struct sidecar *sidecar = &process->sidecar;
    const struct sidecar_options *options = sidecar->options;
    make_environment(process);
    sidecar->programs = mem_zero(options->tool_count, sizeof(struct tool_program *));
    for (size_t i = 0; i < options->tool_count; i++) {
        const struct sidecar_tools *tools = &options->tools[i];
        if (!tools->args) continue;
        sidecar->programs[i] =
            program_new(&(struct tool_program_options){.loop = sidecar->loop,
                                                       .name = tools->name,
                                                       .args = tools->args,
                                                       .environment = process->environment,
                                                       .held = &sidecar->held,
                                                       .answer_ms = options->first_byte_ms});
    }
}

static bool make_deliveries(struct sidecar *sidecar, struct err *e) {
    const struct sidecar_options *options = sidecar->options;
    if (!options->api_url.len) return true;
    return deliveries_new(&(struct deliveries_options){.loop = sidecar->loop,
                                                       .pool = sidecar->pool,
                                                       .url = options->api_url,
                                                       .token = options->api_token,
                                                       .file = options->outbox},
                          &sidecar->deliveries, e);
}

/* A URL that holds /v1/ is the whole one, as in the published sidecar. */
static bool make_exporter(struct sidecar *sidecar, struct err *e) {
    const struct sidecar_options *options = sidecar->options;
    struct str endpoint = options->otlp_endpoint;
    if (!endpoint.len) return true;
    return exporter_start(
        &(struct exporter_options){.endpoint = endpoint,
                                   .whole = str_find(endpoint, STR("/v1/")) < endpoint.len,
                                   .headers = &options->otlp_headers,
                                   .service = options->agent_name,
                                   .version = options->agent_version},
        &sidecar->exporter, e);
}

static void make_parts(struct process *process) {
    struct sidecar *sidecar = &process->sidecar;
    const struct sidecar_options *options = sidecar->options;
    sidecar->held.max_bytes = options->bodies_max_bytes;
    sidecar->prices = price_book_new(options->prices, options->price_count);
    sidecar->accounts = accounts_new(sidecar->prices);
    sidecar->rates = rate_limits_new(options->rates);
    if (options->idempotency_ms) sidecar->replays = replays_new(options->idempotency_ms);
    sidecar->health = agent_health_new(sidecar->pool, sidecar->loop, options->agent_url);
    helpers_init(sidecar);
    sidecar->helper_tables[0] = &sidecar->helper_table;
    sidecar->helpers = route_site_new(sidecar->loop, sidecar->helper_tables, 1);
    make_programs(process);
}

static void free_parts(struct process *process) {
    struct sidecar *sidecar = &process->sidecar;
    for (size_t i = 0; sidecar->programs && i < sidecar->options->tool_count; i++)
        program_free(sidecar->programs[i]);
    free(sidecar->programs);
    free(process->environment);
    agent_health_free(sidecar->health);
    deliveries_free(sidecar->deliveries);
    replays_free(sidecar->replays);
    accounts_free(sidecar->accounts);
    rate_limits_free(sidecar->rates);
    price_book_free(sidecar->prices);
    for (size_t i = 0; i < sidecar->rule_count; i++) guardrail_free(sidecar->rules[i]);
    free(sidecar->rules);
    if (sidecar->helpers) route_site_free(sidecar->helpers);
}

/* --- listening -------------------------------------------------------------------------------- */

static bool listen_at(struct sidecar *sidecar, const char *name, struct str address,
                      exchange_start_fn *on_request, struct err *e) {
    static const struct field always[] = {
        {STR_INIT("x-runtime-contract-version"), STR_INIT("1")},
    };
    static const struct refusal_form form = {STR_INIT("application/json"), door_refusal_body,
                                             always, ARRAY_LEN(always)};
    if (!address.len) return true;
    return server_listen(sidecar->server,
                         &(struct listener_options){.name = str_from(name),
                                                    .address = address,
                                                    .on_request = on_request,
                                                    .ctx = sidecar,
                                                    .refusal = &form},
                         e);
}

static bool listen_on_all(struct sidecar *sidecar, struct err *e) {
    const struct sidecar_options *options = sidecar->options;
    return listen_at(sidecar, "inbound", options->inbound, door_on_request, e) &&
           listen_at(sidecar, "a2a", options->a2a, door_on_helper_request, e) &&
           listen_at(sidecar, "mcp", options->mcp, door_on_helper_request, e) &&
           listen_at(sidecar, "cost", options->cost, door_on_helper_request, e);
}

static void report_ready(const struct process *process) {
    const struct server *server = process->sidecar.server;
    const struct sidecar_ports ports = {
        server_port(server, STR("inbound")), server_port(server, STR("a2a")),
        server_port(server, STR("mcp")), server_port(server, STR("cost"))};
    if (process->run->on_ready) process->run->on_ready(&ports, process->run->ctx);
}

/* --- stopping --------------------------------------------------------------------------------- */

static void on_signal_closed(uv_handle_t *handle) {
    struct process *process = handle->data;
    if (--process->open_signals == 0) loop_stop(process->sidecar.loop);
}

static void close_signals(struct process *process) {
    for (size_t i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&process->signals[i], on_signal_closed);
}

static void on_deliveries_stopped(void *ctx) {
    close_signals(ctx);
}

/* No connection is left. */
static void on_server_stopped(void *ctx) {
    struct process *process = ctx;
    struct sidecar *sidecar = &process->sidecar;
    relay_cut_all(sidecar);
    if (sidecar->deliveries)
        deliveries_stop(sidecar->deliveries, on_deliveries_stopped, process);
    else
        close_signals(process);
}

static void on_signal(uv_signal_t *handle, int number) {
    struct process *process = handle->data;
    struct sidecar *sidecar = &process->sidecar;
    uint64_t now_ms = loop_now_ms(sidecar->loop);
    (void)number;
    if (sidecar->stopping) {
        if (now_ms - process->stopped_ms < SECOND_SIGNAL_MS) return;
        log_last(LOG_WARNING, "a second signal: stopping at once");
        _exit(1);
    }
    sidecar->stopping = true;
    process->stopped_ms = now_ms;
    log_info("stopping; requests have %llu s to end",
             (unsigned long long)sidecar->options->stop_ms / 1000);
    route_site_stop(sidecar->helpers);
    server_stop(sidecar->server, sidecar->options->stop_ms, on_server_stopped, process);
}

static void watch_signals(struct process *process) {
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT};
    sigset_t watched;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigemptyset(&watched);
    for (size_t i = 0; i < SIGNALS; i++) {
        uv_signal_init(loop_uv(process->sidecar.loop), &process->signals[i]);
        process->signals[i].data = process;
        uv_signal_start(&process->signals[i], on_signal, numbers[i]);
        sigaddset(&watched, numbers[i]);
        process->open_signals++;
    }
    pthread_sigmask(SIG_UNBLOCK, &watched, NULL);
}

/* --- the start -------------------------------------------------------------------------------- */

/* Let handles that are closing end. */
static void drain(struct loop *loop) {
    static struct mail last;
    loop_post(loop, &last, (task_fn *)loop_stop, loop);
    loop_run(loop);
}

static bool sidecar_start(struct process *process, struct err *e) {
    struct sidecar *sidecar = &process->sidecar;
    return http_pool_need(sidecar->pool, e) && make_rules(sidecar, e) &&
           make_deliveries(sidecar, e) && make_exporter(sidecar, e) &&
           listen_on_all(sidecar, e);
}

bool sidecar_run(const struct sidecar_run *run, struct err *e) {
    struct process process = {.run = run};
    struct sidecar *sidecar = &process.sidecar;
    sidecar->options = run->options;
    sidecar->loop = loop_new();
    sidecar->pool = http_pool_new();
    http_pool_add(sidecar->pool, sidecar->loop);
    sidecar->server = server_new(&sidecar->loop, 1);
    list_init(&sidecar->relays);
    bool good = sidecar_start(&process, e);
    if (good) {
        make_parts(&process);
        watch_signals(&process);
        report_ready(&process);
        loop_run(sidecar->loop);
    }
    free_parts(&process);
    http_pool_leave(sidecar->pool, sidecar->loop);
    drain(sidecar->loop);
    server_free(sidecar->server);
    exporter_stop(sidecar->exporter); /* no relay is left that could report */
    http_pool_free(sidecar->pool);
    loop_free(sidecar->loop);
    log_often_flush();
    return good;
}
