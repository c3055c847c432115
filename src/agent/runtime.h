/* runtime: the Runtime Contract v1 as a dialect, for agents on other servers.
 *
 *     a turn ─▶ POST /stream, or /invoke where the server does not stream
 *     a human's answer to what that agent asked ─▶ POST /resume
 *
 * Each request names the session, so the server can remember it. A server that does not can be
 * given the earlier turns (`history`). The response is read as follows:
 *
 *     delta, text   ─▶ text                 tool_call, history ─▶ own calls
 *     step          ─▶ note                 error              ─▶ the failure
 *     result, whole ─▶ text, or a question  done               ─▶ usage
 *
 * A pause becomes a question (REPLY_APPROVAL). Its arguments hold the name of the thread, so
 * the answer finds the thread again, also after a restart.
 *
 * Memory   as provider/dialect.h.
 * Threads  as provider/dialect.h.
 * Source   contracts/agentbreeder.md 1.7 to 1.9, 2, 3. */
#ifndef WEIR_AGENT_RUNTIME_H
#define WEIR_AGENT_RUNTIME_H

#include "provider/dialect.h"

#define RUNTIME_VERSION 1

/* settings.own: {"config":{...},"metadata":{...},"history":"session"|"metadata"|"input"}, each
 * of them optional. */
extern const struct dialect runtime_dialect;
extern const struct reply_reader runtime_reader;

/* Append the session's name for the server. Sessions of the same name in different workspaces,
 * or of different users, must not be confused: "s-1" of the caller without a name,
 * "acme/ada/s-1" of others. */
bool runtime_session_append(const struct provider_request *request, struct buf *out);

/* The member of a question's arguments that names the thread. */
#define RUNTIME_THREAD "thread_id"

#endif
