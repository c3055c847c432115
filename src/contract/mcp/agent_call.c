#include "contract/mcp/agent_call.h"

#include "base/mem.h"
#include "server/exchange_trace.h"
#include "turn/cancel_run.h"
#include "turn/run.h"
#include "wire/event_json.h"

#include <stdlib.h>

#define RESULT_MAX_BYTES (128 * MIB)
#define REPORT_MAX_BYTES (8 * MIB)

/* Structured content is an object, so a schema of anything else cannot describe it. */
struct str agent_call_schema(const struct agent *agent) {
    struct json type = json_find(json_of(agent->schema_text), STR("type"));
    return agent->schema_text.len && json_is(type, STR("object")) ? agent->schema_text
                                                                  : STR_EMPTY;
}

struct session_table *agent_call_sessions(const struct agent_call *agent_call) {
    return agent_call->instance->guest.site.host->engine->sessions;
}

struct directory *agent_call_directory(const struct agent_call *agent_call) {
    return session_table_directory(agent_call_sessions(agent_call));
}

/* --- its life ----------------------------------------------------------------------------- */

static void agent_call_free(struct agent_call *agent_call) {
    dormant_wake_cancel(agent_call->wake);
    elsewhere_cancel(agent_call->elsewhere);
    follow_free(agent_call->follow);
    stream_free(agent_call->stream);
    run_unref(agent_call->run);
    free(agent_call);
}

/* The answer is out; the call must not be touched any more. */
void agent_call_finish(struct agent_call *agent_call, const struct buf *result) {
    if (buf_ok(result)) {
        toolserver_call_answer(agent_call->call, buf_str(result));
    } else {
        toolserver_call_fail(agent_call->call,
                             STR("the answer is larger than a result may be"));
    }
    agent_call_free(agent_call);
}

void agent_call_fail_with(struct agent_call *agent_call, struct str reason,
                          struct str message) {
    struct buf result;
    buf_init(&result, RESULT_MAX_BYTES);
    agent_result_failed(agent_call, reason, message, &result);
    agent_call_finish(agent_call, &result);
    buf_done(&result);
}

void agent_call_fail(struct agent_call *agent_call, const struct err *why) {
    agent_call_fail_with(agent_call, err_name(why->code), err_text(why));
}

/* What becomes of the run. */
static void leave_run(struct agent_call *agent_call, struct leaving leaving, struct str why) {
    if (agent_call->run) {
        run_leave(agent_call->run, leaving, why);
    } else if (agent_call->run_id) {
        directory_leave(agent_call_directory(agent_call), agent_call->run_id, leaving, why);
    }
}

static void on_cancelled(void *ctx) {
    struct agent_call *agent_call = ctx;
    struct str why = STR("the client cancelled the call");
    if (agent_call->run) {
        run_cancel(agent_call->run, why);
    } else if (agent_call->run_id) {
        cancel_run_send(agent_call_sessions(agent_call),
                        agent_call->instance->guest.site.host->loop, agent_call->run_id, why);
    }
    agent_call_free(agent_call);
}

/* A run that this call resumed is not this caller's to end before it is known to be. */
static void on_left(bool resumable, void *ctx) {
    struct agent_call *agent_call = ctx;
    struct leaving leaving = agent_call->instance->guest.settings->rules.on_disconnect;
    if (!resumable) leaving = (struct leaving){.how = LEAVING_CANCELS};
    if (!agent_call->follow || agent_call->known)
        leave_run(agent_call, leaving, STR("the client left"));
    agent_call_free(agent_call);
}

static void on_cut(void *ctx) {
    struct agent_call *agent_call = ctx;
    if (agent_call->stream) {
        stream_end(agent_call->stream, CAUSE_STOPPING);
    } else if (agent_call->follow) {
        follow_end(agent_call->follow, CAUSE_STOPPING);
    } else {
        agent_call_fail_with(agent_call, STR("STOPPING"),
                             STR("the server stops; try again later"));
    }
}

static void agent_call_on_drained(void *ctx) {
    struct agent_call *agent_call = ctx;
    if (agent_call->stream) stream_drained(agent_call->stream);
    if (agent_call->follow) follow_drained(agent_call->follow);
}

static const struct toolserver_call_watch watch = {.cancelled = on_cancelled,
                                                   .left = on_left,
                                                   .cut = on_cut,
                                                   .drained = agent_call_on_drained};

/* MCP has it in `_meta`, for the transport's headers may be those of a gateway; else they say
 * it. */
