#include "contract/crawbl/converse.h"

#include "base/id.h"
#include "base/mem.h"
#include "base/pool.h"
#include "contract/crawbl/project.h"
#include "proto/runtime.pb.h"
#include "server/exchange_trace.h"
#include "session/decision.h"
#include "session/directory.h"
#include "session/elsewhere.h"
#include "session/waiting.h"
#include "stream/follow.h"
#include "stream/stream.h"
#include "turn/dormant_wake.h"

#include <assert.h>
#include <stdlib.h>

#define QUESTION_MAX_BYTES (32 * MIB) /* the most that a run can hold */
#define UNREAD_TURNS_MAX 16
#define SERVICE "crawbl.agentruntime.v1.AgentRuntime"

/* One open call. */
struct converse {
    struct rpc_call *call;
    struct converse_instance *instance;
    struct stream *stream;      /* of the running turn; NULL: idle */
    struct follow *follow;      /* the same, of a run at another replica */
    struct run *run;            /* started by this call, or NULL */
    uint64_t answered;          /* the waiting run that this message answered, or 0 */
    bool stopping;              /* the daemon stops: no further turn */
    bool over;                  /* the status was set; nothing more is sent */
    bool holds;                 /* the next request waits until the output was read */
    unsigned unread_turns;      /* turns that ended since all output was last read */
    bool greeted;               /* the first request, with its ids, has arrived */
    struct str user, workspace; /* of the token, or of the first request */
    struct engine *engine;      /* of the turn, a reference; NULL: idle */
    struct arena *arena;        /* of a request whose turn has not begun, or NULL */
    struct crawbl_converse_request *request; /* in the arena, or NULL as it is */
    struct workspace_agents_ask ask;
    struct dormant_wake *wake;   /* brings back runs that may wait for this message */
    struct elsewhere *elsewhere; /* finds one that waits for it at another replica */
    bool looked_elsewhere;
    struct converse_shown *shown; /* of the answer that is being sent; NULL: idle */
    struct trace_context *trace;  /* of the stream, and so of its turns; NULL: it has none */
};

/* --- the end of a turn -------------------------------------------------------------------- */

static _Thread_local struct pool shown_answers = POOL(sizeof(struct converse_shown), 256);

static void end_answer(struct converse *converse) {
    if (!converse->shown) return;
    converse_shown_done(converse->shown);
    pool_give(&shown_answers, converse->shown);
    converse->shown = NULL;
}

static void begin_answer(struct converse *converse) {
    end_answer(converse);
    converse->shown = pool_take(&shown_answers);
    converse_shown_init(converse->shown);
}

static void drop_turn(struct converse *converse) {
    end_answer(converse);
    stream_free(converse->stream);
    converse->stream = NULL;
    follow_free(converse->follow);
    converse->follow = NULL;
    run_unref(converse->run);
    converse->run = NULL;
    converse->answered = 0;
    engine_unref(converse->engine);
    converse->engine = NULL;
}

static void end_call(struct converse *converse, enum err_code code, struct str message) {
    converse->over = true;
    rpc_end(converse->call, code, message);
}

/* A client that sends requests and never reads would cause an endless number of paid turns.
 * After this many, its further requests wait in the window of its stream (B5). */
static bool is_unread(struct converse *converse) {
    bool all_read = rpc_queued(converse->call) == 0;
    converse->unread_turns = all_read ? 0 : converse->unread_turns + 1;
    return converse->unread_turns >= UNREAD_TURNS_MAX;
}

/* When the daemon stops, an idle stream ends at once, so that the client dials again (K18). A
 * stream whose client has sent its last request ends OK, stopping or not. */
static void go_on(struct converse *converse) {
    if (converse->stopping && !rpc_client_is_done(converse->call)) {
        end_call(converse, ERR_UNAVAILABLE, STR("the server is shutting down"));
    } else if (is_unread(converse)) {
        converse->holds = true;
        rpc_wake_at(converse->call, 0);
    } else {
        rpc_next(converse->call);
    }
}

