#include "conversation/conversation.h"

#include "base/mem.h"
#include "base/pool.h"
#include "conversation/effect.h"
#include "conversation/import.h"
#include "provider/call_pairs.h"
#include "provider/dialect.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>

#define REFUSED_NOTE                                                                           \
    "[A message stood here. The model's provider refused it, so it is left out.]"

#define SPARE_MESSAGES 1 /* the answer */
#define FIRST_MESSAGES (1 + SPARE_MESSAGES)
static _Thread_local struct pool first_messages =
    POOL(FIRST_MESSAGES * sizeof(struct message), 256);

static void give_messages(struct conversation *c) {
    if (c->room == FIRST_MESSAGES)
        pool_give(&first_messages, c->messages);
    else
        free(c->messages);
}

void conversation_init(struct conversation *c, struct arena *arena, size_t reply_max_bytes) {
    *c = (struct conversation){.arena = arena};
    reply_text_init(&c->reply, reply_max_bytes);
}

void conversation_done(struct conversation *c) {
    give_messages(c);
    free(c->asides);
    reply_text_clear(&c->reply);
}

/* --- messages ----------------------------------------------------------------------------- */

static void conversation_make_room(struct conversation *c, size_t more) {
    size_t needed = c->count + more;
    if (needed <= c->room) return;
    size_t room = needed > 2 * c->room ? needed + SPARE_MESSAGES : 2 * c->room;
    struct message *messages = room == FIRST_MESSAGES
                                   ? pool_take(&first_messages)
                                   : mem_alloc(room * sizeof(struct message));
    if (c->count) memcpy(messages, c->messages, c->count * sizeof(struct message));
    give_messages(c);
    c->messages = messages;
    c->room = room;
}

static void conversation_insert(struct conversation *c, size_t place,
                                const struct message *messages, size_t count) {
    conversation_make_room(c, count);
    memmove(c->messages + place + count, c->messages + place,
            (c->count - place) * sizeof(struct message));
    if (count) memcpy(c->messages + place, messages, count * sizeof(struct message));
    c->count += count;
}

static void conversation_add(struct conversation *c, struct message message) {
    conversation_insert(c, c->count, &message, 1);
}

/* The next reply begins after it. */
static void add_for_model(struct conversation *c, struct message message) {
    conversation_add(c, message);
    c->reply_from = c->count;
}

static bool conversation_keep(struct conversation *c, struct str text,
                              enum conversation_texts texts, struct str *ret) {
    if (texts == TEXTS_LENT && text.len) return arena_str(c->arena, text, ret);
    *ret = text;
    return true;
}

/* --- replies ------------------------------------------------------------------------------ */

static bool is_blank(struct str text) {
    return str_trim(text).len == 0;
}

/* The reply is over: what it said is a message. `said` is the whole of it, if that is known. */
static bool end_reply(struct conversation *c, struct str agent, struct str said,
                      enum conversation_texts texts) {
    struct message message = {.role = MESSAGE_AGENT};
    struct str reply = reply_text_whole(&c->reply);
    bool streamed = said.len == 0 || said.at == reply.at;
    struct str text = streamed ? reply : said;
    bool kept = is_blank(text) ||
                (conversation_keep(c, text, streamed ? TEXTS_LENT : texts, &message.text) &&
                 conversation_keep(c, agent, texts, &message.agent));
    if (kept && message.text.len) conversation_add(c, message);
    reply_text_restart(&c->reply); /* the event still has `said` */
    return kept;
}

struct str conversation_reply(struct conversation *c) {
    return reply_text_whole(&c->reply);
}

void conversation_drop_reply(struct conversation *c) {
    reply_text_clear(&c->reply);
}

void conversation_restore_reply(struct conversation *c, struct reply_text *text) {
    if (!text) {
        reply_text_clear(&c->reply);
        return;
    }
    struct reply_text later = c->reply;
    reply_text_init(&c->reply, later.max_bytes);
    reply_text_take(&c->reply, text);
    reply_text_take(&c->reply, &later);
}

/* --- what the caller says ----------------------------------------------------------------- */

