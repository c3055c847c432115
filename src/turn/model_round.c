#include "turn/model_round.h"

#include "agent/kind.h"
#include "base/mem.h"
#include "engine/offers.h"
#include "provider/dialect.h"
#include "turn/call_args.h"
#include "turn/turn.h"
#include "wire/json.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* --- life --------------------------------------------------------------------------------- */

void model_round_init(struct run *run) {
    buf_init(&run->model_round.draft, run->record.engine->limits.reply_max_bytes);
    stop_sequences_init(&run->model_round.stops, MODEL_STOP_MAX_BYTES);
}

void model_round_done(struct model_round *model_round) {
    assert(!model_round->call);
    buf_done(&model_round->draft);
    stop_sequences_done(&model_round->stops);
    free(model_round->narrowed);
}

/* --- text --------------------------------------------------------------------------------- */

#define SHORT_REPLY_BYTES (64 * KIB)
#define TOO_MANY_MAX 256 /* calls over a turn's limit that are answered with an error */

typedef void append_fn(struct run *run, struct str text);

/* Sets only the fields that a text has: the struct is large, and most events come through
 * here. */
static void show(struct run *run, struct str text) {
    bool first = run_reply_bytes(run) == 0;
    struct event event;
    event.kind = EVENT_TEXT;
    event.agent = run->agent->slug;
    event.text.text = text;
    uint64_t seq = run_append(run, &event);
    if (seq && first) run->long_reply.first_seq = seq;
}

/* An answer that must have a shape is shown only after it was checked. */
static void append_text(struct run *run, struct str text) {
    bool shaped = run_schema(run) != NULL;
    if (text.len == 0 || run->ending_begun) return;
    if (text.len > run->record.engine->limits.reply_max_bytes -
                       (shaped ? run->model_round.draft.len : run_reply_bytes(run))) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("REPLY_TOO_LONG"),
                 STR("the model's reply is longer than the limit of a reply"));
        return;
    }
    if (shaped) {
        buf_append(&run->model_round.draft, text);
    } else {
        show(run, text);
    }
}

static void append_thinking(struct run *run, struct str text) {
    if (text.len == 0 || run->ending_begun) return;
    struct event event = {.kind = EVENT_THINKING, .thinking = {text}};
    run_append(run, &event);
}

/* NULL: the agent has no rules for what it says. */
static struct filter *text_filter(const struct run *run) {
    return run->guarded.reply ? &run->guarded.reply->text : NULL;
}

static struct filter *thinking_filter(const struct run *run) {
    return run->guarded.reply ? &run->guarded.reply->thinking : NULL;
}

#define PIECE_MAX_BYTES (64 * MIB)

/* Pass on what the agent's guardrails allow. A text that must have a shape is checked as a
 * whole later. */
static void guard(struct run *run, struct filter *filter, struct str text, append_fn *append) {
    struct buf out;
    if (!filter || (append == append_text && run_schema(run))) {
        append(run, text);
        return;
    }
    buf_init(&out, PIECE_MAX_BYTES);
    if (run_guard_piece(run, filter, text, &out)) append(run, buf_str(&out));
    buf_done(&out);
}

static void model_round_take_text(struct run *run, struct utf8_tail *tail, struct str bytes,
                                  struct filter *filter, append_fn *append) {
    struct buf room;
    guard(run, filter, utf8_tail_take(tail, bytes, &room), append);
    buf_done(&room);
}

/* The text is over: show what was held back. */
static void end_text(struct run *run, struct utf8_tail *tail, struct filter *filter,
                     append_fn *append) {
    struct buf out;
    guard(run, filter, utf8_tail_end(tail), append);
    if (run->ending_begun || !filter) return;
    buf_init(&out, PIECE_MAX_BYTES);
    if (run_guard_end(run, filter, &out)) append(run, buf_str(&out));
    buf_done(&out);
}