static void go_on_when_read(struct converse *converse) {
    converse->holds = false;
    converse->unread_turns = 0;
    rpc_next(converse->call);
}

/* The caller of a run may also be the one who answered its question. */
static void leave_run(struct converse *converse, enum close_cause cause) {
    struct session_table *sessions = converse->instance->host->engine->sessions;
    bool by_caller = close_is_by_peer(cause);
    struct leaving leaving = {.how = LEAVING_NONE};
    struct str why =
        cause == CAUSE_LEFT ? STR("the caller left") : STR("the call was cut short");
    if (by_caller) leaving = converse->instance->settings->on_disconnect;
    if (converse->run) run_leave(converse->run, leaving, why);
    if (converse->answered)
        directory_leave(session_table_directory(sessions), converse->answered, leaving, why);
}

static void on_ended(struct close_ending ending, enum close_cause cause,
                     const struct event *last, void *ctx) {
    struct converse *converse = ctx;
    (void)last;
    bool preempted = ending.status != ERR_NONE;
    if (preempted) leave_run(converse, cause);
    drop_turn(converse);
    if (converse->over) return;
    if (preempted) {
        end_call(converse, ending.status, STR("the turn was cut short"));
    } else {
        go_on(converse);
    }
}

/* --- the wire ----------------------------------------------------------------------------- */

static struct engine *engine_of(const struct converse *converse) {
    return converse->engine ? converse->engine : converse->instance->host->engine;
}

static struct converse_view view_for(const struct converse *converse,
                                     const struct event *event) {
    bool thinks = event && event->kind == EVENT_THINKING;
    const struct agent *agent = thinks ? engine_agent(engine_of(converse), event->agent) : NULL;
    return (struct converse_view){
        .shows_thinking = agent && agent->shows_thinking,
        .errors_as_text = converse->instance->settings->errors_as_text,
    };
}

static void project(const struct event *event, enum close_frame frame, void *ctx) {
    struct converse *converse = ctx;
    (void)frame; /* events show by themselves which one is the last */
    struct converse_view view = view_for(converse, event);
    converse_project(converse->call, event, &view, converse->shown);
}

static void project_texts(struct str texts, size_t count, void *ctx) {
    struct converse *converse = ctx;
    converse_project_texts(converse->call, texts, count, converse->shown);
}

static size_t queued(void *ctx) {
    return rpc_pressure(((struct converse *)ctx)->call);
}

static void wake_at(size_t low, void *ctx) {
    rpc_wake_at(((struct converse *)ctx)->call, low);
}

static uint64_t stalled_ms(void *ctx) {
    return rpc_stalled_ms(((struct converse *)ctx)->call);
}

static const struct stream_wire wire = {
    .judge = stream_judge_question,
    .project = project,
    .project_texts = project_texts,
    .queued = queued,
    .wake_at = wake_at,
    .stalled_ms = stalled_ms,
    .ended = on_ended,
};

/* --- a request ---------------------------------------------------------------------------- */

static struct str or_else(struct str text, const char *other) {
    return text.len ? text : str_from(other);
}

