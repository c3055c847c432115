/* live_inner: shared by live.c, live_call.c and live_release.c. Private to provider/. */
#ifndef WEIR_PROVIDER_LIVE_INNER_H
#define WEIR_PROVIDER_LIVE_INNER_H

#include "base/text.h"
#include "client/websocket_call.h"
#include "provider/live.h"
#include "provider/live_event.h"
#include "provider/remote_inner.h"

/* Of one event of the server. A whole answer is repeated in response.done. */
#define LIVE_MESSAGE_MAX_BYTES (4 * MIB)

/* Nothing is heard while so much waits to be sent. */
#define LIVE_UNSENT_BYTES (256 * KIB)

/* Sound is sent in pieces of this size. */
#define LIVE_PIECE_BYTES (24 * KIB)

struct live_model {
    struct provider *provider; /* never called: it holds the address, the key and the texts */
    enum live_which which;
    struct text voice;
};

static inline const struct remote *live_remote(const struct live_model *model) {
    return CONTAINER_OF(model->provider, const struct remote, base);
}

/* The call of a live. */
struct provider_call {
    struct live *live;
    const struct provider_request *request;
    reply_event_fn *on_reply;
    void *ctx;
    bool sent;        /* it was asked for */
    bool spoke;       /* a text of its answer was reported */
    bool interrupted; /* the rest of its answer is not wanted */
};

struct live {
    struct provider base;
    struct live_model *model;
    struct loop *loop;
    struct text name, instructions;
    struct live_session session;
    const struct live_events *events;
    void *ctx;
    enum live_state state;
    struct websocket_call *socket;
    struct task go_on; /* after a pause, or a start */
    struct live_more more;
    struct provider_call *call; /* NULL: none */
    struct buf response;        /* the id of the answer that is under way */
    struct buf out, room;
    unsigned turn;        /* names our events */
    size_t heard_bytes;   /* since the last commit */
    bool refused_sound;   /* live_hear() has said no since on_room */
    bool held;            /* by the call */
    struct list messages; /* that came while it was held */
    bool ended;           /* the socket is; `end` is reported when the messages were read */
    struct reply_failure end;
    unsigned inside; /* callbacks on the stack */
    bool freed;
};

/* A message that came while nothing was wanted. */
struct live_message {
    struct list link;
    struct text text;
};

/* The only function that changes the state. */
void live_move(struct live *live, enum live_state next);

/* Send what is in live->out. False: the connection is over. */
bool live_send(struct live *live);

/* An id for an event of the turn: "turn_7_create". */
struct str live_event_id(const struct live *live, const char *what, char ret[40]);

/* Say that the answer under way is not wanted. */
void live_stop_answer(struct live *live);

/* Word and report the end of the connection. */
void live_end(struct live *live, struct reply_failure *failure);

/* --- live_release.c, by itself because gcc's analyzer does not count --------------------------- */

/* Free it once its owner has let go and no callback of it runs. */
void live_release(struct live *live);

/* --- live_call.c --------------------------------------------------------------------------- */

extern const struct provider_kind live_kind;

/* Ask for what waits, if it can be asked for now. */
void live_call_go_on(struct live *live);

/* What a call hears. `failure` is worded for it here. */
void live_call_report(struct live *live, const struct reply_event *event);
void live_call_done(struct live *live, const struct live_event *event);
void live_call_fail(struct live *live, struct reply_failure *failure);

#endif
