#include "turn/run.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/rate_limits.h"
#include "metrics/metrics.h"
#include "record/unkept.h"
#include "session/waiting.h"
#include "turn/dormant_wake.h"
#include "turn/late_ends.h"
#include "turn/turn.h"

#include <assert.h>

#define JOURNAL_WINDOW_BYTES (1 * KIB)        /* for late readers; the store has older events */
#define JOURNAL_WINDOW_ALONE_BYTES (96 * KIB) /* without a store */
#define RUN_BYTES (32 * KIB)                  /* estimate for a turn with little text */
/* Copies of the user's text at one time: in the run, its journal, the row for the store, the
 * request to the model, and the session's history. */
#define COPIES_OF_TEXT 5

void run_move(struct run *run, enum run_state next) {
    assert(states_allow(run_states, run->state, next));
    struct str from = states_name(run_states, run->state), to = states_name(run_states, next);
    log_debug("run %llu " STR_FMT " -> " STR_FMT, (unsigned long long)record_id(&run->record),
              STR_ARG(from), STR_ARG(to));
    run->state = next;
    record_show(&run->record, next);
}

static _Thread_local struct pool runs = POOL(sizeof(struct run), 256);

/* --- creating and freeing ----------------------------------------------------------------- */

struct run *run_ref(struct run *run) {
    run->refs++;
    return run;
}

void run_unref(struct run *run) {
    if (!run || --run->refs) return;
    assert(run->admission.state == ADMISSION_OUTSIDE && !timer_waits(&run->limit));
    list_remove(&run->link);
    run->record.host->run_count--;
    history_unref(run->seen);
    conversation_done(&run->conversation);
    calls_done(&run->calls);
    own_calls_done(&run->own_calls);
    model_round_done(&run->model_round);
    compaction_done(&run->compaction);
    guarded_done(&run->guarded);
    approval_done(&run->approval);
    spending_done(run);
    admission_done(&run->admission);
    request_done(run);
    buf_done(&run->turns);
    record_done(&run->record);
    await_tools_done(&run->await_tools);
    arena_free(run->arena);
    pool_give(&runs, run);
}

uint64_t run_id(const struct run *run) {
    return record_id(&run->record);
}

enum run_state run_state(const struct run *run) {
    return run->state;
}

struct journal *run_journal(const struct run *run) {
    return run->record.journal;
}

/* --- helpers ------------------------------------------------------------------------------ */

/* Apply the event to the conversation first: if it does not fit in the run's memory, it must
 * not reach the journal. */
static uint64_t append(struct run *run, struct event *event, enum conversation_texts texts) {
    if (!event->agent.at) event->agent = run->agent->slug;
    bool folded = conversation_apply(&run->conversation, event, texts);
    if (folded || run->ending_begun) return record_append(&run->record, event);
    run_fail_memory(run);
    return 0;
}

uint64_t run_append(struct run *run, struct event *event) {
    return append(run, event, TEXTS_LENT);
}

uint64_t run_append_texts(struct run *run, struct event_texts *texts) {
    struct event all;
    all.kind = EVENT_TEXT;
    all.text.text = texts->text;
    bool folded = conversation_apply(&run->conversation, &all, TEXTS_LENT);
    if (folded || run->ending_begun) return record_append_texts(&run->record, texts);
    run_fail_memory(run);
    return 0;
}

uint64_t run_append_kept(struct run *run, struct event *event) {
    return append(run, event, TEXTS_KEPT);
}

void run_fail_memory(struct run *run) {
    run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("RUN_MEMORY"),
             STR("the turn holds more text than its memory limit allows"));
}

bool run_keep(struct run *run, struct str text, struct str *ret) {
    if (arena_str(run->arena, text, ret)) return true;
    run_fail_memory(run);
    return false;
}

/* --- ending ------------------------------------------------------------------------------- */

static bool has_begun(const struct run *run) {
    return run->conversation.count > run->conversation.own_from;
}

