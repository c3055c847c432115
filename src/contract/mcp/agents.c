#include "contract/mcp/agents.h"

#include "base/mem.h"
#include "contract/mcp/agent_call.h"
#include "session/decision.h"
#include "session/waiting.h"
#include "turn/run.h"

#include <stdlib.h>

#define RESULT_MAX_BYTES (128 * MIB)
#define REPORT_MAX_BYTES (8 * MIB)

/* --- the table ---------------------------------------------------------------------------- */

#define INPUT_SCHEMA                                                                           \
    "{\"type\":\"object\",\"properties\":{"                                                    \
    "\"message\":{\"type\":\"string\",\"description\":\"what the agent is to do, or the "      \
    "decision that it waits for\"},"                                                           \
    "\"session\":{\"type\":\"string\",\"description\":\"the conversation to go on with; "      \
    "without it a new one begins\"},"                                                          \
    "\"approval\":{\"type\":\"string\",\"description\":\"the id of the question that message " \
    "decides\"}},\"required\":[\"message\"],\"additionalProperties\":false}"

#define ANNOTATIONS "{\"readOnlyHint\":false,\"idempotentHint\":false,\"openWorldHint\":true}"

/* Structured content is an object, so a schema of anything else cannot describe it. */
static struct str schema_of(const struct agent *agent) {
    struct json type = json_find(json_of(agent->schema_text), STR("type"));
    return agent->schema_text.len && json_is(type, STR("object")) ? agent->schema_text
                                                                  : STR_EMPTY;
}

