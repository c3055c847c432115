/* conversation: what a model is shown, folded from what happened.
 *
 * A run's events say who said and did what; a model wants messages. This is the one place where
 * the first become the second. A live turn applies each event that it appends to its journal, a
 * session that is read back applies those of the log, and a run that goes on after a restart
 * applies its own: so a prompt is the same whichever way it came about.
 *
 *     started                      USER, the caller's words
 *     item BROUGHT                 the caller's own list of messages, in their place
 *     text, text, ... and what     AGENT: one message for each reply of the model. A reply ends
 *     ends the reply               with its first call, its question to a human, or the turn
 *     item OPAQUE                  OPAQUE, before the reply that it belongs to
 *     tool_call, approval          TOOL_CALL (a question to a human is one, too)
 *     tool_result                  TOOL_RESULT; behind a human's answer his words, as USER
 *     item ASIDE                   USER, as soon as no call of the reply is open
 *     item REPAIR                  AGENT and USER: an answer of the wrong shape, and why
 *     item SUMMARY                 USER, in place of everything before the turn
 *     failed, cancelled            the text shown so far, as AGENT; a result for each open call
 *
 * Of a message that the provider refused as a request, before it said a word, a note is left.
 * Thinking, steps and audio are for those who watch, not for the model.
 *
 * The text of a reply stands in the event that ends it (`said`), because a session is read back
 * without the rows that hold nothing but streamed text.
 *
 * Memory   texts lie in the arena given; the array of messages is the conversation's own.
 * Threads  none; one conversation belongs to one loop, or to one reading.
 * Source   design.md "Words"; checks.md K11, K27, K30, K31.
 */
#ifndef WEIR_CONVERSATION_CONVERSATION_H
#define WEIR_CONVERSATION_CONVERSATION_H

#include "base/arena.h"
#include "provider/provider.h"

/* Calls that a run answers itself. */
#define TRANSFER_TOOL "transfer_to_agent"
#define APPROVAL_TOOL "request_approval"
#define APPROVAL_ID "approve-" /* and the id of the call: the id of the question about it */

/* Types of EVENT_ITEM that are part of a conversation, besides BROUGHT_ITEM (import.h). */
#define OPAQUE_ITEM "application/vnd.weir.reply."   /* and the dialect: a MESSAGE_OPAQUE */
#define SUMMARY_ITEM "application/vnd.weir.summary" /* the text of the summary */
#define ASIDE_ITEM "application/vnd.weir.aside"     /* what a human said instead of deciding */
#define REPAIR_ITEM "application/vnd.weir.repair"   /* conversation_repair() writes it */

/* BROUGHT_ITEM with this behind it: the list is the whole conversation, whatever the session
 * remembers. */
#define BROUGHT_ALL ";whole"

struct conversation {
    struct arena *arena;      /* borrowed */
    struct message *messages; /* what came before this run, then its own */
    size_t count, room;
    size_t own_from;       /* the first message of this run: what its session will remember */
    size_t brought_at;     /* the first one that the caller brought */
    size_t turn_start;     /* the one that this turn answers */
    size_t reply_from;     /* where the newest reply begins */
    size_t answer_from;    /* what stands from here on was said to the caller, not by him */
    size_t open_calls;     /* of this run, without a result */
    struct buf reply;      /* the text of the reply that is coming in */
    bool starts_anew;      /* it begins with all that its session shall remember */
    bool refused;          /* its first message was: a note stands there */
    enum event_kind ended; /* DONE, FAILED, CANCELLED; or 0 */
    /* What humans said while a call waited for them. */
    struct str *asides;
    size_t aside_count;
};

/* Whether the texts of an event go when it has been applied, or stay as long as the arena. */
enum conversation_texts { TEXTS_LENT, TEXTS_KEPT };

/* reply_max_bytes  of the text of one reply: what is longer is an error of whoever applies it
 */
void conversation_init(struct conversation *conversation, struct arena *arena,
                       size_t reply_max_bytes);
void conversation_done(struct conversation *conversation);

/* Fold in the run's next event. False: the arena or the reply has reached its limit; a terminal
 * event is always taken. */
bool conversation_apply(struct conversation *conversation, const struct event *event,
                        enum conversation_texts texts);

/* Places in front for the `count` messages that came before this run; the caller fills them at
 * once, with texts that stay as long as the conversation. */
struct message *conversation_precede(struct conversation *conversation, size_t count);

/* A summary (kept) in place of everything before the turn. It is the run's own, or only what it
 * looks at. */
enum summary_of { SUMMARY_OF_SESSION, SUMMARY_OF_VIEW };
void conversation_summarize(struct conversation *conversation, struct str summary,
                            enum summary_of of);

/* The text of the reply so far; valid until the next event. */
struct str conversation_reply(const struct conversation *conversation);

/* The message of this run's call of that id: the oldest that is open, for results answer in the
 * order of the calls; else the newest; or NULL. */
struct message *conversation_call(struct conversation *conversation, struct str call_id);

/* Whether the message at `index`, one of its own, is a call without a result. */
bool conversation_is_open(const struct conversation *conversation, size_t index);

/* The bytes of a REPAIR_ITEM: what `agent` said, and what it was told. False at the limit. */
bool conversation_repair(struct str agent, struct str said, struct str told, struct buf *out);

#endif
