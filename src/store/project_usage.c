/* Projects the table of usage: sums by workspace, agent, model and day. */
#include "store/projection.h"

#include "base/map.h"

#define DAY_MS INT64_C(86400000)

struct usage_change {
    struct usage_change *next;
    struct usage_sum sum;
};

struct usage_gathered {
    struct map *map;
    struct usage_change *first;
};

static bool sums_open(void *table, struct database *db, struct err *e) {
    return usage_open(table, db, e);
}

static void sums_close(void *table) {
    usage_close(table);
}

struct usage_table *project_usage(const struct project *project) {
    return project_table(project, &project_usage_sums);
}

/* --- gathering ---------------------------------------------------------------------------- */

static void sums_begin(void *at) {
    struct usage_gathered *gathered = at;
    gathered->map = map_new();
}

static void sums_end(void *at) {
    struct usage_gathered *gathered = at;
    map_free(gathered->map);
}

static int64_t day_of(const struct run_change *run, const struct event *event) {
    int64_t at_ms = run_change_time_ms(run, event);
    return at_ms >= 0 ? at_ms / DAY_MS : -1 - (-1 - at_ms) / DAY_MS;
}

static struct usage_change *sum_of(struct batch *batch, struct usage_gathered *gathered,
                                   const struct run_change *run, const struct event *event,
                                   struct err *e) {
    int64_t day = day_of(run, event);
    buf_clear(&batch->key);
    batch_key_add(batch, run->entry.workspace);
    batch_key_add(batch, event->agent);
    batch_key_add(batch, event->usage.model);
    buf_append(&batch->key, str_of(&day, sizeof(day)));
    struct usage_change *usage = map_find(gathered->map, buf_str(&batch->key));
    if (usage) return usage;
    usage = batch_alloc(batch, sizeof(*usage), e);
    if (!usage) return NULL;
    usage->sum = (struct usage_sum){.workspace = run->entry.workspace,
                                    .agent = event->agent,
                                    .model = event->usage.model,
                                    .day = day};
    if (!batch_keep(batch, &usage->sum.agent, e) || !batch_keep(batch, &usage->sum.model, e))
        return NULL;
    usage->next = gathered->first;
    gathered->first = usage;
    map_put(gathered->map, buf_str(&batch->key), usage);
    return usage;
}

static bool sums_take(struct batch *batch, void *gathered, struct run_change *run,
                      const struct event *event, struct err *e) {
    struct usage_change *usage = sum_of(batch, gathered, run, event, e);
    if (!usage) return false;
    usage_sum_add(&usage->sum, &event->usage);
    return true;
}

/* --- writing ------------------------------------------------------------------------------ */

static bool sums_write(struct batch *batch, const void *at, void *table, struct err *e) {
    const struct usage_gathered *gathered = at;
    (void)batch;
    for (const struct usage_change *usage = gathered->first; usage; usage = usage->next) {
        if (!usage_write(table, &usage->sum, e)) return false;
    }
    return true;
}

const struct projection project_usage_sums = {
    .name = "usage",
    .takes = TAKES(EVENT_USAGE),
    .table_bytes = sizeof(struct usage_table),
    .batch_bytes = sizeof(struct usage_gathered),
    .open = sums_open,
    .close = sums_close,
    .begin = sums_begin,
    .take = sums_take,
    .write = sums_write,
    .end = sums_end,
};
