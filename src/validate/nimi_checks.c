/* Checks of nimi.runtime.v1: health, and a stream of text (mode A). */
#include "proto/health.pb.h"
#include "validate/nimi.h"

#include <ctype.h>

#define GRAIN_BYTES 32

/* --- judging ------------------------------------------------------------------------------------- */

bool nimi_judge_reply(struct judge *judge, const struct nimi_scene *scene, const char *what) {
    char end[NIMI_END_BYTES];
    if (!talk_ended_with(&scene->talk, ERR_NONE) || scene->talk.count != 1)
        return judge_break(judge, &scene->talk.evidence, "expected %s, got %zu messages and %s",
                           what, scene->talk.count, nimi_end_of(scene, end));
    return scene->count == 1 ||
           judge_break(judge, &scene->talk.evidence, "expected %s, got another message", what);
}

/* The first of the faults that the reader noted. */
static bool first_fault(const struct nimi_scene *scene, unsigned faults,
                        enum reader_fault *ret) {
    for (unsigned i = 0; i < FAULT_COUNT; i++) {
        *ret = (enum reader_fault)(1u << i);
        if (scene->reader.faults & faults & *ret) return true;
    }
    return false;
}

bool nimi_judge_faults(struct judge *judge, const struct nimi_scene *scene, unsigned faults) {
    enum reader_fault fault;
    char end[NIMI_END_BYTES];
    if (!first_fault(scene, faults, &fault)) return true;
    return judge_break(judge, &scene->talk.evidence, STR_FMT "; the end: %s",
                       STR_ARG(reader_fault_meaning(fault)), nimi_end_of(scene, end));
}

bool nimi_judge_refused(struct judge *judge, const struct nimi_scene *scene, enum err_code code,
                        const char *what) {
    char end[NIMI_END_BYTES];
    if (scene->talk.count)
        return judge_break(judge, &scene->talk.evidence,
                           "expected %s before any frame for %s, got %zu frames and %s",
                           err_kinds[code].name, what, scene->talk.count,
                           nimi_end_of(scene, end));
    return talk_ended_with(&scene->talk, code) ||
           judge_break(judge, &scene->talk.evidence, "expected %s for %s, got %s",
                       err_kinds[code].name, what, nimi_end_of(scene, end));
}

bool nimi_answers(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_TEXT);
    return (scene->advice.outcome == STREAM_COMPLETED && scene->count) ||
           judge_skip(judge, "a stream of text is not answered (DONE-01)");
}

/* --- health -------------------------------------------------------------------------------------- */

void check_nimi_probe(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_PROBE);
    if (!nimi_judge_reply(judge, scene, "SERVING from Health/Check without the envelope"))
        return;
    const struct grpc_health_check_response *reply = nimi_frame(scene, 0);
    if (reply->status != GRPC_HEALTH_CHECK_RESPONSE_SERVING)
        judge_break(judge, &scene->talk.evidence, "expected the status SERVING (1), got %d",
                    reply->status);
}

void check_nimi_health(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_HEALTH);
    if (!nimi_judge_reply(judge, scene, "an answer of GetRuntimeHealth")) return;
    const struct nimi_get_runtime_health_response *reply = nimi_frame(scene, 0);
    if (reply->status != NIMI_RUNTIME_HEALTH_STATUS_READY &&
        reply->status != NIMI_RUNTIME_HEALTH_STATUS_DEGRADED)
        judge_break(judge, &scene->talk.evidence,
                    "expected the status READY (3) or DEGRADED (4), got %d", reply->status);
}

/* "0.4.12", with or without more after it. */
static bool is_version_0(struct str text) {
    struct str major = str_split(text, '.', &text), minor = str_split(text, '.', &text);
    return str_equal(major, STR("0")) && minor.len && str_is_plain(minor, "") && text.len &&
           isdigit((unsigned char)text.at[0]);
}

static void judge_version(struct judge *judge, const struct nimi_scene *scene) {
    const struct talk_field *field = talk_find(&scene->talk, STR("x-nimi-runtime-version"));
    if (!talk_ended_with(&scene->talk, ERR_NONE)) return;
    if (!field || field->before)
        judge_break(judge, &scene->talk.evidence,
                    "expected x-nimi-runtime-version in the head of the answer, got %s",
                    field ? "it in the trailers" : "none");
    else if (!is_version_0(field->value))
        judge_break(judge, &scene->talk.evidence,
                    "expected x-nimi-runtime-version to be 0.x.y, got '" STR_FMT "'",
                    STR_ARG(str_head(field->value, 100)));
}

void check_nimi_version(struct judge *judge) {
    const struct nimi_scene *health = nimi_scene(judge, NIMI_HEALTH);
    if (!talk_ended_with(&health->talk, ERR_NONE))
        judge_skip(judge, "GetRuntimeHealth is not answered (ENVL-02)");
    judge_version(judge, health);
    judge_version(judge, nimi_scene(judge, NIMI_EXECUTE));
}

