/* turn: what a runtime says in a turn, as what clients see and what is stored.
 *
 * Events of a Converse go in, effects come out, in their order. There is no socket, no store and
 * no clock in here, so that a turn can be cut anywhere in a test.
 *
 *     opening ─▶ delivered ─▶ reading ─▶ storing ─▶ over
 *        └───────────┴──────── ended ───────▲
 *
 * Each agent that takes part has a *part*: one message. The first is that of the agent who was
 * asked, the primary; an agent to whom the turn is handed gets its own. A part begins as a
 * placeholder, and the end of the turn decides its last status. That end comes once: with a
 * DoneEvent, or because the stream broke, or the turn was cancelled. Then TURN_STORE asks for
 * all parts to be stored together, and turn_stored() shows them.
 *
 * Memory   owns what it keeps of the events. Effects borrow from it and from the event.
 * Threads  none.
 * Source   contracts of the orchestrator, "From ConverseEvent to events and rows", "ERROR:
 *          handling".
 */
#ifndef WEIR_ORCHESTRATOR_TURN_H
#define WEIR_ORCHESTRATOR_TURN_H

#include "agent/converse_event.h"
#include "base/buf.h"
#include "base/states.h"
#include "base/text.h"
#include "orchestrator/uuid.h"

/* --- the words that clients and rows have for states: "Enums" and "Status order" -------------- */

enum message_status {
    MESSAGE_PENDING,
    MESSAGE_SENT,
    MESSAGE_DELIVERED,
    MESSAGE_READ,
    MESSAGE_FAILED,
    MESSAGE_INCOMPLETE,
    MESSAGE_SILENT,
    MESSAGE_DELEGATED,
    MESSAGE_STATUS_COUNT,
};

/* A stored status only rises: the statements of rows.c see to it. */
struct str message_status_name(enum message_status status);

enum agent_status {
    AGENT_ONLINE,
    AGENT_READING,
    AGENT_THINKING,
    AGENT_WRITING,
    AGENT_ERROR,
    AGENT_STATUS_COUNT,
};

struct str agent_status_name(enum agent_status status);

/* --- a turn --------------------------------------------------------------------------------- */

/* Agents of one turn; an agent beyond them speaks as the primary. */
#define TURN_PARTS_MAX 8
/* Tool calls of one turn that are shown. */
#define TURN_TOOLS_MAX 256
/* Text of one turn; a runtime that says more is cut off. */
#define TURN_TEXT_MAX_BYTES (4 * MIB)
/* The same text as JSON, in which control characters are six times as long. */
#define TURN_JSON_MAX_BYTES (6 * MIB)
#define TURN_PREVIEW_CHARACTERS 120

/* An agent of a workspace. Texts are borrowed. */
struct turn_agent {
    struct str id, workspace, name, role, slug, avatar, description;
    int64_t created_us, updated_us; /* since 1970 */
};

/* --- parts and tools ------------------------------------------------------------------------ */

struct turn_part {
    const struct turn_agent *agent;
    struct uuid id;
    struct buf text;
    bool spoke;   /* its text has begun */
    bool dropped; /* at the end: there is no such message */
    enum message_status status;
};

enum turn_tool_state {
    TURN_TOOL_RUNNING,
    TURN_TOOL_COMPLETED,
    TURN_TOOL_FAILED,
    TURN_TOOL_STATE_COUNT,
};

extern const struct state turn_tool_states[TURN_TOOL_STATE_COUNT];

struct turn_tool {
    size_t part; /* of the agent that calls it */
    struct uuid id;
    bool stored; /* it has a row */
    struct text call_id, tool, query, args;
    struct text asks; /* of ASK_TOOL: its whole arguments; else none */
    bool claimed;     /* by turn_claim() */
    enum turn_tool_state state;
};

/* "running", "completed", "failed". */
struct str turn_tool_state_name(enum turn_tool_state state);

/* --- effects -------------------------------------------------------------------------------- */

