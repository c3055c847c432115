/* project: what happens in a model call, or in a speech, as StreamScenarioEvents.
 *
 *     started ─▶ STARTED                       text, thinking ─▶ gathered ─▶ DELTA ...
 *     done ─▶ the rest as DELTA, COMPLETED     failed, cancelled ─▶ the rest as DELTA, FAILED
 *     audio ─▶ DELTA, one each                 usage ─▶ USAGE, for speech alone
 *
 * Every delta and the last event say the same a second time in `frame`, in the words done,
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

struct projection {
    struct nimi_call *call;
    struct str model; /* as it was asked for */
    int route;        /* RoutePolicy */
    bool shows_thinking;
    bool tells_usage;  /* by an event of its own, too */
    uint64_t sequence; /* of the last event */
    struct pieces text, thinking;
    struct nimi_usage_stats usage; /* -1 where unknown */
    int finish;                    /* FinishReason */
    bool simulated; /* the provider gave its answer at once, and did not stream */
};

/* What is not set is zero. */
void projection_init(struct projection *projection, struct nimi_call *call);
void projection_done(struct projection *projection);

/* Send what `event` means. */
void projection_send(struct projection *projection, const struct event *event);

/* Take from `event` what the last message will say: usage, why it ended. */
void projection_note(struct projection *projection, const struct event *event);

/* Why a model call failed, for a status; `event` is its last. */
void projection_fault(const struct event *event, struct fault *ret);

#endif
