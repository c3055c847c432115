/* workflow_node: what a node takes, asks and makes. Pure, from the values of its inputs.
 *
 * The inputs of a node are one JSON object: slot to value. What a node makes is its output, a
 * JSON object; every other named output is a member of it.
 *
 * Memory   results are in the arena, or in the caller's buffer.
 * Threads  none; values only.
 * Source   contracts/nimi.md 6.3 "Node semantics".
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOW_NODE_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOW_NODE_H

#include "contract/nimi/job/job_fold.h"
#include "contract/nimi/job/workflow_graph.h"
#include "wire/json.h"

/* Append the value of one named output of a node that is completed; nothing when it has none.
 * False at the buffer's limit. */
bool workflow_output_named(struct str output, struct str name, struct buf *out);

/* How the nodes before a merge ended. */
struct workflow_merged {
    size_t completed, all;
};

/* Make the output of a node that calls no model.
 * errors  AI_INPUT_INVALID, WF_NODE_CONFIG_MISMATCH with a sentence */
MUST_CHECK bool workflow_node_make(const struct graph_node *node, struct json inputs,
                                   const struct workflow_merged *merged, struct buf *out,
                                   struct fault *fault);

/* Build the job of an AI node's attempt, asked by `app` for `subject`. `ret` points into the
 * arena and to these.
 * errors  AI_INPUT_INVALID */
MUST_CHECK bool workflow_node_ask(const struct graph_node *node, struct json inputs,
                                  struct str app, struct str subject, struct arena *arena,
                                  struct nimi_submit_scenario_job_request *ret,
                                  struct fault *fault);

/* Make the output of an AI node from its completed job.
 * errors  AI_OUTPUT_INVALID */
MUST_CHECK bool workflow_node_take(const struct job_fold *job, struct buf *out,
                                   struct fault *fault);

#endif
