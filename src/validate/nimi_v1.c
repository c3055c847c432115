/* nimi.runtime.v1 as a table of checks. A new check is a row and a function. */
#include "validate/nimi.h"

#define HEALTH "nimi.runtime.v1: health"
#define ENVELOPE "nimi.runtime.v1: the envelope of a call"
#define REFUSAL "nimi.runtime.v1: what is refused before a stream opens"
#define CARRIER "nimi.runtime.v1: how errors travel"
#define DONE "nimi.runtime.v1: close mode A, StreamScenario"
#define JOBS "nimi.runtime.v1: close mode B, SubscribeScenarioJobEvents"
#define EXPORT "nimi.runtime.v1: close mode C, ExportAuditEvents"
#define WATCH "nimi.runtime.v1: close mode D, SubscribeRuntimeHealthEvents"
#define STOP "nimi.runtime.v1: STOPPING ends every stream"

#define B LEVEL_BASE
#define S LEVEL_STRICT

/* clang-format off */
static const struct check checks[] = {
    {"ENVL-01", S, WORD_SHOULD, "grpc.health.v1 says SERVING without the envelope", HEALTH,
     "exempt grpc.health.v1.Health from the headers x-nimi-*", check_nimi_probe, false},
    {"ENVL-02", B, WORD_MUST, "GetRuntimeHealth says READY or DEGRADED", HEALTH,
     "serve RuntimeAuditService/GetRuntimeHealth to every caller", check_nimi_health, false},
    {"ENVL-03", B, WORD_MUST, "answers say which runtime it is: x-nimi-runtime-version 0.x.y", HEALTH,
     "send x-nimi-runtime-version: 0.x.y in the head of each answer, not in the trailers", check_nimi_version, false},
    {"ENVL-04", B, WORD_MUST, "a call without the envelope is refused", ENVELOPE,
     "answer INVALID_ARGUMENT with PROTOCOL_ENVELOPE_INVALID when a header x-nimi-* is missing", check_envelope_missing, false},
    {"ENVL-05", B, WORD_MUST, "two versions of the protocol that differ are refused", ENVELOPE,
     "compare major and minor of x-nimi-protocol-version and x-nimi-participant-protocol-version", check_envelope_major, false},
    {"ENVL-06", B, WORD_MUST, "a header of more than 4096 bytes is refused", ENVELOPE,
     "bound each header x-nimi-* by 4096 bytes", check_envelope_long, false},

    {"RFSL-01", B, WORD_MUST, "a refusal has its reason in google.rpc.ErrorInfo", CARRIER,
     "send grpc-status-details-bin: google.rpc.Status with one ErrorInfo of the domain nimi.runtime.v1", check_refusal_details, false},
    {"RFSL-02", S, WORD_MUST, "a refusal has its reason as JSON in grpc-message", CARRIER,
     "send {\"reasonCode\", \"actionHint\", \"traceId\", \"retryable\", \"message\"} as grpc-message", check_refusal_message, false},
    {"RFSL-03", B, WORD_MUST, "status, message and details of a refusal agree", CARRIER,
     "write all three from one error", check_refusal_agrees, false},
    {"RFSL-04", B, WORD_MUST, "a request without a model is refused before any frame", REFUSAL,
     "answer INVALID_ARGUMENT with AI_MODEL_ID_REQUIRED, not STARTED", check_refusal_model, false},
    {"RFSL-05", B, WORD_MUST, "a request without an input is refused before any frame", REFUSAL,
     "answer INVALID_ARGUMENT with AI_INPUT_INVALID, not STARTED", check_refusal_input, false},
    {"RFSL-06", B, WORD_MUST, "a request without an app_id is refused before any frame", REFUSAL,
     "answer INVALID_ARGUMENT with AI_APP_ID_REQUIRED, not STARTED", check_refusal_app, false},
    {"RFSL-07", B, WORD_MUST, "another app_id than that of the envelope is refused before any frame", REFUSAL,
     "compare head.app_id with x-nimi-app-id", check_refusal_other_app, false},
    {"RFSL-08", B, WORD_MUST, "an unknown connector is refused before any frame", REFUSAL,
     "answer NOT_FOUND with AI_CONNECTOR_NOT_FOUND, not STARTED", check_refusal_connector, false},

    {"DONE-01", B, WORD_MUST, "a request is answered with a stream that completes", DONE,
     "send STARTED, DELTA ..., COMPLETED, then OK; check --model and what the server knows of it", check_done_completes, false},
    {"DONE-02", B, WORD_MUST, "STARTED comes first, once, and names the model", DONE,
     "send STARTED before the provider answers", check_done_started, false},
    {"DONE-03", B, WORD_MUST, "events are numbered 1, 2, 3 ...", DONE,
     "count sequence from 1 in each stream", check_done_numbers, false},
    {"DONE-04", B, WORD_MUST, "each delta but the last has at least 32 bytes", DONE,
     "gather text until there are 32 bytes; flush what is left before the end", check_done_grain, false},
    {"DONE-05", B, WORD_MUST, "no delta is empty", DONE,
     "send no delta when there is nothing to send", check_done_empty, false},
    {"DONE-06", B, WORD_MUST, "the terminal event comes once and last, then OK", DONE,
     "send nothing after COMPLETED or FAILED but the status OK", check_done_last, false},
    {"DONE-07", B, WORD_MUST, "COMPLETED carries usage, -1 where it is not known", DONE,
     "set usage in COMPLETED also when its numbers are unknown", check_done_usage, false},
    {"DONE-08", B, WORD_MUST, "event_type, payload and frame say the same", DONE,
     "set event_type from the payload that is sent", check_done_agrees, false},
    {"DONE-09", S, WORD_NONE, "frame.done is set in the terminal event and only there", DONE,
     "send StreamFrame (field 100) with done, text_delta, usage and reason_code", check_done_frame, false},
    {"DONE-10", B, WORD_MUST, "a failure after STARTED is FAILED with a reason, then OK", DONE,
     "never end an open stream with an error status for what the model does", check_done_failed, false},
    {"DONE-11", S, WORD_MUST, "the terminal event of a failure carries usage too", DONE,
     "set frame.usage in FAILED, -1 where a number is not known", check_done_failed_usage, false},
    {"DONE-12", B, WORD_MUST, "ExecuteScenario gives the text, why it ended, and usage", DONE,
     "fill output.text_generate, finish_reason and usage", check_done_execute, false},

    {"JOBS-01", B, WORD_MUST, "SubmitScenarioJob answers with a job", JOBS,
     "answer with the job's snapshot and its job_id", check_job_submit, false},
    {"JOBS-02", B, WORD_MUST, "the events of a job end with a terminal event, then OK", JOBS,
     "close with OK right after COMPLETED, FAILED, CANCELED or TIMEOUT", check_job_ends, false},
    {"JOBS-03", B, WORD_MUST, "the events of a job are numbered from 1 and rise", JOBS,
     "count sequence from 1 in each job", check_job_numbers, false},
    {"JOBS-04", B, WORD_MUST, "each event has the job's snapshot, and they agree", JOBS,
     "set job in each event, with the status that its event_type says", check_job_agrees, false},
    {"JOBS-05", B, WORD_MUST, "who subscribes after the end gets all events", JOBS,
     "replay the job's events to each new subscriber", check_job_late, false},
    {"JOBS-06", B, WORD_MUST, "GetScenarioJob says what the terminal event said", JOBS,
     "keep the job after its end", check_job_snapshot, false},
    {"JOBS-07", B, WORD_MUST, "another app gets no events of the job", JOBS,
     "compare x-nimi-app-id with the job's app; answer PERMISSION_DENIED or NOT_FOUND", check_job_foreign, false},
    {"JOBS-08", B, WORD_MUST, "the events of an unknown job are NOT_FOUND", JOBS,
     "answer NOT_FOUND with AI_MEDIA_JOB_NOT_FOUND", check_job_unknown, false},

    {"EXPT-01", B, WORD_MUST, "an export ends with eof, then OK", EXPORT,
     "set eof in the last chunk, also of an empty export", check_export_ends, false},
    {"EXPT-02", B, WORD_MUST, "nothing follows eof", EXPORT,
     "set eof once", check_export_last, false},
    {"EXPT-03", B, WORD_MUST, "chunks are numbered 0, 1, 2 ...", EXPORT,
     "count sequence from 0 without a gap", check_export_numbers, false},

    {"SUBS-01", B, WORD_MUST, "a subscription of health gets an event at once", WATCH,
     "send a snapshot when the stream opens", check_watch_first, false},
    {"SUBS-02", B, WORD_MUST, "a subscription stays open until it is cancelled", WATCH,
     "never end a subscription while the server runs", check_watch_open, false},
    {"SUBS-03", B, WORD_NONE, "subscriptions that were cancelled make room for others", WATCH,
     "free a subscriber when its stream is reset", check_watch_left, false},

    {"STOP-01", B, WORD_MUST, "after SIGTERM a subscription ends with CANCELLED in plain text", STOP,
     "on STOPPING end subscriptions with CANCELLED and plain lower-case text, without a reason", check_stop_watch, false},
    {"STOP-02", B, WORD_MUST, "after SIGTERM a stream of text ends with CANCELLED or as it really ended", STOP,
     "on STOPPING send no COMPLETED or FAILED that did not happen", check_stop_text, false},
};
/* clang-format on */

const struct profile profile_nimi = {
    .name = "nimi",
    .against = "nimi.runtime.v1, how streams close and how errors travel",
    .checks = checks,
    .count = ARRAY_LEN(checks),
    .open = nimi_open,
    .close = nimi_close,
    .probe = nimi_speaks,
};
