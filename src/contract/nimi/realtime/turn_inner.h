/* turn_inner: the parts of a turn that its files share: turn.c and speech.c. Private to
 * contract/nimi/realtime. */
#ifndef WEIR_CONTRACT_NIMI_REALTIME_TURN_INNER_H
#define WEIR_CONTRACT_NIMI_REALTIME_TURN_INNER_H

#include "contract/nimi/attach.h"
#include "contract/nimi/project.h"
#include "contract/nimi/realtime/turn.h"
#include "job/media_run.h"

struct model_call;

struct realtime_turn {
    struct realtime_session *session;
    struct realtime_input *input;
    struct engine *engine; /* a reference; keeps the connector alive */
    struct arena *arena;
    struct admission admission;
    struct prompt prompt;
    struct model_call_clocks clocks;
    uint64_t asked_ms;
    struct attach *attach; /* while pictures are read */
    struct ticket *ticket;
    struct timer wait; /* limits the wait for a slot */

    struct model_call *model;
    struct cursor *cursor; /* reads its answer */
    bool answered;         /* the answer was read to its end */
    struct nimi_projection said;
    struct buf reply;

    struct media_request speech;
    struct media_run *media_run; /* NULL: not started, or finished */
    struct buf sound;
    size_t sound_sent;
    bool sound_whole;
    bool sounded; /* a piece of sound was published */
    struct text sound_type;
    int32_t sound_rate_hz;
};

/* Look the session's connector and model up.
 * errors  those of admit_session() */
MUST_CHECK bool realtime_admit(const struct realtime_session *session, struct arena *arena,
                               struct nimi_scenario_request_head *ret_head,
                               struct admission *ret, struct fault *fault);

/* Publish FAILED for a turn or without one. */
void realtime_publish_failed(struct realtime_session *session, const struct fault *fault,
                             struct str trace);

void realtime_publish_chunk(struct realtime_turn *turn, struct str chunk, bool last);

/* False: the session is over. */
bool realtime_turn_publish(struct realtime_turn *turn, const struct nimi_realtime_event *event);

/* The turn ends. It is freed. */
void realtime_turn_complete(struct realtime_turn *turn);
void realtime_turn_fail(struct realtime_turn *turn, const struct fault *fault);

void realtime_turn_speech_init(struct realtime_turn *turn);
void realtime_turn_speech_drop(struct realtime_turn *turn, struct str why);

/* Make the answer into sound. The turn ends when it was sent. */
void realtime_turn_speak(struct realtime_turn *turn);

/* Publish the sound there is, in chunks, the last of which ends it if it is `whole`. False: the
 * reader lags. */
bool realtime_turn_send_chunks(struct realtime_turn *turn, bool whole);

/* Send what the reader has room for. Harmless while there is nothing to send. */
void realtime_turn_send_sound(struct realtime_turn *turn);

#endif
