/* One agent's turn in a talk: the effects of its machine as events and rows. */
#include "base/clock.h"
#include "base/log.h"
#include "orchestrator/talks_inner.h"

#define JSON_MAX_BYTES (32 * MIB)
#define LOGGED_BYTES 200
/* Turns of a workspace that wait, for each that may run. */
#define WAITING_FOR_A_PLACE 4

/* While more than this waits for the sender, the runtime is not read. */
#define LAG_MAX_BYTES (256 * KIB)
#define LAG_LOOK_MS 20
/* The same while more than this many statements of the talk wait for the database. */
#define STATEMENTS_MAX 64
#define PARTIAL_MS 1000

/* --- showing --------------------------------------------------------------------------------------- */

void talk_emit(struct talk *talk, const char *event, struct str json) {
    const struct talks_options *options = &talk->talks->options;
    options->emit(talk->workspace->id, event, json, options->ctx);
}

/* The JSON of an event, built and shown. */
struct event {
    struct talk *talk;
    const char *name;
    struct buf json;
};

static struct event event_begin(const struct talk_turn *turn, const char *name) {
    struct event event = {.talk = turn->talk, .name = name};
    buf_init(&event.json, JSON_MAX_BYTES);
    return event;
}

static void event_end(struct event *event) {
    talk_emit(event->talk, event->name, buf_str(&event->json));
    buf_done(&event->json);
}

static struct str conversation_of(const struct talk_turn *turn) {
    return turn->talk->workspace->conversation;
}

static struct rows_turn rows_of(const struct talk_turn *turn) {
    const struct talk *talk = turn->talk;
    return (struct rows_turn){.id = uuid_str(&turn->id),
                              .user = talk->workspace->user,
                              .workspace = talk->workspace->id,
                              .conversation = talk->workspace->conversation,
                              .message = text_str(talk->message)};
}

void talk_show_part(const struct talk_turn *turn, const struct turn_part *part,
                    struct buf *content, struct shown_message *ret) {
    rows_part_content(content, turn->turn, part);
    *ret = (struct shown_message){.id = uuid_str(&part->id),
                                  .conversation = conversation_of(turn),
                                  .role = STR("agent"),
                                  .status = message_status_name(part->status),
                                  .content = buf_str(content),
                                  .agent = part->agent,
                                  .agent_status = AGENT_ONLINE,
                                  .created_us = turn->created_us,
                                  .updated_us = turn->updated_us};
    if (turn->stored)
        (void)rows_read_times(turn->stored, ret->id, &ret->created_us, &ret->updated_us);
}

/* --- effects ----------------------------------------------------------------------------------------- */

static void show_user_status(struct talk_turn *turn, const struct turn_effect *effect) {
    struct talk *talk = turn->talk;
    bool *shown = effect->status == MESSAGE_READ ? &talk->read : &talk->delivered;
    if (*shown) return; /* another turn of this message was faster */
    *shown = true;
    struct event event = event_begin(turn, "message.status");
    shown_message_status(&event.json, text_str(talk->message), conversation_of(turn),
                         text_str(talk->local_id), effect->status);
    event_end(&event);
    if (effect->status == MESSAGE_DELIVERED)
        talk_query(talk, rows_user_status(text_str(talk->message), effect->status),
                   QUERY_REPEATABLE, talk_ignore);
}

static void show_agent_status(struct talk_turn *turn, const struct turn_agent *agent,
                              enum agent_status status) {
    struct event event = event_begin(turn, "agent.status");
    shown_agent_status(&event.json, agent->id, conversation_of(turn), status);
    event_end(&event);
}

static void show_text(struct talk_turn *turn, const struct turn_effect *effect) {
    struct event event = event_begin(turn, "message.chunk");
    shown_chunk(&event.json, effect->part, conversation_of(turn), effect->text);
    event_end(&event);
}

static void show_thinking(struct talk_turn *turn, const struct turn_effect *effect) {
    struct event event = event_begin(turn, "message.thinking");
    shown_chunk(&event.json, effect->part, conversation_of(turn), effect->text);
    event_end(&event);
}

