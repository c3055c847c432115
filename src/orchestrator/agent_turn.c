/* The turn of an agent that another one asks. */
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "orchestrator/agent_asks_inner.h"

#define ANSWER_MAX_BYTES (8 * MIB)
#define JSON_MAX_BYTES (32 * MIB)
#define PREVIEW_CHARACTERS 100

/* --- what clients see ----------------------------------------------------------------------- */

static void agent_turn_show(const struct agent_ask *ask, const char *event, struct buf *json) {
    const struct talks_options *options = &ask->asks->options;
    options->emit(ask->workspace->id, event, buf_str(json), options->ctx);
    buf_done(json);
}

static struct rows_turn rows_of(const struct agent_ask *ask) {
    return (struct rows_turn){.id = uuid_str(&ask->id),
                              .user = ask->workspace->user,
                              .workspace = ask->workspace->id,
                              .conversation = ask->workspace->conversation,
                              .message = text_str(ask->root)};
}

/* The message in which it was asked; of a runtime that does not say what it asks, the user's. */
static struct str message_of(const struct agent_ask *ask) {
    return ask->message.len ? text_str(ask->message) : text_str(ask->root);
}

static void show_delegation(const struct agent_ask *ask, const struct turn_agent *from,
                            const struct turn_agent *to, const char *status) {
    struct str request = text_str(ask->request);
    struct buf json;
    buf_init(&json, JSON_MAX_BYTES);
    shown_delegation(&json,
                     &(struct shown_delegation){
                         .from = from,
                         .to = to,
                         .conversation = ask->workspace->conversation,
                         .message = message_of(ask),
                         .status = str_from(status),
                         .preview = str_head(request, utf8_head(request, PREVIEW_CHARACTERS)),
                         .now_us = clock_unix_us()});
    agent_turn_show(ask, "agent.delegation", &json);
}

static void show_agent(const struct agent_ask *ask, const struct turn_effect *effect) {
    static const struct str said[AGENT_STATUS_COUNT] = {
        [AGENT_THINKING] = STR_INIT("thinks"), [AGENT_WRITING] = STR_INIT("writes")};
    struct buf json;
    buf_init(&json, JSON_MAX_BYTES);
    shown_agent_status(&json, effect->agent->id, ask->workspace->conversation,
                       effect->agent_status);
    agent_turn_show(ask, "agent.status", &json);
    struct str doing = said[effect->agent_status];
    if (!doing.len || !ask->call) return;
    buf_init(&json, KIB);
    buf_printf(&json, STR_FMT " " STR_FMT, STR_ARG(effect->agent->name), STR_ARG(doing));
    orchestrator_call_report(ask->call, buf_str(&json));
    buf_done(&json);
}

static void show_tool(const struct agent_ask *ask, const struct turn_effect *effect) {
    struct buf json;
    buf_init(&json, JSON_MAX_BYTES);
    shown_tool(&json, effect->part, ask->workspace->conversation, effect->tool,
               clock_unix_us());
    agent_turn_show(ask, "agent.tool", &json);
}

static void agent_turn_on_usage(const struct postgres_request *rows, const struct err *failed,
                                void *ctx) {
    struct agent_ask *ask = ctx;
    const struct talks_options *options = &ask->asks->options;
    if (failed) log_error("usage of a model call could not be counted: %s", failed->text);
    if (rows && options->on_usage) options->on_usage(options->ctx);
    agent_ask_unref(ask);
}

static void show_usage(struct agent_ask *ask, const struct turn_effect *effect) {
    const struct rows_turn rows = rows_of(ask);
    struct uuid id = uuid_new();
    const struct rows_usage usage = {.event = uuid_str(&id),
                                     .message = message_of(ask),
                                     .agent = effect->text,
                                     .usage = effect->usage};
    struct buf json;
    buf_init(&json, JSON_MAX_BYTES);
    shown_usage(&json, effect->text, ask->workspace->conversation, message_of(ask),
                effect->usage);
    agent_turn_show(ask, "usage.update", &json);
    agent_ask_query(ask, rows_usage(&rows, effect->part, &usage), QUERY_STEADFAST,
                    agent_turn_on_usage);
}

/* --- the end -------------------------------------------------------------------------------- */

/* What the agents of the turn have said, apart by a blank line. */
static void append_answer(const struct agent_ask *ask, struct buf *out) {
    for (size_t i = 0; i < turn_part_count(ask->turn); i++) {
        const struct turn_part *part = turn_part_at(ask->turn, i);
        struct str text = str_trim(buf_str(&part->text));
        if (!text.len) continue;
        if (out->len) buf_append(out, STR("\n\n"));
        buf_append(out, text);
    }
}

static bool has_failed(const struct agent_ask *ask) {
    bool silent = true;
    for (size_t i = 0; i < turn_part_count(ask->turn); i++) {
        const struct turn_part *part = turn_part_at(ask->turn, i);
        if (part->status == MESSAGE_FAILED || part->status == MESSAGE_INCOMPLETE) return true;
        silent = silent && part->dropped;
    }
    return silent || ask->failure.len > 0;
}

static void agent_turn_answer(struct agent_ask *ask, struct str said, bool failed) {
    struct orchestrator_call *asked = ask->call;
    struct buf result;
    ask->call = NULL;
    if (!asked) return;
    if (failed) {
        struct str why = buf_str(&ask->failure);
        orchestrator_call_fail(asked, why.len    ? why
                                      : said.len ? said
                                                 : STR("the agent gave no answer"));
        return;
    }
    buf_init(&result, 4 * ANSWER_MAX_BYTES);
    struct json_writer writer = json_writer(&result);
    json_open_object(&writer);
    json_member_str(&writer, "agent_slug", ask->to->slug);
    json_member_str(&writer, "response", said);
    json_close(&writer);
    orchestrator_call_answer(asked, buf_str(&result));
    buf_done(&result);
}