/* --- a stream of text ---------------------------------------------------------------------------- */

static const struct nimi_stream_scenario_event *event_at(const struct nimi_scene *scene,
                                                         size_t index) {
    return nimi_frame(scene, index);
}

static bool is_end(const struct nimi_stream_scenario_event *event) {
    return event->which_payload == NIMI_STREAM_SCENARIO_EVENT_COMPLETED ||
           event->which_payload == NIMI_STREAM_SCENARIO_EVENT_FAILED;
}

/* The events up to the terminal one: those after it are DONE-06's. */
static size_t count_events(const struct nimi_scene *scene) {
    for (size_t i = 0; i < scene->count; i++) {
        if (is_end(event_at(scene, i))) return i + 1;
    }
    return scene->count;
}

void check_done_completes(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_TEXT);
    char end[NIMI_END_BYTES];
    if (scene->advice.outcome != STREAM_COMPLETED || !scene->count)
        judge_break(judge, &scene->talk.evidence,
                    "expected a stream that completes, got %zu frames and %s",
                    scene->talk.count, nimi_end_of(scene, end));
    nimi_judge_faults(judge, scene, FAULT_MALFORMED);
}

void check_done_started(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_TEXT);
    size_t started = 0;
    if (!nimi_answers(judge)) return;
    for (size_t i = 0; i < count_events(scene); i++)
        started += event_at(scene, i)->which_payload == NIMI_STREAM_SCENARIO_EVENT_STARTED;
    const struct nimi_stream_scenario_event *first = event_at(scene, 0);
    if (first->which_payload != NIMI_STREAM_SCENARIO_EVENT_STARTED || started != 1)
        judge_break(judge, &scene->talk.evidence,
                    "expected STARTED as the first event and only there, got %zu of them",
                    started);
    else if (!first->started->model_resolved.len)
        judge_break(judge, &scene->talk.evidence,
                    "expected STARTED to name the model, got none");
}

void check_done_numbers(struct judge *judge) {
    if (nimi_answers(judge))
        nimi_judge_faults(judge, nimi_scene(judge, NIMI_TEXT),
                          FAULT_FIRST_NUMBER | FAULT_GAP | FAULT_NUMBER_ORDER);
}

/* The text of a delta; false: it is another event. */
static bool nimi_checks_text_of(const struct nimi_stream_scenario_event *event,
                                struct str *ret) {
    if (event->which_payload != NIMI_STREAM_SCENARIO_EVENT_DELTA ||
        event->delta->which_delta != NIMI_SCENARIO_STREAM_DELTA_TEXT)
        return false;
    *ret = event->delta->text->text;
    return true;
}

void check_done_grain(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_TEXT);
    size_t deltas = 0, last = 0;
    struct str text;
    if (!nimi_answers(judge)) return;
    for (size_t i = 0; i < count_events(scene); i++) {
        if (!nimi_checks_text_of(event_at(scene, i), &text)) continue;
        if (deltas++ && last && last < GRAIN_BYTES)
            judge_break(judge, &scene->talk.evidence,
                        "expected at least %d bytes in each delta but the last, got %zu",
                        GRAIN_BYTES, last);
        last = text.len;
    }
    if (deltas < 2)
        judge_skip(judge, "the answer had one delta: give an --input with a longer answer");
}

void check_done_empty(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_TEXT);
    size_t deltas = 0;
    if (!nimi_answers(judge)) return;
    for (size_t i = 0; i < count_events(scene); i++) {
        const struct nimi_stream_scenario_event *event = event_at(scene, i);
        struct str text;
        if (event->which_payload != NIMI_STREAM_SCENARIO_EVENT_DELTA) continue;
        deltas++;
        if (!event->delta->which_delta || (nimi_checks_text_of(event, &text) && !text.len))
            judge_break(judge, &scene->talk.evidence,
                        "expected something in each delta, got none");
    }
    if (!deltas) judge_break(judge, &scene->talk.evidence, "expected an answer, got no delta");
}

void check_done_last(struct judge *judge) {
    if (nimi_answers(judge))
        nimi_judge_faults(judge, nimi_scene(judge, NIMI_TEXT),
                          FAULT_AFTER_END | FAULT_ERROR_AFTER_END | FAULT_NOT_CLOSED);
}

void check_done_agrees(struct judge *judge) {
    if (nimi_answers(judge))
        nimi_judge_faults(judge, nimi_scene(judge, NIMI_TEXT), FAULT_DISAGREES);
}