/* What may have been the beginning of a stop sequence was none. */
static void end_stops(struct run *run) {
    struct buf held;
    buf_init(&held, MODEL_STOP_MAX_BYTES);
    stop_sequences_end(&run->model_round.stops, &held);
    if (held.len)
        model_round_take_text(run, &run->model_round.text_tail, buf_str(&held),
                              text_filter(run), append_text);
    buf_done(&held);
}

void run_end_texts(struct run *run) {
    struct model_round *model_round = &run->model_round;
    end_text(run, &model_round->thinking_tail, thinking_filter(run), append_thinking);
    if (!run->ending_begun) end_stops(run);
    if (!run->ending_begun)
        end_text(run, &model_round->text_tail, text_filter(run), append_text);
}

/* A long reply may grow only while there is memory; for a short one this is not checked. */
static bool has_memory(struct run *run, size_t len) {
    struct err e;
    size_t so_far = run_reply_bytes(run);
    if (so_far + len <= SHORT_REPLY_BYTES || mem_check(so_far + len, &e)) return true;
    run_fail(run, e.code, STR("MEMORY"), err_text(&e));
    return false;
}

/* Whether `text` may be shown as it came, without a look at each of its pieces. */
static bool shows_at_once(const struct run *run, struct str text) {
    size_t left = run->record.engine->limits.reply_max_bytes - run_reply_bytes(run);
    return !run->guarded.reply && !run_schema(run) && !run_is_watched(run) &&
           !run->model_round.stops.count && run->model_round.text_tail.len == 0 &&
           text.len <= left;
}

/* Whether each piece is valid text, and not empty. */
static bool cuts_well(struct str text, const struct reply_pieces *pieces) {
    assert(pieces->count);
    if (pieces->ascii) return true;
    if (!utf8_valid(text)) return false;
    for (size_t i = 0, at = 0; i < pieces->count; at += pieces->lens[i++]) {
        if (pieces->lens[i] == 0 || ((unsigned char)text.at[at] & 0xC0) == 0x80) return false;
    }
    return true;
}

static void show_pieces(struct run *run, const struct reply_event *event) {
    bool first = run_reply_bytes(run) == 0;
    if (!has_memory(run, event->text.len) || !run_use(run, event->text.len)) return;
    uint64_t seq = run_append_texts(run, &(struct event_texts){.agent = run->agent->slug,
                                                               .text = event->text,
                                                               .lens = event->pieces->lens,
                                                               .count = event->pieces->count});
    if (seq && first) run->long_reply.first_seq = seq;
}

static void end_at_stop(struct run *run, struct str stop);

/* Show the text up to a stop sequence, which ends the reply. */
static void take_until_stop(struct run *run, struct str text) {
    struct buf shown;
    struct str stop = STR_EMPTY;
    buf_init(&shown, MODEL_STOP_MAX_BYTES + text.len);
    bool stopped = stop_sequences_take(&run->model_round.stops, text, &shown, &stop);
    model_round_take_text(run, &run->model_round.text_tail, buf_str(&shown), text_filter(run),
                          append_text);
    buf_done(&shown);
    if (stopped && !run->ending_begun) end_at_stop(run, stop);
}

struct taking {
    struct run *run;
    /* Of the turn: the reply ends when there is another one, or none is out. */
    unsigned model_calls;
};

static void on_piece(const struct reply_event *event, void *ctx) {
    const struct taking *taking = ctx;
    struct run *run = taking->run;
    struct model_round *model_round = &run->model_round;
    if (!model_round->call || model_round->model_calls != taking->model_calls) return;
    if (model_round->stop.len) return;
    if (run->ending_begun || !has_memory(run, event->text.len) ||
        !run_use(run, event->text.len))
        return;
    if (model_round->stops.count) {
        take_until_stop(run, event->text);
    } else {
        model_round_take_text(run, &model_round->text_tail, event->text, text_filter(run),
                              append_text);
    }
}