static void on_stored(const struct postgres_request *rows, const struct err *failed,
                      void *ctx) {
    struct agent_ask *ask = ctx;
    struct buf said;
    bool bad = failed || has_failed(ask);
    (void)rows;
    if (failed)
        log_error("the end of a call from agent to agent could not be stored: %s",
                  failed->text);
    buf_init(&said, ANSWER_MAX_BYTES);
    append_answer(ask, &said);
    if (failed)
        turn_unstored(ask->turn);
    else
        turn_stored(ask->turn);
    show_delegation(ask, ask->from, ask->to, bad ? "failed" : "completed");
    agent_turn_answer(ask, buf_str(&said), bad);
    buf_done(&said);
    agent_ask_over(ask);
    agent_ask_unref(ask);
}

static void store(struct agent_ask *ask) {
    const struct agent_row row = agent_ask_row(ask);
    uint64_t now_ms = loop_now_ms(ask->asks->options.loop);
    struct buf said;
    bool failed = has_failed(ask);
    buf_init(&said, ANSWER_MAX_BYTES);
    append_answer(ask, &said);
    const struct agent_row_end end = {
        .failed = failed,
        .response = buf_str(&said),
        .error = failed && !ask->failure.len ? STR("no answer") : buf_str(&ask->failure),
        .duration_ms = (int64_t)(now_ms - ask->began_ms)};
    agent_ask_move(ask, AGENT_ASK_STORING);
    agent_ask_query(ask, agent_rows_end(&row, &end), QUERY_STEADFAST, on_stored);
    buf_done(&said);
}

/* --- the turn ----------------------------------------------------------------------------------- */

/* Its text is the tool's result, no message of the conversation. */
static void on_effect(const struct turn_effect *effect, void *ctx) {
    struct agent_ask *ask = ctx;
    switch (effect->kind) {
    case TURN_AGENT_STATUS: show_agent(ask, effect); return;
    case TURN_TOOL: show_tool(ask, effect); return;
    case TURN_USAGE: show_usage(ask, effect); return;
    case TURN_DELEGATION: {
        static const char *const names[] = {"running", "completed", "failed"};
        show_delegation(ask, ask->to, effect->part->agent, names[effect->delegation]);
        return;
    }
    case TURN_STORE: store(ask); return;
    case TURN_PART:
    case TURN_USER_STATUS:
    case TURN_TEXT:
    case TURN_THINKING:
    case TURN_NEW:
    case TURN_DONE:
    case TURN_OVER: return;
    }
}

static void agent_turn_on_event(const struct converse_event *event, void *ctx) {
    struct agent_ask *ask = ctx;
    bool last = event->kind == CONVERSE_DONE || event->kind == CONVERSE_ERROR;
    if (last) ask->drive = NULL;
    if (event->kind == CONVERSE_ERROR)
        buf_printf(&ask->failure, "the agent failed: %s: " STR_FMT, err_kinds[event->code].name,
                   STR_ARG(str_head(event->text, utf8_cut(event->text, 400))));
    turn_take(ask->turn, event);
    if (last || !turn_ended(ask->turn) || !ask->drive) return;
    struct drive *drive = ask->drive;
    ask->drive = NULL;
    drive_cancel(drive);
}

static void agent_turn_on_failed(const struct converse_failure *failure, void *ctx) {
    struct agent_ask *ask = ctx;
    ask->drive = NULL;
    buf_printf(&ask->failure, "the agent's runtime %s",
               failure->what[0] ? failure->what : "failed");
    turn_end(ask->turn, failure->never_seen ? TURN_UNOPENED : TURN_LOST, STR_EMPTY);
}

static const struct converse_sink sink = {.on_event = agent_turn_on_event,
                                          .on_failed = agent_turn_on_failed};

void agent_turn_begin(struct agent_ask *ask) {
    const struct workspace *workspace = ask->workspace;
    bool manager = str_equal(ask->to->role, STR("manager"));
    agent_ask_move(ask, AGENT_ASK_ASKING);
    ask->turn =
        turn_new(&(struct turn_options){.agents = workspace->agents,
                                        .agent_count = workspace->agent_count,
                                        .primary = (size_t)(ask->to - workspace->agents),
                                        .new_id = uuid_new,
                                        .on_effect = on_effect,
                                        .ctx = ask});
    show_delegation(ask, ask->from, ask->to, "running");
    turn_begin(ask->turn);
    if (!ask->call) { /* left while it was admitted */
        agent_turn_cancel(ask);
        return;
    }
    ask->question = (struct converse_question){.session = workspace->conversation,
                                               .message = text_str(ask->asked),
                                               .agent = manager ? STR_EMPTY : ask->to->slug,
                                               .workspace = workspace->id,
                                               .user = workspace->user};
    ask->drive = drive_start(ask->asks->options.driver, &ask->question, &sink, ask);
}

void agent_turn_cancel(struct agent_ask *ask) {
    struct drive *drive = ask->drive;
    ask->drive = NULL;
    if (drive) drive_cancel(drive);
    buf_append(&ask->failure, STR("cancelled"));
    turn_end(ask->turn, TURN_CANCELLED, STR_EMPTY);
}