static void show_tool_message(struct talk_turn *turn, const struct turn_effect *effect) {
    const struct turn_tool *tool = effect->tool;
    struct event event =
        event_begin(turn, tool->state == TURN_TOOL_RUNNING ? "message.new" : "message.updated");
    struct buf content;
    int64_t now_us = clock_unix_us();
    buf_init(&content, JSON_MAX_BYTES);
    shown_tool_content(&content, tool);
    shown_message_event(&event.json,
                        &(struct shown_message){.id = uuid_str(&tool->id),
                                                .conversation = conversation_of(turn),
                                                .role = STR("agent"),
                                                .status = STR("delivered"),
                                                .content = buf_str(&content),
                                                .agent = effect->part->agent,
                                                .agent_status = AGENT_WRITING,
                                                .created_us = now_us,
                                                .updated_us = now_us});
    event_end(&event);
    buf_done(&content);
}

static void show_tool(struct talk_turn *turn, const struct turn_effect *effect) {
    const struct rows_turn rows = rows_of(turn);
    if (effect->tool->stored) {
        talk_query(turn->talk, rows_tool(&rows, effect->part, effect->tool), QUERY_REPEATABLE,
                   talk_ignore);
        show_tool_message(turn, effect);
    }
    struct event event = event_begin(turn, "agent.tool");
    shown_tool(&event.json, effect->part, conversation_of(turn), effect->tool, clock_unix_us());
    event_end(&event);
}

static void show_delegation(struct talk_turn *turn, const struct turn_effect *effect) {
    static const struct str states[] = {STR_INIT("running"), STR_INIT("completed"),
                                        STR_INIT("failed")};
    const struct turn_part *first = turn_part_at(turn->turn, 0);
    struct event event = event_begin(turn, "agent.delegation");
    shown_delegation(&event.json,
                     &(struct shown_delegation){.from = first->agent,
                                                .to = effect->part->agent,
                                                .conversation = conversation_of(turn),
                                                .message = uuid_str(&effect->part->id),
                                                .status = states[effect->delegation],
                                                .preview = text_str(turn->talk->asked),
                                                .now_us = clock_unix_us()});
    event_end(&event);
}

static void talk_turn_on_usage(const struct postgres_request *rows, const struct err *failed,
                               void *ctx) {
    struct talk *talk = ctx;
    const struct talks_options *options = &talk->talks->options;
    if (failed) log_error("usage of a model call could not be counted: %s", failed->text);
    if (rows && options->on_usage) options->on_usage(options->ctx);
    talk_release(talk);
}

/* A turn of many model calls would write its whole text with each. */
static void store_partial(struct talk_turn *turn, const struct turn_part *part) {
    uint64_t now_ms = loop_now_ms(turn->talk->talks->options.loop);
    if (turn->partial_ms && now_ms - turn->partial_ms < PARTIAL_MS) return;
    turn->partial_ms = now_ms;
    talk_query(turn->talk, rows_partial(part), QUERY_REPEATABLE, talk_ignore);
}

static void show_usage(struct talk_turn *turn, const struct turn_effect *effect) {
    const struct rows_turn rows = rows_of(turn);
    struct uuid id = uuid_new();
    struct event event = event_begin(turn, "usage.update");
    shown_usage(&event.json, effect->text, conversation_of(turn), uuid_str(&effect->part->id),
                effect->usage);
    event_end(&event);
    const struct rows_usage call = {.event = uuid_str(&id),
                                    .message = uuid_str(&effect->part->id),
                                    .agent = effect->text,
                                    .usage = effect->usage};
    talk_query(turn->talk, rows_usage(&rows, effect->part, &call), QUERY_STEADFAST,
               talk_turn_on_usage);
    store_partial(turn, effect->part);
}

static void show_new(struct talk_turn *turn, const struct turn_effect *effect) {
    struct event event = event_begin(turn, "message.new");
    struct shown_message message;
    struct buf content;
    buf_init(&content, JSON_MAX_BYTES);
    talk_show_part(turn, effect->part, &content, &message);
    shown_message_event(&event.json, &message);
    event_end(&event);
    buf_done(&content);
}

static void show_done(struct talk_turn *turn, const struct turn_effect *effect) {
    struct event event = event_begin(turn, "message.done");
    shown_done(&event.json, effect->part, conversation_of(turn));
    event_end(&event);
}

static void store_placeholder(struct talk_turn *turn, const struct turn_effect *effect) {
    const struct rows_turn rows = rows_of(turn);
    talk_query(turn->talk, rows_placeholder(&rows, effect->part), QUERY_REPEATABLE,
               talk_ignore);
}

/* --- the end -------------------------------------------------------------------------------------------- */