static bool take_started(struct conversation *c, const struct event *event,
                         enum conversation_texts texts) {
    struct message message = {.role = MESSAGE_USER};
    if (!conversation_keep(c, event->started.text, texts, &message.text) ||
        !conversation_keep(c, event->agent, texts, &message.heard_by))
        return false;
    c->brought_at = c->turn_start = c->count;
    add_for_model(c, message);
    c->answer_from = c->count;
    return true;
}

/* The calls of the caller that come with a result. */
static void mark_answered(struct message *messages, size_t count) {
    struct call_pairs pairs;
    call_pairs_init(&pairs, messages, count, STR_EMPTY);
    for (size_t i = 0; i < count; i++)
        messages[i].answered =
            messages[i].role == MESSAGE_TOOL_CALL && pairs.of[i] != CALL_PAIRS_NONE;
    call_pairs_done(&pairs);
}

/* Messages that do not say who heard them. */
static void mark_heard(struct message *messages, size_t count, struct str agent) {
    for (size_t i = 0; i < count; i++) {
        if (!messages[i].heard_by.len) messages[i].heard_by = agent;
    }
}

/* The message of the list that the turn answers: its last one of a user, else its first that is no
 * instruction. */
static size_t brought_question(const struct conversation *c) {
    size_t first = c->brought_at, at = c->count - 1;
    while (first < at && c->messages[first].instructions) first++;
    while (at > first && c->messages[at].role != MESSAGE_USER) at--;
    return at;
}

/* The caller's own list replaces the input, which is its last message. */
static bool take_brought(struct conversation *c, const struct event *event,
                         enum conversation_texts texts) {
    struct import import;
    struct str heard_by;
    struct err e;
    if (!conversation_keep(c, event->agent, texts, &heard_by)) return false;
    if (!import_decode(event->item.bytes, c->arena, &import, &e))
        return e.code != ERR_RESOURCE_EXHAUSTED; /* the input is all that can be read */
    if (import.count == 0) return true;
    c->count = c->brought_at;
    c->open_from = 0;
    conversation_insert(c, c->count, import.messages, import.count);
    mark_heard(c->messages + c->brought_at, import.count, heard_by);
    mark_answered(c->messages + c->brought_at, import.count);
    c->reply_from = c->answer_from = c->count;
    c->turn_start = brought_question(c);
    if (str_ends(event->item.type, STR(BROUGHT_ALL))) c->starts_anew = true;
    return true;
}

struct message *conversation_precede(struct conversation *c, size_t count) {
    assert(c->own_from == 0);
    conversation_make_room(c, count ? count : 1);
    memmove(c->messages + count, c->messages, c->count * sizeof(struct message));
    c->count += count;
    c->own_from += count;
    c->brought_at += count;
    c->turn_start += count;
    c->reply_from += count;
    c->answer_from += count;
    c->open_from += count;
    return c->messages;
}

/* Where the turn begins for its model: with its instructions, and with the calls that it brings
 * results of, if it does. */
static size_t turn_with_its_calls(const struct conversation *c) {
    size_t at = c->turn_start;
    bool results = at < c->count && c->messages[at].role == MESSAGE_TOOL_RESULT;
    while (at > 0 && (c->messages[at - 1].instructions ||
                      (results && c->messages[at - 1].role == MESSAGE_TOOL_CALL)))
        at--;
    return at;
}

/* Instructions before `end`, which a list that is the whole conversation has at its beginning. */
static const struct message *instructions_before(const struct conversation *c, size_t end) {
    bool has = c->brought_at < end && c->messages[c->brought_at].instructions;
    return has ? &c->messages[c->brought_at] : NULL;
}

void conversation_summarize(struct conversation *c, struct str summary, struct str agent,
                            enum summary_of of) {
    struct message message = {.role = MESSAGE_USER, .text = summary, .heard_by = agent};
    size_t before = turn_with_its_calls(c);
    const struct message *instructions = instructions_before(c, before);
    struct message first[] = {message, instructions ? *instructions : message};
    size_t first_count = instructions ? 2 : 1, kept = first_count + c->turn_start - before;
    c->open_from = 0;
    conversation_make_room(c, first_count);
    memmove(c->messages, c->messages + before, (c->count - before) * sizeof(struct message));
    c->count -= before;
    c->reply_from -= before;
    c->answer_from -= before;
    conversation_insert(c, 0, first, first_count);
    c->reply_from += first_count;
    c->answer_from += first_count;
    c->brought_at = c->turn_start = kept;
    c->own_from = of == SUMMARY_OF_SESSION ? 0 : kept;
    if (of == SUMMARY_OF_SESSION) c->starts_anew = true;
}