static bool describe(const struct agent *agent, struct arena *arena, struct str *ret) {
    struct buf text;
    if (agent->description.len) return arena_str(arena, agent->description, ret);
    buf_init(&text, 4 * KIB);
    buf_append(&text, STR("Sends a message to the agent "));
    buf_append(&text, agent->slug);
    buf_append(&text, STR(" and returns its answer."));
    bool kept = arena_str(arena, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

/* A reload may replace the engine while a call is read, so what is lent is copied. */
static bool agents_at(size_t index, const struct toolserver_caller *caller, struct arena *arena,
                      struct toolserver_tool *ret, void *ctx) {
    const struct mcp_instance *instance = ctx;
    const struct engine *engine = instance->host->engine;
    (void)caller;
    if (index >= engine->agent_count) return false;
    const struct agent *agent = &engine->agents[index];
    struct toolserver_tool tool = {.input_schema = STR(INPUT_SCHEMA),
                                   .annotations = STR(ANNOTATIONS),
                                   .output_schema = agent_result_schema,
                                   .lasts = true};
    struct str schema = schema_of(agent);
    if (!arena_str(arena, agent->slug, &tool.name) ||
        !describe(agent, arena, &tool.description) ||
        (schema.len && !arena_str(arena, schema, &tool.output_schema)))
        return false;
    *ret = tool;
    return true;
}

static const struct agent *find_agent(const struct mcp_instance *instance, struct str slug) {
    const struct engine *engine = instance->host->engine;
    for (size_t i = 0; i < engine->agent_count; i++) {
        if (str_equal(engine->agents[i].slug, slug)) return &engine->agents[i];
    }
    return NULL;
}

static struct session_table *table_of(const struct agent_call *agent_call) {
    return agent_call->instance->host->engine->sessions;
}

static struct directory *directory_of(const struct agent_call *agent_call) {
    return session_table_directory(table_of(agent_call));
}

/* --- its life ----------------------------------------------------------------------------- */

static void agent_call_free(struct agent_call *agent_call) {
    dormant_wake_cancel(agent_call->wake);
    follow_free(agent_call->follow);
    stream_free(agent_call->stream);
    run_unref(agent_call->run);
    free(agent_call);
}

/* The answer is out; the call must not be touched any more. */
static void finish(struct agent_call *agent_call, const struct buf *result) {
    if (buf_ok(result)) {
        toolserver_call_answer(agent_call->call, buf_str(result));
    } else {
        toolserver_call_fail(agent_call->call,
                             STR("the answer is larger than a result may be"));
    }
    agent_call_free(agent_call);
}

static void fail_with(struct agent_call *agent_call, struct str reason, struct str message) {
    struct buf result;
    buf_init(&result, RESULT_MAX_BYTES);
    agent_result_failed(agent_call, reason, message, &result);
    finish(agent_call, &result);
    buf_done(&result);
}

static void fail_call(struct agent_call *agent_call, const struct err *why) {
    fail_with(agent_call, err_name(why->code), err_text(why));
}

/* What becomes of the run. */
static void leave_run(struct agent_call *agent_call, struct leaving leaving, struct str why) {
    if (agent_call->run) {
        run_leave(agent_call->run, leaving, why);
    } else if (agent_call->run_id) {
        directory_leave(directory_of(agent_call), agent_call->run_id, leaving, why);
    }
}

static void on_cancelled(void *ctx) {
    struct agent_call *agent_call = ctx;
    struct str why = STR("the client cancelled the call");
    if (agent_call->run) {
        run_cancel(agent_call->run, why);
    } else if (agent_call->run_id) {
        directory_cancel(directory_of(agent_call), agent_call->run_id, why);
    }
    agent_call_free(agent_call);
}

/* A run that this call resumed is not this caller's to end before it is known to be. */
static void on_left(bool resumable, void *ctx) {
    struct agent_call *agent_call = ctx;
    struct leaving leaving = agent_call->instance->settings->on_disconnect;
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
        fail_with(agent_call, STR("STOPPING"), STR("the server stops; try again later"));
    }
}

static void on_drained(void *ctx) {
    struct agent_call *agent_call = ctx;
    if (agent_call->stream) stream_drained(agent_call->stream);
    if (agent_call->follow) follow_drained(agent_call->follow);
}

static const struct toolserver_call_watch watch = {
    .cancelled = on_cancelled, .left = on_left, .cut = on_cut, .drained = on_drained};

static struct agent_call *agent_call_new(struct toolserver_call *call,
                                         struct mcp_instance *instance) {
    struct agent_call *agent_call = MEM_NEW(struct agent_call);
    const struct toolserver_caller *caller = toolserver_call_caller(call);
    agent_call->call = call;
    agent_call->instance = instance;
    agent_call->name.workspace = caller->workspace;
    agent_call->name.user = caller->user;
    toolserver_call_watch(call, &watch, agent_call);
    return agent_call;
}

/* --- progress ----------------------------------------------------------------------------- */

static void report(struct agent_call *agent_call, const char *kind, struct str agent,
                   struct str message) {
    struct buf meta;
    if (agent_call->seq <= agent_call->after_seq) return;
    buf_init(&meta, 4 * KIB);
    struct json_writer w = json_writer(&meta);
    json_open_object(&w);
    json_member_str(&w, "weir/event", str_from(kind));
    json_member_str(&w, "weir/agent", agent);
    agent_result_write_id(&w, "weir/run", agent_call->run_id, 0);
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
    report(agent_call, begins ? "tool_call" : "tool_result", event->agent, buf_str(&text));
    buf_done(&text);
}

/* The first event of a run says whose it is. */
static void take_started(struct agent_call *agent_call, const struct event *event) {
    struct arena *arena = toolserver_call_arena(agent_call->call);
    const struct agent *agent = find_agent(agent_call->instance, event->agent);
    if (!agent_call->follow || agent_call->known) return;
    bool own = str_equal(event->started.workspace, agent_call->name.workspace) &&
               str_equal(event->started.user, agent_call->name.user) &&
               str_equal(event->started.contract, STR("mcp"));
    if (!own || !arena_str(arena, event->started.session, &agent_call->name.session)) return;
    if (agent && schema_of(agent).len &&
        !arena_str(arena, schema_of(agent), &agent_call->schema))
        return;
    agent_call->known = true;
    toolserver_call_resumed(agent_call->call);
}

static void project(const struct event *event, enum close_frame frame, void *ctx) {
    struct agent_call *agent_call = ctx;
    (void)frame;
    agent_call->seq = event->seq;
    if (event->kind == EVENT_STARTED) take_started(agent_call, event);
    if (agent_call->follow && !agent_call->known) return;
    if (event->kind == EVENT_TEXT) report(agent_call, "text", event->agent, event->text.text);
    if (event->kind == EVENT_STEP)
        report(agent_call, "step", event->agent, event->step.description);
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
        report(agent_call, "text", agent, buf_str(&joined));
    buf_done(&joined);
}

/* A question that the client has seen and that was answered since ends nothing. */
static enum stream_verdict judge(const struct event *event, void *ctx) {
    const struct agent_call *agent_call = ctx;
    bool foreign = agent_call->follow && !agent_call->known && event->seq > 1;
    if (foreign) return STREAM_FAILS;
    if (event->kind != EVENT_APPROVAL) return stream_judge(event);
    return event->seq > agent_call->after_seq ? STREAM_FINISHES : STREAM_GOES_ON;
}

static struct route_call *route_of(void *ctx) {
    return toolserver_call_route(((struct agent_call *)ctx)->call);
}

static size_t queued(void *ctx) {
    return route_queued(route_of(ctx));
}

static void wake_at(size_t low, void *ctx) {
    route_wake_at(route_of(ctx), low);
}

static uint64_t stalled_ms(void *ctx) {
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

static void refuse_unknown(struct agent_call *agent_call) {
    toolserver_call_refuse(agent_call->call, JSONRPC_INVALID_PARAMS,
                           STR("this call is not known here; make it again"));
    agent_call_free(agent_call);
}

static void ended(struct close_ending ending, enum close_cause cause, const struct event *last,
                  void *ctx) {
    struct agent_call *agent_call = ctx;
    struct buf result;
    (void)ending;
    if (agent_call->follow && !agent_call->known) {
        refuse_unknown(agent_call);
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
    finish(agent_call, &result);
    buf_done(&result);
}

static const struct stream_wire wire = {
    .judge = judge,
    .project = project,
    .project_texts = project_texts,
    .queued = queued,
    .wake_at = wake_at,
    .stalled_ms = stalled_ms,
    .heartbeat = heartbeat,
    .ended = ended,
};

/* --- starting ----------------------------------------------------------------------------- */

static void read_journal(struct agent_call *agent_call, struct journal *journal,
                         uint64_t after_seq) {
    const struct mcp_settings *settings = agent_call->instance->settings;
    struct stream_options options = {.loop = toolserver_call_loop(agent_call->call),
                                     .journal = journal,
                                     .after_seq = after_seq,
                                     .mode = CLOSE_DONE,
                                     .paces = agent_call->run != NULL,
                                     .stall_ms = settings->stall_ms,
                                     .heartbeat_ms = settings->heartbeat_ms,
                                     .wire = &wire,
                                     .ctx = agent_call};
    struct err e;
    agent_call->run_id = journal_run(journal);
    agent_call->seq = agent_call->after_seq = after_seq;
    toolserver_call_set_run(agent_call->call, agent_call->run_id, after_seq);
    if (stream_open(&options, &agent_call->stream, &e)) return;
    leave_run(agent_call, (struct leaving){.how = LEAVING_CANCELS}, STR("it cannot be read"));
    fail_call(agent_call, &e);
}

/* A conversation of its own, unless the client goes on with one. */
static bool name_session(struct agent_call *agent_call, struct err *e) {
    char id[TOOLSERVER_SESSION_BYTES];
    if (agent_call->name.session.len) return true;
    return toolserver_random_id(id, e) &&
           (arena_str(toolserver_call_arena(agent_call->call), str_from(id),
                      &agent_call->name.session) ||
            err_set(e, ERR_RESOURCE_EXHAUSTED, "the call holds too much"));
}

static void start_run(struct agent_call *agent_call) {
    struct err e;
    struct mcp_instance *instance = agent_call->instance;
    if (!name_session(agent_call, &e)) {
        fail_call(agent_call, &e);
        return;
    }
    const struct run_request asked = {.name = agent_call->name,
                                      .agent = agent_call->agent,
                                      .text = agent_call->message,
                                      .schema = agent_call->schema,
                                      .contract = STR("mcp"),
                                      .policy = instance->settings->busy};
    if (run_start(instance->host, &asked, &agent_call->run, &e)) {
        read_journal(agent_call, run_journal(agent_call->run), 0);
    } else {
        fail_call(agent_call, &e);
    }
}

/* --- decisions ---------------------------------------------------------------------------- */

struct words {
    struct str text;
    struct err *e;
};

/* A message that names no question may begin a turn, so only a yes or a no decides then. */
static enum pending_found check_words(const struct pending_question *asked, void *ctx) {
    const struct words *words = ctx;
    return decision_settles(asked, words->text, words->e);
}

static void begin(struct agent_call *agent_call);

static void on_awake(const struct err *failed, void *ctx) {
    struct agent_call *agent_call = ctx;
    agent_call->wake = NULL;
    if (failed) {
        fail_call(agent_call, failed);
    } else {
        begin(agent_call);
    }
}

static void wake_runs(struct agent_call *agent_call, const struct pending_answer *answer) {
    const struct dormant_filter filter = session_sleepers(answer);
    agent_call->wake =
        dormant_wake_start(directory_of(agent_call), &filter, DORMANT_WAKE_MAX,
                           toolserver_call_loop(agent_call->call), on_awake, agent_call);
    if (!agent_call->wake) begin(agent_call); /* the runs woke up meanwhile */
}

static void ask_again(struct agent_call *agent_call, const struct pending_view *view) {
    struct buf result;
    buf_init(&result, RESULT_MAX_BYTES);
    agent_call->run_id = view->run;
    agent_result_waiting(agent_call, view, &result);
    finish(agent_call, &result);
    buf_done(&result);
}

static void refuse_answer(struct agent_call *agent_call, enum pending_found found,
                          const struct err *e) {
    if (found == PENDING_REFUSED) {
        fail_call(agent_call, e);
    } else if (found == PENDING_SEVERAL) {
        fail_with(agent_call, STR("SESSION_WAITING"),
                  STR("several runs of this session wait for a person; name the one that the "
                      "message decides, in approval"));
    } else {
        fail_with(agent_call, STR("NOT_FOUND"),
                  STR("no run of this session waits with this question: it was decided, or the "
                      "run is over"));
    }
}

static struct pending_answer answer_of(const struct agent_call *agent_call) {
    return (struct pending_answer){.name = agent_call->name,
                                   .rule = PENDING_ONLY_ONE,
                                   .run = agent_call->approval_run,
                                   .seq = agent_call->approval_seq,
                                   .text = agent_call->message,
                                   .arena = toolserver_call_arena(agent_call->call)};
}

/* The question must be of this caller's session: the id of another's finds a run as well. */
static bool may_answer(const struct agent_call *agent_call) {
    struct live_view view;
    if (!agent_call->approval_run) return true;
    if (!directory_find(directory_of(agent_call), agent_call->approval_run, &view)) return true;
    bool own = str_equal(view.workspace, agent_call->name.workspace) &&
               str_equal(view.user, agent_call->name.user) &&
               str_equal(view.session, agent_call->name.session);
    live_view_done(&view);
    return own;
}

static void settle(struct agent_call *agent_call) {
    struct err e = {.code = ERR_NONE};
    struct words words = {agent_call->message, &e};
    struct pending_answer answer = answer_of(agent_call);
    struct pending_answered answered;
    bool named = agent_call->approval_run > 0;
    if (!named) {
        answer.check = check_words;
        answer.check_ctx = &words;
    }
    enum pending_found found =
        may_answer(agent_call) ? session_settle(table_of(agent_call), &answer, &answered, &e)
                               : PENDING_NONE;
    if (found == PENDING_TAKEN) {
        read_journal(agent_call, answered.journal, answered.seq);
        journal_unref(answered.journal);
    } else if (found == PENDING_ASLEEP) {
        wake_runs(agent_call, &answer);
    } else if (found == PENDING_UNDECIDED) {
        ask_again(agent_call, &answered.stays);
    } else if (found == PENDING_NONE && !named) {
        start_run(agent_call);
    } else {
        refuse_answer(agent_call, found, &e);
    }
}

static void begin(struct agent_call *agent_call) {
    bool waits = agent_call->name.session.len &&
                 (agent_call->approval_run ||
                  session_has_pending(table_of(agent_call), &agent_call->name));
    if (waits) {
        settle(agent_call);
    } else {
        start_run(agent_call);
    }
}

/* --- the functions of the table ----------------------------------------------------------- */

static void agents_call(struct toolserver_call *call, const struct toolserver_tool *tool,
                        struct json arguments, void *ctx) {
    struct mcp_instance *instance = ctx;
    struct err e;
    const struct agent *agent = find_agent(instance, tool->name);
    struct agent_call *agent_call = agent_call_new(call, instance);
    struct arena *arena = toolserver_call_arena(call);
    agent_call->agent = tool->name;
    if (agent && schema_of(agent).len) agent_call->schema = tool->output_schema;
    if (agent_call_read(arguments, arena, agent_call, &e)) {
        begin(agent_call);
    } else {
        fail_call(agent_call, &e);
    }
}

static void on_begun(void *ctx) {
    (void)ctx; /* its first event says whose it is */
}

static void on_missing(const struct err *failed, void *ctx) {
    struct agent_call *agent_call = ctx;
    if (failed && agent_call->known) {
        fail_call(agent_call, failed);
    } else {
        refuse_unknown(agent_call);
    }
}

/* From the first event on, because that says whose run it is. */
static void agents_resume(struct toolserver_call *call, uint64_t run, uint64_t after_seq,
                          void *ctx) {
    struct mcp_instance *instance = ctx;
    struct agent_call *agent_call = agent_call_new(call, instance);
    const struct mcp_settings *settings = instance->settings;
    agent_call->run_id = run;
    agent_call->after_seq = after_seq;
    const struct follow_options options = {.loop = toolserver_call_loop(call),
                                           .directory = directory_of(agent_call),
                                           .store = session_table_store(table_of(agent_call)),
                                           .run = run,
                                           .mode = CLOSE_DONE,
                                           .stall_ms = settings->stall_ms,
                                           .heartbeat_ms = settings->heartbeat_ms,
                                           .wire = &wire,
                                           .begun = on_begun,
                                           .missing = on_missing,
                                           .ctx = agent_call};
    agent_call->follow = follow_new(&options);
}

const struct toolserver_table mcp_agents = {
    .at = agents_at, .call = agents_call, .resume = agents_resume};
