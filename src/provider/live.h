/* live: a model that is talked to over one open connection (OpenAI's Realtime API).
 *
 * A live_model is what can be talked to: an address, a key, limits. A live is one conversation
 * with it, over one WebSocket. The server keeps the conversation, so a request brings only what is
 * new: messages, or sound that was sent before.
 *
 *     opening ─▶ setting ─▶ ready ─▶ asked ─▶ answering ─▶ ready ...      over
 *                             ▲        │          │
 *                             └──────── stopping ◀┘    the answer is not wanted any more
 *
 * A live is a provider (provider.h) with one call at a time. Its sound is reported as
 * REPLY_ARTIFACT, one for each piece. A connection is made once: when it is lost, the call that
 * runs fails, nothing is asked again, and the owner makes another live when it needs one.
 *
 * Memory   live_model_new() copies; the model outlives its lives. A live frees itself inside
 *          callbacks only after they have returned.
 * Threads  a model: any; it is read-only. A live: its loop.
 * Source   OpenAI API reference, "Realtime"; RFC 6455.
 */
#ifndef WEIR_PROVIDER_LIVE_H
#define WEIR_PROVIDER_LIVE_H

#include "base/states.h"
#include "provider/live_ask.h"
#include "provider/remote.h"

/* --- a model ------------------------------------------------------------------------------ */

struct live_model;

/* Which models of a provider are talked to live. */
enum live_which {
    LIVE_AUTO, /* those with "realtime" in their name */
    LIVE_ALWAYS,
    LIVE_NEVER,
};

struct live_model_options {
    const struct remote_options *remote;
    enum live_which which;
    struct str voice; /* empty: the model's own */
};

struct live_model *live_model_new(const struct live_model_options *options);
void live_model_free(struct live_model *model); /* NULL is fine */

/* Whether a model of this name is talked to live. False for NULL. */
bool live_model_speaks(const struct live_model *model, struct str name);

/* --- its states --------------------------------------------------------------------------- */

enum live_state {
    LIVE_OPENING,   /* the WebSocket, up to session.created */
    LIVE_SETTING,   /* session.update was sent */
    LIVE_READY,     /* no answer is under way */
    LIVE_ASKED,     /* response.create was sent */
    LIVE_ANSWERING, /* response.created came */
    LIVE_STOPPING,  /* response.cancel was sent; its response.done has not come */
    LIVE_OVER,
    LIVE_STATE_COUNT,
};

extern const struct state live_states[LIVE_STATE_COUNT];

/* --- a conversation ----------------------------------------------------------------------- */

struct live;

/* None runs before live_new() has returned. live_free() is allowed in each. */
struct live_events {
    /* It is ready. */
    void (*on_ready)(void *ctx);
    /* It is over; the call that ran was notified. Its sound, if any was heard for a turn that
     * was not asked for yet, is lost. `failure` is worded for callers. */
    void (*on_over)(const struct reply_failure *failure, bool sound_lost, void *ctx);
    void (*on_room)(void *ctx); /* it can hear again */
};

struct live_options {
    struct http_pool *pool; /* NULL: that of the model */
    struct loop *loop;
    struct str model, instructions;
    enum live_sound in, out; /* out LIVE_SOUND_NONE: answers are text */
    const struct live_events *events;
    void *ctx;
};

struct live *live_new(struct live_model *model, const struct live_options *options);
void live_free(struct live *live); /* closes the connection; NULL is fine */

bool live_is_over(const struct live *live);

/* As a provider, for one call at a time. Before each start() live_next() may say more. */
struct provider *live_provider(struct live *live);

/* The sound that belongs to the next call, kept by the caller until the call has ended, and
 * whether it ends what was heard so far. Earlier messages of the conversation, for a new
 * connection: sent before everything else, borrowed likewise. */
struct live_more {
    struct str sound;
    bool commit;
    const struct message *past;
    size_t past_count;
};
void live_next(struct live *live, const struct live_more *more);

/* Sound that belongs to a later turn. False: not now; on_ready or on_room will follow. */
MUST_CHECK bool live_hear(struct live *live, struct str sound);

/* The answer that is under way ends here; its call ends as done. Harmless without one. */
void live_interrupt(struct live *live);

#endif
