#include "turn/measure.h"

#include "base/clock.h"
#include "metrics/metrics.h"
#include "spans/spans.h"
#include "turn/turn.h"

#define US_A_MS 1000
#define OPERATION STR("chat")

/* As configured: the operator may have two of one vendor. */
static struct str provider_name(const struct run *run) {
    const struct provider *provider = run->agent->provider;
    return provider->name.len ? provider->name : str_from(provider->kind->name);
}

static uint64_t since_us(const struct run *run, uint64_t then_ms) {
    return (loop_now_ms(run->record.host->loop) - then_ms) * US_A_MS;
}

/* --- spans -------------------------------------------------------------------------------- */

/* The span of the turn, which begins with what is first asked of it. A restored turn begins
 * another one. NULL: it is not wanted. */
static struct trace_context *turn_span(struct run *run) {
    const struct trace_context *caller = run->request.trace;
    if (run->measure.turn || !spans_wanted()) return run->measure.turn;
    if (caller && !(caller->flags & TRACE_SAMPLED)) return NULL;
    return run->measure.turn = trace_context_child(caller, run->arena);
}

static void report_span(const struct run *run, struct span *span) {
    span->ended_unix_ms = clock_unix_ms();
    if (span->self != run->measure.turn) span->parent = run->measure.turn->span;
    spans_report(span);
}

static void report_turn(struct run *run) {
    const struct trace_context *caller = run->request.trace;
    if (!turn_span(run)) return;
    const struct span_attribute attributes[] = {
        SPAN_TEXT("gen_ai.operation.name", STR("invoke_agent")),
        SPAN_TEXT("gen_ai.agent.name", run->agent->slug),
        SPAN_TEXT("gen_ai.conversation.id", run->request.name.session),
        SPAN_TEXT("weir.contract", run->request.contract),
        SPAN_NUMBER("weir.run", (int64_t)record_id(&run->record)),
    };
    bool cancelled = run->state == RUN_CANCELLED;
    report_span(run, &(struct span){.self = run->measure.turn,
                                    .parent = caller ? caller->span : NULL,
                                    .operation = SPAN_NAME("invoke_agent"),
                                    .what = run->agent->slug,
                                    .kind = SPAN_SERVER,
                                    .took_ms = record_took_ms(&run->record),
                                    .attributes = attributes,
                                    .count = ARRAY_LEN(attributes),
                                    .error = cancelled ? STR("cancelled") : run->end_reason});
}

static void report_chat(struct run *run, struct str answered_by, struct str error) {
    struct trace_context *self = run->measure.call;
    run->measure.call = NULL;
    if (!self) return;
    struct str model = run->model_round.request.model;
    const struct span_attribute attributes[] = {
        SPAN_TEXT("gen_ai.operation.name", OPERATION),
        SPAN_TEXT("gen_ai.provider.name", provider_name(run)),
        SPAN_TEXT("gen_ai.request.model", model),
        SPAN_TEXT("gen_ai.response.model", answered_by),
        SPAN_TEXT("gen_ai.conversation.id", run->request.name.session),
        SPAN_NUMBER("gen_ai.usage.input_tokens", run->measure.prompt),
        SPAN_NUMBER("gen_ai.usage.output_tokens", run->measure.completion),
    };
    report_span(run, &(struct span){.self = self,
                                    .operation = SPAN_NAME("chat"),
                                    .what = model,
                                    .kind = SPAN_CLIENT,
                                    .took_ms = loop_now_ms(run->record.host->loop) -
                                               run->measure.asked_ms,
                                    .attributes = attributes,
                                    .count = ARRAY_LEN(attributes),
                                    .error = error});
}

static void report_tool(const struct turn_call *call, const struct err *failed) {
    const struct run *run = call->run;
    const struct span_attribute attributes[] = {
        SPAN_TEXT("gen_ai.operation.name", STR("execute_tool")),
        SPAN_TEXT("gen_ai.tool.name", call->kind->name),
        SPAN_TEXT("gen_ai.tool.call.id", call->call_id),
        SPAN_TEXT("gen_ai.conversation.id", run->request.name.session),
    };
    report_span(run,
                &(struct span){.self = call->trace,
                               .operation = SPAN_NAME("execute_tool"),
                               .what = call->kind->name,
                               .kind = SPAN_INTERNAL,
                               .took_ms = loop_now_ms(run->record.host->loop) - call->began_ms,
                               .attributes = attributes,
                               .count = ARRAY_LEN(attributes),
                               .error = failed ? err_name(failed->code) : STR_EMPTY});
}

