/* usage: what the model calls of a workspace used, by day, agent, model or workspace.
 *
 * The store returns one sum for each workspace, agent, model and day; sums of the same group
 * are added up here. If calls did not report what they used, the sum says so. */
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "provider/price.h"
#include "wire/moment.h"

#include <inttypes.h>
#include <stdlib.h>

#define ANSWER_MAX_BYTES (16 * MIB)
#define BODY_MAX_BYTES (64 * MIB)
#define TEXT_MAX_BYTES 256 /* of a date or a cost */

/* One group: its common text or day, and its sums. */
struct group {
    struct str key;
    struct store_usage sum;
};

typedef struct str group_key_fn(const struct store_usage *usage);

static struct str key_of_day(const struct store_usage *usage) {
    return str_of(&usage->day, sizeof(usage->day));
}

static struct str key_of_agent(const struct store_usage *usage) {
    return usage->agent;
}

static struct str key_of_model(const struct store_usage *usage) {
    return usage->sums.model;
}

static struct str key_of_workspace(const struct store_usage *usage) {
    return usage->workspace;
}

static const struct grouping {
    const char *name;
    group_key_fn *key;
} groupings[] = {
    {"day", key_of_day},
    {"agent", key_of_agent},
    {"model", key_of_model},
    {"workspace", key_of_workspace},
};

struct usage_call {
    struct route_call *call; /* NULL once it is gone */
    struct arena *arena;     /* of the request's text */
    struct store_load load;
    bool loading;
    struct str agent, model; /* empty: any */
    const struct grouping *by;
};

/* --- summing ------------------------------------------------------------------------------ */

static void add_usage(struct store_usage *sum, const struct store_usage *more) {
    sum->calls = usage_sum(sum->calls, more->calls);
    sum->tokens_unknown = usage_sum(sum->tokens_unknown, more->tokens_unknown);
    sum->cost_unknown = usage_sum(sum->cost_unknown, more->cost_unknown);
    usage_add(&sum->sums, &more->sums);
    sum->estimated = usage_sum(sum->estimated, more->estimated);
    sum->estimate_tokens = usage_sum(sum->estimate_tokens, more->estimate_tokens);
    sum->estimate_cost_nano = usage_sum(sum->estimate_cost_nano, more->estimate_cost_nano);
}

static bool weir_usage_is_wanted(const struct usage_call *usage,
                                 const struct store_usage *one) {
    return (usage->agent.len == 0 || str_equal(usage->agent, one->agent)) &&
           (usage->model.len == 0 || str_equal(usage->model, one->sums.model));
}

static int by_key(const void *a, const void *b) {
    const struct group *one = a, *other = b;
    return str_compare(one->key, other->key);
}

static int by_day(const void *a, const void *b) {
    const struct group *one = a, *other = b;
    return (one->sum.day > other->sum.day) - (one->sum.day < other->sum.day);
}

/* The groups, sorted; free() them. Keys borrow the load. */
static struct group *make_groups(const struct usage_call *usage, size_t *ret_count) {
    const struct store_load *load = &usage->load;
    struct group *groups = mem_zero(load->usage_count + 1, sizeof(*groups));
    struct map *known = map_new();
    size_t count = 0;
    for (size_t i = 0; i < load->usage_count; i++) {
        const struct store_usage *one = &load->usages[i];
        if (!weir_usage_is_wanted(usage, one)) continue;
        struct str key = usage->by->key(one);
        struct group *group = map_find(known, key);
        if (!group) {
            group = &groups[count++];
            *group = (struct group){.key = key, .sum.day = one->day};
            map_put(known, key, group);
        }
        add_usage(&group->sum, one);
    }
    map_free(known);
    qsort(groups, count, sizeof(*groups), usage->by->key == key_of_day ? by_day : by_key);
    *ret_count = count;
    return groups;
}

/* --- as JSON ------------------------------------------------------------------------------ */

/* Days that a calendar cannot write have no name. */
static void write_day(struct json_writer *json, const char *key, int64_t day) {
    char room[TEXT_MAX_BYTES];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (moment_put(&text, day * MOMENT_DAY_S, 0)) {
        json_member_str(json, key, str_head(buf_str(&text), strlen("yyyy-mm-dd")));
    } else {
        json_member_null(json, key);
    }
}

