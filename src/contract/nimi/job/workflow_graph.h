/* workflow_graph: a workflow's definition, checked, and what may run next.
 *
 * A graph is nodes, and edges that carry one named output of a node to one input slot of
 * another. It is checked whole before it is accepted: a definition that is accepted can be run.
 * What runs next is a pure function of the states of the nodes:
 *
 *     pending ─▶ running ⇄ retrying          pending ─▶ skipped | canceled
 *                  └─▶ completed | failed | canceled
 *
 * Memory   everything is in the arena of the definition.
 * Threads  none; values only.
 * Source   contracts/nimi.md 1.7, 3.5, 6.3.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOW_GRAPH_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOW_GRAPH_H

#include "base/arena.h"
#include "base/states.h"
#include "contract/nimi/fault.h"

#define WORKFLOW_NODES_MAX 256
#define WORKFLOW_EDGES_MAX 1024
#define WORKFLOW_ID_MAX_BYTES 128
#define WORKFLOW_CALLBACK_MAX_BYTES 1024 /* every note and event of the node repeats it */
#define WORKFLOW_RETRIES_MAX 10
#define WORKFLOW_BACKOFF_MAX_MS (10 * 60 * 1000)

enum node_state {
    NODE_PENDING,
    NODE_RUNNING,
    NODE_RETRYING, /* an attempt has failed; the next one comes later */
    NODE_COMPLETED,
    NODE_FAILED,
    NODE_SKIPPED,
    NODE_CANCELED,
    NODE_STATE_COUNT,
};

extern const struct state node_states[NODE_STATE_COUNT];
bool node_is_over(enum node_state state);

enum node_skip { SKIP_NONE, SKIP_NOT_SELECTED, SKIP_UPSTREAM_FAILED };

struct workflow_input {
    struct str slot, output; /* the input's name, and that of the output it takes */
    size_t from;             /* index of the node */
};

struct workflow_backoff {
    uint64_t first_ms;
    bool doubles;
};

struct graph_node {
    const struct nimi_workflow_node *node;
    bool is_ai, is_merge, is_branch;
    bool external; /* EXTERNAL_ASYNC */
    bool manual;   /* an attempt that a restart interrupted is not made again */
    struct workflow_backoff backoff;
    size_t *before, *after; /* indices of the nodes it depends on, and of its dependents */
    size_t before_count, after_count;
    struct workflow_input *inputs;
    size_t input_count;
};

struct workflow_graph {
    struct graph_node *nodes;
    size_t count;
};

/* Check the definition. It is borrowed, with all it points to.
 * errors  PROTOCOL_ENVELOPE_INVALID no workflow_type or nodes; WF_DAG_INVALID the graph;
 *         WF_NODE_CONFIG_MISMATCH a node's own configuration; each names the node */
MUST_CHECK bool workflow_graph_read(const struct nimi_workflow_definition *definition,
                                    struct arena *arena, struct workflow_graph *ret,
                                    struct fault *fault);

/* Check one node's own configuration; see workflow_graph_read(). Its inputs are known. */
MUST_CHECK bool workflow_config_check(struct graph_node *node, struct fault *fault);

/* Whether a node of this type has an output of this name. */
bool workflow_config_has_output(const struct graph_node *node, struct str output);

/* --- what comes next ---------------------------------------------------------------------- */

/* What is known of a node while the workflow runs. */
struct node_view {
    enum node_state state;
    enum node_skip skip;
    size_t selected; /* of a branch that is completed: the index of its target */
};

enum node_turn { TURN_WAIT, TURN_RUN, TURN_SKIP };

/* Whether a pending node runs now, is skipped (*ret_why), or waits. */
enum node_turn workflow_turn(const struct workflow_graph *graph, const struct node_view *views,
                             size_t index, enum node_skip *ret_why);

/* Whether the node's failure may still be made good by a merge that needs only some of its
 * inputs. */
bool workflow_may_recover(const struct workflow_graph *graph, size_t index);

/* When all nodes are over: the first node whose failure was not made good by a merge, or
 * SIZE_MAX: the workflow has succeeded. */
size_t workflow_failure(const struct workflow_graph *graph, const struct node_view *views);

/* Whether another attempt of a node that failed for this reason can help. */
bool workflow_attempt_helps(int reason);

/* How long a node waits before its next attempt, after so many repeats (at most ten). */
uint64_t workflow_backoff_ms(const struct workflow_backoff *backoff, int32_t retries);

#endif