/* What the sender learns of this turn's first message. */
static void keep_times(struct talk_turn *turn) {
    const struct turn_part *part = turn_part_at(turn->turn, 0);
    turn->created_us = turn->updated_us = clock_unix_us();
    if (turn->stored)
        (void)rows_read_times(turn->stored, uuid_str(&part->id), &turn->created_us,
                              &turn->updated_us);
}

/* `rows`: NULL when it could not be stored. */
static void finished(struct talk_turn *turn, const struct postgres_request *rows) {
    turn->stored = rows;
    turn->unstored = !rows;
    keep_times(turn);
    if (rows)
        turn_stored(turn->turn);
    else
        turn_unstored(turn->turn);
    turn->stored = NULL;
    if (turn->placed) {
        turn->placed = false;
        talks_leave_place(turn->talk->talks, turn->talk->workspace->id);
    }
    turn->over = true;
    talk_turn_over(turn->talk);
}

static void on_finished(const struct postgres_request *rows, const struct err *failed,
                        void *ctx) {
    struct talk_turn *turn = ctx;
    struct talk *talk = turn->talk;
    if (failed)
        log_error("the end of a turn could not be stored (%s); its message is ended as stale",
                  failed->text);
    finished(turn, rows);
    talk_release(talk);
}

static void store(struct talk_turn *turn) {
    const struct rows_turn rows = rows_of(turn);
    const struct talks_options *options = &turn->talk->talks->options;
    turn->talk->refs++;
    query_ask(
        rows_finish(&rows, turn->turn, (int64_t)(loop_now_ms(options->loop) - turn->began_ms)),
        options->database, QUERY_STEADFAST, on_finished, turn);
}

static void on_effect(const struct turn_effect *effect, void *ctx) {
    struct talk_turn *turn = ctx;
    switch (effect->kind) {
    case TURN_PART: store_placeholder(turn, effect); return;
    case TURN_USER_STATUS: show_user_status(turn, effect); return;
    case TURN_AGENT_STATUS:
        show_agent_status(turn, effect->agent, effect->agent_status);
        return;
    case TURN_TEXT: show_text(turn, effect); return;
    case TURN_THINKING: show_thinking(turn, effect); return;
    case TURN_TOOL: show_tool(turn, effect); return;
    case TURN_DELEGATION: show_delegation(turn, effect); return;
    case TURN_USAGE: show_usage(turn, effect); return;
    case TURN_STORE: store(turn); return;
    case TURN_NEW: show_new(turn, effect); return;
    case TURN_DONE: show_done(turn, effect); return;
    case TURN_OVER: return;
    }
}

/* --- the runtime ------------------------------------------------------------------------------------------ */

static void talk_turn_on_sent(void *ctx) {
    struct talk_turn *turn = ctx;
    turn_sent(turn->turn);
}

/* Its sender does not read, or the database does not get round to what the turn says: each of
 * its statements holds a reference. */
static bool lags(const struct talk_turn *turn) {
    const struct talk *talk = turn->talk;
    if (talk->refs > STATEMENTS_MAX) return true;
    return talk->sink && talk->sink->queued && talk->sink->queued(talk->ctx) > LAG_MAX_BYTES;
}

static void pause_if_it_lags(struct talk_turn *turn) {
    if (!turn->drive || timer_waits(&turn->lag) || !lags(turn)) return;
    log_often(LOG_INFO, "a runtime is not read while its sender or the database lags");
    drive_pause(turn->drive);
    timer_start(&turn->lag, LAG_LOOK_MS);
}

/* A sender that takes nothing is cut off by its socket, which cancels the turn. */
static void talk_turn_on_lag(void *ctx) {
    struct talk_turn *turn = ctx;
    if (!turn->drive) return;
    if (lags(turn))
        timer_start(&turn->lag, LAG_LOOK_MS);
    else
        drive_resume(turn->drive);
}

/* A turn that has ended by itself needs no more of its runtime. */
static void talk_turn_on_event(const struct converse_event *event, void *ctx) {
    struct talk_turn *turn = ctx;
    bool last = event->kind == CONVERSE_DONE || event->kind == CONVERSE_ERROR;
    if (last) turn->drive = NULL;
    if (event->kind == CONVERSE_ERROR)
        log_info("a turn has failed at its runtime: %s: " STR_FMT, err_kinds[event->code].name,
                 STR_ARG(str_head(event->text, LOGGED_BYTES)));
    turn_take(turn->turn, event);
    if (!last && !turn_ended(turn->turn)) pause_if_it_lags(turn);
    if (last || !turn_ended(turn->turn) || !turn->drive) return;
    struct drive *drive = turn->drive;
    turn->drive = NULL;
    drive_cancel(drive);
}