static void read_trace(struct agent_call *agent_call) {
    struct toolserver_call *call = agent_call->call;
    struct json meta = toolserver_call_meta(call);
    struct arena *arena = toolserver_call_arena(call);
    struct trace_state state = {.len = 0};
    struct trace_context read;
    struct str parent, more;
    if (json_str(json_find(meta, STR("traceparent")), arena, &parent)) {
        if (!trace_context_read(parent, &read)) return;
        if (json_str(json_find(meta, STR("tracestate")), arena, &more))
            trace_state_add(&state, more);
        read.state = trace_state_str(&state);
        agent_call->trace = trace_context_copy(&read, arena);
        return;
    }
    struct trace_context *trace = exchange_trace(route_exchange(toolserver_call_route(call)));
    if (trace) agent_call->trace = trace_context_copy(trace, arena);
    free(trace);
}

struct agent_call *agent_call_new(struct toolserver_call *call, struct mcp_instance *instance) {
    struct agent_call *agent_call = MEM_NEW(struct agent_call);
    const struct toolserver_caller *caller = toolserver_call_caller(call);
    agent_call->call = call;
    agent_call->instance = instance;
    agent_call->name.workspace = caller->workspace;
    agent_call->name.user = caller->user;
    read_trace(agent_call);
    toolserver_call_watch(call, &watch, agent_call);
    return agent_call;
}

/* --- progress ----------------------------------------------------------------------------- */

static void agent_call_report(struct agent_call *agent_call, const char *kind, struct str agent,
                              struct str message) {
    struct buf meta;
    if (agent_call->seq <= agent_call->after_seq) return;
    buf_init(&meta, 4 * KIB);
    struct json_writer w = json_writer(&meta);
    json_open_object(&w);
    json_member_str(&w, "weir/event", str_from(kind));
    json_member_str(&w, "weir/agent", agent);
    event_json_id(&w, "weir/run", agent_call->run_id);
    json_close(&w);
    toolserver_call_report(agent_call->call, agent_call->seq, message,
                           buf_ok(&meta) ? buf_str(&meta) : STR_EMPTY);
    buf_done(&meta);
}

static void report_tool(struct agent_call *agent_call, const struct event *event) {
    struct buf text;
    bool begins = event->kind == EVENT_TOOL_CALL;
    buf_init(&text, REPORT_MAX_BYTES);
    if (begins) {
        buf_append(&text, STR("calls "));
        buf_append(&text, event->tool_call.tool);
    } else {
        buf_append(&text, event->tool_result.error ? STR("the tool failed")
                                                   : STR("the tool answered"));
    }
    agent_call_report(agent_call, begins ? "tool_call" : "tool_result", event->agent,
                      buf_str(&text));
    buf_done(&text);
}

/* The first event of a run says whose it is. */
static bool is_own(const struct agent_call *agent_call, const struct event *event) {
    return event->kind == EVENT_STARTED &&
           str_equal(event->started.workspace, agent_call->name.workspace) &&
           str_equal(event->started.user, agent_call->name.user) &&
           str_equal(event->started.contract, STR("mcp"));
}

static void take_started(struct agent_call *agent_call, const struct event *event) {
    struct arena *arena = toolserver_call_arena(agent_call->call);
    const struct agent *agent =
        engine_agent(agent_call->instance->guest.site.host->engine, event->agent);
    if (!agent_call->follow || agent_call->known) return;
    if (!is_own(agent_call, event) ||
        !arena_str(arena, event->started.session, &agent_call->name.session))
        return;
    if (agent && agent_call_schema(agent).len &&
        !arena_str(arena, agent_call_schema(agent), &agent_call->schema))
        return;
    agent_call->known = true;
    toolserver_call_resumed(agent_call->call);
}

static void agent_call_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct agent_call *agent_call = ctx;
    (void)frame;
    agent_call->seq = event->seq;
    if (event->kind == EVENT_STARTED) take_started(agent_call, event);
    if (agent_call->follow && !agent_call->known) return;
    if (event->kind == EVENT_TEXT)
        agent_call_report(agent_call, "text", event->agent, event->text.text);
    if (event->kind == EVENT_STEP)
        agent_call_report(agent_call, "step", event->agent, event->step.description);
    if (event->kind == EVENT_TOOL_CALL || event->kind == EVENT_TOOL_RESULT)
        report_tool(agent_call, event);
}

/* Texts that come together are one report. */
static void project_texts(struct str texts, size_t count, void *ctx) {
    struct agent_call *agent_call = ctx;
    struct buf joined;
    struct str agent = STR_EMPTY, text;
    (void)count;
    buf_init(&joined, REPORT_MAX_BYTES);
    while (event_take_text(&texts, &agent, &text)) {
        agent_call->seq++;
        if (agent_call->seq > agent_call->after_seq) buf_append(&joined, text);
    }
    if (joined.len && (!agent_call->follow || agent_call->known))
        agent_call_report(agent_call, "text", agent, buf_str(&joined));
    buf_done(&joined);
}

