#include "turn/compaction.h"

#include "base/utf8.h"
#include "provider/dialect.h"
#include "session/history.h"
#include "turn/turn.h"

#include <assert.h>

#define BYTES_A_TOKEN 4
#define WINDOW_SHARE 4 / 5 /* of the window; the rest is for the answer */
#define TRANSCRIPT_LINE_BYTES (8 * KIB)
#define TRANSCRIPT_MIN_BYTES (4 * KIB) /* a model that refuses less is not asked again */
#define LINE_REST_BYTES 32             /* of a line, besides names and text */
#define SUMMARY_HEAD "What was said before, in short:\n"

/* A session that is as full as this drops turns soon. More than what a drop leaves of it, or a session
 * whose summary fails would be asked for one in every turn. */
#define FULL_TURNS (HISTORY_TURNS_MAX * 7 / 8)
#define FULL_BYTES (HISTORY_MAX_BYTES * 7 / 8)
static_assert(FULL_TURNS > HISTORY_TURNS_LEFT && FULL_BYTES > HISTORY_BYTES_LEFT,
              "a drop must leave a session that is not full");

static const char instructions[] =
    "You condense a conversation so that it can go on without its beginning. Keep what was "
    "asked for and decided, names, numbers, dates, places of files and other exact values, "
    "open tasks and promises, and what the user wants and does not want. Tell the newest part "
    "in more detail than the oldest. Write plain prose, without a preface, in the language of "
    "the conversation, a tenth of its length at most.";

void compaction_init(struct compaction *compaction) {
    buf_init(&compaction->summary, SUMMARY_MAX_BYTES);
}

void compaction_done(struct compaction *compaction) {
    buf_done(&compaction->summary);
}

const struct state compaction_states[COMPACTION_STATE_COUNT] = {
    /* clang-format off */
    [COMPACTION_NONE]     = {"none",     TO(COMPACTION_ASKING)},
    [COMPACTION_ASKING]   = {"asking",   TO(COMPACTION_REPLACED) | TO(COMPACTION_GIVEN_UP)},
    [COMPACTION_REPLACED] = {"replaced", 0},
    [COMPACTION_GIVEN_UP] = {"given up", TO(COMPACTION_ASKING)},
    /* clang-format on */
};

/* The only function that writes compaction->state. */
static void compaction_move(struct compaction *compaction, enum compaction_state next) {
    assert(states_allow(compaction_states, compaction->state, next));
    compaction->state = next;
}

/* --- conditions --------------------------------------------------------------------------- */

static uint64_t estimated_bytes(const struct run *run) {
    uint64_t bytes = run->agent->system.len;
    for (size_t i = 0; i < run->conversation.count; i++) {
        const struct message *message = &run->conversation.messages[i];
        bytes += message->text.len + message->tool.len;
    }
    return bytes;
}

static uint64_t window_bytes(const struct run *run) {
    return run->agent->window_tokens * WINDOW_SHARE * BYTES_A_TOKEN;
}

static bool is_summary(const struct message *message) {
    return message->role == MESSAGE_USER && str_starts(message->text, STR(SUMMARY_HEAD));
}

static bool begins_with_summary(const struct run *run) {
    return run->conversation.turn_start > 0 && is_summary(run->conversation.messages);
}

bool run_keeps_summary(const struct run *run) {
    const struct message *oldest = run->seen_hidden ? history_oldest(run->seen) : NULL;
    return oldest && is_summary(oldest);
}

/* What a caller brought whole is not kept by the session, nor are instructions of this turn, and a
 * turn inside another one would shorten only its own view. */
static bool session_is_full(const struct run *run) {
    const struct conversation *c = &run->conversation;
    size_t turns = 0, bytes = 0;
    if (c->starts_anew || run->admission.lease.parent) return false;
    for (size_t i = 0; i < c->turn_start; i++) {
        if (c->messages[i].instructions) continue;
        turns += c->messages[i].role == MESSAGE_USER;
        bytes += c->messages[i].text.len + c->messages[i].parts.len;
    }
    return turns >= FULL_TURNS || bytes >= FULL_BYTES;
}

/* Whether the agent's limits have room for a summary and then for the turn. A question for a summary
 * is longer than its texts. */
static bool has_room_for_summary(const struct run *run) {
    uint64_t bytes = estimated_bytes(run);
    uint64_t question =
        bytes + sizeof(instructions) + run->conversation.turn_start * (uint64_t)LINE_REST_BYTES;
    return run_has_call_to_spare(run) && run_limits_allow(run, question + bytes, bytes / 10);
}

static bool is_worth_keeping(const struct run *run) {
    return (run->agent->window_tokens > 0 || begins_with_summary(run)) &&
           session_is_full(run) && has_room_for_summary(run);
}