/* Identify the caller, and check that the body agrees (K8, K15). */
static bool identify(struct converse *converse, const struct crawbl_converse_request *request,
                     struct err *e) {
    const struct crawbl_guard *pins = &converse->instance->settings->guard;
    bool lenient = converse->instance->settings->lenient;
    const struct rpc_identity *token = rpc_identity(converse->call);
    bool first = !converse->greeted;
    if (first && !lenient && (!request->workspace_id.len || !request->user_id.len)) {
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "converse: workspace_id and user_id are required on the first request of "
            "a stream");
    }
    struct str user = converse->user, workspace = converse->workspace;
    if (token->known) {
        user = token->user;
        workspace = token->workspace;
    } else if (first) {
        user = request->user_id.len ? request->user_id : or_else(pins->user, "anonymous");
        workspace = request->workspace_id.len ? request->workspace_id
                                              : or_else(pins->workspace, "default");
    }
    bool other_user = request->user_id.len && !str_equal(request->user_id, user);
    bool other_workspace =
        request->workspace_id.len && !str_equal(request->workspace_id, workspace);
    if (!lenient && (other_user || other_workspace)) {
        return err_set(e, ERR_PERMISSION_DENIED,
                       "converse: the request names another %s than the stream's identity",
                       other_user ? "user" : "workspace");
    }
    if (!crawbl_guard_serves(pins, user, workspace, e)) return false;
    if (first) {
        converse->user = token->known ? user : rpc_keep(converse->call, user);
        converse->workspace = token->known ? workspace : rpc_keep(converse->call, workspace);
        converse->greeted = true;
    }
    return true;
}

static bool check_ids(const struct crawbl_converse_request *request, struct err *e) {
    const struct {
        const char *name;
        struct str id;
    } ids[] = {{"session_id", request->session_id},
               {"user_id", request->user_id},
               {"workspace_id", request->workspace_id}};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        if (ids[i].id.len && !id_check(ids[i].name, ids[i].id, e))
            return err_add(e, "converse");
    }
    return true;
}

static bool converse_check(struct converse *converse,
                           const struct crawbl_converse_request *request, struct err *e) {
    if (!check_ids(request, e) || !identify(converse, request, e)) return false;
    if (request->message.len == 0) {
        return err_set(e, ERR_INVALID_ARGUMENT, "converse: message is required");
    }
    if (request->session_id.len == 0 && !converse->instance->settings->lenient) {
        return err_set(e, ERR_INVALID_ARGUMENT, "converse: session_id is required");
    }
    return true;
}

static struct str agent_for(const struct converse *converse, struct str slug) {
    bool known = engine_agent(engine_of(converse), slug) != NULL;
    return converse->instance->settings->lenient && !known ? STR_EMPTY : slug;
}

/* The Manager is addressed by its name, or by naming no agent. */
static bool asks_manager(const struct converse *converse, struct str slug) {
    return !slug.len || str_equal(slug, engine_of(converse)->agents[0].slug);
}

/* Open the stream that carries the turn; the journal is borrowed. */
static bool follow(struct converse *converse, struct journal *journal, uint64_t after_seq,
                   bool paces, struct err *e) {
    struct stream_options options = {.loop = rpc_loop(converse->call),
                                     .journal = journal,
                                     .after_seq = after_seq,
                                     .mode = rpc_method(converse->call)->ends,
                                     .paces = paces,
                                     .stall_ms = converse->instance->settings->stall_ms,
                                     .wire = &wire,
                                     .ctx = converse};
    begin_answer(converse);
    return stream_open(&options, &converse->stream, e);
}

/* The message decides nothing, so its turn is the same question again (K29). */
static bool crawbl_converse_ask_again(struct converse *converse,
                                      const struct pending_view *stays, struct arena *arena,
                                      struct err *e) {
    struct event event;
    bool asked = decision_ask_again(stays, arena, &event);
    struct converse_view view = view_for(converse, asked ? &event : NULL);
    struct converse_shown shown;
    converse_shown_init(&shown);
    if (asked) converse_project(converse->call, &event, &view, &shown);
    converse_shown_done(&shown);
    return asked || err_set(e, ERR_RESOURCE_EXHAUSTED, "converse: the question is too long");
}

static void crawbl_converse_on_awake(const struct err *failed, void *ctx);

/* True: waiting runs are being brought back; the request is examined again afterwards. */
static bool crawbl_converse_wake(struct converse *converse,
                                 const struct pending_answer *answer) {
    const struct dormant_filter filter = session_sleepers(answer);
    struct session_table *sessions = converse->instance->host->engine->sessions;
    converse->wake =
        dormant_wake_start(session_table_directory(sessions), &filter, DORMANT_WAKE_MAX,
                           rpc_loop(converse->call), crawbl_converse_on_awake, converse);
    return converse->wake != NULL;
}

