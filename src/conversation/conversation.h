/* conversation: the messages a model is shown, folded from a run's events.
 *
 * A run's events record who said and did what; a model wants messages. This is the only place
 * that turns events into messages. A live turn applies each event that it appends to its
 * journal, a session that is read back applies the events of the log, and a run that continues
 * after a restart applies its own. So all three build the same prompt.
 *
 *     started                      USER, the caller's words
 *     item BROUGHT                 the caller's own list of messages, in their place
 *     text, text, ... and what     AGENT: one message for each reply of the model. A reply ends
 *     ends the reply               with its first call, its question to a human, or the turn
 *     item OPAQUE                  OPAQUE, before the reply that it belongs to
 *     tool_call, approval          TOOL_CALL (a question to a human is one, too). One that the
 *                                  caller makes has no result in its own turn
 *     tool_result                  TOOL_RESULT; after a human's answer the words, as USER
 *     item ASIDE                   USER, as soon as no call of the reply is open
 *     item REPAIR                  AGENT and USER: an answer of the wrong shape, and why
 *     item SUMMARY                 USER, in place of everything before the turn
 *     failed, cancelled            the text shown so far, as AGENT; a result for each open call
 *
 * A message whose request the provider refused, before it answered anything, is replaced by a
 * note. Thinking, steps and audio are for readers of the run, not for the model.
 *
 * The event that ends a reply carries its whole text (`said`), because a session is read back
 * without the rows that hold only streamed text.
 *
 * Memory   texts are in the caller's arena; the conversation owns the array of messages.
 * Threads  none; a conversation belongs to one loop, or to one reader.
 * Source   design.md "Words"; checks.md K11, K27, K30, K31.
 */
#ifndef WEIR_CONVERSATION_CONVERSATION_H
#define WEIR_CONVERSATION_CONVERSATION_H

#include "base/arena.h"
#include "conversation/reply_text.h"
#include "provider/provider.h"

/* Tools that the run answers itself. */
#define TRANSFER_TOOL "transfer_to_agent"
#define APPROVAL_TOOL "request_approval"
#define APPROVAL_ID EVENT_APPROVAL_ID /* + the id of a call: the id of the question about it */

/* Types of EVENT_ITEM that are part of a conversation, besides BROUGHT_ITEM (import.h). */
#define OPAQUE_ITEM "application/vnd.weir.reply."   /* + the dialect: a MESSAGE_OPAQUE */
#define SUMMARY_ITEM "application/vnd.weir.summary" /* the text of the summary */
#define ASIDE_ITEM "application/vnd.weir.aside"     /* a human's words that decided nothing */
#define ASIDE_PRINT_ITEM                                                                       \
    "application/vnd.weir.aside-print" /* of the request that brought the words after it */
#define REPAIR_ITEM "application/vnd.weir.repair" /* conversation_repair() writes it */

/* BROUGHT_ITEM followed by this suffix: the list is the whole conversation, and the session's
 * history does not count. */
#define BROUGHT_ALL ";whole"

struct conversation {
    struct arena *arena;      /* borrowed */
    struct message *messages; /* those from before this run, then its own */
    size_t count, room;
    size_t own_from;    /* the first message of this run: its session remembers from here */
    size_t brought_at;  /* the first one that the caller sent */
    size_t turn_start;  /* the message that this turn answers */
    size_t reply_from;  /* where the newest reply begins */
    size_t answer_from; /* messages from here on were said to the caller, not by the caller */
    size_t open_calls;  /* of this run, without a result */
    size_t open_from;   /* all calls of this run before it have one */
    struct reply_text reply; /* the text of the reply so far */
    bool starts_anew;        /* its session remembers nothing from before this run */
    bool refused;            /* its first message was refused: a note replaces it */
    enum event_kind ended;   /* DONE, FAILED, CANCELLED; or 0 */
    /* A human's words that decided nothing, while a call waits for approval. */
    struct message *asides;
    size_t aside_count;
};

/* Whether the texts of an event are gone after it was applied, or live as long as the arena. */
enum conversation_texts { TEXTS_LENT, TEXTS_KEPT };

/* reply_max_bytes  the text of one reply; conversation_apply() fails at a longer one */
void conversation_init(struct conversation *conversation, struct arena *arena,
                       size_t reply_max_bytes);
void conversation_done(struct conversation *conversation);

/* Fold in the run's next event. False: the arena or the reply has reached its limit; a terminal
 * event is always taken. */
bool conversation_apply(struct conversation *conversation, const struct event *event,
                        enum conversation_texts texts);

/* Make room at the front for `count` messages from before this run. The caller fills it at
 * once, with texts that live as long as the conversation. */
struct message *conversation_precede(struct conversation *conversation, size_t count);

/* Put a summary (kept, as is `agent`, who wrote it) in place of everything before the turn, but for
 * calls that the turn brings results of: as part of the run, for its session to remember, or only in
 * this run's view. */
enum summary_of { SUMMARY_OF_SESSION, SUMMARY_OF_VIEW };
void conversation_summarize(struct conversation *conversation, struct str summary,
                            struct str agent, enum summary_of of);

/* The text of the reply so far; valid until the next event. To ask for it before the reply is over
 * costs a copy: its length alone does not. */
struct str conversation_reply(struct conversation *conversation);

static inline size_t conversation_reply_len(const struct conversation *conversation) {
    return conversation->reply.len;
}

/* The text of the reply so far is elsewhere: later text starts from empty. */
void conversation_drop_reply(struct conversation *conversation);

/* What was dropped is back: `text` (taken), before the text that came since. NULL: it is lost,
 * and so is that. */
void conversation_restore_reply(struct conversation *conversation, struct reply_text *text);

/* The message of this run's call with that id: the oldest open one, because results come in the
 * order of the calls, else the newest; or NULL. */
struct message *conversation_call(struct conversation *conversation, struct str call_id);

/* Whether the message at `index`, one of this run's, is a call without a result. */
bool conversation_is_open(const struct conversation *conversation, size_t index);

/* Write a REPAIR_ITEM: what `agent` said, and the correction it got. False at the limit. */
bool conversation_repair(struct str agent, struct str said, struct str told, struct buf *out);

#endif
