/* What may run next, when a failed node runs again, and what failures mean for the workflow. */
#include "contract/nimi/job/workflow_graph.h"

/* How a dependency ended, for the node that waits for it. */
struct tally {
    size_t completed, failed, skipped;
};

/* A branch that did not select this target is, for it, a skipped dependency. */
static bool was_not_selected(const struct workflow_graph *graph, const struct node_view *views,
                             size_t branch, size_t target) {
    const struct graph_node *node = &graph->nodes[branch];
    if (!node->is_branch) return false;
    struct str id = graph->nodes[target].node->node_id;
    const struct nimi_branch_node_config *config = node->node->branch_config;
    bool is_target = str_equal(config->true_target, id) || str_equal(config->false_target, id);
    return is_target && views[branch].selected != target;
}

/* False: a dependency is not over. */
static bool tally_up(const struct workflow_graph *graph, const struct node_view *views,
                     size_t index, struct tally *ret) {
    const struct graph_node *node = &graph->nodes[index];
    *ret = (struct tally){0};
    for (size_t i = 0; i < node->before_count; i++) {
        size_t from = node->before[i];
        const struct node_view *view = &views[from];
        if (!node_is_over(view->state)) return false;
        if (view->state == NODE_COMPLETED && !was_not_selected(graph, views, from, index)) {
            ret->completed++;
        } else if (view->state == NODE_COMPLETED ||
                   (view->state == NODE_SKIPPED && view->skip == SKIP_NOT_SELECTED)) {
            ret->skipped++;
        } else {
            ret->failed++;
        }
    }
    return true;
}

enum node_turn workflow_turn(const struct workflow_graph *graph, const struct node_view *views,
                             size_t index, enum node_skip *ret_why) {
    const struct graph_node *node = &graph->nodes[index];
    struct tally tally;
    if (views[index].state != NODE_PENDING || !tally_up(graph, views, index, &tally))
        return TURN_WAIT;
    if (node->before_count && tally.completed == 0 && tally.failed == 0) {
        *ret_why = SKIP_NOT_SELECTED;
        return TURN_SKIP;
    }
    if (tally.failed && !node->is_merge) {
        *ret_why = SKIP_UPSTREAM_FAILED;
        return TURN_SKIP;
    }
    return TURN_RUN;
}

static bool needs_only_some(const struct graph_node *node) {
    if (!node->is_merge) return false;
    int strategy = node->node->merge_config->strategy;
    return strategy == NIMI_MERGE_STRATEGY_ANY || strategy == NIMI_MERGE_STRATEGY_N_OF_M;
}

bool workflow_may_recover(const struct workflow_graph *graph, size_t index) {
    bool seen[WORKFLOW_NODES_MAX] = {false};
    size_t queue[WORKFLOW_NODES_MAX], count = 0;
    queue[count++] = index;
    for (size_t next = 0; next < count; next++) {
        const struct graph_node *node = &graph->nodes[queue[next]];
        for (size_t i = 0; i < node->after_count; i++) {
            size_t after = node->after[i];
            if (needs_only_some(&graph->nodes[after])) return true;
            if (!seen[after]) queue[count++] = after;
            seen[after] = true;
        }
    }
    return false;
}

enum verdict { NOT_JUDGED, MADE_GOOD, NOT_MADE_GOOD };

/* Whether everything that waited for the failed node went on without it. Paths are as deep as
 * the graph, which has no cycle; each node is judged once. */
static bool was_made_good(const struct workflow_graph *graph, const struct node_view *views,
                          size_t index, enum verdict *verdicts) {
    const struct graph_node *node = &graph->nodes[index];
    if (verdicts[index]) return verdicts[index] == MADE_GOOD;
    bool good = node->after_count > 0;
    for (size_t i = 0; i < node->after_count && good; i++) {
        size_t after = node->after[i];
        const struct node_view *view = &views[after];
        bool skipped = view->state == NODE_SKIPPED && view->skip == SKIP_UPSTREAM_FAILED;
        good = (view->state == NODE_COMPLETED && graph->nodes[after].is_merge) ||
               (skipped && was_made_good(graph, views, after, verdicts));
    }
    verdicts[index] = good ? MADE_GOOD : NOT_MADE_GOOD;
    return good;
}

size_t workflow_failure(const struct workflow_graph *graph, const struct node_view *views) {
    enum verdict verdicts[WORKFLOW_NODES_MAX] = {NOT_JUDGED};
    for (size_t i = 0; i < graph->count; i++) {
        if (views[i].state == NODE_FAILED && !was_made_good(graph, views, i, verdicts))
            return i;
    }
    return SIZE_MAX;
}

/* --- another attempt ---------------------------------------------------------------------- */

bool workflow_attempt_helps(int reason) {
    switch (reason) {
    case NIMI_AI_PROVIDER_UNAVAILABLE:
    case NIMI_AI_PROVIDER_TIMEOUT:
    case NIMI_AI_PROVIDER_RATE_LIMITED:
    case NIMI_AI_PROVIDER_INTERNAL:
    case NIMI_AI_STREAM_BROKEN: return true;
    default: return false;
    }
}

uint64_t workflow_backoff_ms(const struct workflow_backoff *backoff, int32_t retries) {
    unsigned doublings = backoff->doubles ? (unsigned)retries : 0;
    uint64_t wait_ms = backoff->first_ms << doublings; /* at most ten minutes, ten times */
    return wait_ms < WORKFLOW_BACKOFF_MAX_MS ? wait_ms : WORKFLOW_BACKOFF_MAX_MS;
}
