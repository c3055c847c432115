#include "contract/nimi/scenario/work.h"

#include "job/model_call.h"

#include <stddef.h>

static bool scenario_text_prepare(struct work *work, const struct scenario *asked,
                                  struct fault *fault) {
    const struct nimi_text_generate_scenario_spec *spec = asked->spec->text_generate;
    work->projection.shows_thinking =
        spec->reasoning && spec->reasoning->trace_mode == NIMI_REASONING_TRACE_MODE_SEPARATE;
    return prompt_build(spec, work->admission.model, work->arena, &work->prompt, fault);
}

/* The request is made as the first agent, because scripts' scenes and budgets are defined for
 * agents. */
static bool scenario_text_ask(struct work *work, struct journal **ret_journal, struct err *e) {
    work->prompt.request.agent = work->engine->agents[0].slug;
    work->prompt.request.trace = work->call->caller_trace;
    struct model_call_options options = {.host = work->call->instance->host,
                                         .engine = work->engine,
                                         .provider = work->admission.connector->provider,
                                         .request = &work->prompt.request,
                                         .workspace = work->app,
                                         .user = work->subject,
                                         .text = work->prompt.asked,
                                         .contract = STR("nimi"),
                                         .asked_ms = work->call->opened_ms,
                                         .clocks = work->clocks};
    if (!model_call_start(&options, &work->model, e)) return false;
    *ret_journal = model_call_journal(work->model);
    arena_free(work->arena); /* the model call made a copy */
    work->arena = NULL;
    return true;
}

static void scenario_text_stop(struct work *work, struct str why) {
    if (work->model) model_call_cancel(work->model, why);
}

static void scenario_text_reply(struct work *work, struct str model) {
    const struct nimi_text_generate_output text = {.text = buf_str(&work->reply)};
    if (!buf_ok(&work->reply)) {
        nimi_refuse_for(work->call, NIMI_AI_OUTPUT_INVALID,
                        "the model's reply is longer than the limit of a reply; ask for less");
        return;
    }
    work_reply(work,
               &(struct nimi_scenario_output){
                   .which_output = NIMI_SCENARIO_OUTPUT_TEXT_GENERATE, .text_generate = &text},
               model);
}

const struct scenario_kind scenario_text = {offsetof(struct nimi_settings, text),
                                            scenario_text_prepare, scenario_text_ask,
                                            scenario_text_stop, scenario_text_reply};