static void append_estimate(struct buf *out, const struct store_usage *sum) {
    if (sum->estimate_cost_nano == 0) return;
    buf_append(out, STR(", about $"));
    price_append_dollars(out, sum->estimate_cost_nano);
    buf_append(out, STR(" by estimate"));
}

static void append_cost(struct buf *out, const struct store_usage *sum) {
    if (sum->calls && sum->cost_unknown == sum->calls) {
        buf_append(out, STR("unknown"));
        append_estimate(out, sum);
        return;
    }
    if (sum->cost_unknown) buf_append(out, STR("at least "));
    buf_append_byte(out, '$');
    price_append_dollars(out, sum->sums.cost_nano);
    if (sum->cost_unknown)
        buf_printf(out, "; %" PRId64 " call%s of unknown cost", sum->cost_unknown,
                   sum->cost_unknown == 1 ? "" : "s");
    append_estimate(out, sum);
}

static void write_sum(struct json_writer *json, const struct store_usage *sum) {
    char room[TEXT_MAX_BYTES];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    json_member_i64(json, "calls", sum->calls);
    json_member_i64(json, "calls_tokens_unknown", sum->tokens_unknown);
    json_member_i64(json, "calls_cost_unknown", sum->cost_unknown);
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const char *name = usage_fields[i].sum_name;
        if (name) json_member_i64(json, name, usage_get(&sum->sums, &usage_fields[i]));
    }
    json_member_i64(json, "calls_estimated", sum->estimated);
    json_member_i64(json, "estimated_tokens", sum->estimate_tokens);
    json_member_i64(json, "estimated_cost_nano_usd", sum->estimate_cost_nano);
    json_member_i64(json, "cost_nano_usd", sum->sums.cost_nano);
    price_append_dollars(&text, sum->sums.cost_nano);
    json_member_str(json, "cost_usd", buf_str(&text));
    text.len = 0;
    append_cost(&text, sum);
    json_member_str(json, "cost", buf_str(&text));
}

static void write_group(struct json_writer *json, const struct usage_call *usage,
                        const struct group *group) {
    json_open_object(json);
    if (usage->by->key == key_of_day) {
        write_day(json, usage->by->name, group->sum.day);
    } else {
        json_member_str(json, usage->by->name, group->key);
    }
    write_sum(json, &group->sum);
    json_close(json);
}

static void write_answer(struct json_writer *json, const struct usage_call *usage) {
    size_t count;
    struct group *groups = make_groups(usage, &count);
    struct store_usage total = {.calls = 0};
    write_day(json, "from", usage->load.from_day);
    write_day(json, "to", usage->load.to_day);
    json_member_str(json, "by", str_from(usage->by->name));
    json_member_array(json, "usage");
    for (size_t i = 0; i < count; i++) {
        write_group(json, usage, &groups[i]);
        add_usage(&total, &groups[i].sum);
    }
    json_close(json);
    json_member_object(json, "total");
    write_sum(json, &total);
    json_close(json);
    free(groups);
}

/* --- GET /weir/v1/usage ------------------------------------------------------------------- */

static void usage_free(struct usage_call *usage) {
    arena_free(usage->load.arena);
    arena_free(usage->arena);
    free(usage);
}

static void on_over(void *ctx) {
    struct usage_call *usage = ctx;
    usage->call = NULL;
    if (!usage->loading) usage_free(usage);
}

static const struct route_watch watch = {.left = on_over, .closed = on_over};

static void refuse_failed(struct route_call *call, const struct err *failed) {
    if (failed->code == ERR_RESOURCE_EXHAUSTED) {
        route_refuse(call, 422, STR("TOO_MUCH"), "ask for fewer days, or for one workspace");
        return;
    }
    api_refuse_store(call, "usage", failed);
}

static void weir_usage_on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct usage_call *usage = ctx;
    struct route_json reply;
    (void)load;
    usage->loading = false;
    if (!usage->call) {
        usage_free(usage);
        return;
    }
    if (failed) {
        refuse_failed(usage->call, failed);
        return;
    }
    write_answer(route_json_object(&reply, BODY_MAX_BYTES), usage);
    route_json_reply(&reply, usage->call, 200);
}

