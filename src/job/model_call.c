#include "job/model_call.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/utf8_tail.h"
#include "job/expense.h"
#include "job/job_span.h"
#include "provider/dialect.h"
#include "record/record.h"
#include "record/turn_line.h"
#include "record/unkept.h"

#include <assert.h>
#include <stdlib.h>

#define WINDOW_BYTES (512 * KIB)
#define COPIES_OF_PROMPT 3 /* at once: in the call, in the journal, in the request */
#define EVENT_MAX_BYTES (16 * KIB)
#define REPLY_TOKENS 256 /* reserved for a reply without a limit of its own */

struct model_call {
    unsigned refs;
    struct record record;
    struct provider *provider;
    struct provider_call *asked; /* NULL: the reply is over */
    struct provider_request request;
    struct arena *arena;
    struct clocks clocks;
    struct utf8_tail text_tail, thinking_tail;
    struct job_span span;
    struct expense expense;
    struct turn_sums sums;
    bool usage_seen, wants_tool, cut;
    bool spoke;       /* text of the reply is in the journal */
    bool held, paced; /* by the caller; because the journal's reader lags */
    bool paused;      /* one of them */
    void (*on_sound)(const struct media_artifact *sound, void *ctx);
    void *ctx;
};

/* --- creation and release ----------------------------------------------------------------- */

void model_call_unref(struct model_call *call) {
    if (!call || --call->refs) return;
    assert(!call->asked);
    record_done(&call->record);
    arena_free(call->arena);
    free(call);
}

struct journal *model_call_journal(const struct model_call *call) {
    return call->record.journal;
}

static uint64_t model_call_append(struct model_call *call, struct event *event) {
    return record_append(&call->record, event);
}

static void call_over(void *ctx) {
    struct model_call *call = ctx;
    const struct record *record = &call->record;
    const struct turn_end end = {.run = record_id(record),
                                 .workspace = record->live.workspace,
                                 .user = record->live.user,
                                 .session = record->live.session,
                                 .agent = call->request.agent,
                                 .model = call->request.model,
                                 .took_ms = record_took_ms(record),
                                 .state = states_name(run_states, record->ending)};
    turn_line_log(&end, &call->sums);
    model_call_unref(call);
}

/* --- usage and cost ----------------------------------------------------------------------- */

/* Append one usage event per call, even if the provider did not count. */
static void append_usage(struct model_call *call, const struct event_usage *usage) {
    if (call->usage_seen) return;
    call->usage_seen = true;
    struct event event = {.kind = EVENT_USAGE, .usage = *usage};
    event.usage.call_sequence = 0; /* it has only this one */
    job_span_usage(&call->span, usage);
    expense_settle(&call->expense, &event.usage);
    turn_sums_add(&call->sums, &event.usage);
    model_call_append(call, &event);
}

static void settle_cost(struct model_call *call, bool answered) {
    const struct event_usage unknown = USAGE_UNKNOWN;
    if (answered || expense_answered(&call->expense)) append_usage(call, &unknown);
    expense_drop(&call->expense);
}

/* --- ending ------------------------------------------------------------------------------- */

/* Cancel the request and stop the clocks. */
static void call_stop(struct model_call *call) {
    struct provider_call *asked = call->asked;
    call->asked = NULL;
    if (asked) call->provider->kind->cancel(asked);
    clocks_stop(&call->clocks);
}

static void end_span(struct model_call *call, const struct event *event) {
    const struct provider *provider = call->provider;
    job_span_end_chat(&call->span,
                      &(struct job_span_end){.provider = provider->name.len
                                                             ? provider->name
                                                             : str_from(provider->kind->name),
                                             .model = call->request.model,
                                             .run = call->request.run,
                                             .now_ms = loop_now_ms(call->record.host->loop),
                                             .last = event});
}

static void end_with(struct model_call *call, struct event *event) {
    if (record_is_ending(&call->record)) return;
    call_stop(call);
    settle_cost(call, event->kind == EVENT_DONE);
    end_span(call, event);
    model_call_append(call, event);
}