/* --- items -------------------------------------------------------------------------------- */

static bool take_opaque(struct conversation *c, const struct event *event,
                        enum conversation_texts texts) {
    struct message message = {.role = MESSAGE_OPAQUE};
    struct str dialect = str_skip(event->item.type, STR(OPAQUE_ITEM).len);
    if (!conversation_keep(c, event->agent, texts, &message.agent) ||
        !conversation_keep(c, dialect, texts, &message.tool) ||
        !conversation_keep(c, event->item.bytes, texts, &message.text))
        return false;
    conversation_insert(c, c->reply_from, &message, 1);
    return true;
}

static void add_asides(struct conversation *c) {
    for (size_t i = 0; i < c->aside_count && c->open_calls == 0; i++)
        add_for_model(c, c->asides[i]);
    if (c->open_calls == 0) c->aside_count = 0;
}

static bool take_aside(struct conversation *c, const struct event *event,
                       enum conversation_texts texts) {
    struct message words = {.role = MESSAGE_USER};
    if (!conversation_keep(c, event->item.bytes, texts, &words.text) ||
        !conversation_keep(c, event->agent, texts, &words.heard_by))
        return false;
    c->asides = mem_resize(c->asides, (c->aside_count + 1) * sizeof(*c->asides));
    c->asides[c->aside_count++] = words;
    add_asides(c);
    return true;
}

bool conversation_repair(struct str agent, struct str said, struct str told, struct buf *out) {
    return event_turn_append(out, agent, said) && event_turn_append(out, STR_EMPTY, told);
}

static bool take_repair(struct conversation *c, const struct event *event,
                        enum conversation_texts texts) {
    struct str rest = event->item.bytes;
    struct event_turn said, told;
    struct message answer = {.role = MESSAGE_AGENT}, complaint = {.role = MESSAGE_USER};
    if (!event_turn_next(&rest, &said) || !event_turn_next(&rest, &told)) return true;
    if (!conversation_keep(c, said.agent, texts, &answer.agent) ||
        !conversation_keep(c, said.text, texts, &answer.text) ||
        !conversation_keep(c, told.text, texts, &complaint.text))
        return false;
    complaint.heard_by = answer.agent;
    if (!is_blank(answer.text)) conversation_add(c, answer);
    add_for_model(c, complaint);
    return true;
}

static bool take_summary(struct conversation *c, const struct event *event,
                         enum conversation_texts texts) {
    struct str summary, agent;
    if (!conversation_keep(c, event->item.bytes, texts, &summary) ||
        !conversation_keep(c, event->agent, texts, &agent))
        return false;
    conversation_summarize(c, summary, agent, SUMMARY_OF_SESSION);
    return true;
}

static bool take_item(struct conversation *c, const struct event *event,
                      enum conversation_texts texts) {
    struct str type = event->item.type;
    if (str_starts(type, STR(OPAQUE_ITEM))) return take_opaque(c, event, texts);
    if (str_starts(type, STR(BROUGHT_ITEM))) return take_brought(c, event, texts);
    if (str_equal(type, STR(ASIDE_ITEM))) return take_aside(c, event, texts);
    if (str_equal(type, STR(REPAIR_ITEM))) return take_repair(c, event, texts);
    if (str_equal(type, STR(SUMMARY_ITEM))) return take_summary(c, event, texts);
    return true;
}

/* --- calls and their results -------------------------------------------------------------- */

static bool add_call(struct conversation *c, const struct event *event, struct str call_id,
                     struct str tool, struct str args, enum conversation_texts texts) {
    struct message message = {.role = MESSAGE_TOOL_CALL};
    if (!conversation_keep(c, event->agent, texts, &message.agent) ||
        !conversation_keep(c, call_id, texts, &message.call_id) ||
        !conversation_keep(c, tool, texts, &message.tool) ||
        !conversation_keep(c, args, texts, &message.text))
        return false;
    conversation_add(c, message);
    c->open_calls++;
    return true;
}