/* A run of this session that waits for a human takes the message as the answer. */
static bool answer_pending(struct converse *converse, const struct session_name *name,
                           struct str text, bool *ret_followed, struct err *e) {
    struct pending_answered answered;
    struct session_table *sessions = converse->instance->host->engine->sessions;
    struct arena *arena = arena_new(QUESTION_MAX_BYTES);
    const struct pending_answer answer = {
        .name = *name, .text = text, .asks_again = true, .arena = arena};
    enum pending_found found = session_settle(sessions, &answer, &answered, e);
    while (found == PENDING_ASLEEP && !crawbl_converse_wake(converse, &answer))
        found = session_settle(sessions, &answer, &answered, e);
    if (found == PENDING_ASLEEP) *ret_followed = true;
    if (found == PENDING_UNDECIDED)
        *ret_followed = crawbl_converse_ask_again(converse, &answered.stays, arena, e);
    arena_free(arena);
    if (found == PENDING_UNDECIDED || found == PENDING_ASLEEP) return true;
    if (found == PENDING_REFUSED) *ret_followed = err_add(e, "the question stays open");
    if (found != PENDING_TAKEN) return found == PENDING_REFUSED;
    converse->answered = journal_run(answered.journal);
    *ret_followed = follow(converse, answered.journal, answered.seq, false, e);
    journal_unref(answered.journal);
    if (*ret_followed) return true;
    leave_run(converse, CAUSE_STOPPING);
    drop_turn(converse);
    return true;
}

static void on_elsewhere(const struct elsewhere_result *result, const struct err *why,
                         void *ctx);

/* True: whether a run waits at another replica is looked at first. */
static bool look_elsewhere(struct converse *converse, const struct run_request *turn) {
    if (converse->looked_elsewhere) return false;
    converse->looked_elsewhere = true;
    converse->elsewhere = elsewhere_start(
        &(struct elsewhere_options){.loop = rpc_loop(converse->call),
                                    .sessions = converse->instance->host->engine->sessions,
                                    .name = turn->name,
                                    .text = turn->text,
                                    .asks_again = true,
                                    .on_end = on_elsewhere,
                                    .ctx = converse});
    return converse->elsewhere != NULL;
}

static bool start_turn(struct converse *converse, const struct crawbl_converse_request *request,
                       struct err *e) {
    struct run_request turn = {
        .engine = converse->engine,
        .name = {converse->workspace, converse->user,
                 request->session_id.len ? request->session_id : converse->workspace},
        .agent = agent_for(converse, request->agent_id),
        .text = request->message,
        .system = request->system_prompt,
        .contract = STR("crawbl"),
        .trace = converse->trace,
        .policy = converse->instance->settings->busy,
        .sticky =
            converse->instance->settings->sticky && asks_manager(converse, request->agent_id),
    };
    bool followed;
    if (answer_pending(converse, &turn.name, turn.text, &followed, e)) return followed;
    if (look_elsewhere(converse, &turn)) return true;
    if (!run_start(converse->instance->host, &turn, &converse->run, e)) return false;
    if (follow(converse, run_journal(converse->run), 0, true, e)) return true;
    run_cancel(converse->run, STR("the turn could not be followed"));
    drop_turn(converse);
    return false;
}

static void crawbl_converse_refuse(struct converse *converse, const struct err *why) {
    struct converse_view view = view_for(converse, NULL);
    converse_refuse(converse->call, why, &view);
    go_on(converse);
}

static void drop_request(struct converse *converse) {
    workspace_agents_leave(&converse->ask);
    dormant_wake_cancel(converse->wake);
    converse->wake = NULL;
    elsewhere_cancel(converse->elsewhere);
    converse->elsewhere = NULL;
    converse->looked_elsewhere = false;
    arena_free(converse->arena);
    converse->arena = NULL;
    converse->request = NULL;
}

