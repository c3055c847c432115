/* project: turn the events of a model call or of speech synthesis into StreamScenarioEvents.
 *
 *     started ─▶ STARTED                       text, thinking ─▶ gathered ─▶ DELTA ...
 *     done ─▶ the rest as DELTA, COMPLETED     failed, cancelled ─▶ the rest as DELTA, FAILED
 *     audio ─▶ DELTA, one each                 usage ─▶ USAGE, for speech only
 *
 * Every delta and the last event repeat their content in `frame`, under the names done,
 * text_delta, audio_chunk, usage, reason_code.
 *
 * Memory   owns the text it gathers.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.4, 2.3, 6.1; checks.md C1 to C4, K21.
 */
#ifndef WEIR_CONTRACT_NIMI_PROJECT_H
#define WEIR_CONTRACT_NIMI_PROJECT_H

#include "contract/nimi/call.h"
#include "contract/nimi/pieces.h"

struct nimi_projection {
    struct nimi_call *call;
    struct str model; /* as the request named it */
    int route;        /* RoutePolicy */
    bool shows_thinking;
    bool tells_usage;  /* also as an event of its own */
    uint64_t sequence; /* of the last event */
    struct pieces text, thinking;
    struct nimi_usage_stats usage; /* -1 where unknown */
    int finish;                    /* FinishReason */
    bool simulated;                /* the provider did not stream; its answer came at once */
};

/* Usage starts as unknown and finish as STOP. The caller sets the other members it needs. */
void projection_init(struct nimi_projection *projection, struct nimi_call *call);
void projection_done(struct nimi_projection *projection);

/* Send what `event` means. */
void projection_send(struct nimi_projection *projection, const struct event *event);

/* Note from `event` what the last message will carry: usage and the finish reason. */
void projection_note(struct nimi_projection *projection, const struct event *event);

/* Say why a model call failed, for a status. `event` is its last event. */
void projection_fault(const struct event *event, struct fault *ret);

#endif