/* A caller that knows the id may ask another replica for it, which knows it from now on. */
static void append_started(struct run *run) {
    struct event started =
        record_started(&run->record, run->request.text, run->request.contract);
    started.started.parent = run->admission.lease.parent;
    started.started.extras = run->request.extras;
    started.started.options = run->request.options_text;
    if (!run_trace_text(run, &started.started.trace)) return;
    run_append_kept(run, &started);
    if (run->request.promised) journal_hurry(run->record.journal);
    measure_turn_begins(run);
}

/* The session's record of this turn. If the store refused the run, it is unknown what is on
 * disk; the turn is then recorded only if it acted outside. */
static struct turn_record *make_record(const struct run *run) {
    const struct conversation *c = &run->conversation;
    if (!has_begun(run)) return NULL;
    if (run->record.lost && !run->calls.acted) return NULL;
    struct turn_record *record = turn_record_ended(
        record_id(&run->record), c->messages + c->own_from, c->count - c->own_from);
    record->starts_anew = c->starts_anew;
    record->vain = run->record.ending != RUN_DONE;
    record->inside = run->admission.lease.parent != 0;
    return record;
}

static void log_end(const struct run *run) {
    const struct model_round *model_round = &run->model_round;
    const struct turn_end end = {.run = record_id(&run->record),
                                 .workspace = run->request.name.workspace,
                                 .user = run->request.name.user,
                                 .session = run->request.name.session,
                                 .agent = run->agent->slug,
                                 .model = model_round->model.len ? model_round->model
                                                                 : model_round->request.model,
                                 .took_ms = record_took_ms(&run->record),
                                 .state = states_name(run_states, run->state),
                                 .reason = run->end_reason};
    turn_line_log(&end, &run->spending.sums);
}

static void run_over(void *ctx) {
    struct run *run = ctx;
    run_move(run, run->record.ending);
    if (!run->record.host->quiet) log_end(run);
    measure_turn_ends(run);
    run_leave_slot(run);
    run_drop_keys(run);
    struct turn_record *record = make_record(run);
    if (run->record.lost) late_ends_add(run->record.host, record_id(&run->record));
    run_leave_session(run, record);
    run_forgo_session(run);
    run_unref(run);
}

/* Stands in the journal where the words may not. */
#define BLOCKED_NOTE "[Words stood here that a guardrail blocked.]"

/* Whether the guardrails let the request be recorded; they may not have read it yet. */
static bool is_allowed(struct run *run) {
    return run->guarded.first ? run->guarded.passed : run_guard_request(run);
}

/* A turn that never began leaves no trace, unless a caller knows its id: it then says what was
 * asked, and why it came to nothing. */
static void end_queued(struct run *run) {
    if (run->request.promised && !has_begun(run)) {
        if (!is_allowed(run)) {
            run->request.text = STR(BLOCKED_NOTE);
            run->request.extras = STR_EMPTY;
        }
        append_started(run);
    }
    if (!run->request.promised || !has_begun(run)) record_retract(&run->record);
}

static void run_end_with(struct run *run, struct event *event) {
    run_stop_waiting(run);
    run_stop_await_tools(run);
    run_stop_model_round(run);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): run_over() still has a reference */
    run->ending_begun = true;
    run_stop_tool_round(run);
    run_stop_own_calls(run);
    timer_stop(&run->limit);
    detached_stop(&run->detached);
    if (run->state == RUN_QUEUED) end_queued(run);
    if (!run_end_later(run, event)) run_append(run, event);
}

/* Let a repeat with the same key begin a new run, unless that could repeat an effect. */
static void give_back_key(struct run *run) {
    if (!run->calls.acted && !run->record.unsure) record_give_back_key(&run->record);
}

void run_done(struct run *run) {
    if (run->ending_begun) return;
    struct event event = {.kind = EVENT_DONE,
                          .done = {run->model_round.model, buf_str(&run->turns)}};
    run_end_with(run, &event);
}

void run_fail(struct run *run, enum err_code code, struct str reason, struct str message) {
    if (run->ending_begun) return;
    give_back_key(run);
    if (!arena_str(run->arena, reason, &run->end_reason)) run->end_reason = STR_EMPTY;
    struct event event = {.kind = EVENT_FAILED,
                          .failed = {.code = code,
                                     .reason = reason,
                                     .message = message,
                                     .acted = run->calls.acted,
                                     .said = conversation_reply(&run->conversation)}};
    run_end_with(run, &event);
}

