/* session: realtime sessions, and what is known of each on every loop.
 *
 * A session belongs to the loop that opened it, its home: there its turns run (turn.h). Other
 * loops append input, read events and close it under its lock, and the home is woken by mail.
 * Its events are a topic, so they are kept for a reader that comes later:
 *
 *     append ─▶ inputs ─▶ mail ─▶ home: a turn ─▶ realtime_publish() ─▶ topic ─▶ the reader
 *                                   ▲                                              │
 *                                   └────── held while the reader lags ◀───────────┘
 *
 * A reader paces the turn: at REALTIME_LAG_BYTES or REALTIME_LAG_FRAMES of unread events the model
 * is paused. Without a reader nothing is held, and the oldest events go.
 *
 * Private to contract/nimi/realtime.
 *
 * Memory   counted; the table, the home, a reader and mail under way have one reference each.
 *          What a session holds is counted for the process's ceiling (base/mem.h).
 * Threads  said at each member. A session's lock is taken before its topic's.
 * Source   contracts/nimi.md 6.7; checks.md K24, K35.
 */
#ifndef WEIR_CONTRACT_NIMI_REALTIME_SESSION_H
#define WEIR_CONTRACT_NIMI_REALTIME_SESSION_H

#include "base/text.h"
#include "contract/nimi/admit.h"
#include "contract/nimi/realtime/dialogue.h"
#include "contract/nimi/realtime/state.h"
#include "contract/nimi/ulid.h"
#include "provider/live.h"
#include "topic/topic.h"

#include <pthread.h>
#include <stdatomic.h>

#define REALTIME_ID_LEN (3 + ULID_LEN) /* "rt_" and a ULID */
#define REALTIME_SESSIONS_MAX 256
#define REALTIME_SESSIONS_PER_APP 16

/* Events that are kept for a reader, and their bytes. */
#define REALTIME_BACKLOG 256
#define REALTIME_BACKLOG_BYTES (1 * MIB)

/* How far a turn may be ahead of the reader. It goes on at half of that. */
#define REALTIME_LAG_BYTES (256 * KIB)
#define REALTIME_LAG_FRAMES (REALTIME_BACKLOG / 2)

/* Inputs that wait while a turn runs. */
#define REALTIME_INPUTS_MAX 16
#define REALTIME_INPUT_BYTES DIALOGUE_MAX_BYTES

struct realtime_turn;

/* What one call appended: it makes one turn, or is sound of a later one. */
struct realtime_input {
    struct list link;
    char trace[ULID_LEN + 1]; /* of that call */
    struct buf spec;          /* a TextGenerateScenarioSpec with the messages; may be empty */
    struct buf sound;         /* of a live session */
    bool spoken;              /* the sound ends a turn */
};

/* Whether it makes a turn; the others are sound that a later one ends. */
static inline bool realtime_input_is_turn(const struct realtime_input *input) {
    return input->spoken || input->spec.len > 0;
}

/* What a live session sends and hears. */
struct realtime_sounds {
    enum live_sound in, out;
};

void realtime_input_free(struct realtime_input *input); /* NULL is fine */

struct realtime_session {
    atomic_uint refs;

    /* Constant. */
    char id[REALTIME_ID_LEN + 1];
    struct text app, subject, owner;
    struct buf head;   /* the ScenarioRequestHead */
    struct buf system; /* a TextGenerateScenarioSpec with the system prompt */
    struct text audio_format;
    int32_t audio_rate_hz;
    struct nimi_instance *instance; /* the home's */
    struct topic *topic;

    pthread_mutex_t lock; /* guards the members up to `mail` */
    enum realtime_state state;
    struct list inputs;
    size_t input_count, input_bytes;
    bool read;              /* it has a reader */
    uint64_t read_sequence; /* up to here that reader has the events */
    bool held;              /* the turn waits for the reader */
    uint64_t last_sequence, sent_bytes;
    uint64_t
        sent_upto[REALTIME_BACKLOG]; /* sent_bytes after event n, at n % REALTIME_BACKLOG */
    size_t counted;                  /* bytes of the backlog, for the ceiling */
    bool mailed;
    struct mail mail;

