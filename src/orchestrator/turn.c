#include "orchestrator/turn.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "orchestrator/tool_line.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>

#define SILENCE STR("[SILENT]")
#define LINE_MAX_BYTES (64 * KIB)
#define REASON_MAX_BYTES 400 /* of what a runtime says of a failure */
#define ASK_MAX_BYTES (256 * KIB)

struct turn {
    struct turn_options options;
    enum turn_state state;
    struct turn_part parts[TURN_PARTS_MAX]; /* the primary's first */
    size_t part_count;
    size_t speaker; /* the part that spoke last */
    struct turn_tool tools[TURN_TOOLS_MAX];
    size_t tool_count;
    size_t text_bytes;
    size_t json_bytes; /* of the text as JSON */
    bool errs;         /* agents are shown with an error before they are online again */
    struct buf failure;
};

/* --- words ------------------------------------------------------------------------------------ */

static const struct str statuses[MESSAGE_STATUS_COUNT] = {
    [MESSAGE_PENDING] = STR_INIT("pending"),     [MESSAGE_SENT] = STR_INIT("sent"),
    [MESSAGE_DELIVERED] = STR_INIT("delivered"), [MESSAGE_READ] = STR_INIT("read"),
    [MESSAGE_FAILED] = STR_INIT("failed"),       [MESSAGE_INCOMPLETE] = STR_INIT("incomplete"),
    [MESSAGE_SILENT] = STR_INIT("silent"),       [MESSAGE_DELEGATED] = STR_INIT("delegated"),
};

struct str message_status_name(enum message_status status) {
    return statuses[status];
}

static const struct str agent_statuses[AGENT_STATUS_COUNT] = {
    [AGENT_ONLINE] = STR_INIT("online"),     [AGENT_READING] = STR_INIT("reading"),
    [AGENT_THINKING] = STR_INIT("thinking"), [AGENT_WRITING] = STR_INIT("writing"),
    [AGENT_ERROR] = STR_INIT("error"),
};

struct str agent_status_name(enum agent_status status) {
    return agent_statuses[status];
}

/* --- states ------------------------------------------------------------------------------- */

const struct state turn_states[TURN_STATE_COUNT] = {
    [TURN_OPENING] = {"opening", TO(TURN_DELIVERED) | TO(TURN_READING) | TO(TURN_STORING)},
    [TURN_DELIVERED] = {"delivered", TO(TURN_READING) | TO(TURN_STORING)},
    [TURN_READING] = {"reading", TO(TURN_STORING)},
    [TURN_STORING] = {"storing", TO(TURN_FINAL)},
    [TURN_FINAL] = {"final", 0},
};

/* The only function that writes turn->state. */
static void turn_move(struct turn *turn, enum turn_state next) {
    assert(states_allow(turn_states, turn->state, next));
    turn->state = next;
}

const struct state turn_tool_states[TURN_TOOL_STATE_COUNT] = {
    [TURN_TOOL_RUNNING] = {"running", TO(TURN_TOOL_COMPLETED) | TO(TURN_TOOL_FAILED)},
    [TURN_TOOL_COMPLETED] = {"completed", 0},
    [TURN_TOOL_FAILED] = {"failed", 0},
};

/* The only function that writes tool->state. */
static void turn_tool_move(struct turn_tool *tool, enum turn_tool_state next) {
    assert(states_allow(turn_tool_states, tool->state, next));
    tool->state = next;
}

struct str turn_tool_state_name(enum turn_tool_state state) {
    return states_name(turn_tool_states, state);
}

/* --- effects ------------------------------------------------------------------------------ */

static void emit(struct turn *turn, const struct turn_effect *effect) {
    turn->options.on_effect(effect, turn->options.ctx);
}

static void emit_agent(struct turn *turn, const struct turn_agent *agent,
                       enum agent_status status) {
    emit(turn, &(struct turn_effect){
                   .kind = TURN_AGENT_STATUS, .agent = agent, .agent_status = status});
}

static void emit_user(struct turn *turn, enum message_status status) {
    emit(turn, &(struct turn_effect){.kind = TURN_USER_STATUS, .status = status});
}

