/* turn: one turn of a realtime session: input, the model's answer, and its sound.
 *
 *     input ─▶ admitted ─▶ [pictures] ─▶ a slot ─▶ model_call ─▶ TEXT_DELTA ... ─▶ [speech ─▶
 *              AUDIO_CHUNK ... eof] ─▶ COMPLETED | FAILED
 *
 * The session's connector and model are looked up again for each turn, so that a change of the
 * configuration counts from the next turn on. A turn that failed before its answer was whole is
 * not part of the conversation.
 *
 * Private to contract/nimi/realtime.
 *
 * Memory   of the session.
 * Threads  the session's home.
 */
#ifndef WEIR_CONTRACT_NIMI_REALTIME_TURN_H
#define WEIR_CONTRACT_NIMI_REALTIME_TURN_H

#include "contract/nimi/realtime/session.h"

/* Begin the next turn if there is input and none runs; continue one that was held. */
void realtime_turn_go_on(struct realtime_session *session);

/* Stop the turn that runs, without an event. Harmless when none runs. */
void realtime_turn_drop(struct realtime_session *session);

/* Start the clock of an idle session. */
void realtime_turn_idle(struct realtime_session *session);

/* The media interface that speaks for a session with this connector: the connector's own, or on
 * the LOCAL route another local one that the subject may use. NULL: nothing speaks. */
struct media *realtime_speaker(const struct nimi_settings *settings,
                               const struct admission *admission, struct str subject);

#endif