    /* The home's. */
    struct list link; /* in instance->realtime */
    struct timer idle;
    struct dialogue dialogue;
    struct realtime_turn *turn; /* NULL: listening */

    /* Of a live session (live.h). */
    bool is_live;                     /* constant */
    struct realtime_sounds sounds;    /* constant */
    struct live *live;                /* NULL: not connected yet */
    struct engine *live_engine;       /* a reference, which keeps its model */
    bool live_is_new;                 /* it has nothing of the conversation yet */
    struct realtime_opening *opening; /* the call that waits for the connection; NULL: none */
};

struct realtime_session *realtime_ref(struct realtime_session *session);
void realtime_unref(struct realtime_session *session); /* NULL is fine */

/* --- the home's --------------------------------------------------------------------------- */

struct realtime_options {
    struct nimi_instance *instance; /* of this loop */
    struct str app, subject, owner;
    const struct nimi_open_realtime_session_request *request;
    bool is_live;
    struct realtime_sounds sounds;
};

/* One reference is the caller's, who gives it to the table, and one the home's. */
struct realtime_session *realtime_new(const struct realtime_options *options);

/* End one that the table did not take, and the caller's reference. */
void realtime_discard(struct realtime_session *session);

/* End one that the table took, before its caller heard of it. */
void realtime_abandon(struct realtime_session *session);

/* Go to another state. False: the session is over. */
MUST_CHECK bool realtime_step(struct realtime_session *session, enum realtime_state next);

/* Publish an event under the next sequence. False: the session is over. `event` needs its type
 * and payload only. */
bool realtime_publish(struct realtime_session *session, const struct nimi_realtime_event *event,
                      struct str trace);

/* Whether the turn must wait for the reader; then the home is woken when it need not. */
bool realtime_is_held(struct realtime_session *session);

/* The next input, or NULL. The caller owns it. */
struct realtime_input *realtime_take_input(struct realtime_session *session);

/* The next input if it makes no turn, or NULL; and put it back. */
struct realtime_input *realtime_take_sound(struct realtime_session *session);
void realtime_return_sound(struct realtime_session *session, struct realtime_input *input);

/* Whether a spoken turn is the next input. */
bool realtime_waits_spoken(struct realtime_session *session);

/* The runtime stops, and the loop: end the sessions of this home. */
void realtime_leave_all(struct nimi_instance *instance);

/* --- any loop ----------------------------------------------------------------------------- */

/* Let the home look at the session in a later turn of its loop. Nothing when it is over. */
void realtime_wake(struct realtime_session *session);

/* Take `input`.
 * errors  AI_REALTIME_SESSION_NOT_FOUND it is over; AI_PROVIDER_RATE_LIMITED too much waits */
MUST_CHECK bool realtime_append(struct realtime_session *session, struct realtime_input *input,
                                struct fault *fault);

/* Become its reader, who has the events up to `after`. The parts of a subscription follow.
 * errors  AI_REALTIME_SESSION_CLOSED it has one; PROTOCOL_ENVELOPE_INVALID it is not that far */
MUST_CHECK bool realtime_read(struct realtime_session *session, uint64_t after,
                              struct fault *fault);
void realtime_turned(uint64_t cursor, void *session);
void realtime_left(void *session); /* ends the reader's reference */

/* End it as its caller asked: COMPLETED, and its reader ends with OK. False: it is over. */
MUST_CHECK bool realtime_close(struct realtime_session *session, struct str trace);

/* --- the table ---------------------------------------------------------------------------- */

struct realtime_table;

struct realtime_table *realtime_table_new(void);
void realtime_table_free(struct realtime_table *table); /* it must be empty; NULL is fine */

/* Takes the reference of realtime_new() if it returns true.
 * errors  AI_PROVIDER_RATE_LIMITED too many sessions */
MUST_CHECK bool realtime_table_add(struct realtime_table *table,
                                   struct realtime_session *session, struct fault *fault);

/* With a reference, or NULL. */
struct realtime_session *realtime_table_find(struct realtime_table *table, struct str id);

/* Harmless when it is not there. */
void realtime_table_remove(struct realtime_table *table, struct realtime_session *session);

#endif