static void emit_delegation(struct turn *turn, const struct turn_part *to,
                            enum turn_delegation state) {
    emit(turn, &(struct turn_effect){.kind = TURN_DELEGATION, .part = to, .delegation = state});
}

static void emit_part(struct turn *turn, enum turn_effect_kind kind,
                      const struct turn_part *part) {
    emit(turn, &(struct turn_effect){.kind = kind, .part = part, .status = part->status});
}

/* --- parts -------------------------------------------------------------------------------- */

static struct turn_part *part_new(struct turn *turn, const struct turn_agent *agent) {
    struct turn_part *part = &turn->parts[turn->part_count++];
    *part = (struct turn_part){.agent = agent, .status = MESSAGE_PENDING};
    part->id = turn->options.new_id();
    buf_init(&part->text, TURN_TEXT_MAX_BYTES + LINE_MAX_BYTES);
    emit_part(turn, TURN_PART, part);
    emit_agent(turn, agent, AGENT_THINKING);
    return part;
}

static const struct turn_agent *agent_named(const struct turn *turn, struct str slug) {
    for (size_t i = 0; i < turn->options.agent_count; i++) {
        if (str_equal(turn->options.agents[i].slug, slug)) return &turn->options.agents[i];
    }
    return NULL;
}

/* An agent that has not spoken yet: the primary has handed over to it. */
static struct turn_part *hand_over(struct turn *turn, const struct turn_agent *agent) {
    struct turn_part *part = part_new(turn, agent);
    emit_delegation(turn, part, TURN_DELEGATION_RUNNING);
    emit_agent(turn, turn->parts[0].agent, AGENT_ONLINE);
    return part;
}

/* The part of the agent with this slug. An unknown agent speaks as the primary. */
static struct turn_part *part_of(struct turn *turn, struct str slug) {
    const struct turn_agent *agent = agent_named(turn, slug);
    if (!agent) return &turn->parts[0];
    for (size_t i = 0; i < turn->part_count; i++) {
        if (turn->parts[i].agent == agent) return &turn->parts[i];
    }
    return turn->part_count < TURN_PARTS_MAX ? hand_over(turn, agent) : &turn->parts[0];
}

/* --- the end ------------------------------------------------------------------------------ */

static bool turn_is_blank(const struct turn_part *part) {
    return str_trim(buf_str(&part->text)).len == 0;
}

bool turn_delegated(const struct turn *turn) {
    return turn->part_count > 1;
}

const struct turn_agent *turn_delegate(const struct turn *turn) {
    return turn->part_count > 1 ? turn->parts[1].agent : NULL;
}

/* A part, as the end of another part leaves it. */
static void settle_part(struct turn_part *part, enum message_status with_text) {
    if (str_equal(str_trim(buf_str(&part->text)), SILENCE)) {
        buf_clear(&part->text);
        part->status = MESSAGE_SILENT;
        return;
    }
    part->dropped = turn_is_blank(part);
    part->status = part->dropped ? MESSAGE_SILENT : with_text;
}

/* An effect is unknown, so it is not shown as done. */
static void settle_tools(struct turn *turn) {
    for (size_t i = 0; i < turn->tool_count; i++) {
        if (turn->tools[i].state == TURN_TOOL_RUNNING)
            turn_tool_move(&turn->tools[i], TURN_TOOL_FAILED);
    }
}

static void turn_settle(struct turn *turn, enum message_status with_text) {
    for (size_t i = 0; i < turn->part_count; i++) settle_part(&turn->parts[i], with_text);
    if (turn_delegated(turn)) {
        turn->parts[0].status = MESSAGE_DELEGATED;
        turn->parts[0].dropped = false;
    }
    settle_tools(turn);
}

/* The part that spoke last says what went wrong, after what it said. */
static void tell_failure(struct turn *turn) {
    struct turn_part *part = &turn->parts[turn->speaker];
    if (part->dropped || part->status == MESSAGE_SILENT) buf_clear(&part->text);
    if (part->text.len) buf_append(&part->text, STR("\n\n"));
    buf_append(&part->text, buf_str(&turn->failure));
    part->dropped = false;
    part->status = MESSAGE_FAILED;
}