static void on_text(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    bool at_once = event->pieces && !run->ending_begun && shows_at_once(run, event->text) &&
                   cuts_well(event->text, event->pieces);
    if (at_once) {
        show_pieces(run, event);
    } else {
        struct taking taking = {run, run->model_round.model_calls};
        reply_event_each(event, on_piece, &taking);
    }
}

/* What is said beside the answer is bounded by the turn's memory, though it leaves with the
 * journal: a program may write without an end. */
static bool count_aside(struct run *run, size_t len) {
    run->model_round.aside_bytes += len;
    if (run->model_round.aside_bytes <= run->record.engine->limits.memory_max_bytes)
        return true;
    run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("REPLY_TOO_LONG"),
             STR("the thinking and steps of the turn are longer than its memory (limits.run)"));
    return false;
}

static void on_thinking(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    if (!count_aside(run, event->text.len)) return;
    if (has_memory(run, event->text.len) && run_use_thinking(run, event->text.len))
        model_round_take_text(run, &run->model_round.thinking_tail, event->text,
                              thinking_filter(run), append_thinking);
}

/* --- calls, questions, usage -------------------------------------------------------------- */

#define CALL_NAME_BYTES 48

/* A name of ours, unique in its session: the `number`th of its kind in this run. */
static struct str make_name(const struct run *run, const char *kind, unsigned number,
                            char room[CALL_NAME_BYTES]) {
    int len = snprintf(room, CALL_NAME_BYTES, "%s-%llu-%u", kind,
                       (unsigned long long)record_id(&run->record), number);
    return str_of(room, (size_t)len);
}

/* Keep a call's id, or a name for it: the call is the one counted last. */
static bool name_call(struct run *run, struct str call_id, struct str *ret) {
    char room[CALL_NAME_BYTES];
    return run_keep(run, call_id.len ? call_id : make_name(run, "call", run->calls.total, room),
                    ret);
}

/* The same for a question, which is not counted: a reply has one at most. */
static bool name_question(struct run *run, struct str call_id, struct str *ret) {
    char room[CALL_NAME_BYTES];
    unsigned reply = run->model_round.model_calls;
    return run_keep(run, call_id.len ? call_id : make_name(run, "question", reply, room), ret);
}

bool run_name_call(struct run *run, struct str *ret) {
    return name_call(run, STR_EMPTY, ret);
}

unsigned run_tool_calls_max(const struct run *run) {
    unsigned own = run->agent->limits.tool_calls_max;
    return own ? own : run->record.engine->limits.tool_calls_max;
}

/* Calls over the limit are answered with an error and the turn goes on, up to TOO_MANY_MAX of
 * them. */
bool run_count_call(struct run *run, bool *ret_too_many) {
    unsigned calls_max = run_tool_calls_max(run);
    *ret_too_many = run->calls.total >= calls_max;
    if (run->calls.total < calls_max + TOO_MANY_MAX) {
        run->calls.total++;
        return true;
    }
    run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("TOOL_CALLS"),
             STR("the turn asked for far more tool calls than its limit allows"));
    return false;
}

static void on_tool_call(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    struct str tool = event->tool, args = event->args;
    bool too_many;
    if (!run_count_call(run, &too_many)) return;
    if (!run_use(run, tool.len + args.len)) return;
    struct turn_call *call = calls_add(run);
    call->too_many = too_many;
    if (!name_call(run, event->call_id, &call->call_id)) return;
    if (!run_keep(run, tool.len ? tool : STR(NAMELESS_TOOL), &call->tool)) return;
    if (!call_args_keep(call, args)) return;
}

static void on_approval(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    if (run->approval.by_model) return; /* only the first question of a reply counts */
    struct turn_call *call = calls_add(run);
    run->approval.by_model = true;
    run->approval.index = run->calls.count - 1;
    if (!run_guard_whole(run, event->text, &run->approval.question)) return;
    if (!run_keep(run, run->approval.question, &run->approval.question)) return;
    if (!name_question(run, event->call_id, &call->call_id)) return;
    if (!run_keep(run, event->tool, &call->tool)) return;
    if (!run_keep(run, event->args, &call->args)) return;
}