bool run_may_compact(const struct run *run) {
    enum compaction_state state = run->compaction.state;
    return (state == COMPACTION_NONE || state == COMPACTION_GIVEN_UP) &&
           run->conversation.turn_start > 1;
}

bool run_needs_compacting(const struct run *run, enum compaction_why *ret) {
    bool windowed = run->agent->window_tokens > 0;
    bool too_long = windowed && estimated_bytes(run) > window_bytes(run);
    if (!run_may_compact(run)) return false;
    *ret = too_long ? COMPACTION_TOO_LONG : COMPACTION_KEEPING;
    return too_long || (run->compaction.state == COMPACTION_NONE && is_worth_keeping(run));
}

/* --- the question ------------------------------------------------------------------------- */

/* Notes of refused messages say nothing, and opaque messages have no words. Instructions of this
 * turn stay beside the summary. */
static bool is_told(const struct message *message) {
    return message->role != MESSAGE_OPAQUE && !message->instructions &&
           !(message->role == MESSAGE_USER && message->error);
}

static void compaction_write_line(struct buf *out, const struct message *message,
                                  size_t max_bytes) {
    struct str text = str_head(message->text, utf8_cut(message->text, max_bytes));
    switch (message->role) {
    case MESSAGE_USER: buf_append(out, STR("[user] ")); break;
    case MESSAGE_AGENT: buf_printf(out, "[" STR_FMT "] ", STR_ARG(message->agent)); break;
    case MESSAGE_TOOL_CALL:
        buf_printf(out, "[" STR_FMT " calls " STR_FMT "] ", STR_ARG(message->agent),
                   STR_ARG(message->tool));
        break;
    case MESSAGE_TOOL_RESULT:
        buf_printf(out, "[" STR_FMT " answers] ", STR_ARG(message->tool));
        break;
    case MESSAGE_SYSTEM: buf_append(out, STR("[instructions] ")); break;
    case MESSAGE_OPAQUE: return;
    }
    buf_append(out, text);
    buf_append_byte(out, '\n');
}

