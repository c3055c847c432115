/* The cost helper: what an agent's model call has cost. */
#include "base/clock.h"
#include "base/mem.h"
#include "sidecar/helpers.h"
#include "wire/moment.h"

#include <stdlib.h>

#define EVENT_MAX_BYTES (64 * KIB)

/* The event as posted; texts live in the arena. */
struct cost_event {
    struct str agent, version, model, provider, trace_id, occurred_at;
    struct spent_usage usage;
    bool costs; /* cost_usd was posted */
};

/* --- reading ---------------------------------------------------------------------------------- */

static bool cost_read_text(struct json event, const char *name, struct arena *arena,
                           struct str *ret, struct err *e) {
    struct json value = json_find(event, str_from(name));
    if (json_is_absent(value)) return true;
    return json_str(value, arena, ret) ||
           err_set(e, ERR_INVALID_ARGUMENT, "'%s' is a string", name);
}

static bool read_tokens(struct json event, const char *name, int64_t *ret, struct err *e) {
    struct json value = json_find(event, str_from(name));
    *ret = TOKENS_UNKNOWN;
    if (json_is_absent(value)) return true;
    return (json_i64(value, ret) && *ret >= 0) ||
           err_set(e, ERR_INVALID_ARGUMENT, "'%s' is a whole number, 0 or more", name);
}

/* Dollars, exactly as they were written where that is possible. */
static bool read_cost(struct json event, struct cost_event *ret, struct err *e) {
    struct json value = json_find(event, STR("cost_usd"));
    double dollars;
    struct err why;
    ret->usage.cost_nano = TOKENS_UNKNOWN;
    ret->costs = value.kind == JSON_NUMBER;
    if (json_is_absent(value)) return true;
    if (price_read_dollars(value.raw, &ret->usage.cost_nano, &why)) return true;
    if (!json_double(value, &dollars) || !(dollars >= 0 && dollars < 1e9))
        return err_set(e, ERR_INVALID_ARGUMENT, "'cost_usd' is a number, 0 or more");
    ret->usage.cost_nano = (int64_t)(dollars * 1e9 + 0.5);
    return true;
}

static bool cost_read_event(struct json event, struct arena *arena, struct cost_event *ret,
                            struct err *e) {
    *ret = (struct cost_event){.usage.total = TOKENS_UNKNOWN};
    struct str *const texts[] = {&ret->agent,    &ret->version,  &ret->model,
                                 &ret->provider, &ret->trace_id, &ret->occurred_at};
    static const char *const names[] = {"agent",    "agent_version", "model",
                                        "provider", "trace_id",      "occurred_at"};
    if (event.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "an event is a JSON object");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        *texts[i] = STR_EMPTY;
        if (!cost_read_text(event, names[i], arena, texts[i], e)) return false;
    }
    if (!ret->model.len) return err_set(e, ERR_INVALID_ARGUMENT, "'model' is required");
    if (!read_tokens(event, "input_tokens", &ret->usage.input, e) ||
        !read_tokens(event, "output_tokens", &ret->usage.output, e) ||
        !read_cost(event, ret, e))
        return false;
    ret->usage.model = ret->model;
    if (ret->usage.input != TOKENS_UNKNOWN && ret->usage.output != TOKENS_UNKNOWN)
        ret->usage.total = usage_sum(ret->usage.input, ret->usage.output);
    return true;
}

/* --- events for the platform ------------------------------------------------------------------ */

static void member(struct json_writer *json, const char *name, struct str text) {
    if (text.len) json_member_str(json, name, text);
}

static void cost_count(struct json_writer *json, const char *name, int64_t tokens) {
    if (tokens != TOKENS_UNKNOWN) json_member_i64(json, name, tokens);
}

static void write_dollars(struct json_writer *json, int64_t nano) {
    struct buf dollars;
    if (nano == TOKENS_UNKNOWN) return;
    buf_init(&dollars, 64);
    price_append_dollars(&dollars, nano);
    json_member_raw(json, "cost_usd", buf_str(&dollars));
    buf_done(&dollars);
}

static void write_published(const struct cost_event *event, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    member(&json, "agent", event->agent);
    member(&json, "agent_version", event->version);
    member(&json, "model", event->model);
    member(&json, "provider", event->provider);
    cost_count(&json, "input_tokens", event->usage.input);
    cost_count(&json, "output_tokens", event->usage.output);
    write_dollars(&json, event->usage.cost_nano);
    member(&json, "trace_id", event->trace_id);
    member(&json, "occurred_at", event->occurred_at);
    json_close(&json);
}

static void write_audit(const struct cost_event *event, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "event_type", STR("cost.recorded"));
    json_member_str(&json, "actor", STR("sidecar"));
    json_member_str(&json, "resource", event->agent);
    json_member_object(&json, "metadata");
    member(&json, "model", event->model);
    cost_count(&json, "input_tokens", event->usage.input);
    cost_count(&json, "output_tokens", event->usage.output);
    write_dollars(&json, event->usage.cost_nano);
    member(&json, "trace_id", event->trace_id);
    json_close(&json);
    member(&json, "timestamp", event->occurred_at);
    json_close(&json);
}

