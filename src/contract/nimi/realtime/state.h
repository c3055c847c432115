/* state: what a realtime session does.
 *
 *     listening ─▶ reading ─▶ waiting ─▶ asking ─▶ speaking ─▶ listening ...
 *
 * One turn of the conversation goes from left to right, and a turn without pictures or sound
 * leaves those steps out. A turn that fails leads back to listening. From everywhere a session
 * may be over.
 *
 * Threads  none; values only.
 */
#ifndef WEIR_CONTRACT_NIMI_REALTIME_STATE_H
#define WEIR_CONTRACT_NIMI_REALTIME_STATE_H

#include "base/states.h"
#include "base/str.h"

enum realtime_state {
    REALTIME_LISTENING, /* no turn */
    REALTIME_READING,   /* the turn's uploaded pictures */
    REALTIME_WAITING,   /* for a slot of the scheduler */
    REALTIME_ASKING,    /* the model answers */
    REALTIME_SPEAKING,  /* its answer is made into sound, and sent */
    REALTIME_OVER,
    REALTIME_STATE_COUNT,
};

extern const struct state realtime_states[REALTIME_STATE_COUNT];

#endif
