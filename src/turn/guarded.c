#include "turn/guarded.h"

#include "base/log.h"
#include "turn/turn.h"

#define TEXT_MAX_BYTES (32 * MIB)

static bool refuse(struct run *run, const struct filter_result *result, const char *what) {
    struct str name = guardrail_name(result->blocked_by);
    struct buf text;
    buf_init(&text, KIB);
    buf_printf(&text, "%s was blocked by the guardrail '" STR_FMT "'%s", what,
               STR_ARG(str_head(name, 200)),
               result->undecided ? ", which could not be checked in time" : "");
    log_warning("run %llu: " STR_FMT, (unsigned long long)record_id(&run->record),
                STR_ARG(buf_str(&text)));
    run_fail(run, ERR_PERMISSION_DENIED, STR(GUARDRAIL_BLOCKED), buf_str(&text));
    buf_done(&text);
    return false;
}

/* --- input -------------------------------------------------------------------------------- */

/* `text` is replaced only if a rule changed it. */
static bool pass(struct run *run, struct guardrails rules, struct str *text, bool json) {
    struct filter_result result = {0};
    struct buf out;
    if (!text->len || !rules.count) return true;
    buf_init(&out, TEXT_MAX_BYTES);
    bool passed = (json ? filter_json : filter_text)(rules, *text, &out, &result);
    if (!passed) {
        refuse(run, &result, "the request");
    } else if (!buf_ok(&out)) {
        run_fail_memory(run);
        passed = false;
    } else if (result.redacted) {
        passed = run_keep(run, buf_str(&out), text);
    }
    buf_done(&out);
    return passed;
}

static bool pass_message(struct run *run, struct guardrails rules, struct message *message) {
    return pass(run, rules, &message->text, false) && pass(run, rules, &message->parts, true);
}

bool run_guard_request(struct run *run) {
    struct guardrails rules = run->agent->input_rules;
    struct import *fresh = &run->request.brought.fresh;
    run->guarded.first = run->agent;
    if (!rules.count) return true;
    for (size_t i = 0; i < fresh->count; i++) {
        if (!pass_message(run, rules, &fresh->messages[i])) return false;
    }
    return pass(run, rules, &run->request.text, false) &&
           pass(run, rules, &run->request.extras, true);
}

bool run_guard_words(struct run *run, struct str words, struct buf *room, struct str *ret) {
    struct guardrails rules = run->agent->input_rules;
    struct filter_result result;
    buf_init(room, TEXT_MAX_BYTES);
    *ret = words;
    if (!rules.count) return true;
    bool passed = filter_json(rules, words, room, &result);
    if (passed && result.redacted) *ret = buf_str(room);
    return passed && buf_ok(room);
}

bool run_guard_prompt(struct run *run, struct provider_request *request) {
    struct guardrails rules = run->agent->input_rules;
    if (!rules.count || run->agent == run->guarded.first) return true;
    struct message *messages =
        arena_alloc(run->arena, (request->message_count + 1) * sizeof(*messages));
    if (!messages) {
        run_fail_memory(run);
        return false;
    }
    for (size_t i = 0; i < request->message_count; i++) {
        messages[i] = request->messages[i];
        bool said = messages[i].role == MESSAGE_USER || messages[i].role == MESSAGE_SYSTEM;
        if (said && !pass_message(run, rules, &messages[i])) return false;
    }
    request->messages = messages;
    return pass(run, rules, &request->extras, true);
}

/* --- output ------------------------------------------------------------------------------- */

void guarded_done(struct guarded *guarded) {
    filter_done(&guarded->text);
    filter_done(&guarded->thinking);
}

void run_guard_reply(struct run *run) {
    guarded_done(&run->guarded);
    filter_init(&run->guarded.text, run->agent->output_rules);
    filter_init(&run->guarded.thinking, run->agent->output_rules);
}

static bool passed_or_refused(struct run *run, const struct filter *filter, bool passed) {
    return passed || refuse(run, &filter->result, "the answer");
}

bool run_guard_piece(struct run *run, struct filter *filter, struct str text, struct buf *out) {
    return passed_or_refused(run, filter, filter_feed(filter, text, out));
}

bool run_guard_end(struct run *run, struct filter *filter, struct buf *out) {
    return passed_or_refused(run, filter, filter_end(filter, out));
}

bool run_guard_whole(struct run *run, struct str text, struct str *ret) {
    struct guardrails rules = run->agent->output_rules;
    struct filter_result result;
    struct buf out;
    *ret = text;
    if (!rules.count) return true;
    buf_init(&out, TEXT_MAX_BYTES);
    bool passed = filter_json(rules, text, &out, &result);
    if (!passed) {
        refuse(run, &result, "the answer");
    } else if (result.redacted) {
        passed = run_keep(run, buf_str(&out), ret);
    }
    buf_done(&out);
    return passed;
}

bool run_guard_allows(const struct run *run, struct str reply) {
    struct guardrails rules = run->agent->output_rules;
    struct filter_result result = {.redacted = 0};
    struct buf out;
    if (!rules.count) return true;
    buf_init(&out, TEXT_MAX_BYTES);
    bool passed = filter_json(rules, reply, &out, &result) && !result.redacted;
    buf_done(&out);
    return passed;
}