/* --- the record's calls ------------------------------------------------------------------- */

static void run_durable(uint64_t seq, void *ctx) {
    struct run *run = ctx;
    if (run->ending_begun) return;
    run_drop_reply(run, seq);
    run_work_durable(run, seq);
}

/* The store refused events that had to be on disk. Fail with that instead, in memory. */
static void run_lost(const struct err *why, void *ctx) {
    struct run *run = ctx;
    run->ending_begun = false;
    if (!run->calls.made) calls_retract(&run->calls);
    struct str refused =
        run->calls.acted
            ? STR("the turn could not be stored, and a call that it made may have had its "
                  "effect. Find out before you send it again")
            : STR("the turn could not be stored and does not count; try again");
    run_fail(run, ERR_UNAVAILABLE, unkept_reason(why), unkept_message(why, refused));
}

static void leave_live(struct leaving leaving, struct str why, void *ctx) {
    run_leave(ctx, leaving, why);
}

static const struct record_events record_events = {
    .on_durable = run_durable,
    .on_lost = run_lost,
    .on_pace = run_pace,
    .on_over = run_over,
    .leave = leave_live,
    .say = run_hear,
};

static void on_limit(void *ctx) {
    struct run *run = ctx;
    if (run->state == RUN_WAITING) {
        run_work_expired(run);
        return;
    }
    if (run->state == RUN_QUEUED) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("WORKSPACE_TURNS"),
                 STR("as many turns of this workspace are running as may; try again later"));
        return;
    }
    run_fail(run, ERR_DEADLINE_EXCEEDED, STR("TURN_TIMEOUT"),
             STR("the turn took longer than its limit"));
}

/* --- beginning ---------------------------------------------------------------------------- */

/* The last speaker of the history that is not a user. */
static const struct agent *last_speaker(const struct run *run) {
    const struct message *said = run->seen_hidden ? history_newest_of_agent(run->seen) : NULL;
    const struct agent *agent = said ? engine_agent(run->record.engine, said->agent) : NULL;
    return agent ? agent : run->agent;
}

void run_begin(struct run *run) {
    if (run_await_tools(run)) return;
    run->seen = history_ref(run->admission.lease.history);
    if (!run_check_past(run)) return;
    run_precede(run);
    if (run->request.sticky) run->agent = last_speaker(run);
    /* Results are compared with what is kept, which the guardrails have read. */
    if (!run_take_brought(run) || !run_guard_request(run) || !run_check_results(run)) return;
    append_started(run);
    run_append_brought(run);
    if (run->ending_begun) return;
    timer_start(&run->limit, run->record.engine->limits.turn_max_ms);
    run_ask(run);
}

/* --- start and stop ----------------------------------------------------------------------- */

static size_t window_bytes(const struct run_host *host) {
    return host->keeper ? JOURNAL_WINDOW_BYTES : JOURNAL_WINDOW_ALONE_BYTES;
}

struct run *run_new(struct run_host *host, struct engine *engine, const struct agent *agent,
                    struct run_left left) {
    struct run *run = pool_take(&runs);
    memset(run, 0, sizeof(*run));
    const struct run_limits *limits = &engine->limits;
    run->refs = 1;
    run->state = left.state;
    run->agent = agent;
    run->arena = arena_new(limits->memory_max_bytes);
    conversation_init(&run->conversation, run->arena, limits->reply_max_bytes);
    buf_init(&run->turns, limits->memory_max_bytes);
    timer_init(&run->limit, host->loop, on_limit, run);
    record_init(&run->record, &(struct record_options){.what = "run",
                                                       .host = host,
                                                       .engine = engine,
                                                       .run = left.id,
                                                       .after_seq = left.last_seq,
                                                       .window_max_bytes = window_bytes(host),
                                                       .pace_max_bytes = limits->pace_max_bytes,
                                                       .events = &record_events,
                                                       .ctx = run});
    admission_init(run);
    model_round_init(run);
    compaction_init(&run->compaction);
    detached_init(run);
    list_append(&host->runs, &run->link);
    host->run_count++;
    return run;
}

