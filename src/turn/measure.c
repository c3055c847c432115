#include "turn/measure.h"

#include "metrics/metrics.h"
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

/* --- the turn ----------------------------------------------------------------------------- */

void measure_turn_begins(const struct run *run) {
    if (!metrics_wanted()) return;
    metrics_report(METRIC_TURNS_STARTED, 1, &run->agent->slug);
}

void measure_turn_ends(const struct run *run) {
    if (!metrics_wanted()) return;
    struct str agent = run->agent->slug;
    metrics_report(METRIC_TURNS_ENDED, 1, (struct str[]){agent, run_state_name(run->state)});
    metrics_report(METRIC_AGENT_DURATION, record_took_ms(&run->record) * US_A_MS,
                   (struct str[]){agent, run->end_reason});
    metrics_report(METRIC_AGENT_MODEL_CALLS, run->model_round.model_calls, &agent);
    metrics_report(METRIC_AGENT_TOOL_CALLS, run->calls.total, &agent);
}

/* --- its model ---------------------------------------------------------------------------- */

void measure_model_asked(struct run *run) {
    run->measure = (struct measure){loop_now_ms(run->record.host->loop), true};
}

static void report_end(const struct run *run, struct str answered_by, struct str error) {
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
    if (event->kind == REPLY_FAILED) {
        report_end(run, STR_EMPTY, event->reason);
    } else if (event->kind == REPLY_DONE) {
        report_end(run, event->model, STR_EMPTY);
    } else if (run->measure.first && event->kind != REPLY_USAGE) {
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

/* A tool that the agent does not have is not named: models invent names. */
void measure_tool_ends(const struct turn_call *call, const struct err *failed) {
    if (!metrics_wanted() || !call->kind || call->state != TURN_CALL_OUT) return;
    metrics_report(
        METRIC_TOOL_DURATION, since_us(call->run, call->began_ms),
        (struct str[]){call->kind->name, failed ? err_name(failed->code) : STR_EMPTY});
}
