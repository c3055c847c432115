/* live: a session whose model is talked to over a WebSocket (provider/live.h).
 *
 *     OpenRealtimeSession ─▶ connection ─▶ OPENED            the reply waits for the connection
 *     sound ─▶ the server's buffer, at once
 *     end_of_turn, a message ─▶ a turn ─▶ TEXT_DELTA, AUDIO_CHUNK ... COMPLETED | FAILED
 *
 * The server keeps the conversation. When a connection is lost, the turn that runs fails, and the
 * next input makes a new connection, which gets the conversation as far as it is text.
 *
 * Private to contract/nimi/realtime.
 *
 * Memory   of the session and its turn.
 * Threads  the session's home.
 */
#ifndef WEIR_CONTRACT_NIMI_REALTIME_LIVE_H
#define WEIR_CONTRACT_NIMI_REALTIME_LIVE_H

#include "contract/nimi/call.h"
#include "contract/nimi/realtime/turn_inner.h"

/* Whether the model is talked to live. */
bool realtime_live_is(const struct admission *admission);

/* How a live session sounds, from what its caller asked for.
 * errors  AI_MEDIA_OPTION_UNSUPPORTED */
MUST_CHECK bool realtime_live_sounds(const struct nimi_open_realtime_session_request *from,
                                     struct realtime_sounds *ret, struct fault *fault);

/* Connect a new session, then publish OPENED and reply to `call`. */
void realtime_live_open(struct nimi_call *call, struct realtime_session *session,
                        const struct admission *admission);

/* Pass on the sound that waits, and end the answer under way if a spoken turn waits. */
void realtime_live_listen(struct realtime_session *session);

/* The model of a turn's question; it connects if it must. NULL: *fault says why. */
struct provider *realtime_live_ask(struct realtime_turn *turn, struct fault *fault);

/* A piece of the answer's sound. */
void realtime_live_sound(const struct media_artifact *sound, void *turn);

/* Send what the reader has room for of the sound. */
void realtime_live_send_sound(struct realtime_turn *turn);

/* The answer is whole: the rest of its sound, then the end of the turn. */
void realtime_live_answered(struct realtime_turn *turn);

/* The session can be talked to: publish OPENED and reply (realtime.c). */
struct realtime_opened {
    struct str model;
    int route;
};
void realtime_opened(struct nimi_call *call, struct realtime_session *session,
                     const struct realtime_opened *opened);

/* Drop the connection, and an open call's claim to the session. */
void realtime_live_drop(struct realtime_session *session);

#endif