void run_enter_directory(struct run *run) {
    record_enter(&run->record, &run->request.name, run->state);
}

/* Drop a run that was never started and has no reader, or one that the next process resumes. */
void run_discard(struct run *run) {
    run->ending_begun = true;
    run_leave_slot(run);
    record_leave(&run->record);
    run_unref(run);
}

/* Both at once: another request with the same key finds this run, or no run. */
static bool start_claimed(struct run *run, const struct run_request *request, struct err *e) {
    struct claim_name *name = &run->record.claim.name;
    name->workspace = run->request.name.workspace;
    name->user = run->request.name.user;
    if (!record_claim(&run->record, request->key_mark, e)) return false;
    bool started = run_admit(run, request->policy, e);
    record_claimed(&run->record, started);
    return started;
}

/* A workspace with agents of its own may have one of the same name as another's. */
static bool check_rate(struct run_host *host, const struct run_request *request,
                       const struct agent *agent, struct err *e) {
    char room[2 * ID_MAX_BYTES];
    struct buf key = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (!host->rates) return true;
    buf_append(&key, str_head(agent->slug, ID_MAX_BYTES));
    if (request->engine && request->engine != host->engine) {
        buf_append_byte(&key, 0);
        buf_append(&key, str_head(request->name.workspace, ID_MAX_BYTES - 1));
    }
    if (rate_limits_admit(host->rates, RATE_AGENT, buf_str(&key), loop_now_ms(host->loop), e))
        return true;
    struct str name = rate_scope_name(RATE_AGENT);
    metrics_report(METRIC_RATE_LIMITED, 1, &name);
    return false;
}

bool run_start(struct run_host *host, const struct run_request *request, struct run **ret,
               struct err *e) {
    struct engine *engine = request->engine ? request->engine : host->engine;
    assert(engine->agents);
    const struct agent *agent =
        request->agent.len ? engine_agent(engine, request->agent) : &engine->agents[0];
    if (!agent) return engine_refuse_agent(engine, request->agent, e);
    if (!mem_check(RUN_BYTES + COPIES_OF_TEXT * request->text.len, e)) return false;
    if (!check_rate(host, request, agent, e)) return false;
    struct run *run = run_new(host, engine, agent, (struct run_left){.state = RUN_QUEUED});
    if (!run_keep_request(run, request, e)) {
        run_discard(run);
        return false;
    }
    if (!start_claimed(run, request, e)) {
        run_discard(run);
        return false;
    }
    *ret = run_ref(run);
    return true;
}

static void cancel(struct run *run, struct str why, bool left) {
    struct event event = {.kind = EVENT_CANCELLED,
                          .cancelled = {.message = why,
                                        .left = left,
                                        .acted = run->calls.acted,
                                        .said = conversation_reply(&run->conversation)}};
    run_end_with(run, &event);
}

void run_cancel(struct run *run, struct str why) {
    if (!run->ending_begun) cancel(run, why, false);
}

/* Give the key back first, so that a repeat begins a new run. */
void run_cancel_left(struct run *run, struct str why) {
    if (run->ending_begun) return;
    give_back_key(run);
    cancel(run, why, true);
}

void run_leave_to_store(struct run *run) {
    run_drop_keys(run);
    timer_stop(&run->limit);
    detached_stop(&run->detached);
    assert(run->refs > 1);
    run->refs--; /* the parked run's own */
    run_discard(run);
}

/* Leave a run that waits for a human in the store; the next process resumes it. */
static bool leave_waiting(struct run *run) {
    if (run->state != RUN_WAITING || !run->record.host->keeper) return false;
    if (run->admission.state == ADMISSION_WAITS ||
        !session_unpark(run->record.engine->sessions, run->approval.parked))
        return false;
    run_leave_to_store(run);
    return true;
}

void run_host_cancel(struct run_host *host, struct str why) {
    dormant_wake_forget(host);
    LIST_EACH(&host->runs, link) {
        struct run *run = CONTAINER_OF(link, struct run, link);
        if (!leave_waiting(run)) run_cancel_left(run, why); /* no caller asked for it */
    }
}
