#include "turn/guarded.h"

#include "base/log.h"
#include "base/mem.h"
#include "turn/turn.h"

#include <stdlib.h>

#define TEXT_MAX_BYTES (32 * MIB)

static bool guarded_refuse(struct run *run, const struct filter_result *result,
                           const char *what) {
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

enum passing { PASSED, BLOCKED, TOO_LONG };

/* `text` is replaced only if a rule changed it. */
static enum passing apply(struct run *run, struct str *text, bool json,
                          struct filter_result *ret) {
    struct guardrails rules = run->agent->input_rules;
    struct buf out;
    enum passing passing = BLOCKED;
    if (!text->len || !rules.count) return PASSED;
    buf_init(&out, TEXT_MAX_BYTES);
    if ((json ? filter_json : filter_text)(rules, *text, &out, ret)) {
        bool kept =
            buf_ok(&out) && (!ret->redacted || arena_str(run->arena, buf_str(&out), text));
        passing = kept ? PASSED : TOO_LONG;
    }
    buf_done(&out);
    return passing;
}

static bool pass(struct run *run, struct str *text, bool json) {
    struct filter_result result = {0};
    enum passing passing = apply(run, text, json, &result);
    if (passing == BLOCKED) guarded_refuse(run, &result, "the request");
    if (passing == TOO_LONG) run_fail_memory(run);
    return passing == PASSED;
}

static bool pass_message(struct run *run, struct message *message) {
    return pass(run, &message->text, false) && pass(run, &message->parts, true);
}

bool run_guard_request(struct run *run) {
    struct import *fresh = &run->request.brought.fresh;
    run->guarded.first = run->agent;
    for (size_t i = 0; i < fresh->count; i++) {
        if (!pass_message(run, &fresh->messages[i])) return false;
    }
    run->guarded.passed =
        pass(run, &run->request.text, false) && pass(run, &run->request.extras, true);
    return run->guarded.passed;
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

/* --- prompts ------------------------------------------------------------------------------ */

/* What others said, and what was said to others. */
static bool is_unread(const struct run *run, const struct message *message) {
    struct str slug = run->agent->slug;
    switch (message->role) {
    case MESSAGE_USER:
    case MESSAGE_SYSTEM: return !str_equal(message->heard_by, slug);
    case MESSAGE_AGENT:
        return !str_equal(message->heard_by, slug) && !str_equal(message->agent, slug);
    default: return false;
    }
}

static bool is_as_found(const struct guarded_message *read, const struct message *message) {
    return read->text.at == message->text.at && read->text.len == message->text.len &&
           read->parts.at == message->parts.at && read->parts.len == message->parts.len;
}

/* What was read of the message in an earlier round: after the one at *at, which is the last that was
 * found. NULL: it was not read. */
static struct guarded_message *find_read(struct guarded *guarded, size_t *at,
                                         const struct message *message) {
    for (size_t i = *at; i < guarded->read_count; i++) {
        if (!is_as_found(&guarded->read[i], message)) continue;
        *at = i + 1;
        return &guarded->read[i];
    }
    return NULL;
}

static void guarded_add(struct guarded *guarded, const struct guarded_message *read) {
    if (guarded->read_count == guarded->read_room) {
        guarded->read_room = guarded->read_room ? 2 * guarded->read_room : 8;
        guarded->read = mem_resize(guarded->read, guarded->read_room * sizeof(*guarded->read));
    }
    guarded->read[guarded->read_count++] = *read;
}

/* The message becomes what an earlier round has made of it. False: it was not read. */
static bool was_read(struct run *run, size_t *at, struct message *message) {
    const struct guarded_message *read = find_read(&run->guarded, at, message);
    if (!read) return false;
    message->text = read->shown;
    message->parts = read->shown_parts;
    return true;
}

/* The message `found` has passed, and is shown as `message`. */
static void note_read(struct run *run, size_t *at, const struct message *found,
                      const struct message *message) {
    const struct guarded_message read = {.text = found->text,
                                         .parts = found->parts,
                                         .shown = message->text,
                                         .shown_parts = message->parts};
    guarded_add(&run->guarded, &read);
    *at = run->guarded.read_count;
}

static bool read_message(struct run *run, size_t *at, struct message *message) {
    struct message found = *message;
    if (was_read(run, at, message)) return true;
    if (!pass_message(run, message)) return false;
    note_read(run, at, &found, message);
    return true;
}

/* What the caller sent along is a message of parts only. */
static bool read_extras(struct run *run, size_t *at, struct str *extras) {
    struct message message = {.parts = *extras};
    if (!extras->len || run->agent == run->guarded.first) return true;
    if (!read_message(run, at, &message)) return false;
    *extras = message.parts;
    return true;
}

/* Most prompts have nothing that was not read, and are not copied. */
static size_t first_unread(const struct run *run, const struct provider_request *request) {
    size_t i = 0;
    while (i < request->message_count && !is_unread(run, &request->messages[i])) i++;
    return i;
}

typedef bool read_fn(struct run *run, size_t *at, struct message *message);

static bool read_messages(struct run *run, size_t *at, struct provider_request *request,
                          read_fn *read) {
    struct guarded *guarded = &run->guarded;
    size_t count = request->message_count, i = first_unread(run, request);
    if (i == count) return true;
    guarded->prompt = mem_resize(guarded->prompt, count * sizeof(struct message));
    memcpy(guarded->prompt, request->messages, count * sizeof(struct message));
    request->messages = guarded->prompt;
    for (; i < count; i++) {
        struct message *message = &guarded->prompt[i];
        if (is_unread(run, message) && !read(run, at, message)) return false;
    }
    return true;
}

static void begin_reading(struct run *run) {
    if (run->guarded.reader != run->agent) run->guarded.read_count = 0;
    run->guarded.reader = run->agent;
}

bool run_guard_prompt(struct run *run, struct provider_request *request) {
    size_t at = 0;
    if (!run->agent->input_rules.count) return true;
    begin_reading(run);
    return read_extras(run, &at, &request->extras) &&
           read_messages(run, &at, request, read_message);
}

/* --- histories to condense ---------------------------------------------------------------- */

static bool leave_out(struct run *run, const struct guardrail *rule, struct message *message) {
    struct buf text;
    buf_init(&text, KIB);
    buf_printf(&text, "(left out: blocked by the guardrail '" STR_FMT "')",
               STR_ARG(str_head(guardrail_name(rule), 200)));
    message->parts = STR_EMPTY;
    bool kept = run_keep(run, buf_str(&text), &message->text);
    buf_done(&text);
    return kept;
}

/* What is left out is not noted as read: a prompt that has it is still refused. */
static bool read_or_leave_out(struct run *run, size_t *at, struct message *message) {
    struct message found = *message;
    struct filter_result result = {0};
    if (was_read(run, at, message)) return true;
    enum passing passing = apply(run, &message->text, false, &result);
    if (passing == PASSED) passing = apply(run, &message->parts, true, &result);
    if (passing == BLOCKED) return leave_out(run, result.blocked_by, message);
    if (passing == TOO_LONG) {
        run_fail_memory(run);
        return false;
    }
    note_read(run, at, &found, message);
    return true;
}

bool run_guard_history(struct run *run, size_t count, const struct message **ret) {
    struct provider_request history = {.messages = run->conversation.messages,
                                       .message_count = count};
    size_t at = 0;
    if (run->agent->input_rules.count) {
        begin_reading(run);
        if (!read_messages(run, &at, &history, read_or_leave_out)) return false;
    }
    *ret = history.messages;
    return true;
}

/* --- output ------------------------------------------------------------------------------- */

static void end_filters(struct guarded *guarded) {
    if (!guarded->reply) return;
    filter_done(&guarded->reply->text);
    filter_done(&guarded->reply->thinking);
    free(guarded->reply);
    guarded->reply = NULL;
}

void guarded_done(struct guarded *guarded) {
    end_filters(guarded);
    free(guarded->read);
    free(guarded->prompt);
}

void run_guard_reply(struct run *run) {
    struct guardrails rules = run->agent->output_rules;
    end_filters(&run->guarded);
    if (!rules.count) return;
    run->guarded.reply = MEM_NEW(struct guarded_reply);
    filter_init(&run->guarded.reply->text, rules);
    filter_init(&run->guarded.reply->thinking, rules);
}

static bool passed_or_refused(struct run *run, const struct filter *filter, bool passed) {
    return passed || guarded_refuse(run, &filter->result, "the answer");
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
        guarded_refuse(run, &result, "the answer");
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
