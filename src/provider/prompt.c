#include "provider/prompt.h"

#include "base/map.h"
#include "base/mem.h"
#include "provider/call_pairs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A walk through the messages. */
struct walk {
    const struct provider_request *request;
    struct str dialect;
    struct call_pairs pairs;
    size_t at;
};

/* One reply of the agent: messages from..end. */
struct reply_span {
    size_t from, end;
    const struct message *opaque, *text; /* each may be NULL */
    size_t calls_from;
};

static bool is_own(const struct provider_request *request, const struct message *message) {
    return message->agent.len == 0 || str_equal(message->agent, request->agent);
}

/* --- the agent's own replies -------------------------------------------------------------- */

static struct reply_span span_of(const struct provider_request *request, size_t from) {
    struct reply_span span = {.from = from, .end = from};
    const struct message *at = &request->messages[from];
    const struct message *end = request->messages + request->message_count;
    if (at->role == MESSAGE_OPAQUE) span.opaque = at++;
    if (at < end && at->role == MESSAGE_AGENT && is_own(request, at)) span.text = at++;
    span.calls_from = (size_t)(at - request->messages);
    while (at < end && at->role == MESSAGE_TOOL_CALL && is_own(request, at)) at++;
    span.end = (size_t)(at - request->messages);
    return span;
}

static void add_reply(struct prompt *prompt, struct walk *walk) {
    const struct provider_request *request = walk->request;
    struct reply_span span = span_of(request, walk->at);
    walk->at = span.end;

    struct prompt_turn turn = {.role = PROMPT_AGENT,
                               .index = span.from,
                               .text = span.text ? span.text->text : STR_EMPTY,
                               .opaque = STR_EMPTY,
                               .calls = prompt->calls + prompt->call_count};
    for (size_t i = span.calls_from; i < span.end; i++) {
        size_t result = walk->pairs.of[i];
        if (result == CALL_PAIRS_NONE) continue;
        prompt->calls[prompt->call_count++] = (struct prompt_call){
            &request->messages[i], &request->messages[result], request->messages[i].call_id};
        turn.call_count++;
    }
    if (turn.text.len == 0 && turn.call_count == 0) return;

    bool whole = turn.call_count == span.end - span.calls_from;
    if (whole && span.opaque && str_equal(span.opaque->tool, walk->dialect))
        turn.opaque = span.opaque->text;
    prompt->turns[prompt->turn_count++] = turn;
}

/* --- messages of other agents ------------------------------------------------------------- */

/* The call that the result at this place answers, or NULL. */
static const struct message *answered_call(const struct walk *walk) {
    size_t call = walk->pairs.of[walk->at];
    return call == CALL_PAIRS_NONE ? NULL : &walk->request->messages[call];
}

/* Append a line that describes the message at this place; nothing if there is nothing to describe. */
static void provider_prompt_report(const struct walk *walk, struct buf *out) {
    const struct provider_request *request = walk->request;
    const struct message *message = &request->messages[walk->at], *call = message;
    switch (message->role) {
    case MESSAGE_AGENT:
        if (message->text.len == 0) return;
        buf_printf(out, "\n[" STR_FMT "] said: ", STR_ARG(message->agent));
        break;
    case MESSAGE_TOOL_RESULT:
        call = answered_call(walk);
        if (!call || is_own(request, call)) return; /* orphaned, or sent with its reply */
        buf_printf(out,
                   "\n[" STR_FMT "] `" STR_FMT "` tool returned result: ", STR_ARG(call->agent),
                   STR_ARG(call->tool));
        break;
    case MESSAGE_TOOL_CALL:
        buf_printf(out, "\n[" STR_FMT "] called tool `" STR_FMT "` with parameters: ",
                   STR_ARG(call->agent), STR_ARG(call->tool));
        break;
    default: return; /* MESSAGE_OPAQUE: only its own agent can use it */
    }
    buf_append(out, message->text);
}

static bool begins_reply(const struct walk *walk) {
    const struct message *message = &walk->request->messages[walk->at];
    bool can = message->role == MESSAGE_OPAQUE || message->role == MESSAGE_AGENT ||
               message->role == MESSAGE_TOOL_CALL;
    return can && is_own(walk->request, message);
}

static bool is(const struct walk *walk, enum message_role role) {
    return walk->request->messages[walk->at].role == role;
}

/* Whether the message comes from the caller and not from an agent. */
static bool is_callers(const struct walk *walk) {
    return is(walk, MESSAGE_USER) || is(walk, MESSAGE_SYSTEM);
}

static bool more(const struct walk *walk) {
    return walk->at < walk->request->message_count;
}