static void write_platform(const struct cost_event *event, struct str team, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "agent_name", event->agent);
    json_member_str(&json, "team", team);
    json_member_str(&json, "model_name", event->model);
    json_member_str(&json, "provider", event->provider.len ? event->provider : STR("unknown"));
    cost_count(&json, "input_tokens", event->usage.input);
    cost_count(&json, "output_tokens", event->usage.output);
    write_dollars(&json, event->usage.cost_nano);
    member(&json, "trace_id", event->trace_id);
    json_close(&json);
}

/* --- the call --------------------------------------------------------------------------------- */

struct cost_call {
    struct route_call *call;
    struct sidecar *sidecar;
};

static void cost_on_left(void *ctx) {
    struct cost_call *cost = ctx;
    if (cost->sidecar->deliveries) deliveries_forget(cost->sidecar->deliveries, cost);
    free(cost);
}

static void cost_on_closed(void *ctx) {
    free(ctx);
}

static const struct route_watch watch = {.left = cost_on_left, .closed = cost_on_closed};

static void cost_accept(struct route_call *call) {
    route_reply(call, 202, STR("application/json"), STR("{\"status\":\"recorded\"}"));
}

static void cost_on_kept(const struct err *failed, void *ctx) {
    struct cost_call *cost = ctx;
    if (!failed) {
        cost_accept(cost->call);
        return;
    }
    route_field(cost->call, STR("retry-after"), STR("5"));
    route_fail(cost->call,
               &(struct route_failure){503, STR("UNAVAILABLE"), err_text(failed), STR_EMPTY});
}

static void cost_deliver(struct sidecar *sidecar, struct route_call *call,
                         const struct cost_event *event) {
    struct buf first, second;
    bool platform = sidecar->options->platform_routes;
    struct cost_call *cost = MEM_NEW(struct cost_call);
    *cost = (struct cost_call){call, sidecar};
    buf_init(&first, 2 * EVENT_MAX_BYTES);
    buf_init(&second, 2 * EVENT_MAX_BYTES);
    if (platform) {
        write_platform(event, sidecar->options->team, &first);
    } else {
        write_published(event, &first);
        write_audit(event, &second);
    }
    const struct delivery_event events[] = {
        {platform ? STR("/api/v1/costs/events") : STR("/api/v1/costs"), buf_str(&first), false},
        {STR("/api/v1/audit"), buf_str(&second), true}};
    route_watch(call, &watch, cost);
    deliveries_put(sidecar->deliveries, events, platform ? 1 : 2, cost_on_kept, cost);
    buf_done(&second);
    buf_done(&first);
}

/* Fill in what the agent left out. */
static bool cost_complete(const struct sidecar *sidecar, struct arena *arena,
                          struct cost_event *event) {
    struct buf now;
    int64_t unix_ms = clock_unix_ms();
    if (!event->agent.len) event->agent = sidecar->options->agent_name;
    if (!event->version.len) event->version = sidecar->options->agent_version;
    if (!event->costs)
        event->usage.cost_nano = accounts_cost(sidecar->accounts, &event->usage, unix_ms);
    if (event->occurred_at.len) return true;
    buf_init(&now, 64);
    moment_put(&now, unix_ms / 1000, 0);
    bool fits = arena_str(arena, buf_str(&now), &event->occurred_at);
    buf_done(&now);
    return fits;
}

static void cost_take(struct sidecar *sidecar, struct route_call *call, struct json json,
                      struct arena *arena) {
    struct cost_event event;
    struct err e;
    err_set(&e, ERR_TOO_LARGE, "the event is too large");
    if (!cost_read_event(json, arena, &event, &e) || !cost_complete(sidecar, arena, &event)) {
        route_fail(call,
                   &(struct route_failure){400, STR("INVALID_INPUT"), err_text(&e), STR_EMPTY});
        return;
    }
    (void)accounts_post(sidecar->accounts, event.trace_id, &event.usage);
    if (sidecar->deliveries)
        cost_deliver(sidecar, call, &event);
    else
        cost_accept(call);
}

void helpers_cost(struct route_call *call, void *ctx) {
    struct json json;
    struct err e;
    struct arena *arena = arena_new(2 * EVENT_MAX_BYTES);
    struct str body = lent_read(route_body(call));
    if (body.len > EVENT_MAX_BYTES)
        route_fail(call, &(struct route_failure){413, STR("PAYLOAD_TOO_LARGE"),
                                                 STR("the event is too large"), STR_EMPTY});
    else if (!json_read(body, &json, &e))
        route_fail(call,
                   &(struct route_failure){400, STR("INVALID_INPUT"), err_text(&e), STR_EMPTY});
    else
        cost_take(ctx, call, json, arena);
    arena_free(arena);
}