static void model_call_fail(struct model_call *call, enum err_code code, struct str reason,
                            struct str message) {
    struct event event = {.kind = EVENT_FAILED,
                          .failed = {.code = code, .reason = reason, .message = message}};
    end_with(call, &event);
}

void model_call_cancel(struct model_call *call, struct str why) {
    struct event event = {.kind = EVENT_CANCELLED, .cancelled = {.message = why}};
    end_with(call, &event);
}

/* A detached call continues without a reader until its own clocks end it. */
static void call_leave(struct leaving leaving, struct str why, void *ctx) {
    if (leaving.how != LEAVING_DETACHES) model_call_cancel(ctx, why);
}

static void on_expired(const char *why, void *ctx) {
    model_call_fail(ctx, ERR_DEADLINE_EXCEEDED, STR(CLOCKS_REASON), str_from(why));
}

/* --- the reply ---------------------------------------------------------------------------- */

/* Append text in events of at most EVENT_MAX_BYTES, which a reader's transport accepts at
 * once. */
static void model_call_show(struct model_call *call, enum event_kind kind, struct str text) {
    while (text.len) {
        struct str part = str_head(text, utf8_cut(text, EVENT_MAX_BYTES));
        struct event event = {.kind = kind};
        if (kind == EVENT_TEXT) {
            event.text.text = part;
            call->spoke = true;
        } else {
            event.thinking.text = part;
        }
        model_call_append(call, &event);
        text = str_skip(text, part.len);
    }
}

static void model_call_take(struct model_call *call, struct utf8_tail *tail,
                            enum event_kind kind, struct str bytes) {
    struct buf room;
    if (bytes.len == 0) return;
    clocks_heard(&call->clocks);
    expense_use(&call->expense, bytes.len);
    model_call_show(call, kind, utf8_tail_take(tail, bytes, &room));
    buf_done(&room);
}

/* Append the incomplete characters that were held back; the rest will not come. */
static void flush_tails(struct model_call *call) {
    model_call_show(call, EVENT_THINKING, utf8_tail_end(&call->thinking_tail));
    model_call_show(call, EVENT_TEXT, utf8_tail_end(&call->text_tail));
}

static void on_text(const struct reply_event *event, void *ctx) {
    struct model_call *call = ctx;
    model_call_take(call, &call->text_tail, EVENT_TEXT, event->text);
}

static void on_thinking(const struct reply_event *event, void *ctx) {
    struct model_call *call = ctx;
    model_call_take(call, &call->thinking_tail, EVENT_THINKING, event->text);
}

/* Tool calls are not made here; the caller learns that one was requested. */
static void on_tool_call(const struct reply_event *event, void *ctx) {
    struct model_call *call = ctx;
    (void)event;
    clocks_heard(&call->clocks);
    call->wants_tool = true;
}

static void on_usage(const struct reply_event *event, void *ctx) {
    append_usage(ctx, event->usage);
}

static void on_note(const struct reply_event *event, void *ctx) {
    struct model_call *call = ctx;
    if (str_equal(event->text, STR(PROVIDER_CUT_NOTE))) call->cut = true;
    struct event step = {.kind = EVENT_STEP, .step = {.description = event->text}};
    model_call_append(call, &step);
}

/* The reply has ended. `how`: the finish reason; empty: a normal stop. */
static void end_reply(struct model_call *call, struct str model, struct str how) {
    struct event_usage unknown = USAGE_UNKNOWN;
    unknown.model = model;
    append_usage(call, &unknown);
    if (how.len) {
        struct event finish = {.kind = EVENT_ITEM, .item = {STR(MODEL_CALL_FINISH), how}};
        model_call_append(call, &finish);
    }
    struct event event = {.kind = EVENT_DONE, .done = {model, STR_EMPTY}};
    end_with(call, &event);
}

static void model_call_on_done(const struct reply_event *event, void *ctx) {
    struct model_call *call = ctx;
    call->asked = NULL;
    flush_tails(call);
    if (record_is_ending(&call->record)) return;
    end_reply(call, event->model,
              call->cut          ? STR("length")
              : call->wants_tool ? STR("tool_call")
                                 : STR_EMPTY);
}

