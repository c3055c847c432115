#include "contract/agui/agent_run.h"

#include "base/mem.h"
#include "contract/agui/request.h"
#include "contract/agui/run_events.h"

#include <stdlib.h>

#define AGENT_MAX_BYTES 256

struct agent_run {
    struct guest_turn base;
    struct run_events events;
};

static struct agent_run *agent_run_of(struct guest_turn *base) {
    return CONTAINER_OF(base, struct agent_run, base);
}

/* --- events ------------------------------------------------------------------------------- */

static void run_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct agent_run *run = ctx;
    bool shown = event->kind != EVENT_THINKING || guest_turn_shows(&run->base, event);
    (void)frame;
    run->events.run_id = run->base.http.run_id;
    if (shown) run_events_show(&run->events, event);
    bool ends = event->kind == EVENT_DONE || event->kind == EVENT_APPROVAL ||
                event->kind == EVENT_CANCELLED;
    if (ends) run_events_finish(&run->events, event);
}

static void run_project_texts(struct str texts, size_t count, void *ctx) {
    struct agent_run *run = ctx;
    (void)count;
    run->events.run_id = run->base.http.run_id;
    run_events_show_texts(&run->events, texts);
}

static void run_ended(struct close_ending ending, enum close_cause cause,
                      const struct event *last, void *ctx) {
    struct agent_run *run = ctx;
    struct str reason, message;
    bool cancelled = last && last->kind == EVENT_CANCELLED;
    if (!http_turn_may_end(&run->base.http, ending, cause)) return;
    if (cause != CAUSE_FINISHED && !cancelled) {
        guest_turn_failure(cause, ending.status, last, &reason, &message);
        run_events_fail(&run->events, reason, message);
    }
    route_sse_end(run->base.http.call);
}

static const struct stream_wire run_wire = {
    .judge = stream_judge_question,
    .project = run_project,
    .project_texts = run_project_texts,
    .gather = http_turn_gather,
    .leave_now = http_turn_leave_now,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .heartbeat = http_turn_heartbeat,
    .ended = run_ended,
};

/* --- the form ----------------------------------------------------------------------------- */

/* The path may name the agent. */
static bool take_agent(struct guest_turn *base, struct guest_request *ret, struct err *e) {
    struct buf name;
    buf_init(&name, AGENT_MAX_BYTES);
    bool reads = !lent_read(route_parameter(base->http.call, STR("agent"))).len ||
                 route_parameter_text(base->http.call, STR("agent"), &name);
    bool kept = reads && arena_str(base->http.arena, buf_str(&name), &ret->agent);
    buf_done(&name);
    return kept || err_set(e, ERR_INVALID_ARGUMENT, "the agent's name in the path is not text");
}

static bool form_read(struct guest_turn *base, struct str body, struct guest_request *ret,
                      struct err *e) {
    struct agent_run *run = agent_run_of(base);
    struct run_input input;
    if (!run_input_parse(body, base->http.arena, &input, ret, e) || !take_agent(base, ret, e))
        return false;
    run->events.thread = text_copy(input.thread);
    run->events.run = text_copy(input.run);
    run->events.has_state = input.has_state;
    return true;
}

static void form_refuse(struct guest_turn *base, const struct err *why) {
    route_retry_after(base->http.call, why);
    route_fail(base->http.call,
               &(struct route_failure){err_kinds[why->code].http_status, err_name(why->code),
                                       err_text(why), STR_EMPTY});
}

static void form_refuse_for(struct guest_turn *base, enum guest_refusal why) {
    static const struct route_failure failures[] = {
        [GUEST_KEY_REUSED] = {409, STR_INIT("IDEMPOTENCY_KEY_REUSED"),
                              STR_INIT(
                                  "this idempotency key was used for another request; send "
                                  "a new key, or the same body as then"),
                              STR_INIT("")},
        [GUEST_SEVERAL] = {409, STR_INIT("SESSION_WAITING"),
                           STR_INIT("several runs of this thread wait for a person's answer; "
                                    "name the one that you answer, in resume"),
                           STR_INIT("")},
        [GUEST_NO_QUESTION] = {404, STR_INIT("NOT_FOUND"),
                               STR_INIT("no run of this thread waits with this interrupt: it "
                                        "was answered, or the run is over"),
                               STR_INIT("")},
    };
    route_fail(base->http.call, &failures[why]);
}

static void form_ask_again(struct guest_turn *base, const struct event *question) {
    struct agent_run *run = agent_run_of(base);
    run->events.run_id = base->http.run_id;
    route_sse_begin(base->http.call);
    run_events_finish(&run->events, question);
    route_sse_end(base->http.call);
}

static void form_free(struct guest_turn *base) {
    struct agent_run *run = agent_run_of(base);
    run_events_done(&run->events);
    free(run);
}

static const struct guest_form form = {.contract = STR_INIT(AGUI_CONTRACT),
                                       .read = form_read,
                                       .whole = &run_wire, /* every request streams */
                                       .stream = &run_wire,
                                       .refuse = form_refuse,
                                       .refuse_for = form_refuse_for,
                                       .ask_again = form_ask_again,
                                       .free = form_free};

void agent_run(struct route_call *call, void *ctx) {
    struct contract_caller caller;
    if (!guest_enter(call, ctx, &caller)) return;
    struct agent_run *run = MEM_NEW(struct agent_run);
    run_events_init(&run->events, call);
    guest_turn_serve(&run->base, call, ctx, &form, &caller);
}