static void talk_turn_on_failed(const struct converse_failure *failure, void *ctx) {
    struct talk_turn *turn = ctx;
    turn->drive = NULL;
    turn->unopened = failure->never_seen;
    if (failure->never_seen)
        turn_end(turn->turn, TURN_UNOPENED, STR("Assistant is still starting"));
    else
        turn_end(turn->turn, TURN_LOST, str_from(failure->what));
}

static const struct converse_sink drive_sink = {.on_sent = talk_turn_on_sent,
                                                .on_event = talk_turn_on_event,
                                                .on_failed = talk_turn_on_failed};

/* --- waiting, beginning, cancelling ----------------------------------------------------------------------- */

void talk_turn_enter(struct talk_turn *turn) {
    const struct talk *talk = turn->talk;
    const struct turn_agent *agent = &talk->workspace->agents[turn->agent];
    bool manager = str_equal(agent->role, STR("manager"));
    timer_stop(&turn->wait);
    turn->placed = true;
    turn->question = (struct converse_question){.session = talk->workspace->conversation,
                                                .message = text_str(talk->asked),
                                                .agent = manager ? STR_EMPTY : agent->slug,
                                                .workspace = talk->workspace->id,
                                                .user = talk->workspace->user};
    turn_begin(turn->turn);
    turn->drive = drive_start(talk->talks->options.driver, &turn->question, &drive_sink, turn);
}

static void talk_turn_on_waited(void *ctx) {
    struct talk_turn *turn = ctx;
    list_remove(&turn->waiting);
    turn->unopened = true;
    turn_begin(turn->turn);
    turn_end(turn->turn, TURN_UNOPENED, STR("too many turns of this workspace run"));
}

/* Whether no more turns may wait for a place. Each of them holds its message. */
static bool line_is_full(const struct talks_place *place, const struct talks_options *options) {
    size_t count = 0;
    for (const struct list *at = place->waiting.next; at != &place->waiting; at = at->next)
        count++;
    return count >= WAITING_FOR_A_PLACE * options->turns_max;
}

void talk_turn_begin(struct talk_turn *turn) {
    struct talk *talk = turn->talk;
    const struct talks_options *options = &talk->talks->options;
    struct talks_place *place = talks_place_of(talk->talks, talk->workspace->id);
    turn->turn = turn_new(&(struct turn_options){.agents = talk->workspace->agents,
                                                 .agent_count = talk->workspace->agent_count,
                                                 .primary = turn->agent,
                                                 .new_id = uuid_new,
                                                 .on_effect = on_effect,
                                                 .ctx = turn});
    turn->began_ms = loop_now_ms(options->loop);
    if (place->taken < options->turns_max) {
        place->taken++;
        talk_turn_enter(turn);
        return;
    }
    timer_start(&turn->wait, line_is_full(place, options) ? 0 : options->wait_ms);
    list_append(&place->waiting, &turn->waiting);
    show_agent_status(turn, &talk->workspace->agents[turn->agent], AGENT_READING);
}

void talk_turn_cancel(struct talk_turn *turn) {
    struct drive *drive = turn->drive;
    turn->drive = NULL;
    if (drive) drive_cancel(drive);
    if (!turn->turn || turn_ended(turn->turn)) return;
    if (list_linked(&turn->waiting)) {
        list_remove(&turn->waiting);
        timer_stop(&turn->wait);
        turn_begin(turn->turn);
    }
    turn_end(turn->turn, TURN_CANCELLED, STR_EMPTY);
}

void talk_turn_init(struct talk_turn *turn, struct talk *talk, size_t agent) {
    *turn = (struct talk_turn){.talk = talk, .agent = agent, .id = uuid_new()};
    list_init(&turn->waiting);
    timer_init(&turn->wait, talk->talks->options.loop, talk_turn_on_waited, turn);
    timer_init(&turn->lag, talk->talks->options.loop, talk_turn_on_lag, turn);
}

void talk_turn_done(struct talk_turn *turn) {
    timer_stop(&turn->lag);
    turn_free(turn->turn);
    turn->turn = NULL;
}