static void store(struct turn *turn) {
    turn_move(turn, TURN_STORING);
    emit(turn, &(struct turn_effect){.kind = TURN_STORE});
}

static void take_said(struct turn *turn, struct str agent, struct str said) {
    const struct converse_event text = {.kind = CONVERSE_TEXT, .agent = agent, .text = said};
    turn_take(turn, &text);
}

/* A runtime that does not stream has its text only here. What a part says in several turns, and
 * those of unknown agents are the primary's, stands apart by a blank line. */
static void take_turns(struct turn *turn, const struct converse_event *done) {
    for (size_t i = 0; i < done->turn_count && !turn_ended(turn); i++) {
        struct str agent = done->turns[i].agent_id, said = done->turns[i].text;
        if (said.len && part_of(turn, agent)->text.len) take_said(turn, agent, STR("\n\n"));
        take_said(turn, agent, said);
    }
}

static void end_in_order(struct turn *turn, const struct converse_event *done) {
    if (turn->text_bytes == 0) take_turns(turn, done);
    if (turn_ended(turn)) return;
    turn_settle(turn, MESSAGE_DELIVERED);
    store(turn);
}

static void append_reason(struct turn *turn, struct str said) {
    said = str_head(said, utf8_cut(said, REASON_MAX_BYTES));
    if (said.len) buf_printf(&turn->failure, ": " STR_FMT, STR_ARG(said));
}

/* For a person: what the runtime said, without the code. */
static void end_with_error(struct turn *turn, enum err_code code, struct str said) {
    turn->errs = true;
    buf_append(&turn->failure, code == ERR_RESOURCE_EXHAUSTED
                                   ? STR("The assistant reached a limit")
                                   : STR("The assistant could not finish"));
    append_reason(turn, said);
    turn_settle(turn, MESSAGE_INCOMPLETE);
    tell_failure(turn);
    store(turn);
}

static void end_lost(struct turn *turn, struct str why) {
    bool blank = turn->text_bytes == 0;
    turn->errs = true;
    buf_append(&turn->failure, STR("The assistant was cut off"));
    append_reason(turn, why);
    turn_settle(turn, MESSAGE_INCOMPLETE);
    if (blank) tell_failure(turn);
}

static void end_unopened(struct turn *turn, struct str why) {
    turn->errs = true;
    buf_append(&turn->failure, why);
    turn_settle(turn, MESSAGE_INCOMPLETE);
}

void turn_end(struct turn *turn, enum turn_end how, struct str why) {
    if (turn_ended(turn)) return;
    switch (how) {
    case TURN_UNOPENED: end_unopened(turn, why); break;
    case TURN_LOST: end_lost(turn, why); break;
    case TURN_CANCELLED: turn_settle(turn, MESSAGE_INCOMPLETE); break;
    }
    store(turn);
}

bool turn_ended(const struct turn *turn) {
    return turn->state == TURN_STORING || turn->state == TURN_FINAL;
}

void turn_stored(struct turn *turn) {
    turn_move(turn, TURN_FINAL);
    for (size_t i = 0; i < turn->part_count; i++) {
        const struct turn_part *part = &turn->parts[i];
        if (!part->dropped) emit_part(turn, TURN_NEW, part);
        emit_part(turn, TURN_DONE, part);
        if (turn->errs && (i == 0 || i == turn->speaker))
            emit_agent(turn, part->agent, AGENT_ERROR);
        emit_agent(turn, part->agent, AGENT_ONLINE);
    }
    for (size_t i = 1; i < turn->part_count; i++)
        emit_delegation(turn, &turn->parts[i],
                        turn->errs ? TURN_DELEGATION_FAILED : TURN_DELEGATION_COMPLETED);
    emit(turn, &(struct turn_effect){.kind = TURN_OVER, .text = buf_str(&turn->failure)});
}

