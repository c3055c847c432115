/* shown: messages and events as clients see them.
 *
 * The published keys, and no others: a key that the table of the contract calls "always" is
 * there also when it is empty.
 *
 * Memory   appends to the caller's buffers.
 * Threads  any.
 * Source   contracts of the orchestrator, "Socket.IO".
 */
#ifndef WEIR_ORCHESTRATOR_SHOWN_H
#define WEIR_ORCHESTRATOR_SHOWN_H

#include "orchestrator/turn.h"
#include "wire/json.h"

/* A row of `messages`. */
struct shown_message {
    struct str id, conversation, role, status, local_id;
    struct str content, attachments; /* JSON */
    const struct turn_agent *agent;  /* NULL: of none */
    enum agent_status agent_status;
    int64_t created_us, updated_us;
};

void shown_message(struct json_writer *writer, const struct shown_message *message);

/* {"message": Message} */
void shown_message_event(struct buf *out, const struct shown_message *message);

/* "2026-03-01T12:00:00.000000Z" */
void shown_time(struct buf *out, int64_t unix_us);

/* --- contents -------------------------------------------------------------------------------- */

void shown_text_content(struct buf *out, struct str text);
void shown_tool_content(struct buf *out, const struct turn_tool *tool);
/* `delegated`: what was handed over, of which a preview is shown. */
void shown_delegation_content(struct buf *out, struct str text, const struct turn_agent *from,
                              const struct turn_agent *to, struct str status,
                              struct str delegated);

/* --- events ------------------------------------------------------------------------------------ */

void shown_chunk(struct buf *out, const struct turn_part *part, struct str conversation,
                 struct str text);
void shown_done(struct buf *out, const struct turn_part *part, struct str conversation);
void shown_message_status(struct buf *out, struct str message, struct str conversation,
                          struct str local_id, enum message_status status);
void shown_agent_status(struct buf *out, struct str agent, struct str conversation,
                        enum agent_status status);
void shown_tool(struct buf *out, const struct turn_part *part, struct str conversation,
                const struct turn_tool *tool, int64_t now_us);

struct shown_delegation {
    const struct turn_agent *from, *to;
    struct str conversation, message, status, preview;
    int64_t now_us;
};
void shown_delegation(struct buf *out, const struct shown_delegation *delegation);

/* agent: its slug, as upstream */
void shown_usage(struct buf *out, struct str agent, struct str conversation, struct str message,
                 const struct event_usage *usage);

#endif