enum turn_effect_kind {
    TURN_PART,         /* `part` has begun: store its placeholder; nothing is shown */
    TURN_USER_STATUS,  /* the user's message is `status`: show it, and store it unless it is
                          MESSAGE_READ */
    TURN_AGENT_STATUS, /* of the part's agent, or of `agent` */
    TURN_TEXT,         /* `text` was added to the part */
    TURN_THINKING,     /* `text` was thought, which is no part of the message */
    TURN_TOOL,         /* `tool` began or ended: show and store it */
    TURN_DELEGATION,   /* the primary has handed over to the part; `status` of it */
    TURN_USAGE,        /* `usage` of the agent named `text` counts */
    TURN_STORE,        /* store every part and tool as it is now, then call turn_stored() */
    TURN_NEW,          /* show the part as it was stored */
    TURN_DONE,         /* the part is done with its status */
    TURN_OVER, /* the last one; `failure` says why it failed, for the sender; or empty */
};

enum turn_delegation {
    TURN_DELEGATION_RUNNING,
    TURN_DELEGATION_COMPLETED,
    TURN_DELEGATION_FAILED
};

struct turn_effect {
    enum turn_effect_kind kind;
    const struct turn_part *part;
    const struct turn_agent *agent;
    const struct turn_tool *tool;
    enum agent_status agent_status;
    enum message_status status;
    enum turn_delegation delegation;
    struct str text;
    const struct event_usage *usage;
};

typedef void turn_effect_fn(const struct turn_effect *effect, void *ctx);

/* --- a turn --------------------------------------------------------------------------------- */

struct turn;

struct turn_options {
    const struct turn_agent *agents; /* of the workspace; borrowed */
    size_t agent_count;
    size_t primary;              /* index of the agent that is asked */
    struct uuid (*new_id)(void); /* of rows */
    turn_effect_fn *on_effect;
    void *ctx;
};

struct turn *turn_new(const struct turn_options *options);
void turn_free(struct turn *turn);

/* The user's message is stored. */
void turn_begin(struct turn *turn);
/* The request has left for the runtime. */
void turn_sent(struct turn *turn);
/* What the runtime says. After an end nothing is taken any more. */
void turn_take(struct turn *turn, const struct converse_event *event);

enum turn_end {
    TURN_UNOPENED,  /* the runtime was never asked */
    TURN_LOST,      /* the stream broke */
    TURN_CANCELLED, /* its user left, or has said something else */
};
/* It ends without a DoneEvent. `why` is for a person. */
void turn_end(struct turn *turn, enum turn_end how, struct str why);

/* What TURN_STORE asked for is stored. */
void turn_stored(struct turn *turn);
/* It could not be stored: every part has failed, and none is shown. */
void turn_unstored(struct turn *turn);

size_t turn_part_count(const struct turn *turn);
const struct turn_part *turn_part_at(const struct turn *turn, size_t index);
size_t turn_tool_count(const struct turn *turn);
const struct turn_tool *turn_tool_at(const struct turn *turn, size_t index);
/* The agent that is asking `slug` this through ASK_TOOL now, as its part. Each of its calls is
 * found once. NULL: none is. */
const struct turn_part *turn_claim(struct turn *turn, struct str slug, struct str message);
/* Whether the primary has handed over; its message is then a delegation. */
bool turn_delegated(const struct turn *turn);
/* To whom it handed over first; NULL: to none. */
const struct turn_agent *turn_delegate(const struct turn *turn);
/* The end was reached, so the runtime need not be read any more. */
bool turn_ended(const struct turn *turn);

/* --- states, for tests and the drawing -------------------------------------------------------- */

enum turn_state {
    TURN_OPENING,   /* the runtime has not been asked yet */
    TURN_DELIVERED, /* it has the request */
    TURN_READING,   /* it has answered with something */
    TURN_STORING,   /* the end is known and not stored yet */
    TURN_FINAL,     /* stored and shown */
    TURN_STATE_COUNT,
};

extern const struct state turn_states[TURN_STATE_COUNT];

#endif