/* A question that the client has seen and that was answered since ends nothing. */
static enum stream_verdict agent_call_judge(const struct event *event, void *ctx) {
    const struct agent_call *agent_call = ctx;
    bool foreign = agent_call->follow && !agent_call->known && !is_own(agent_call, event);
    if (foreign) return STREAM_FAILS;
    if (event->kind != EVENT_APPROVAL) return stream_judge(event);
    return event->seq > agent_call->after_seq ? STREAM_FINISHES : STREAM_GOES_ON;
}

static struct route_call *route_of(void *ctx) {
    return toolserver_call_route(((struct agent_call *)ctx)->call);
}

static size_t agent_call_queued(void *ctx) {
    return route_pressure(route_of(ctx));
}

static void agent_call_wake_at(size_t low, void *ctx) {
    route_wake_at(route_of(ctx), low);
}

static uint64_t agent_call_stalled_ms(void *ctx) {
    return route_stalled_ms(route_of(ctx));
}

static void heartbeat(void *ctx) {
    toolserver_call_heartbeat(((struct agent_call *)ctx)->call);
}

/* --- endings ------------------------------------------------------------------------------ */

static void answer_waiting(const struct agent_call *agent_call, const struct event *event,
                           struct buf *out) {
    const struct pending_view view = {.run = agent_call->run_id,
                                      .seq = event->seq,
                                      .asked = {.question = event->approval.question,
                                                .tool = event->approval.tool,
                                                .args = event->approval.args}};
    agent_result_waiting(agent_call, &view, out);
}

/* `last` is NULL if the cause is outside the journal. */
static void answer_ending(const struct agent_call *agent_call, const struct event *last,
                          struct buf *out) {
    enum event_kind kind = last ? last->kind : EVENT_KIND_COUNT;
    if (kind == EVENT_DONE) {
        agent_result_done(agent_call, last, out);
    } else if (kind == EVENT_APPROVAL) {
        answer_waiting(agent_call, last, out);
    } else if (kind == EVENT_FAILED) {
        agent_result_failed(agent_call, last->failed.reason, last->failed.message, out);
    } else if (kind == EVENT_CANCELLED) {
        agent_result_failed(agent_call, STR("CANCELLED"), last->cancelled.message, out);
    } else {
        agent_result_failed(agent_call, STR("STOPPING"),
                            STR("the call was cut short: the server stops"), out);
    }
}

void agent_call_refuse(struct agent_call *agent_call) {
    toolserver_call_refuse(agent_call->call, JSONRPC_INVALID_PARAMS,
                           STR("this call is not known here; make it again"));
    agent_call_free(agent_call);
}

static void agent_call_ended(struct close_ending ending, enum close_cause cause,
                             const struct event *last, void *ctx) {
    struct agent_call *agent_call = ctx;
    struct buf result;
    (void)ending;
    if (agent_call->follow && !agent_call->known) {
        agent_call_refuse(agent_call);
        return;
    }
    if (cause == CAUSE_STALLED) { /* `left` follows */
        route_cut(toolserver_call_route(agent_call->call));
        return;
    }
    if (!last)
        leave_run(agent_call, (struct leaving){.how = LEAVING_CANCELS},
                  STR("the server stops"));
    buf_init(&result, RESULT_MAX_BYTES);
    answer_ending(agent_call, last, &result);
    agent_call_finish(agent_call, &result);
    buf_done(&result);
}

const struct stream_wire agent_call_wire = {
    .judge = agent_call_judge,
    .project = agent_call_project,
    .project_texts = project_texts,
    .queued = agent_call_queued,
    .wake_at = agent_call_wake_at,
    .stalled_ms = agent_call_stalled_ms,
    .heartbeat = heartbeat,
    .ended = agent_call_ended,
};

/* --- reading ------------------------------------------------------------------------------ */

void agent_call_read_journal(struct agent_call *agent_call, struct journal *journal,
                             uint64_t after_seq) {
    const struct http_turn_rules *rules = &agent_call->instance->guest.settings->rules;
    struct stream_options options = {.loop = agent_call->instance->guest.site.host->loop,
                                     .journal = journal,
                                     .after_seq = after_seq,
                                     .mode = CLOSE_DONE,
                                     .paces = agent_call->run != NULL,
                                     .stall_ms = rules->stall_ms,
                                     .heartbeat_ms = rules->heartbeat_ms,
                                     .wire = &agent_call_wire,
                                     .ctx = agent_call};
    struct err e;
    agent_call->run_id = journal_run(journal);
    agent_call->seq = agent_call->after_seq = after_seq;
    toolserver_call_set_run(agent_call->call, agent_call->run_id, after_seq);
    if (stream_open(&options, &agent_call->stream, &e)) return;
    leave_run(agent_call, (struct leaving){.how = LEAVING_CANCELS}, STR("it cannot be read"));
    agent_call_fail(agent_call, &e);
}