static void refuse_turn(struct converse *converse, const struct err *why) {
    struct err e = *why;
    drop_request(converse);
    drop_turn(converse);
    crawbl_converse_refuse(converse, &e);
}

/* The engine is known, and waiting runs are in memory as far as they are known. */
static void converse_start(struct converse *converse) {
    struct err e;
    bool started = start_turn(converse, converse->request, &e);
    if (converse->wake || converse->elsewhere) return; /* their answers begin it again */
    drop_request(converse);
    if (started && converse->stream) return;
    drop_turn(converse);
    if (started) {
        go_on(converse); /* its answer was sent */
    } else {
        crawbl_converse_refuse(converse, &e);
    }
}

static void crawbl_converse_on_awake(const struct err *failed, void *ctx) {
    struct converse *converse = ctx;
    converse->wake = NULL;
    if (failed) {
        refuse_turn(converse, failed);
    } else {
        converse_start(converse);
    }
}

/* --- a run at another replica ------------------------------------------------------------- */

static void crawbl_converse_on_missing(const struct err *failed, void *ctx) {
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "converse: this turn cannot be read: %s",
            failed ? failed->text : "what became of it is not known yet; try again");
    refuse_turn(ctx, &e);
}

/* From the decision on, as the log has it. */
static void follow_elsewhere(struct converse *converse, uint64_t run, uint64_t seq) {
    struct session_table *sessions = converse->instance->host->engine->sessions;
    drop_request(converse);
    begin_answer(converse);
    converse->follow =
        follow_new(&(struct follow_options){.loop = rpc_loop(converse->call),
                                            .directory = session_table_directory(sessions),
                                            .store = session_table_store(sessions),
                                            .run = run,
                                            .after_seq = seq,
                                            .mode = rpc_method(converse->call)->ends,
                                            .stall_ms = converse->instance->settings->stall_ms,
                                            .wire = &wire,
                                            .missing = crawbl_converse_on_missing,
                                            .ctx = converse});
}

static void on_elsewhere(const struct elsewhere_result *result, const struct err *why,
                         void *ctx) {
    struct converse *converse = ctx;
    converse->elsewhere = NULL;
    if (why)
        refuse_turn(converse, why);
    else if (result->found == ELSEWHERE_DECIDED)
        follow_elsewhere(converse, result->run, result->seq);
    else
        converse_start(converse);
}

/* --- beginning ---------------------------------------------------------------------------- */

static void on_engine(struct engine *engine, void *ctx) {
    struct converse *converse = ctx;
    converse->engine = engine_ref(engine);
    converse_start(converse);
}

/* The workspace may have agents and tools of its own. */
static void find_engine(struct converse *converse) {
    struct mcp_caller caller = {converse->user, converse->workspace,
                                converse->request->session_id};
    struct engine *engine = workspace_agents_find(converse->instance->workspace_agents, &caller,
                                                  &converse->ask, on_engine, converse);
    if (engine) on_engine(engine, converse);
}

/* Each turn counts, not the stream. */
static bool take_rate(struct converse *converse, struct err *e) {
    char room[RPC_CALLER_BYTES];
    struct str caller = rpc_caller(converse->call, room);
    return (rpc_take_address_rate(converse->call, e) &&
            rpc_take_caller_rate(converse->call, caller, e)) ||
           err_add(e, "converse");
}

static void on_message(struct rpc_call *call, struct lent message, void *ctx) {
    struct converse *converse = ctx;
    struct arena *arena = arena_new(5 * lent_read(message).len + 16 * KIB);
    struct crawbl_converse_request *request = ARENA_NEW(arena, struct crawbl_converse_request);
    struct err e;
    (void)call;
    assert(request);
    if (!pb_decode(&crawbl_converse_request_table, message, arena, request, &e)) {
        arena_free(arena);
        end_call(converse, ERR_INTERNAL, err_text(&e));
        return;
    }
    converse->arena = arena;
    converse->request = request;
    if (converse_check(converse, request, &e) && take_rate(converse, &e)) {
        find_engine(converse);
        return;
    }
    drop_request(converse);
    crawbl_converse_refuse(converse, &e);
}

