/* agent_start: how a call of an agent begins: with a new run, or with a decision that a run of its
 * session waits for. */
#include "contract/mcp/agent_call.h"

#include "session/waiting.h"
#include "turn/run.h"

#define RESULT_MAX_BYTES (128 * MIB)

/* --- a new run ---------------------------------------------------------------------------- */

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
        agent_call_fail(agent_call, &e);
        return;
    }
    const struct run_request asked = {.name = agent_call->name,
                                      .agent = agent_call->agent,
                                      .text = agent_call->message,
                                      .schema = agent_call->schema,
                                      .contract = STR("mcp"),
                                      .trace = agent_call->trace,
                                      .policy = instance->guest.settings->rules.busy};
    if (run_start(instance->guest.site.host, &asked, &agent_call->run, &e)) {
        agent_call_read_journal(agent_call, run_journal(agent_call->run), 0);
    } else {
        agent_call_fail(agent_call, &e);
    }
}

/* --- another replica ---------------------------------------------------------------------- */

static void read_after(struct agent_call *agent_call, uint64_t run, uint64_t seq) {
    agent_call->known = true;
    agent_call->after_seq = seq;
    agent_call_follow(agent_call, run, seq);
}

/* Words that decide nothing get the question again. */
static void on_elsewhere(const struct elsewhere_result *result, const struct err *why,
                         void *ctx) {
    struct agent_call *agent_call = ctx;
    agent_call->elsewhere = NULL;
    switch (result->found) {
    case ELSEWHERE_NONE: agent_call_begin(agent_call); break;
    case ELSEWHERE_DECIDED: read_after(agent_call, result->run, result->seq); break;
    case ELSEWHERE_REFUSED:
        if (why->code == ERR_FAILED_PRECONDITION)
            read_after(agent_call, result->run, result->seq - 1);
        else
            agent_call_fail(agent_call, why);
        break;
    case ELSEWHERE_FAILED: agent_call_fail(agent_call, why); break;
    }
}

/* True: the call goes on when the other replicas have been looked at. Words that name no question
 * must decide it. */
static bool look_elsewhere(struct agent_call *agent_call) {
    static const struct yes_no_words none_more;
    if (agent_call->looked_elsewhere || !agent_call->name.session.len) return false;
    agent_call->looked_elsewhere = true;
    agent_call->elsewhere = elsewhere_start(
        &(struct elsewhere_options){.loop = toolserver_call_loop(agent_call->call),
                                    .sessions = agent_call_sessions(agent_call),
                                    .name = agent_call->name,
                                    .run = agent_call->approval_run,
                                    .seq = agent_call->approval_seq,
                                    .text = agent_call->message,
                                    .decides = agent_call->approval_run ? NULL : &none_more,
                                    .on_end = on_elsewhere,
                                    .ctx = agent_call});
    return agent_call->elsewhere != NULL;
}

/* --- decisions ---------------------------------------------------------------------------- */

static void agent_start_on_awake(const struct err *failed, void *ctx) {
    struct agent_call *agent_call = ctx;
    agent_call->wake = NULL;
    if (failed) {
        agent_call_fail(agent_call, failed);
    } else {
        agent_call_begin(agent_call);
    }
}

static void wake_runs(struct agent_call *agent_call, const struct pending_answer *answer) {
    const struct dormant_filter filter = session_sleepers(answer);
    agent_call->wake = dormant_wake_start(
        agent_call_directory(agent_call), &filter, DORMANT_WAKE_MAX,
        toolserver_call_loop(agent_call->call), agent_start_on_awake, agent_call);
    if (!agent_call->wake) agent_call_begin(agent_call); /* the runs woke up meanwhile */
}

static void agent_start_ask_again(struct agent_call *agent_call,
                                  const struct pending_view *view) {
    struct buf result;
    buf_init(&result, RESULT_MAX_BYTES);
    agent_call->run_id = view->run;
    agent_result_waiting(agent_call, view, &result);
    agent_call_finish(agent_call, &result);
    buf_done(&result);
}

static void refuse_answer(struct agent_call *agent_call, enum pending_found found,
                          const struct err *e) {
    if (found == PENDING_REFUSED) {
        agent_call_fail(agent_call, e);
    } else if (found == PENDING_SEVERAL) {
        agent_call_fail_with(
            agent_call, STR("SESSION_WAITING"),
            STR("several runs of this session wait for a person; name the one that the "
                "message decides, in approval"));
    } else {
        agent_call_fail_with(
            agent_call, STR("NOT_FOUND"),
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

static void agent_start_settle(struct agent_call *agent_call) {
    struct err e = {.code = ERR_NONE};
    struct http_turn_words words = {agent_call->message, &e};
    struct pending_answer answer = answer_of(agent_call);
    struct pending_answered answered;
    bool named = agent_call->approval_run > 0;
    if (!named) {
        answer.check = http_turn_check_words; /* else it may begin a turn */
        answer.check_ctx = &words;
    }
    enum pending_found found =
        session_may_answer(agent_call_sessions(agent_call), &agent_call->name,
                           agent_call->approval_run)
            ? session_settle(agent_call_sessions(agent_call), &answer, &answered, &e)
            : PENDING_NONE;
    if (found == PENDING_TAKEN) {
        agent_call_read_journal(agent_call, answered.journal, answered.seq);
        journal_unref(answered.journal);
    } else if (found == PENDING_ASLEEP) {
        wake_runs(agent_call, &answer);
    } else if (found == PENDING_UNDECIDED) {
        agent_start_ask_again(agent_call, &answered.stays);
    } else if (found == PENDING_NONE && look_elsewhere(agent_call)) {
        return;
    } else if (found == PENDING_NONE && !named) {
        start_run(agent_call);
    } else {
        refuse_answer(agent_call, found, &e);
    }
}

void agent_call_begin(struct agent_call *agent_call) {
    bool waits = agent_call->name.session.len &&
                 (agent_call->approval_run ||
                  session_has_pending(agent_call_sessions(agent_call), &agent_call->name));
    if (waits) {
        agent_start_settle(agent_call);
    } else if (!look_elsewhere(agent_call)) {
        start_run(agent_call);
    }
}
