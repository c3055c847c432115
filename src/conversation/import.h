/* import: the conversation that a caller brings, for every door.
 *
 * Callers write message lists in the form of OpenAI's chat API or of LangChain; here they
 * become messages, or are refused with the place of what cannot be taken. What a run keeps of
 * such a list is one EVENT_ITEM of type BROUGHT_ITEM, written by import_append() and read back
 * by import_decode() when the session is recalled.
 *
 * A message of text alone has that as its text. One that holds more (pictures) has `parts`,
 * too: a JSON array in its order, each element one of
 *
 *     {"type":"text","text":"..."}
 *     {"type":"image","media_type":"image/png","data":"<base64>"}
 *     {"type":"image","url":"https://..."}
 *
 * an image with a member "detail" where the caller gave one (provider/parts.h reads them). The
 * text parts of a user are a blank line apart in its text; those of an assistant follow each
 * other, as a reply does that was told in pieces.
 *
 * An assistant's message names no agent (agent is empty): it was whoever is asked. Where it is
 * the last one it is a prefill: the beginning of the reply.
 *
 * Memory   what is read lives in the arena given.
 * Threads  none; values only.
 * Source   checks.md K31.
 */
#ifndef WEIR_CONVERSATION_IMPORT_H
#define WEIR_CONVERSATION_IMPORT_H

#include "base/arena.h"
#include "provider/provider.h"
#include "wire/json.h"

#define BROUGHT_ITEM "application/vnd.weir.messages+json"

struct import {
    struct message *messages; /* oldest first; calls and results stand one by one */
    size_t count;
};

/* Read a list of messages: roles user|human, assistant|ai, system|developer, tool (under "role"
 * or LangChain's "type"; without either it is a user's), content a string or an array of parts,
 * tool_calls in both forms. Every call has its result later in the list, one message at least
 * is a user's, and the last one is no system message. errors  ERR_INVALID_ARGUMENT with the
 * place, "messages[2].content[1]: ..."; ERR_RESOURCE_EXHAUSTED the arena is full */
MUST_CHECK bool import_read(struct json list, struct arena *arena, struct import *ret,
                            struct err *e);

/* Put one more block of text at the end of a message, in the arena. False: that is full. */
MUST_CHECK bool import_add_text(struct message *message, struct str text, struct arena *arena);

/* Append the messages as one JSON array that import_decode() reads back, equal in every field.
 * False at the buffer's limit. */
bool import_append(const struct message *messages, size_t count, struct buf *out);

/* errors  ERR_DATA_LOSS import_append() did not write that; ERR_RESOURCE_EXHAUSTED */
MUST_CHECK bool import_decode(struct str bytes, struct arena *arena, struct import *ret,
                              struct err *e);

/* How many of the first `brought` messages the session has already (K31): compared by what a
 * caller can see, user texts and final replies; all of the session, or its newest part, must be
 * a prefix of the list. 0: everything is new. Never the last one: that is what is asked.
 * A user message of `history` with `error` set began a turn that did not end well: the list may
 * have that turn or not. */
size_t import_known(const struct message *history, size_t history_count,
                    const struct message *brought, size_t brought_count);

/* Whether the list tells of another past than the session has: of earlier turns, and none of
 * them is known. What `http.history: strict` refuses. */
bool import_forks(const struct message *history, size_t history_count,
                  const struct message *brought, size_t brought_count);

/* What is asked in a text that begins with the session's own turns, packed as upstream's
 * dashboard does it:
 *
 *     User: first question\n\nAssistant: first reply\n\nUser: what is asked now
 *
 * A view of `text`: its last question where all that stands before it is what the session
 * holds, or its newest part, word for word; otherwise all of it. */
struct str import_unpack(const struct message *history, size_t history_count, struct str text);

#endif