/* Recorded when the reply is over: all events of the reply come before it in the journal. */
static void on_usage(const struct reply_event *event, void *ctx) {
    run_note_usage(ctx, event->usage);
}

/* Content that only this provider understands comes before the reply's own messages. Prompts of
 * later turns contain it too, and so begin with the same bytes. */
static void on_opaque(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    struct buf type;
    if (!run_guard_allows(run, event->text)) return; /* its text is redacted in the messages */
    buf_init(&type, KIB);
    buf_printf(&type, OPAQUE_ITEM STR_FMT, STR_ARG(event->dialect));
    struct event item = {.kind = EVENT_ITEM, .item = {buf_str(&type), event->text}};
    run_append(run, &item);
    buf_done(&type);
}

static void on_note(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    struct json result;
    struct err e;
    bool found = event->args.len && json_read(event->args, &result, &e);
    if (!count_aside(run, event->text.len + event->args.len)) return;
    if (!run_use(run, event->text.len + event->args.len)) return;
    struct event step = {
        .kind = EVENT_STEP,
        .step = {.description = event->text, .result = found ? result.raw : STR_EMPTY}};
    run_append(run, &step);
}

/* --- the end of a reply ------------------------------------------------------------------- */

/* A reply that requests nothing is the turn's answer. */
static bool add_turn(struct run *run) {
    struct str reply = conversation_reply(&run->conversation);
    if (run->calls.count) return true;
    if (str_trim(reply).len == 0) reply = run_own_said(run);
    if (str_trim(reply).len == 0) return true;
    if (event_turn_append(&run->turns, run->agent->slug, reply)) return true;
    run_fail_memory(run);
    return false;
}

static void show_whole(struct run *run, struct str text) {
    if (run_guard_whole(run, text, &text)) show(run, text);
}

/* Check an answer that must have a shape. Prose beside tool calls is ignored. */
static bool shape_reply(struct run *run) {
    if (!run_schema(run)) return true;
    struct str reply, bare;
    bool kept = run_keep(run, buf_str(&run->model_round.draft), &reply);
    buf_clear(&run->model_round.draft);
    if (!kept) return false;
    if (run->approval.by_model && reply.len) show_whole(run, reply);
    if (run->calls.count) return !run->ending_begun;
    if (!run_shape(run, reply, &bare)) return false;
    show_whole(run, bare);
    return !run->ending_begun;
}

static void note_stop(struct run *run) {
    struct str stop = run->model_round.stop;
    struct buf quoted;
    if (!stop.len || run->ending_begun) return;
    run->model_round.stop = STR_EMPTY;
    buf_init(&quoted, 8 * MODEL_STOP_MAX_BYTES);
    json_put_str(&quoted, stop);
    on_note(&(struct reply_event){REPLY_NOTE, .text = STR(PROVIDER_STOP_NOTE),
                                  .args = buf_str(&quoted)},
            run);
    buf_done(&quoted);
}

static void model_round_on_done(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    run_end_texts(run);
    note_stop(run);
    run_close_own_calls(run);
    if (run->ending_begun) return;
    if (run_end_usage(run, event->model) && run_bring_reply(run)) run_end_reply(run);
}

/* As if the provider had ended the reply here; it is asked to stop. Its counts come too late. */
static void end_at_stop(struct run *run, struct str stop) {
    const struct reply_event done = {REPLY_DONE, .model = run->model_round.request.model};
    const struct provider_kind *kind = run->agent->provider->kind;
    struct provider_call *call = run->model_round.call;
    run->model_round.stop = stop;
    if (kind->finish) {
        kind->finish(call);
        return;
    }
    run->model_round.call = NULL;
    kind->cancel(call);
    measure_model_event(run, &done);
    model_round_on_done(&done, run);
}

void run_end_reply(struct run *run) {
    if (!shape_reply(run) || !add_turn(run)) return;
    if (run->calls.count == 0) {
        run_done(run);
    } else if (!run_hand_over_calls(run)) {
        run_work(run);
    }
}

