/* sockets: clients over Socket.IO, in the namespace /v1.
 *
 *     connect (who?) ─▶ workspace.subscribe ─▶ message.send ─▶ ack ─▶ events of the room
 *
 * A socket has one talk at a time: the next message, or its disconnect, cancels it. Events go to
 * rooms, one for each workspace; a socket joins those of the workspaces that its user owns.
 *
 * Memory   a client lives until its socket is gone and what it has asked is answered.
 * Threads  the orchestrator's loop.
 * Source   contracts of the orchestrator, "Socket.IO".
 */
#ifndef WEIR_ORCHESTRATOR_SOCKETS_H
#define WEIR_ORCHESTRATOR_SOCKETS_H

#include "orchestrator/contract.h"
#include "socketio/socketio.h"

struct sockets;

/* Blocks: it loads a library.
 * errors  ERR_UNAVAILABLE the library is not installed */
MUST_CHECK bool sockets_new(struct orchestrator *orchestrator, struct sockets **ret,
                            struct err *e);
/* After all connections are closed. Accepts NULL. */
void sockets_free(struct sockets *sockets);

void sockets_routes(void *instance, struct route_table *ret);

/* To all who have subscribed to the workspace. */
void sockets_emit(struct sockets *sockets, struct str workspace, const char *event,
                  struct str json);

/* Turns can begin: sessions may. */
void sockets_admit(struct sockets *sockets);

/* The process stops: no new sessions. Those that are open hear their turns to the end. */
void sockets_drain(struct sockets *sockets);

/* Whether a client that polls has not come for all of it yet. */
bool sockets_owe(const struct sockets *sockets);

/* Close all sessions, and cancel what they wait for; once. */
void sockets_stop(struct sockets *sockets);

/* What a person chose of questions, as a message: a line for each question. content: that of the
 * message with the questions; answers: as the client sent them. */
void sockets_answer_text(struct json content, struct json answers, struct buf *out);

/* Whether each answer is one that the card offers: to one of its questions, once, with options of
 * that question, as many as it allows. */
bool sockets_answers_fit(struct json content, struct json answers);

#endif