void turn_unstored(struct turn *turn) {
    turn->errs = true;
    for (size_t i = 0; i < turn->part_count; i++) {
        turn->parts[i].dropped = true;
        turn->parts[i].status = MESSAGE_FAILED;
    }
    turn_stored(turn);
}

/* --- what the runtime says ------------------------------------------------------------------ */

static size_t json_bytes(struct str text) {
    struct buf json;
    buf_init(&json, 6 * text.len + 2);
    (void)json_put_str(&json, text);
    size_t bytes = json.len - 2; /* the quotes are those of the whole text */
    buf_done(&json);
    return bytes;
}

/* False: the answer has grown too long. */
static bool text_fits(struct turn *turn, struct str text) {
    turn->text_bytes += text.len;
    if (turn->text_bytes > TURN_TEXT_MAX_BYTES) return false;
    turn->json_bytes += json_bytes(text);
    return turn->json_bytes <= TURN_JSON_MAX_BYTES;
}

static void turn_take_text(struct turn *turn, const struct converse_event *event) {
    struct turn_part *part = part_of(turn, event->agent);
    if (!event->text.len) return;
    if (!text_fits(turn, event->text)) {
        end_with_error(turn, ERR_RESOURCE_EXHAUSTED, STR("its answer is too long"));
        return;
    }
    turn->speaker = (size_t)(part - turn->parts);
    buf_append(&part->text, event->text);
    if (!part->spoke) emit_agent(turn, part->agent, AGENT_WRITING);
    part->spoke = true;
    emit(turn, &(struct turn_effect){.kind = TURN_TEXT, .part = part, .text = event->text});
}

static void take_thinking(struct turn *turn, const struct converse_event *event) {
    struct turn_part *part = part_of(turn, event->agent);
    emit(turn, &(struct turn_effect){.kind = TURN_THINKING, .part = part, .text = event->text});
}

static struct text kept(struct str text) {
    return text_copy(str_head(text, utf8_cut(text, LINE_MAX_BYTES)));
}

static void show_call(struct turn_tool *tool, struct str args_json) {
    struct buf line;
    struct str name = text_str(tool->tool);
    buf_init(&line, 2 * LINE_MAX_BYTES);
    tool_line_query(name, args_json, &line);
    tool->query = kept(buf_str(&line));
    buf_clear(&line);
    tool_line_args(name, args_json, &line);
    if (buf_ok(&line) && line.len <= LINE_MAX_BYTES) tool->args = text_copy(buf_str(&line));
    buf_done(&line);
}

static void tool_done(struct turn_tool *tool) {
    text_done(&tool->asks);
    text_done(&tool->call_id);
    text_done(&tool->tool);
    text_done(&tool->query);
    text_done(&tool->args);
}

static void turn_take_call(struct turn *turn, const struct converse_event *event) {
    struct turn_part *part = part_of(turn, event->agent);
    if (turn->tool_count == TURN_TOOLS_MAX) return;
    struct turn_tool *tool = &turn->tools[turn->tool_count++];
    *tool = (struct turn_tool){.part = (size_t)(part - turn->parts),
                               .id = turn->options.new_id(),
                               .stored = !str_equal(event->tool, STR(TRANSFER_TOOL)),
                               .call_id = kept(event->call_id),
                               .tool = kept(event->tool)};
    turn->speaker = tool->part;
    if (str_equal(event->tool, STR(ASK_TOOL)) && event->args.len <= ASK_MAX_BYTES)
        tool->asks = text_copy(event->args);
    show_call(tool, event->args);
    emit(turn, &(struct turn_effect){.kind = TURN_TOOL, .part = part, .tool = tool});
}

static void turn_take_result(struct turn *turn, const struct converse_event *event) {
    for (size_t i = 0; i < turn->tool_count; i++) {
        struct turn_tool *tool = &turn->tools[i];
        if (tool->state != TURN_TOOL_RUNNING ||
            !str_equal(text_str(tool->call_id), event->call_id))
            continue;
        turn_tool_move(tool, event->error ? TURN_TOOL_FAILED : TURN_TOOL_COMPLETED);
        emit(turn, &(struct turn_effect){
                       .kind = TURN_TOOL, .part = &turn->parts[tool->part], .tool = tool});
        return;
    }
}