static size_t at_most(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Index of the oldest message from which on all fit; the newest one is always among them. */
static size_t first_that_fits(const struct message *messages, size_t count, size_t max_bytes,
                              size_t line_bytes) {
    size_t first = count, bytes = 0;
    while (first > 0) {
        const struct message *message = &messages[first - 1];
        if (is_told(message))
            bytes += at_most(message->text.len, line_bytes) + message->agent.len +
                     message->tool.len + LINE_REST_BYTES;
        if (bytes > max_bytes && first < count) break;
        first--;
    }
    return first;
}

/* An earlier summary stays, whatever else must be left out, in half of the room. */
static void write_lines(const struct run *run, const struct message *messages,
                        struct buf *out) {
    size_t count = run->conversation.turn_start;
    size_t max = run->compaction.question_max, half = max / 2;
    size_t line_bytes = at_most(TRANSCRIPT_LINE_BYTES, half), first = 0;
    bool summary = begins_with_summary(run);
    if (summary) {
        compaction_write_line(out, &messages[first++], at_most(half, SUMMARY_MAX_BYTES + KIB));
        max -= at_most(half, messages[0].text.len);
    }
    size_t fits = first_that_fits(messages, count, max, line_bytes);
    if (fits > first) {
        buf_append(out, STR("[what was said then is left out: it is too long]\n"));
        first = fits;
    }
    for (size_t i = first; i < count; i++) {
        if (is_told(&messages[i])) compaction_write_line(out, &messages[i], line_bytes);
    }
}

/* The history as one message. As separate messages it could contain calls of tools that are not
 * offered, which some APIs refuse. The guardrails read the messages and not the transcript, in which
 * they could not tell the user's words from the results of tools. */
static bool write_transcript(struct run *run, struct str *ret) {
    const struct message *messages;
    struct buf text;
    if (!run_guard_history(run, run->conversation.turn_start, &messages)) return false;
    buf_init(&text, run->record.engine->limits.memory_max_bytes);
    buf_append(&text, STR("The conversation to condense:\n\n"));
    write_lines(run, messages, &text);
    bool kept = buf_ok(&text);
    if (!kept) run_fail_memory(run);
    kept = kept && run_keep(run, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

static void compaction_ask(struct run *run);

/* --- the answer --------------------------------------------------------------------------- */

/* Later turns of the session begin with the summary. A turn inside another one only uses it
 * itself. */
static void put_in_place_of_history(struct run *run, struct str summary) {
    struct event event = {.kind = EVENT_ITEM, .item = {STR_INIT(SUMMARY_ITEM), summary}};
    if (run->admission.lease.parent) {
        conversation_summarize(&run->conversation, summary, run->agent->slug, SUMMARY_OF_VIEW);
    } else {
        run_append_kept(run, &event);
    }
}

static void take_summary(struct run *run) {
    struct str words = str_trim(buf_str(&run->compaction.summary)), summary;
    struct buf text;
    buf_init(&text, SUMMARY_MAX_BYTES + KIB);
    buf_append(&text, STR(SUMMARY_HEAD));
    buf_append(&text, words);
    bool kept = run_keep(run, buf_str(&text), &summary);
    buf_done(&text);
    if (!kept) return;
    compaction_move(&run->compaction, COMPACTION_REPLACED);
    put_in_place_of_history(run, summary);
    struct event step = {.kind = EVENT_STEP,
                         .step = {.description = STR_INIT("earlier turns were condensed into a "
                                                          "summary")}};
    run_append(run, &step);
    run_ask(run);
}

static void compaction_on_text(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    struct str room = str_head(event->text, SUMMARY_MAX_BYTES - run->compaction.summary.len);
    utf8_append_repaired(&run->compaction.summary, str_head(room, utf8_cut(room, room.len)));
    run_use(run, event->text.len);
}

static void compaction_on_thinking(const struct reply_event *event, void *ctx) {
    run_use_thinking(ctx, event->text.len);
}

static void compaction_on_usage(const struct reply_event *event, void *ctx) {
    run_note_usage(ctx, event->usage);
}

/* The session may lose turns; this one can be made without a summary. */
bool run_give_up_compaction(struct run *run) {
    struct compaction *compaction = &run->compaction;
    if (compaction->state != COMPACTION_ASKING || compaction->why != COMPACTION_KEEPING)
        return false;
    compaction_move(compaction, COMPACTION_GIVEN_UP);
    run_ask(run);
    return true;
}

static void compaction_on_done(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    if (run->ending_begun || !run_end_usage(run, event->model)) return;
    if (str_trim(buf_str(&run->compaction.summary)).len) {
        take_summary(run);
    } else if (!run_give_up_compaction(run)) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("CONTEXT"),
                 STR("the conversation is too long for the model, and it wrote no summary of "
                     "it; start a new session"));
    }
}

/* Whether less of the history may be condensed. A question that was refused is a call as well: one
 * for keeping takes none that the turn itself may need. */
static bool is_shortened(struct run *run, struct str reason) {
    struct compaction *compaction = &run->compaction;
    if (!str_equal(reason, STR(MODEL_CONTEXT)) ||
        compaction->question_max < 2 * TRANSCRIPT_MIN_BYTES)
        return false;
    if (compaction->why == COMPACTION_KEEPING && !has_room_for_summary(run)) return false;
    compaction->question_max /= 2;
    compaction_ask(run);
    return true;
}

static void compaction_on_failed(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    run_settle_failed(run);
    if (run->ending_begun || is_shortened(run, event->reason) || run_give_up_compaction(run))
        return;
    run_fail(run, event->code, event->reason, event->text);
}

/* Other events are ignored: no tool was offered, and the rest is not shown. */
static void on_summary(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_TEXT] = compaction_on_text,     [REPLY_THINKING] = compaction_on_thinking,
        [REPLY_USAGE] = compaction_on_usage,   [REPLY_DONE] = compaction_on_done,
        [REPLY_FAILED] = compaction_on_failed,
    };
    reply_event_handle(handlers, event, ctx);
}

static void compaction_ask(struct run *run) {
    const struct agent *agent = run->agent;
    struct message *question = ARENA_NEW(run->arena, struct message);
    if (!question) {
        run_fail_memory(run);
        return;
    }
    *question = (struct message){.role = MESSAGE_USER, .heard_by = agent->slug};
    if (!write_transcript(run, &question->text)) return;
    buf_clear(&run->compaction.summary);
    run_start_call(run,
                   &(struct provider_request){.agent = agent->slug,
                                              .model = agent->model,
                                              .system = str_from(instructions),
                                              .messages = question,
                                              .message_count = 1,
                                              .options = &agent->options},
                   on_summary);
}

/* How long the question may be at first. What the conversation is made of besides its texts is not
 * known here, so after a refusal it is half of them. */
static size_t question_bytes(const struct run *run, enum compaction_why why) {
    uint64_t bytes = estimated_bytes(run), window = window_bytes(run);
    if (why == COMPACTION_REFUSED) bytes /= 2;
    if (window && window < bytes) bytes = window;
    return bytes < TRANSCRIPT_MIN_BYTES ? TRANSCRIPT_MIN_BYTES : (size_t)bytes;
}

void run_compact(struct run *run, enum compaction_why why) {
    compaction_move(&run->compaction, COMPACTION_ASKING);
    run->compaction.why = why;
    run->compaction.question_max = question_bytes(run, why);
    compaction_ask(run);
}
