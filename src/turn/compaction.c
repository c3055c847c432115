#include "turn/compaction.h"

#include "base/utf8.h"
#include "turn/turn.h"
#include "wire/json.h"

#define BYTES_A_TOKEN 4
#define WINDOW_SHARE 4 / 5 /* of the window; the rest is for the answer */
#define TRANSCRIPT_LINE_BYTES (8 * KIB)

static const char instructions[] =
    "You condense a conversation so that it can go on without its beginning. Keep what was "
    "asked for and decided, names, numbers, dates, places of files and other exact values, "
    "open "
    "tasks and promises, and what the user wants and does not want. Tell the newest part in "
    "more "
    "detail than the oldest. Write plain prose, without a preface, in the language of the "
    "conversation, a tenth of its length at most.";

void compaction_init(struct compaction *compaction) {
    buf_init(&compaction->summary, SUMMARY_MAX_BYTES);
}

void compaction_done(struct compaction *compaction) {
    buf_done(&compaction->summary);
}

/* --- conditions --------------------------------------------------------------------------- */

static uint64_t estimated_tokens(const struct run *run) {
    uint64_t bytes = run->agent->system.len;
    for (size_t i = 0; i < run->conversation.count; i++) {
        const struct message *message = &run->conversation.messages[i];
        bytes += message->text.len + message->tool.len;
    }
    return bytes / BYTES_A_TOKEN;
}

bool run_may_compact(const struct run *run) {
    return !run->compaction.done && run->conversation.turn_start > 1;
}

bool run_needs_compacting(const struct run *run) {
    uint64_t window = run->agent->window_tokens;
    return window && run_may_compact(run) && estimated_tokens(run) > window * WINDOW_SHARE;
}

/* --- the question ------------------------------------------------------------------------- */

static void write_line(struct buf *out, const struct message *message) {
    struct str text = str_head(message->text, utf8_cut(message->text, TRANSCRIPT_LINE_BYTES));
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

/* The history as one message. As separate messages it could contain calls of tools that are not
 * offered, which some APIs refuse. */
static bool write_transcript(struct run *run, struct str *ret) {
    struct buf text;
    buf_init(&text, run->record.engine->limits.memory_max_bytes);
    buf_append(&text, STR("The conversation to condense:\n\n"));
    for (size_t i = 0; i < run->conversation.turn_start; i++)
        write_line(&text, &run->conversation.messages[i]);
    bool kept = buf_ok(&text);
    if (!kept) run_fail_memory(run);
    kept = kept && run_keep(run, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

/* --- the answer --------------------------------------------------------------------------- */

/* Later turns of the session begin with the summary. A turn inside another one only uses it
 * itself. */
static void put_in_place_of_history(struct run *run, struct str summary) {
    struct event event = {.kind = EVENT_ITEM, .item = {STR_INIT(SUMMARY_ITEM), summary}};
    if (run->admission.lease.parent) {
        conversation_summarize(&run->conversation, summary, SUMMARY_OF_VIEW);
    } else {
        run_append_kept(run, &event);
    }
}

static void take_summary(struct run *run) {
    struct str words = str_trim(buf_str(&run->compaction.summary)), summary;
    struct buf text;
    buf_init(&text, SUMMARY_MAX_BYTES + KIB);
    buf_append(&text, STR("What was said before, in short:\n"));
    buf_append(&text, words);
    bool kept = run_keep(run, buf_str(&text), &summary);
    buf_done(&text);
    if (!kept) return;
    run->compaction.done = true;
    put_in_place_of_history(run, summary);
    struct event step = {.kind = EVENT_STEP,
                         .step = {.description = STR_INIT("earlier turns were condensed into a "
                                                          "summary")}};
    run_append(run, &step);
    run_ask(run);
}

static void on_text(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    struct str room = str_head(event->text, SUMMARY_MAX_BYTES - run->compaction.summary.len);
    utf8_append_repaired(&run->compaction.summary, str_head(room, utf8_cut(room, room.len)));
    run_use(run, event->text.len);
}

static void on_thinking(const struct reply_event *event, void *ctx) {
    run_use(ctx, event->text.len);
}

static void on_usage(const struct reply_event *event, void *ctx) {
    run_note_usage(ctx, event->usage);
}

static void on_done(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    if (run->ending_begun || !run_end_usage(run, event->model)) return;
    if (str_trim(buf_str(&run->compaction.summary)).len) {
        take_summary(run);
    } else {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("CONTEXT"),
                 STR("the conversation is too long for the model, and it wrote no summary of "
                     "it; start a new session"));
    }
}

static void on_failed(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    run_settle_failed(run);
    run_fail(run, event->code, event->reason, event->text);
}

/* Other events are ignored: no tool was offered, and the rest is not shown. */
static void on_summary(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_TEXT] = on_text, [REPLY_THINKING] = on_thinking, [REPLY_USAGE] = on_usage,
        [REPLY_DONE] = on_done, [REPLY_FAILED] = on_failed,
    };
    reply_event_handle(handlers, event, ctx);
}

void run_compact(struct run *run) {
    static const struct message none = {.role = MESSAGE_USER};
    struct message *question = ARENA_NEW(run->arena, struct message);
    if (!question) {
        run_fail_memory(run);
        return;
    }
    *question = none;
    if (!write_transcript(run, &question->text)) return;
    buf_clear(&run->compaction.summary);
    const struct agent *agent = run->agent;
    run_start_call(run,
                   &(struct provider_request){.agent = agent->slug,
                                              .model = agent->model,
                                              .system = str_from(instructions),
                                              .messages = question,
                                              .message_count = 1,
                                              .options = &agent->options},
                   on_summary);
}