/* --- the call ----------------------------------------------------------------------------- */

static void *crawbl_converse_on_open(struct rpc_call *call, void *service_ctx) {
    struct converse *converse = MEM_NEW(struct converse);
    converse->call = call;
    converse->instance = service_ctx;
    converse->trace = exchange_trace(rpc_exchange(call));
    return converse;
}

/* Only between turns: rpc_next() has been called, so nothing runs. */
static void on_half_closed(struct rpc_call *call, void *ctx) {
    struct converse *converse = ctx;
    (void)call;
    assert(!converse->stream && !converse->follow && !converse->arena);
    end_call(converse, ERR_NONE, STR_EMPTY);
}

static void crawbl_converse_on_drained(struct rpc_call *call, void *ctx) {
    struct converse *converse = ctx;
    (void)call;
    if (converse->stream)
        stream_drained(converse->stream);
    else if (converse->follow)
        follow_drained(converse->follow);
    else if (converse->holds)
        go_on_when_read(converse);
}

static void on_stopping(struct rpc_call *call, void *ctx) {
    struct converse *converse = ctx;
    (void)call;
    converse->stopping = true;
    if (!converse->stream && !converse->follow && !converse->arena) go_on(converse);
}

static void on_cancelled(struct rpc_call *call, enum rpc_cancel why, void *ctx) {
    static const enum close_cause causes[] = {
        [RPC_PEER_LEFT] = CAUSE_LEFT,  [RPC_DEADLINE] = CAUSE_DEADLINE,
        [RPC_STALLED] = CAUSE_STALLED, [RPC_STOPPED] = CAUSE_STOPPING,
        [RPC_BROKEN] = CAUSE_LEFT,
    };
    struct converse *converse = ctx;
    (void)call;
    converse->over = true;
    drop_request(converse);
    if (converse->stream) {
        stream_end(converse->stream, causes[why]);
    } else if (converse->follow) {
        follow_end(converse->follow, causes[why]);
    } else {
        drop_turn(converse); /* one that has not begun */
    }
}

static void crawbl_converse_on_closed(void *ctx) {
    struct converse *converse = ctx;
    assert(!converse->stream && !converse->follow && !converse->arena);
    end_answer(converse);
    free(converse->trace);
    free(converse);
}

static const struct rpc_handler handler = {
    .open = crawbl_converse_on_open,
    .message = on_message,
    .half_closed = on_half_closed,
    .drained = crawbl_converse_on_drained,
    .stopping = on_stopping,
    .cancelled = on_cancelled,
    .closed = crawbl_converse_on_closed,
};

/* --- the service -------------------------------------------------------------------------- */

static const struct rpc_method methods[] = {
    /* clang-format off */
    /* path                      kind      handler   ends        established    auth       bound request  effect    rated */
    {STR_INIT("/" SERVICE "/Converse"), RPC_BIDI, &handler, CLOSE_DONE, RPC_AT_ACCEPT, RPC_TOKEN, 0, 4 * MIB, RPC_ACTS, RPC_RATED_MESSAGES},
    /* clang-format on */
};

static bool authenticate(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                         struct err *e) {
    const struct converse_instance *instance = ctx;
    return crawbl_guard_authenticate(&instance->settings->guard, call, ret, e);
}

void converse_service(struct converse_instance *instance, struct rpc_service *ret) {
    *ret = (struct rpc_service){.name = STR(SERVICE),
                                .methods = methods,
                                .method_count = ARRAY_LEN(methods),
                                .request_max_bytes = instance->settings->message_max_bytes,
                                .authenticate = authenticate,
                                .ctx = instance};
}