void measure_approval_ends(struct run *run) {
    const struct trace_context *turn = turn_span(run);
    const struct turn_call *call = run->approval.guarded;
    struct trace_context *self = turn ? trace_context_child(turn, run->arena) : NULL;
    if (!self) return;
    const struct span_attribute attributes[] = {
        SPAN_TEXT("gen_ai.tool.name", call ? call->tool : STR_EMPTY),
        SPAN_TEXT("gen_ai.tool.call.id", call ? call->call_id : STR_EMPTY),
        SPAN_TEXT("gen_ai.conversation.id", run->request.name.session),
    };
    report_span(run, &(struct span){.self = self,
                                    .operation = SPAN_NAME("approval"),
                                    .what = call ? call->tool : STR_EMPTY,
                                    .kind = SPAN_INTERNAL,
                                    .took_ms = loop_now_ms(run->record.host->loop) -
                                               run->approval.asked_ms,
                                    .attributes = attributes,
                                    .count = ARRAY_LEN(attributes)});
}

/* --- the turn ----------------------------------------------------------------------------- */

void measure_turn_begins(const struct run *run) {
    if (!metrics_wanted()) return;
    metrics_report(METRIC_TURNS_STARTED, 1, &run->agent->slug);
}

void measure_turn_ends(struct run *run) {
    report_turn(run);
    if (!metrics_wanted()) return;
    struct str agent = run->agent->slug;
    metrics_report(METRIC_TURNS_ENDED, 1,
                   (struct str[]){agent, states_name(run_states, run->state)});
    metrics_report(METRIC_AGENT_DURATION, record_took_ms(&run->record) * US_A_MS,
                   (struct str[]){agent, run->end_reason});
    metrics_report(METRIC_AGENT_MODEL_CALLS, run->model_round.model_calls, &agent);
    metrics_report(METRIC_AGENT_TOOL_CALLS, run->calls.total, &agent);
}

/* --- its model ---------------------------------------------------------------------------- */

void measure_model_asked(struct run *run) {
    const struct trace_context *turn = turn_span(run);
    run->measure.asked_ms = loop_now_ms(run->record.host->loop);
    run->measure.first = true;
    run->measure.prompt = run->measure.completion = TOKENS_UNKNOWN;
    run->measure.call = turn ? trace_context_child(turn, run->arena) : NULL;
    if (run->measure.call) run->model_round.request.trace = run->measure.call;
}

static void report_end(struct run *run, struct str answered_by, struct str error) {
    report_chat(run, answered_by, error);
    if (!metrics_wanted()) return;
    metrics_report(METRIC_MODEL_DURATION, since_us(run, run->measure.asked_ms),
                   (struct str[]){OPERATION, provider_name(run), run->model_round.request.model,
                                  answered_by, error});
}

static void report_first(const struct run *run) {
    if (!metrics_wanted()) return;
    metrics_report(
        METRIC_MODEL_FIRST_CHUNK, since_us(run, run->measure.asked_ms),
        (struct str[]){OPERATION, provider_name(run), run->model_round.request.model});
}

void measure_model_event(struct run *run, const struct reply_event *event) {
    if (event->kind == REPLY_USAGE) {
        run->measure.prompt = event->usage->prompt;
        run->measure.completion = event->usage->completion;
    } else if (event->kind == REPLY_FAILED) {
        report_end(run, STR_EMPTY, event->reason);
    } else if (event->kind == REPLY_DONE) {
        report_end(run, event->model, STR_EMPTY);
    } else if (run->measure.first) {
        run->measure.first = false;
        report_first(run);
    }
}

void measure_model_cut(struct run *run) {
    report_end(run, STR_EMPTY, STR("cancelled"));
}

static void report_tokens(const struct run *run, const struct event_usage *usage,
                          int64_t tokens, struct str type) {
    if (tokens < 0) return; /* an unknown count is not reported */
    metrics_report(METRIC_TOKENS, (uint64_t)tokens,
                   (struct str[]){OPERATION, provider_name(run), run->model_round.request.model,
                                  usage->model, type});
}

void measure_usage(const struct run *run, const struct event_usage *usage) {
    if (!metrics_wanted()) return;
    report_tokens(run, usage, usage->prompt, STR("input"));
    report_tokens(run, usage, usage->completion, STR("output"));
    if (usage->cost_nano >= 0)
        metrics_report(METRIC_COST, (uint64_t)usage->cost_nano,
                       (struct str[]){provider_name(run), usage->model});
}

/* --- its tools ---------------------------------------------------------------------------- */

const struct trace_context *measure_tool_begins(struct turn_call *call) {
    struct run *run = call->run;
    const struct trace_context *turn = turn_span(run);
    call->trace = turn ? trace_context_child(turn, run->arena) : NULL;
    return call->trace ? call->trace : run->request.trace;
}

/* A tool that the agent does not have is not named: models invent names. */
void measure_tool_ends(const struct turn_call *call, const struct err *failed) {
    if (call->trace && call->kind && call->state == TURN_CALL_OUT) report_tool(call, failed);
    if (!metrics_wanted() || !call->kind || call->state != TURN_CALL_OUT) return;
    metrics_report(
        METRIC_TOOL_DURATION, since_us(call->run, call->began_ms),
        (struct str[]){call->kind->name, failed ? err_name(failed->code) : STR_EMPTY});
}