/* Consecutive messages of other agents become one turn. */
static bool add_context(struct prompt *prompt, struct walk *walk, struct err *e) {
    struct buf context;
    struct prompt_turn turn = {.role = PROMPT_USER,
                               .foreign = true,
                               .index = walk->at,
                               .parts = STR_EMPTY,
                               .opaque = STR_EMPTY};
    buf_init(&context, PROMPT_MAX_BYTES);
    buf_append(&context, STR("For context:"));
    size_t heading = context.len;
    for (; more(walk) && !is_callers(walk) && !begins_reply(walk); walk->at++)
        provider_prompt_report(walk, &context);

    bool any = context.len > heading;
    bool fits =
        buf_ok(&context) && (!any || arena_str(prompt->arena, buf_str(&context), &turn.text));
    buf_done(&context);
    if (!fits)
        return err_set(e, ERR_TOO_LARGE,
                       "the conversation holds more than %u MiB of other agents' words",
                       (unsigned)(PROMPT_MAX_BYTES / MIB));
    if (any) prompt->turns[prompt->turn_count++] = turn;
    return true;
}

/* --- the whole conversation --------------------------------------------------------------- */

static void add_user(struct prompt *prompt, struct walk *walk) {
    const struct message *message = &walk->request->messages[walk->at];
    prompt->turns[prompt->turn_count++] = (struct prompt_turn){.role = PROMPT_USER,
                                                               .index = walk->at++,
                                                               .text = message->text,
                                                               .parts = message->parts,
                                                               .opaque = STR_EMPTY};
}

static void add_system(struct prompt *prompt, struct walk *walk) {
    const struct message *message = &walk->request->messages[walk->at];
    struct prompt_turn turn = {
        .role = PROMPT_SYSTEM, .index = walk->at++, .text = message->text, .opaque = STR_EMPTY};
    if (str_trim(turn.text).len) prompt->turns[prompt->turn_count++] = turn;
}

/* Mark a final assistant message that came from the caller. */
static void mark_prefill(struct prompt *prompt, const struct provider_request *request) {
    if (request->message_count == 0) return;
    const struct message *last = &request->messages[request->message_count - 1];
    bool callers = last->role == MESSAGE_AGENT && last->agent.len == 0 && last->text.len;
    if (callers) prompt->turns[prompt->turn_count - 1].prefill = true;
}

/* Instructions stand before the conversation, where every model takes them. */
static void add_instructions(struct prompt *prompt, struct walk *walk) {
    for (walk->at = 0; more(walk);) {
        if (walk->request->messages[walk->at].instructions) {
            add_system(prompt, walk);
        } else {
            walk->at++;
        }
    }
    walk->at = 0;
}

static bool add_turns(struct prompt *prompt, struct walk *walk, struct err *e) {
    add_instructions(prompt, walk);
    while (more(walk)) {
        if (walk->request->messages[walk->at].instructions) {
            walk->at++;
        } else if (is(walk, MESSAGE_USER)) {
            add_user(prompt, walk);
        } else if (is(walk, MESSAGE_SYSTEM)) {
            add_system(prompt, walk);
        } else if (begins_reply(walk)) {
            add_reply(prompt, walk);
        } else if (!add_context(prompt, walk, e)) {
            return false;
        }
    }
    return true;
}

/* --- ids ---------------------------------------------------------------------------------- */

/* How many calls have each id. */
struct id_counts {
    struct map *counts; /* by id, from `room` */
    size_t *room, used;
};

/* Whether this is the first call with the id. */
static bool id_is_new(struct id_counts *ids, struct str id, size_t **ret_count) {
    *ret_count = map_find(ids->counts, id);
    if (*ret_count) return false;
    *ret_count = &ids->room[ids->used++];
    **ret_count = 1;
    map_put(ids->counts, id, *ret_count);
    return true;
}

/* Other vendors' ids may hold characters that Anthropic refuses. They are replaced before ids are
 * compared: two may differ in such a character only. */
static bool id_tame(struct prompt *prompt, struct str *id) {
    struct buf tame;
    buf_init(&tame, id->len + 1);
    for (size_t i = 0; i < id->len; i++) {
        char c = id->at[i];
        bool fine = str_is_alnum(c) || c == '_' || c == '-';
        buf_append_byte(&tame, fine ? c : '_');
    }
    bool same = str_equal(buf_str(&tame), *id);
    bool fits = same || arena_str(prompt->arena, buf_str(&tame), id);
    buf_done(&tame);
    return fits;
}

static bool id_make_own(struct prompt *prompt, struct id_counts *ids, struct str *id) {
    size_t *count, *other;
    struct str wanted = *id;
    if (id_is_new(ids, wanted, &count)) return true;
    struct buf text;
    buf_init(&text, PROMPT_MAX_BYTES);
    do {
        buf_clear(&text);
        buf_printf(&text, STR_FMT "-%zu", STR_ARG(wanted), ++*count);
    } while (map_find(ids->counts, buf_str(&text)));
    bool fits = buf_ok(&text) && arena_str(prompt->arena, buf_str(&text), id);
    buf_done(&text);
    return fits && id_is_new(ids, *id, &other);
}

