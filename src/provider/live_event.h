/* live_event: read the server's events of OpenAI's Realtime API.
 *
 * One WebSocket message is one JSON object with a `type`. The API was in beta for a year, and many
 * servers that imitate it still use the names of that time, so both names of an event are known:
 *
 *     response.text.delta              response.output_text.delta
 *     response.audio.delta             response.output_audio.delta
 *     response.audio_transcript.delta  response.output_audio_transcript.delta
 *
 * Memory   texts are written to the caller's buffer; `ret` points there.
 * Threads  none.
 * Source   OpenAI API reference, "Realtime: server events", beta and GA.
 */
#ifndef WEIR_PROVIDER_LIVE_EVENT_H
#define WEIR_PROVIDER_LIVE_EVENT_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/json.h"
#include "wire/usage.h"

enum live_event_kind {
    LIVE_EVENT_OTHER,           /* known to mean nothing to us, or not known */
    LIVE_EVENT_SESSION_CREATED, /* beta */
    LIVE_EVENT_SESSION_UPDATED,
    LIVE_EVENT_RESPONSE_CREATED, /* response */
    LIVE_EVENT_TEXT,           /* response, text: a piece of the answer, or of its transcript */
    LIVE_EVENT_SOUND,          /* response, text: the bytes */
    LIVE_EVENT_CALL,           /* response, call_id, tool, text: the arguments */
    LIVE_EVENT_RESPONSE_DONE,  /* response, status, text: the whole answer; usage, error */
    LIVE_EVENT_ERROR,          /* error, event_id of ours that it is about, or empty */
    LIVE_EVENT_SPEECH_STARTED, /* the server heard that someone began to speak */
    LIVE_EVENT_RATE_LIMITS,
    LIVE_EVENT_KIND_COUNT,
};

enum live_status {
    LIVE_STATUS_COMPLETED,
    LIVE_STATUS_CUT,       /* at its token limit */
    LIVE_STATUS_FILTERED,  /* by the content filter */
    LIVE_STATUS_CANCELLED, /* by us, or because someone spoke */
    LIVE_STATUS_FAILED,
};

struct live_event {
    enum live_event_kind kind;
    bool beta; /* of LIVE_EVENT_SESSION_CREATED: the session has the form of the beta */
    enum live_status status;
    struct str response; /* the id; may be empty */
    struct str text, call_id, tool, event_id;
    struct event_usage usage; /* counts are TOKENS_UNKNOWN where absent; no model */
    struct json error; /* {"error":{...}}, as reply_failure_of() reads it; or JSON_NONE */
};

#define LIVE_EVENT_ROOM 2 /* times the bytes of a message */

/* Read one message. `room` is cleared; it must outlive `ret`, and so must `message`. An event that
 * lacks what its kind needs, such as a delta without a text, is LIVE_EVENT_OTHER.
 * errors  ERR_MALFORMED no JSON object with a type, or sound that is no base64; ERR_TOO_LARGE
 *         `room` may not hold LIVE_EVENT_ROOM times the message */
MUST_CHECK bool live_event_read(struct str message, struct buf *room, struct live_event *ret,
                                struct err *e);

#endif