/* Whether the provider refused the conversation as too long before any output, and compaction
 * may help. */
static bool is_too_long(struct run *run, struct str reason) {
    if (!str_equal(reason, STR(MODEL_CONTEXT)) || run->spending.output_bytes) return false;
    run_show_history(run);
    return run_may_compact(run);
}

/* Whether this ended an agent that is not a model, and that may have acted before. */
static bool may_have_acted(struct str reason) {
    return str_equal(reason, STR(AGENT_ENDED)) || str_equal(reason, STR(AGENT_STALLED)) ||
           str_equal(reason, STR(AGENT_PROTOCOL));
}

static void on_failed(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    struct str text = event->text;
    bool refused = str_equal(event->reason, STR(MODEL_REFUSED)); /* in the model's own words */
    run_end_texts(run);
    run_settle_failed(run);
    if (run->ending_begun) return;
    if (may_have_acted(event->reason)) run->calls.acted = true;
    if (is_too_long(run, event->reason)) {
        run_compact(run, COMPACTION_REFUSED);
    } else if (!refused || run_guard_whole(run, text, &text)) {
        run_fail(run, event->code, event->reason, text);
    }
}

static void model_round_on_answer(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_TEXT] = on_text,
        [REPLY_THINKING] = on_thinking,
        [REPLY_TOOL_CALL] = on_tool_call,
        [REPLY_USAGE] = on_usage,
        [REPLY_OPAQUE] = on_opaque,
        [REPLY_NOTE] = on_note,
        [REPLY_APPROVAL] = on_approval,
        [REPLY_DONE] = model_round_on_done,
        [REPLY_FAILED] = on_failed,
        [REPLY_OWN_CALL] = run_take_own_call,
        [REPLY_OWN_RESULT] = run_take_own_result,
    };
    reply_event_handle(handlers, event, ctx);
}

/* --- asking ------------------------------------------------------------------------------- */

/* Add the agent's instructions and tools. The caller's own instructions replace the
 * agent's, but not the list of agents it can transfer to. */
static bool add_offer(struct run *run, const struct offer *offer,
                      struct provider_request *asked) {
    bool fixed = run->request.addressed || offer->briefing.len == 0;
    bool transfer = offer->tool_count && str_equal(offer->tools[0].name, STR(TRANSFER_TOOL));
    asked->tools = offer->tools + (transfer && fixed);
    asked->tool_count = offer->tool_count - (transfer && fixed);
    if (fixed) return true;
    if (run->request.system.len == 0) {
        asked->system = offer->system;
        return true;
    }
    struct buf text;
    buf_init(&text, run->request.system.len + offer->briefing.len + 2);
    buf_append(&text, run->request.system);
    buf_append(&text, STR("\n\n"));
    buf_append(&text, offer->briefing);
    bool kept = run_keep(run, buf_str(&text), &asked->system);
    buf_done(&text);
    return kept;
}

static unsigned model_calls_max(const struct run *run) {
    unsigned own = run->agent->limits.model_calls_max,
             all = run->record.engine->limits.model_calls_max;
    return own && own < all ? own : all;
}

bool run_has_call_to_spare(const struct run *run) {
    return run->model_round.model_calls + 1 < model_calls_max(run);
}

void run_start_call(struct run *run, const struct provider_request *request,
                    reply_event_fn *on_reply) {
    if (run->model_round.model_calls >= model_calls_max(run)) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("MODEL_CALLS"),
                 STR("the turn asked the model more often than its limit allows"));
        return;
    }
    run->model_round.request = *request;
    run->model_round.request.run = record_id(&run->record);
    run->model_round.request.workspace = run->request.name.workspace;
    run->model_round.request.user = run->request.name.user;
    run->model_round.request.session = run->request.name.session;
    run->model_round.request.trace = run->request.trace;
    run->model_round.request.takes_pieces = on_reply == model_round_on_answer;
    run->model_round.on_reply = on_reply;
    if (!run_guard_prompt(run, &run->model_round.request)) return;
    run_guard_reply(run);
    if (run_reserve(run)) run_make_call(run);
}