enum which_turns { OPAQUE_TURNS, OTHER_TURNS };

static bool name_calls_of(struct prompt *prompt, enum which_turns which,
                          struct id_counts *ids) {
    struct prompt_call *call = prompt->calls;
    bool fits = true;
    size_t *count;
    for (size_t i = 0; i < prompt->turn_count; i++) {
        const struct prompt_turn *turn = &prompt->turns[i];
        bool opaque = turn->opaque.len > 0;
        for (size_t n = 0; fits && n < turn->call_count; n++, call++) {
            if (which == OPAQUE_TURNS && opaque) id_is_new(ids, call->id, &count);
            if (which == OTHER_TURNS && !opaque)
                fits = id_tame(prompt, &call->id) && id_make_own(prompt, ids, &call->id);
        }
    }
    return fits;
}

/* The ids in opaque replies cannot be changed, so those come first. */
static bool name_calls(struct prompt *prompt) {
    struct id_counts ids = {.counts = map_new(),
                            .room = mem_zero(prompt->call_count + 1, sizeof(size_t))};
    bool fits =
        name_calls_of(prompt, OPAQUE_TURNS, &ids) && name_calls_of(prompt, OTHER_TURNS, &ids);
    map_free(ids.counts);
    free(ids.room);
    return fits;
}

bool prompt_init(struct prompt *prompt, const struct provider_request *request,
                 struct str dialect, struct err *e) {
    *prompt = (struct prompt){
        .turns = mem_zero(request->message_count, sizeof(struct prompt_turn)),
        .calls = mem_zero(request->message_count, sizeof(struct prompt_call)),
        .arena = arena_new(PROMPT_MAX_BYTES),
    };
    struct walk walk = {.request = request, .dialect = dialect};
    call_pairs_init(&walk.pairs, request->messages, request->message_count, request->agent);
    bool fits = add_turns(prompt, &walk, e);
    call_pairs_done(&walk.pairs);
    fits =
        fits && (name_calls(prompt) ||
                 err_set(e, ERR_TOO_LARGE, "the ids of the conversation's calls are too long"));
    if (!fits) {
        prompt_done(prompt);
        return false;
    }
    mark_prefill(prompt, request);
    return true;
}

void prompt_done(struct prompt *prompt) {
    free(prompt->turns);
    free(prompt->calls);
    arena_free(prompt->arena);
    *prompt = (struct prompt){0};
}

/* --- for the dialects --------------------------------------------------------------------- */

size_t prompt_leading_system(const struct prompt *prompt) {
    size_t count = 0;
    while (count < prompt->turn_count && prompt->turns[count].role == PROMPT_SYSTEM) count++;
    return count;
}

static bool is_repeated(const struct prompt *prompt, const struct prompt_turn *turn) {
    for (const struct prompt_turn *at = prompt->turns; at < turn; at++) {
        if (at->role == PROMPT_SYSTEM && str_equal(at->text, turn->text)) return true;
    }
    return false;
}

/* For the caller, a reply and its calls are one message, and each result is another. */
static bool begins_message(const struct message *messages, size_t index) {
    switch (messages[index].role) {
    case MESSAGE_OPAQUE: return false;
    case MESSAGE_TOOL_CALL: break;
    default: return true;
    }
    if (index == 0) return true;
    enum message_role before = messages[index - 1].role;
    return before != MESSAGE_AGENT && before != MESSAGE_TOOL_CALL;
}

static size_t place_of(const struct provider_request *request, size_t index) {
    size_t place = 0;
    for (size_t i = 0; i < index; i++) place += begins_message(request->messages, i);
    return place;
}

bool prompt_refuse(const struct provider_request *request, const struct prompt_turn *turn,
                   size_t part, struct err *e, const char *format, ...) {
    va_list values;
    char why[ERR_TEXT_BYTES], item[32] = "";
    va_start(values, format);
    vsnprintf(why, sizeof(why), format, values);
    va_end(values);
    if (part != NO_PART) snprintf(item, sizeof(item), ".content[%zu]", part);
    return err_set(e, ERR_UNIMPLEMENTED, "messages[%zu]%s: %s", place_of(request, turn->index),
                   item, why);
}

bool prompt_check_system(const struct provider_request *request, const struct prompt *prompt,
                         const char *whose, struct err *e) {
    for (size_t i = prompt_leading_system(prompt); i < prompt->turn_count; i++) {
        const struct prompt_turn *turn = &prompt->turns[i];
        if (turn->role != PROMPT_SYSTEM || is_repeated(prompt, turn)) continue;
        return prompt_refuse(request, turn, NO_PART, e,
                             "%s models take system messages before all others only", whose);
    }
    return true;
}