static bool asks_for(const struct turn_tool *tool, struct str slug, struct str message) {
    struct arena *arena = arena_new(2 * ASK_MAX_BYTES);
    struct json args;
    struct str to, text;
    struct err e;
    bool same = tool->state == TURN_TOOL_RUNNING && !tool->claimed && tool->asks.len &&
                json_read(text_str(tool->asks), &args, &e) &&
                json_str(json_find(args, STR("agent_slug")), arena, &to) &&
                json_str(json_find(args, STR("message")), arena, &text) &&
                str_equal(to, slug) && str_equal(text, message);
    arena_free(arena);
    return same;
}

const struct turn_part *turn_claim(struct turn *turn, struct str slug, struct str message) {
    if (turn_ended(turn)) return NULL;
    for (size_t i = 0; i < turn->tool_count; i++) {
        struct turn_tool *tool = &turn->tools[i];
        if (!asks_for(tool, slug, message)) continue;
        tool->claimed = true;
        return &turn->parts[tool->part];
    }
    return NULL;
}

static void turn_take_usage(struct turn *turn, const struct converse_event *event) {
    const struct turn_agent *agent = agent_named(turn, event->agent);
    const struct turn_part *part = &turn->parts[0];
    for (size_t i = 0; i < turn->part_count; i++) {
        if (turn->parts[i].agent == agent) part = &turn->parts[i];
    }
    emit(turn,
         &(struct turn_effect){.kind = TURN_USAGE,
                               .part = part,
                               .text = event->agent.len ? event->agent : part->agent->slug,
                               .usage = &event->usage});
}

/* Something of the answer has come. */
static void begin_reading(struct turn *turn) {
    if (turn->state == TURN_OPENING) turn_sent(turn);
    if (turn->state != TURN_DELIVERED) return;
    turn_move(turn, TURN_READING);
    emit_user(turn, MESSAGE_READ);
}

void turn_take(struct turn *turn, const struct converse_event *event) {
    if (turn_ended(turn)) return;
    begin_reading(turn);
    switch (event->kind) {
    case CONVERSE_TEXT: turn_take_text(turn, event); return;
    case CONVERSE_THINKING: take_thinking(turn, event); return;
    case CONVERSE_CALL: turn_take_call(turn, event); return;
    case CONVERSE_RESULT: turn_take_result(turn, event); return;
    case CONVERSE_USAGE: turn_take_usage(turn, event); return;
    case CONVERSE_DONE: end_in_order(turn, event); return;
    case CONVERSE_ERROR: end_with_error(turn, event->code, event->text); return;
    case CONVERSE_OTHER: return;
    }
}

void turn_begin(struct turn *turn) {
    part_new(turn, &turn->options.agents[turn->options.primary]);
}

void turn_sent(struct turn *turn) {
    if (turn->state != TURN_OPENING) return;
    turn_move(turn, TURN_DELIVERED);
    emit_user(turn, MESSAGE_DELIVERED);
}

/* --- reading and the end of it ---------------------------------------------------------------- */

size_t turn_part_count(const struct turn *turn) {
    return turn->part_count;
}

const struct turn_part *turn_part_at(const struct turn *turn, size_t index) {
    return &turn->parts[index];
}

size_t turn_tool_count(const struct turn *turn) {
    return turn->tool_count;
}

const struct turn_tool *turn_tool_at(const struct turn *turn, size_t index) {
    return &turn->tools[index];
}

struct turn *turn_new(const struct turn_options *options) {
    struct turn *turn = MEM_NEW(struct turn);
    turn->options = *options;
    turn->state = TURN_OPENING;
    buf_init(&turn->failure, 4 * KIB);
    return turn;
}

void turn_free(struct turn *turn) {
    if (!turn) return;
    for (size_t i = 0; i < turn->part_count; i++) buf_done(&turn->parts[i].text);
    for (size_t i = 0; i < turn->tool_count; i++) tool_done(&turn->tools[i]);
    buf_done(&turn->failure);
    free(turn);
}