/* Called for every listener: the end of a reply ends the call. */
static void on_event(const struct reply_event *event, void *ctx) {
    struct run *run = ctx;
    measure_model_event(run, event);
    if (event->kind == REPLY_DONE || event->kind == REPLY_FAILED) run->model_round.call = NULL;
    run->model_round.on_reply(event, run);
}

void run_make_call(struct run *run) {
    struct model_round *model_round = &run->model_round;
    struct provider *provider = run->agent->provider;
    model_round->model_calls++;
    if (run->state != RUN_ASKING) run_move(run, RUN_ASKING);
    measure_model_asked(run);
    model_round->call = provider_call_start(provider, run->record.host->loop,
                                            &model_round->request, on_event, run);
    if (model_round->held) provider->kind->pause(model_round->call);
}

static const struct model_options *narrow_options(struct model_round *model_round,
                                                  const struct model_options *own,
                                                  const struct model_options *callers) {
    if (!model_round->narrowed) model_round->narrowed = MEM_NEW(struct model_options);
    *model_round->narrowed = model_options_narrow(own, callers);
    return model_round->narrowed;
}

static void choose_options(struct run *run) {
    struct model_round *model_round = &run->model_round;
    const struct model_options *callers = run->request.options;
    model_round->options = &run->agent->options;
    if (callers)
        model_round->options = narrow_options(model_round, &run->agent->options, callers);
    model_round->stop = STR_EMPTY;
    stop_sequences_begin(&model_round->stops, model_round->options->stops,
                         model_round->options->stop_count);
}

/* Whether the model, the agent's guardrails or the question for a summary may read the history. */
static bool reads_history(const struct run *run) {
    const struct agent *agent = run->agent;
    return !agent->provider->kind->reads_turn_only || agent->input_rules.count ||
           agent->window_tokens || run_keeps_summary(run);
}

void run_ask(struct run *run) {
    const struct engine *engine = run->record.engine;
    const struct agent *agent = run->agent;
    enum compaction_why why;
    if (reads_history(run)) run_show_history(run);
    if (run_needs_compacting(run, &why)) {
        run_compact(run, why);
        return;
    }
    buf_clear(&run->model_round.draft);
    run->approval.by_model = false;
    calls_clear(&run->calls);
    own_calls_clear(&run->own_calls);
    choose_options(run);
    struct provider_request request = {
        .agent = agent->slug,
        .model = agent->model,
        .system = run->request.system.len ? run->request.system : agent->system,
        .messages = run->conversation.messages,
        .message_count = run->conversation.count,
        .turn_start = run->conversation.turn_start,
        .options = run->model_round.options,
        .schema = run->request.schema ? run->request.schema_text : agent->schema_text,
        .schema_loose = run->request.schema && run->request.schema_loose,
        .extras = run->request.extras,
    };
    if (engine->offers && !add_offer(run, offers_of(engine->offers, agent), &request)) return;
    if (!run_offer_caller_tools(run, &request)) return;
    run_start_call(run, &request, model_round_on_answer);
}

void run_stop_model_round(struct run *run) {
    struct provider_call *call = run->model_round.call;
    run_stop_reserving(run);
    run->model_round.call = NULL;
    if (call) {
        run->agent->provider->kind->cancel(call);
        measure_model_cut(run);
    }
    run_settle_cut(run); /* also for a complete reply that was too large */
}

void run_pace(bool hold, void *ctx) {
    struct run *run = ctx;
    run->model_round.held = hold;
    /* All of the text may have been on disk before the caller lagged: then nothing more is
     * reported as durable. */
    if (hold && !run->ending_begun) run_drop_reply(run, journal_durable(run->record.journal));
    if (!run->model_round.call) return;
    const struct provider_kind *kind = run->agent->provider->kind;
    (hold ? kind->pause : kind->resume)(run->model_round.call);
}
