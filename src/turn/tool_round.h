/* tool_round: do what a reply requests: transfers, tool calls and their results.
 *
 * The calls of a reply are recorded first. Once that is on disk they are made in parallel, and
 * the session is lent meanwhile. When all are answered the model is asked again.
 *
 * Memory   none of its own: calls.h.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md.
 */
#ifndef WEIR_TURN_TOOL_ROUND_H
#define WEIR_TURN_TOOL_ROUND_H

#include "base/err.h"
#include "turn/calls.h"

/* The reply is complete and requests at least one call, or asks a human. */
void run_work(struct run *run);

/* Everything up to `seq` is durable. */
void run_work_durable(struct run *run, uint64_t seq);

/* The children are done (session_reclaim() returned false before). */
void run_work_children_done(struct run *run);

/* The turn ends: answer each open call with what is known of its effect. */
void run_stop_tool_round(struct run *run);

/* Record one answer; `result` is a JSON object. */
void run_answer(struct turn_call *call, struct str result, const struct err *failed);

/* Answer with {"error":"..."}, which the model reads. */
void run_answer_error(struct turn_call *call, const struct err *why);

/* A call was answered: make the next ones, or continue the turn. */
void run_calls_continue(struct run *run);

/* How many calls the current agent may make in this turn. */
unsigned run_tool_calls_max(const struct run *run);

#endif
