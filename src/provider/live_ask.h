/* live_ask: write the client's events of OpenAI's Realtime API.
 *
 * Each function appends one event, a JSON object for one WebSocket message. `id` is its event_id,
 * which the server repeats in an error about it.
 *
 * Memory   appends to the caller's buffer; ask buf_ok() at the end.
 * Threads  none.
 * Source   OpenAI API reference, "Realtime: client events", beta and GA.
 */
#ifndef WEIR_PROVIDER_LIVE_ASK_H
#define WEIR_PROVIDER_LIVE_ASK_H

#include "provider/provider.h"

/* How sound is encoded. */
enum live_sound {
    LIVE_SOUND_NONE,
    LIVE_SOUND_PCM,  /* 16 bit, little-endian, mono, 24 kHz */
    LIVE_SOUND_PCMU, /* G.711 u-law, 8 kHz */
    LIVE_SOUND_PCMA, /* G.711 A-law, 8 kHz */
    LIVE_SOUND_COUNT,
};

/* By one of its names: "pcm", "pcm16", "audio/pcm", "g711_ulaw", ... LIVE_SOUND_NONE: there is
 * none of that name. */
enum live_sound live_sound_find(struct str name);
struct str live_sound_type(enum live_sound sound); /* "audio/pcm" */
int32_t live_sound_rate_hz(enum live_sound sound);

struct live_session {
    struct str model, instructions, voice;
    enum live_sound in;
    enum live_sound out; /* LIVE_SOUND_NONE: the answers are text */
    bool beta;           /* in the form of the beta */
};

/* The caller says where a turn ends: the server is asked not to listen for it. */
void live_ask_session(struct buf *out, const struct live_session *session, struct str id);

/* A message of a user, of the assistant, or a system message. */
void live_ask_message(struct buf *out, const struct message *message, bool beta, struct str id);

void live_ask_sound(struct buf *out, struct str bytes);
void live_ask_commit(struct buf *out, struct str id);   /* the sound so far is a message */
void live_ask_response(struct buf *out, struct str id); /* an answer, please */
void live_ask_cancel(struct buf *out, struct str id);   /* no more of it */

#endif