/* -1 stands for a number that is not known. */
static void judge_usage(struct judge *judge, const struct nimi_scene *scene,
                        const struct nimi_usage_stats *usage, const char *where) {
    if (!usage)
        judge_break(judge, &scene->talk.evidence, "expected usage %s, got none", where);
    else if (usage->input_tokens < -1 || usage->output_tokens < -1 || usage->compute_ms < -1)
        judge_break(judge, &scene->talk.evidence,
                    "expected -1 where usage is not known, got %lld, %lld and %lld",
                    (long long)usage->input_tokens, (long long)usage->output_tokens,
                    (long long)usage->compute_ms);
}

/* The terminal event, or NULL. */
static const struct nimi_stream_scenario_event *
nimi_checks_end_of(const struct nimi_scene *scene) {
    size_t count = count_events(scene);
    return count && is_end(event_at(scene, count - 1)) ? event_at(scene, count - 1) : NULL;
}

void check_done_usage(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_TEXT);
    const struct nimi_stream_scenario_event *end = nimi_checks_end_of(scene);
    if (!nimi_answers(judge)) return;
    bool completed = end && end->which_payload == NIMI_STREAM_SCENARIO_EVENT_COMPLETED;
    judge_usage(judge, scene, completed ? end->completed->usage : NULL, "in COMPLETED");
}

static bool same_usage(const struct nimi_usage_stats *a, const struct nimi_usage_stats *b) {
    return a && b && a->input_tokens == b->input_tokens &&
           a->output_tokens == b->output_tokens && a->compute_ms == b->compute_ms;
}

/* nimi.md 2.3: what done, text_delta, usage and reason_code stand in. */
static void judge_frame(struct judge *judge, const struct nimi_scene *scene,
                        const struct nimi_stream_scenario_event *event) {
    struct str text;
    bool done = event->frame && event->frame->done;
    if (done != is_end(event))
        judge_break(judge, &scene->talk.evidence,
                    "expected frame.done in the terminal event and only there, got %s",
                    done ? "it before" : "it unset there");
    else if (done && event->which_payload == NIMI_STREAM_SCENARIO_EVENT_COMPLETED &&
             event->completed->usage &&
             !same_usage(event->frame->usage, event->completed->usage))
        judge_break(judge, &scene->talk.evidence,
                    "expected the usage of COMPLETED in frame.usage");
    else if (nimi_checks_text_of(event, &text) && event->frame &&
             !str_equal(event->frame->text_delta, text))
        judge_break(judge, &scene->talk.evidence,
                    "expected the text of the delta in frame.text_delta");
}

void check_done_frame(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_TEXT);
    if (!nimi_answers(judge)) return;
    for (size_t i = 0; i < count_events(scene); i++)
        judge_frame(judge, scene, event_at(scene, i));
}

/* --- a stream that fails ------------------------------------------------------------------------- */

static bool has_error_input(struct judge *judge) {
    return judge->options->error_input.len ||
           judge_skip(judge, "there is no input that makes the model fail: give --error-input");
}

void check_done_failed(struct judge *judge) {
    char end[NIMI_END_BYTES];
    if (!has_error_input(judge) || !nimi_answers(judge)) return;
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_FAILS);
    if (scene->advice.outcome == STREAM_COMPLETED)
        judge_break(judge, &scene->talk.evidence,
                    "expected the error input to fail, got an answer");
    else if (scene->advice.outcome != STREAM_FAILED || !scene->reader.reason_code)
        judge_break(judge, &scene->talk.evidence,
                    "expected the event FAILED with a reason, then OK, got %s",
                    nimi_end_of(scene, end));
    nimi_judge_faults(judge, scene, FAULT_AFTER_END | FAULT_ERROR_AFTER_END | FAULT_NOT_CLOSED);
}

void check_done_failed_usage(struct judge *judge) {
    if (!has_error_input(judge) || !nimi_answers(judge)) return;
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_FAILS);
    const struct nimi_stream_scenario_event *end = nimi_checks_end_of(scene);
    if (scene->advice.outcome != STREAM_FAILED || !end)
        judge_skip(judge, "the stream does not fail as it should (DONE-10)");
    else
        judge_usage(judge, scene, end->frame ? end->frame->usage : NULL,
                    "in frame.usage of FAILED");
}

/* --- the same in one answer ---------------------------------------------------------------------- */

void check_done_execute(struct judge *judge) {
    const struct nimi_scene *scene = nimi_scene(judge, NIMI_EXECUTE);
    if (!nimi_answers(judge) || !nimi_judge_reply(judge, scene, "an answer of ExecuteScenario"))
        return;
    const struct nimi_execute_scenario_response *reply = nimi_frame(scene, 0);
    const struct nimi_scenario_output *output = reply->output;
    if (!output || output->which_output != NIMI_SCENARIO_OUTPUT_TEXT_GENERATE ||
        !output->text_generate->text.len)
        judge_break(judge, &scene->talk.evidence,
                    "expected text in output.text_generate, got none");
    else if (!reply->finish_reason)
        judge_break(judge, &scene->talk.evidence, "expected a finish_reason, got none");
    judge_usage(judge, scene, reply->usage, "in the answer");
}
