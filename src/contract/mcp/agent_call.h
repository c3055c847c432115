/* agent_call: one call of an agent as a tool: a run, reported and answered.
 *
 *     arguments ─▶ a run of the session waits ─▶ the message is its decision ─┐
 *         │                                                                   ▼
 *         └─▶ a new run ───────────────────────────────────▶ its journal ─▶ progress ─▶ answer
 *                              a stream that broke: the journal, from its start ──▲
 *
 * Private to this contract.
 *
 * Memory   freed with the answer, or when no answer is wanted any more.
 * Threads  the loop of its call.
 */
#ifndef WEIR_CONTRACT_MCP_AGENT_CALL_H
#define WEIR_CONTRACT_MCP_AGENT_CALL_H

#include "contract/mcp/agents.h"
#include "session/elsewhere.h"
#include "stream/follow.h"
#include "toolserver/call.h"
#include "wire/trace_context.h"

struct agent_call {
    struct toolserver_call *call;
    struct mcp_instance *instance;
    struct session_name name; /* in the call's arena, as `agent` and `message` are */
    struct str agent, message;
    struct str schema; /* what the answer must match, and has as structured content; or empty */
    uint64_t approval_run, approval_seq; /* the question that is answered; 0: none is named */
    const struct trace_context *trace;   /* of the call; NULL: it has none */
    struct run *run; /* started by this call; NULL: it reads another call's */
    uint64_t run_id;
    struct stream *stream; /* of a live run; or ... */
    struct follow *follow; /* ... of a call that is resumed */
    struct dormant_wake *wake;
    struct elsewhere *elsewhere;
    bool looked_elsewhere; /* for a run that waits at another replica */
    uint64_t after_seq;    /* what the client has seen already */
    uint64_t seq;          /* of the last event that was read */
    bool known;            /* the run is the caller's */
};

/* agent_call.c: its life. It watches `call` from now on. */
struct agent_call *agent_call_new(struct toolserver_call *call, struct mcp_instance *instance);

/* Read a live run after this event. */
void agent_call_read_journal(struct agent_call *agent_call, struct journal *journal,
                             uint64_t after_seq);

/* agents.c: read a run that another request began, from the first event after `after_seq`. It is the
 * caller's if `known`; else its first event must say so. */
void agent_call_follow(struct agent_call *agent_call, uint64_t run, uint64_t after_seq);

/* How its run is read; ctx is the agent_call. */
extern const struct stream_wire agent_call_wire;

/* Answer, and free it. `result` is a CallToolResult. */
void agent_call_finish(struct agent_call *agent_call, const struct buf *result);
void agent_call_fail_with(struct agent_call *agent_call, struct str reason, struct str message);
void agent_call_fail(struct agent_call *agent_call, const struct err *why);
void agent_call_refuse(struct agent_call *agent_call); /* a resumed call that is not known */

/* The agent's schema if structured content can follow it, or empty. */
struct str agent_call_schema(const struct agent *agent);

struct session_table *agent_call_sessions(const struct agent_call *agent_call);
struct directory *agent_call_directory(const struct agent_call *agent_call);

/* agent_start.c: begin a turn, or answer the run that waits. */
void agent_call_begin(struct agent_call *agent_call);

/* agent_result.c: append a CallToolResult. */
void agent_result_done(const struct agent_call *agent_call, const struct event *event,
                       struct buf *out);
void agent_result_waiting(const struct agent_call *agent_call, const struct pending_view *view,
                          struct buf *out);
void agent_result_failed(const struct agent_call *agent_call, struct str reason,
                         struct str message, struct buf *out);

/* The structured answer of an agent without a schema. */
extern const struct str agent_result_schema;

#endif