static void on_failed(const struct reply_event *event, void *ctx) {
    struct model_call *call = ctx;
    call->asked = NULL;
    flush_tails(call);
    if (record_is_ending(&call->record)) return;
    if (call->spoke && str_equal(event->reason, STR(MODEL_REFUSED))) {
        end_reply(call, STR_EMPTY, STR("content_filter"));
    } else {
        model_call_fail(call, event->code, event->reason, event->text);
    }
}

static void on_artifact(const struct reply_event *event, void *ctx) {
    struct model_call *call = ctx;
    clocks_heard(&call->clocks);
    expense_use(&call->expense, 0);
    if (call->on_sound) call->on_sound(event->artifact, call->ctx);
}

/* REPLY_OPAQUE is ignored: only a later request of the same conversation would need it. */
static void on_reply(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_TEXT] = on_text,
        [REPLY_THINKING] = on_thinking,
        [REPLY_TOOL_CALL] = on_tool_call,
        [REPLY_APPROVAL] = on_tool_call,
        [REPLY_USAGE] = on_usage,
        [REPLY_NOTE] = on_note,
        [REPLY_DONE] = model_call_on_done,
        [REPLY_FAILED] = on_failed,
        [REPLY_ARTIFACT] = on_artifact,
    };
    reply_event_handle(handlers, event, ctx);
}

/* --- the record's calls ------------------------------------------------------------------- */

/* The store refused an event that had to be on disk. Report that instead, in memory. */
static void call_lost(const struct err *why, void *ctx) {
    struct model_call *call = ctx;
    struct event event = unkept_failure(why, STR(UNKEPT_ANSWER));
    call_stop(call);
    end_span(call, &event);
    expense_drop(&call->expense);
    model_call_append(call, &event);
}

static void pause_or_resume(struct model_call *call) {
    bool pause = call->held || call->paced;
    if (!call->asked || pause == call->paused) return;
    call->paused = pause;
    clocks_hold(&call->clocks, pause);
    if (pause) {
        call->provider->kind->pause(call->asked);
    } else {
        call->provider->kind->resume(call->asked);
    }
}

static void call_pace(bool hold, void *ctx) {
    struct model_call *call = ctx;
    call->paced = hold;
    pause_or_resume(call);
}

void model_call_hold(struct model_call *call, bool hold) {
    call->held = hold;
    pause_or_resume(call);
}

static const struct record_events call_events = {
    .on_lost = call_lost, .on_pace = call_pace, .on_over = call_over, .leave = call_leave};

/* --- start -------------------------------------------------------------------------------- */

static bool copy_messages(struct arena *arena, const struct provider_request *from,
                          struct provider_request *to) {
    struct message *messages =
        arena_alloc(arena, (from->message_count + 1) * sizeof(struct message));
    if (!messages) return false;
    for (size_t i = 0; i < from->message_count; i++) {
        messages[i] = from->messages[i];
        if (!arena_str(arena, from->messages[i].text, &messages[i].text) ||
            !arena_str(arena, from->messages[i].parts, &messages[i].parts) ||
            !arena_str(arena, from->messages[i].agent, &messages[i].agent))
            return false;
    }
    to->messages = messages;
    return true;
}

static bool copy_tools(struct arena *arena, const struct provider_request *from,
                       struct provider_request *to) {
    struct tool_offer *tools =
        arena_alloc(arena, (from->tool_count + 1) * sizeof(struct tool_offer));
    if (!tools) return false;
    for (size_t i = 0; i < from->tool_count; i++) {
        if (!arena_str(arena, from->tools[i].name, &tools[i].name) ||
            !arena_str(arena, from->tools[i].description, &tools[i].description) ||
            !arena_str(arena, from->tools[i].parameters, &tools[i].parameters))
            return false;
    }
    to->tools = tools;
    return true;
}

