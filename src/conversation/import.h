/* import: conversations that callers send, for every contract.
 *
 * Callers write message lists in the form of OpenAI's chat API or of LangChain. This module
 * turns them into messages, or refuses them and names the place of the error. A run keeps such
 * a list as one EVENT_ITEM of type BROUGHT_ITEM, written by import_append() and read back by
 * import_decode() when the session is recalled.
 *
 * A message with only text has just `text`. One with pictures also has `parts`: a JSON array in
 * the message's order, each element one of
 *
 *     {"type":"text","text":"..."}
 *     {"type":"image","media_type":"image/png","data":"<base64>"}
 *     {"type":"image","url":"https://..."}
 *
 * An image also has a member "detail" if the caller gave one (provider/parts.h reads them). In
 * `text`, a user's text parts are separated by a blank line. An assistant's are joined, as a
 * reply streamed in pieces is.
 *
 * An assistant's message names no agent (agent is empty): it counts as the agent being asked.
 * If it is the last message it is a prefill: the beginning of the reply.
 *
 * Memory   results live in the caller's arena.
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
    struct message *messages; /* oldest first; each call and each result is a message */
    size_t count;
};

/* Read a list of messages: roles user|human, assistant|ai, system|developer, tool (under "role"
 * or LangChain's "type"; without either it is a user's), content a string or an array of parts,
 * tool_calls in both forms. Every call must have its result later in the list, at least one
 * message must be a user's, and the last must not be a system message.
 * errors  ERR_INVALID_ARGUMENT with the place, "messages[2].content[1]: ...";
 *         ERR_RESOURCE_EXHAUSTED the arena is full */
MUST_CHECK bool import_read(struct json list, struct arena *arena, struct import *ret,
                            struct err *e);

/* The same for a list in Anthropic's form: results stand in the content of a user's message, and an
 * assistant's may hold reasoning, which is left out. `goes_on`: as in import_read_next(). */
MUST_CHECK bool import_read_blocks(struct json list, bool goes_on, struct arena *arena,
                                   struct import *ret, struct err *e);

/* The same for a list in AG-UI's form: other names of members, and messages of roles that no model is
 * shown. A call may lack its result: it is left out of what the model sees. */
MUST_CHECK bool import_read_agui(struct json list, struct arena *arena, struct import *ret,
                                 struct err *e);

/* The same of messages that a session goes on with: a result may answer a call that the session
 * has, and none needs to be a user's. */
MUST_CHECK bool import_read_next(struct json list, struct arena *arena, struct import *ret,
                                 struct err *e);

/* Append a block of text to a message, in the arena. False: the arena is full. */
MUST_CHECK bool import_add_text(struct message *message, struct str text, struct arena *arena);

/* Append the messages as one JSON array that import_decode() reads back, equal in every field, also
 * in `heard_by`, which no caller can set: the readers above take none.
 * False at the buffer's limit. */
bool import_append(const struct message *messages, size_t count, struct buf *out);

/* errors  ERR_DATA_LOSS import_append() did not write these bytes; ERR_RESOURCE_EXHAUSTED */
MUST_CHECK bool import_decode(struct str bytes, struct arena *arena, struct import *ret,
                              struct err *e);

/* How many messages at the start of `brought` the session already has (K31). Only what a caller
 * can see is compared: user texts and final replies. The whole session, or its newest part,
 * must be a prefix of the list. 0: everything is new. The last message never counts: it is the
 * question. A user message of `history` with `error` set began a turn that failed; the list may
 * or may not have that turn. */
size_t import_known(const struct message *history, size_t history_count,
                    const struct message *brought, size_t brought_count);

/* Where the list brings results of calls that the session left open, because the caller makes them:
 * everything before is known. brought_count: it brings none. */
size_t import_results(const struct message *history, size_t history_count,
                      const struct message *brought, size_t brought_count);

/* Whether the list has a different past than the session: it has earlier turns, and the session
 * knows none of them. `http.history: strict` refuses that. */
bool import_forks(const struct message *history, size_t history_count,
                  const struct message *brought, size_t brought_count);

/* Find the question in a text that begins with the session's own turns, packed as upstream's
 * dashboard does it:
 *
 *     User: first question\n\nAssistant: first reply\n\nUser: what is asked now
 *
 * The result is a view of `text`: its last question, if everything before it is the session's
 * text, or the newest part of it, word for word; else all of `text`. */
struct str import_unpack(const struct message *history, size_t history_count, struct str text);

/* Whether `text` begins as such a one does. If not, import_unpack() needs no history. */
bool import_is_packed(struct str text);

#endif