/* --- the request -------------------------------------------------------------------------- */

/* Read a date such as "2026-01-31"; default: `usual`. */
static bool take_day(struct api_request *request, struct str name, int64_t usual,
                     int64_t *ret) {
    char room[TEXT_MAX_BYTES];
    struct buf whole = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    struct str text;
    struct err e;
    int64_t unix_s;
    *ret = usual;
    if (!api_request_value(request, name, &text)) return false;
    if (text.len == 0) return true;
    bool ok = text.len == strlen("yyyy-mm-dd") && buf_append(&whole, text) &&
              buf_append(&whole, STR("T00:00:00Z")) &&
              moment_read(buf_str(&whole), &unix_s, &e);
    if (!ok)
        return api_request_refuse(request, 422, STR_FMT " must be a day such as 2026-01-31",
                                  STR_ARG(name));
    *ret = unix_s >= 0 ? unix_s / MOMENT_DAY_S : -1 - (-1 - unix_s) / MOMENT_DAY_S;
    return true;
}

/* Read the range of days; default: this month. */
static bool take_days(struct api_request *request, struct store_load *load) {
    int64_t today = clock_unix_ms() / 1000 / MOMENT_DAY_S, first = today;
    char room[TEXT_MAX_BYTES];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    uint64_t day;
    if (moment_put(&text, today * MOMENT_DAY_S, 0) &&
        str_to_u64(str_of(text.at + strlen("yyyy-mm-"), 2), &day))
        first = today - ((int64_t)day - 1);
    if (!take_day(request, STR("to"), today, &load->to_day)) return false;
    if (first > load->to_day) first = load->to_day;
    if (!take_day(request, STR("from"), first, &load->from_day)) return false;
    return load->from_day <= load->to_day ||
           api_request_refuse(request, 422, "from must not be later than to");
}

static bool take_grouping(struct api_request *request, const struct grouping **ret) {
    struct str name;
    *ret = &groupings[0];
    if (!api_request_value(request, STR("by"), &name)) return false;
    if (name.len == 0) return true;
    for (size_t i = 0; i < ARRAY_LEN(groupings); i++) {
        *ret = &groupings[i];
        if (str_equal(name, str_from(groupings[i].name))) return true;
    }
    return api_request_refuse(request, 422, "by must be day, agent, model or workspace");
}

/* Sums belong to a workspace. Every user of the workspace may see them. */
static bool take_workspace(struct api_request *request, struct store_load *load) {
    const struct api_caller *caller = &request->caller;
    struct str own = api_workspace(caller);
    if (!api_request_value(request, STR("workspace"), &load->workspace)) return false;
    bool asked = load->workspace.len > 0;
    if (asked && !caller->all_workspaces && !str_equal(load->workspace, own)) {
        route_refuse(request->call, 403, STR("FORBIDDEN"), "this belongs to another workspace");
        return false;
    }
    load->all_workspaces = !asked && caller->all_workspaces;
    if (asked || caller->all_workspaces) return true;
    return arena_str(request->arena, own, &load->workspace) ||
           api_request_refuse(request, 400, "the workspace's name is too long");
}

void api_get_usage(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "agent", "model", "from",
                                        "to",        "by",    NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    struct usage_call usage = {.call = call};
    if (!api_request_begin(&request, call, instance, names)) return;
    if (!take_workspace(&request, &usage.load) || !take_days(&request, &usage.load) ||
        !take_grouping(&request, &usage.by) ||
        !api_request_value(&request, STR("agent"), &usage.agent) ||
        !api_request_value(&request, STR("model"), &usage.model)) {
        arena_free(request.arena);
        return;
    }
    struct usage_call *kept = MEM_NEW(struct usage_call);
    *kept = usage;
    kept->arena = request.arena;
    kept->load.question = STORE_USAGE;
    kept->load.max_bytes = ANSWER_MAX_BYTES;
    kept->load.home = instance->loop;
    kept->load.on_loaded = weir_usage_on_loaded;
    kept->load.ctx = kept;
    kept->loading = true;
    route_watch(call, &watch, kept);
    store_load(instance->store, &kept->load);
}