static bool take_call(struct conversation *c, const struct event *event,
                      enum conversation_texts texts) {
    if (!end_reply(c, event->agent, event->tool_call.said, texts) ||
        !add_call(c, event, event->tool_call.call_id, event->tool_call.tool,
                  event->tool_call.args, texts))
        return false;
    if (!event->tool_call.callers) return true;
    c->messages[c->count - 1].callers = true;
    c->open_calls--; /* it stays without a result */
    return true;
}

static bool take_approval(struct conversation *c, const struct event *event,
                          enum conversation_texts texts) {
    if (event->approval.guards.len) return true; /* about a call that is here already */
    return end_reply(c, event->agent, event->approval.said, texts) &&
           add_call(c, event, event->approval.call_id, STR(APPROVAL_TOOL), event->approval.args,
                    texts);
}

static bool is_call(const struct message *message, struct str call_id) {
    return message->role == MESSAGE_TOOL_CALL && str_equal(message->call_id, call_id);
}

bool conversation_is_open(const struct conversation *c, size_t index) {
    return c->messages[index].role == MESSAGE_TOOL_CALL && !c->messages[index].answered;
}

/* Careless models repeat an id within a reply; then results answer in the order of the calls. */
static struct message *oldest_open(struct conversation *c, struct str call_id) {
    if (c->open_from < c->own_from) c->open_from = c->own_from;
    while (c->open_from < c->count && !conversation_is_open(c, c->open_from)) c->open_from++;
    for (size_t i = c->open_from; i < c->count; i++) {
        if (conversation_is_open(c, i) && is_call(&c->messages[i], call_id))
            return &c->messages[i];
    }
    return NULL;
}

struct message *conversation_call(struct conversation *c, struct str call_id) {
    if (!c->messages) return NULL; /* there is none yet */
    struct message *open = oldest_open(c, call_id);
    for (size_t i = c->count; !open && i-- > c->own_from;) {
        if (is_call(&c->messages[i], call_id)) return &c->messages[i];
    }
    return open;
}

/* A human's decision about a call; edited arguments are the ones that were used. */
static bool take_decision(struct conversation *c, const struct event *event) {
    struct str call_id = event->tool_result.call_id;
    struct json decision;
    struct err e;
    if (!str_starts(call_id, STR(APPROVAL_ID))) return true;
    struct message *call = conversation_call(c, str_skip(call_id, strlen(APPROVAL_ID)));
    if (!call || !json_read(event->tool_result.result, &decision, &e)) return true;
    struct json args = json_find(decision, STR("args"));
    return args.kind != JSON_OBJECT || arena_str(c->arena, args.raw, &call->text);
}

/* The answer to a question is a result for the model, and the human's words. */
static bool take_words(struct conversation *c, struct str tool, struct str result,
                       struct str agent) {
    struct message words = {.role = MESSAGE_USER, .heard_by = agent};
    struct json object;
    struct err e;
    if (!str_equal(tool, STR(APPROVAL_TOOL)) || !json_read(result, &object, &e)) return true;
    struct json answer = json_find(object, STR("answer"));
    if (answer.kind != JSON_STRING) return true;
    if (!json_str(answer, c->arena, &words.text)) return false;
    add_for_model(c, words);
    return true;
}

static bool take_result(struct conversation *c, const struct event *event,
                        enum conversation_texts texts) {
    struct message *call = conversation_call(c, event->tool_result.call_id);
    if (!call) return take_decision(c, event);
    if (call->answered) return true; /* it has one */
    struct message message = {.role = MESSAGE_TOOL_RESULT,
                              .error = event->tool_result.error,
                              .call_id = call->call_id,
                              .tool = call->tool};
    if (!conversation_keep(c, event->agent, texts, &message.agent) ||
        !conversation_keep(c, event->tool_result.result, texts, &message.text))
        return false;
    call->answered = true;
    add_for_model(c, message);
    if (c->open_calls) c->open_calls--;
    if (!take_words(c, message.tool, message.text, message.agent)) return false;
    add_asides(c);
    return true;
}

/* --- the end ------------------------------------------------------------------------------ */