static bool copy_options(struct arena *arena, const struct provider_request *from,
                         struct provider_request *to) {
    if (!from->options) return true;
    struct model_options *options = ARENA_NEW(arena, struct model_options);
    if (!options) return false;
    *options = *from->options;
    to->options = options;
    return arena_str(arena, from->options->effort, &options->effort);
}

static bool copy_trace(struct arena *arena, const struct provider_request *from,
                       struct provider_request *to) {
    if (!from->trace) return true;
    to->trace = trace_context_copy(from->trace, arena);
    return to->trace != NULL;
}

static bool copy_request(struct model_call *call, const struct provider_request *from) {
    struct provider_request *to = &call->request;
    struct arena *arena = call->arena;
    *to = *from;
    return arena_str(arena, from->agent, &to->agent) &&
           arena_str(arena, from->model, &to->model) &&
           arena_str(arena, from->system, &to->system) &&
           arena_str(arena, from->schema, &to->schema) && copy_messages(arena, from, to) &&
           copy_tools(arena, from, to) && copy_options(arena, from, to) &&
           copy_trace(arena, from, to);
}

static size_t prompt_bytes(const struct provider_request *request) {
    size_t bytes = request->system.len + request->schema.len;
    for (size_t i = 0; i < request->message_count; i++) bytes += request->messages[i].text.len;
    return bytes;
}

static void open_record(struct model_call *call, const struct model_call_options *options) {
    struct engine *engine = options->engine;
    record_init(&call->record,
                &(struct record_options){.what = "model call",
                                         .host = options->host,
                                         .engine = engine,
                                         .window_max_bytes = WINDOW_BYTES,
                                         .pace_max_bytes = engine->limits.pace_max_bytes,
                                         .agent = call->request.agent,
                                         .events = &call_events,
                                         .ctx = call});
}

static void model_call_begin(struct model_call *call, const struct model_call_options *options,
                             const struct session_name *name) {
    record_enter(&call->record, name, RUN_ASKING);
    struct event started = record_started(&call->record, options->text, options->contract);
    model_call_append(call, &started);
    clocks_start(&call->clocks);
    call->request.run = record_id(&call->record);
    job_span_begin(&call->span, call->request.trace, loop_now_ms(options->host->loop));
    call->request.trace = call->span.passed;
    call->asked = provider_call_start(call->provider, options->host->loop, &call->request,
                                      on_reply, call);
}

static size_t reserved_tokens(const struct provider_request *request) {
    int64_t longest = request->options ? request->options->output_tokens_max : 0;
    return longest > 0 ? (size_t)longest : REPLY_TOKENS;
}

bool model_call_start(const struct model_call_options *options, struct model_call **ret,
                      struct err *e) {
    struct engine *engine = options->engine;
    if (!mem_check(COPIES_OF_PROMPT * prompt_bytes(options->request), e)) return false;
    struct arena *arena = arena_new(engine->limits.memory_max_bytes);
    struct model_call *call = MEM_NEW(struct model_call);
    struct session_name name = {.session = STR_EMPTY};
    *call = (struct model_call){.refs = 2, /* one for the caller, one until the call is over */
                                .provider = options->provider,
                                .arena = arena,
                                .on_sound = options->on_sound,
                                .ctx = options->ctx};
    bool kept = copy_request(call, options->request) &&
                arena_str(arena, options->workspace, &name.workspace) &&
                arena_str(arena, options->user, &name.user);
    if (!kept)
        err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a model call may hold");
    call->expense = (struct expense){.engine = engine,
                                     .model = call->request.model,
                                     .asked_bytes = prompt_bytes(options->request),
                                     .reply_tokens = reserved_tokens(options->request)};
    if (!kept || !expense_reserve(&call->expense, name.workspace, call->request.agent, e)) {
        arena_free(arena);
        free(call);
        return false;
    }
    clocks_init(&call->clocks, options->host->loop, &options->clocks, options->asked_ms,
                on_expired, call);
    open_record(call, options);
    model_call_begin(call, options, &name);
    *ret = call;
    return true;
}