/* The log ends without the results of its calls: their outcome is unknown. */
static void close_calls(struct conversation *c) {
    for (size_t i = c->own_from; i < c->count && c->open_calls; i++) {
        struct message call = c->messages[i];
        if (call.callers || !conversation_is_open(c, i)) continue;
        c->messages[i].answered = true;
        struct message result = {.role = MESSAGE_TOOL_RESULT,
                                 .error = true,
                                 .agent = call.agent,
                                 .call_id = call.call_id,
                                 .tool = call.tool,
                                 .text = STR("{}")};
        char room[EFFECT_MAX_BYTES];
        struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
        struct err e;
        bool left = !str_equal(call.tool, STR(APPROVAL_TOOL)) &&
                    !str_equal(call.tool, STR(TRANSFER_TOOL));
        effect_write(left ? EFFECT_UNKNOWN : EFFECT_NONE,
                     left ? STR("the turn ended while this call was out")
                          : STR("the turn ended first"),
                     &text, &e);
        (void)!arena_str(c->arena, buf_str(&text), &result.text);
        add_for_model(c, result);
        c->open_calls--;
    }
    c->open_calls = 0;
    add_asides(c);
}

/* Its first call was refused as a request: what the caller brought would poison the session. */
static void leave_note(struct conversation *c) {
    c->count = c->brought_at;
    c->open_from = 0;
    add_for_model(
        c, (struct message){.role = MESSAGE_USER, .error = true, .text = STR(REFUSED_NOTE)});
    c->turn_start = c->brought_at;
    c->answer_from = c->count;
    c->refused = true;
}

/* Whether anything was said or requested after the caller's words. */
static bool has_answered(const struct conversation *c) {
    for (size_t i = c->answer_from; i < c->count; i++) {
        if (c->messages[i].role != MESSAGE_OPAQUE) return true;
    }
    return false;
}

/* Streamed text stays where it is, which lives as long, so a full arena loses nothing. */
static void end_turn(struct conversation *c, const struct event *event, struct str said,
                     enum conversation_texts texts) {
    struct str reply = reply_text_whole(&c->reply);
    struct message message = {.role = MESSAGE_AGENT, .text = reply};
    bool more = said.len > message.text.len; /* read back without the rows of streamed text */
    if (more && !conversation_keep(c, said, texts, &message.text)) message.text = reply;
    if (!conversation_keep(c, event->agent, texts, &message.agent)) message.agent = STR_EMPTY;
    if (!is_blank(message.text)) conversation_add(c, message);
    close_calls(c);
    c->ended = event->kind;
    struct message *first = c->turn_start < c->count ? &c->messages[c->turn_start] : NULL;
    /* It began a turn that failed; of a result it would say that its call did. */
    if (event->kind != EVENT_DONE && first && first->role != MESSAGE_TOOL_RESULT)
        first->error = true;
}

static struct str last_turn(struct str turns) {
    struct event_turn turn = {.text = STR_EMPTY};
    while (event_turn_next(&turns, &turn)) {
    }
    return turn.text;
}

static void take_failed(struct conversation *c, const struct event *event,
                        enum conversation_texts texts) {
    end_turn(c, event, event->failed.said, texts);
    if (reply_reason_is_refusal(event->failed.reason) && !has_answered(c)) leave_note(c);
}

/* --- the fold ----------------------------------------------------------------------------- */

static __attribute__((noinline)) bool
apply_other(struct conversation *c, const struct event *event, enum conversation_texts texts) {
    switch (event->kind) {
    case EVENT_STARTED: return take_started(c, event, texts);
    case EVENT_TOOL_CALL: return take_call(c, event, texts);
    case EVENT_APPROVAL: return take_approval(c, event, texts);
    case EVENT_TOOL_RESULT: return take_result(c, event, texts);
    case EVENT_ITEM: return take_item(c, event, texts);
    case EVENT_DONE: end_turn(c, event, last_turn(event->done.turns), texts); break;
    case EVENT_FAILED: take_failed(c, event, texts); break;
    case EVENT_CANCELLED: end_turn(c, event, event->cancelled.said, texts); break;
    case EVENT_TEXT:
    case EVENT_USAGE:
    case EVENT_THINKING:
    case EVENT_STEP:
    case EVENT_AUDIO:
    case EVENT_KIND_COUNT: break;
    }
    return true;
}

bool conversation_apply(struct conversation *c, const struct event *event,
                        enum conversation_texts texts) {
    if (c->ended) return true;
    if (event->kind == EVENT_TEXT) /* most */
        return reply_text_append(&c->reply, event->text.text);
    return apply_other(c, event, texts);
}
