/* Converse and Memory as a table of checks. A new check is a row and a function. */
#include "validate/converse.h"

#define TURN "crawbl.agentruntime.v1: Converse, order of events"
#define STREAM "crawbl.agentruntime.v1: Converse, life of a stream"
#define FAILURE "crawbl.agentruntime.v1: Converse, errors inside a turn"
#define REQUEST "crawbl.agentruntime.v1: Converse, required fields"
#define TOKEN "crawbl.agentruntime.v1: authentication, HMAC bearer tokens"
#define MEMORY "crawbl.agentruntime.v1: Memory"

#define B LEVEL_BASE
#define S LEVEL_STRICT
#define A LEVEL_ADVISORY

/* clang-format off */
static const struct check checks[] = {
    {"CONV-01", B, WORD_MUST, "a request is answered with events and a DoneEvent", TURN,
     "end every turn with a DoneEvent; check the token, the session and the ids you were given", check_turn_done, false},
    {"CONV-02", B, WORD_MUST, "there is one DoneEvent for a request, and it comes last", TURN,
     "send DoneEvent once, after everything else of the turn", check_turn_one_done, false},
    {"CONV-03", B, WORD_MUST, "each event has a kind", TURN,
     "set one member of ConverseEvent.event", check_turn_kinds, false},
    {"CONV-04", B, WORD_MUST, "usage comes for each model call, numbered from 0 in each turn", TURN,
     "send a UsageEvent after each model call, also when its numbers are unknown; count call_sequence from 0", check_turn_usage, false},
    {"CONV-05", B, WORD_MUST, "each tool call has one result after it, under its call_id", TURN,
     "send the ToolCallEvent before the tool runs, and one ToolResultEvent with the same call_id", check_turn_tools, false},
    {"CONV-06", B, WORD_MUST, "args_json and result_json are JSON objects", TURN,
     "send {} instead of nothing; wrap other values in an object", check_turn_json, false},
    {"CONV-07", B, WORD_MUST, "the text is in the chunks and in turns", TURN,
     "send all text as chunks, and each final reply in DoneEvent.turns as well", check_turn_text, false},
    {"CONV-08", B, WORD_NONE, "events name the agent that speaks", TURN,
     "set agent_id to the slug of the agent", check_turn_speakers, false},
    {"CONV-09", S, WORD_NONE, "usage and done name the model", TURN,
     "set model to the id that the provider reported", check_turn_models, false},
    {"CONV-10", B, WORD_MUST, "a stream serves a second turn", STREAM,
     "after a DoneEvent, read the next request of the stream", check_turn_reuse, false},
    {"CONV-11", B, WORD_MUST, "a stream that the client ends between turns ends with OK", STREAM,
     "answer the client's half-close with the status OK", check_turn_end, false},
    {"CONV-12", B, WORD_MUST, "a turn is finished although the client sends no more", STREAM,
     "take the half-close as the end of requests, not as a cancel", check_turn_half_close, false},
    {"CONV-13", B, WORD_NONE, "requests that were sent together are answered one after the other", STREAM,
     "leave a request in the transport until the turn before it is done", check_turn_at_once, false},
    {"CONV-14", B, WORD_NONE, "a cancelled turn leaves its session usable", STREAM,
     "stop the turn and free the session when the stream is reset", check_turn_left, false},

    {"FAIL-01", B, WORD_MUST, "a failure is 'ERROR: CODE: text' in DoneEvent.model, without turns", FAILURE,
     "send DoneEvent{model: \"ERROR: INTERNAL: why\"} with a canonical code", check_failure_form, false},
    {"FAIL-02", B, WORD_MUST, "a failed turn does not end the stream", FAILURE,
     "never end the RPC for what happens in a turn", check_failure_stream, false},
    {"FAIL-03", B, WORD_MUST, "an empty message fails with INVALID_ARGUMENT", REQUEST,
     "check message before the turn begins", check_failure_message, false},
    {"FAIL-04", S, WORD_MUST, "an empty session_id fails with INVALID_ARGUMENT", REQUEST,
     "check session_id; do not fall back to another one", check_failure_session, false},
    {"FAIL-05", S, WORD_NONE, "an unknown agent_id fails with NOT_FOUND", REQUEST,
     "look the slug up; do not fall back to another agent", check_failure_agent, false},
    {"FAIL-06", S, WORD_MUST, "a first request without workspace_id and user_id fails with INVALID_ARGUMENT", REQUEST,
     "require both in the first request of a stream", check_failure_ids, false},
    {"FAIL-07", S, WORD_NONE, "another workspace than the token's fails with PERMISSION_DENIED", REQUEST,
     "compare the request's workspace_id with the token's", check_failure_workspace, false},

    {"TOKN-01", B, WORD_MUST, "a call without a token is UNAUTHENTICATED", TOKEN,
     "require the metadata authorization: Bearer on every RPC", check_token_missing, false},
    {"TOKN-02", B, WORD_MUST, "what is no token is UNAUTHENTICATED", TOKEN,
     "refuse what does not split and decode", check_token_garbage, false},
    {"TOKN-03", B, WORD_MUST, "a token signed with another key is UNAUTHENTICATED", TOKEN,
     "compare the HMAC-SHA256 of the payload, in constant time", check_token_forged, false},
    {"TOKN-04", B, WORD_MUST, "a token of an hour ago is UNAUTHENTICATED", TOKEN,
     "refuse time stamps more than 300 s away", check_token_expired, false},
    {"TOKN-05", B, WORD_MUST, "a token of the next hour is UNAUTHENTICATED", TOKEN,
     "refuse time stamps more than 300 s away, in both directions", check_token_future, false},
    {"TOKN-06", B, WORD_NONE, "another scheme than Bearer is UNAUTHENTICATED", TOKEN,
     "accept only the scheme bearer", check_token_scheme, false},
    {"TOKN-07", A, WORD_NONE, "the scheme is accepted in lower case", TOKEN,
     "compare the scheme without case", check_token_case, false},
    {"TOKN-08", A, WORD_NONE, "two tokens on one call are UNAUTHENTICATED", TOKEN,
     "refuse a call with more than one authorization", check_token_twice, false},
    {"TOKN-09", B, WORD_NONE, "the health service needs no token", TOKEN,
     "exempt grpc.health.v1.Health from authentication", check_token_health, false},
    {"TOKN-10", A, WORD_NONE, "an unknown method is UNIMPLEMENTED, also without a token", TOKEN,
     "route before authentication", check_token_unknown, false},
    {"TOKN-11", B, WORD_MUST, "Memory without a token is UNAUTHENTICATED", TOKEN,
     "authenticate unary calls like streams", check_token_memory, false},

    {"MEMO-01", B, WORD_MUST, "CreateMemory answers with the stored entry and its times", MEMORY,
     "serve the Memory service; fill created_at and updated_at", check_memory_create, false},
    {"MEMO-02", B, WORD_MUST, "CreateMemory of the same key replaces it", MEMORY,
     "upsert by workspace, category and key; keep created_at", check_memory_upsert, false},
    {"MEMO-03", B, WORD_MUST, "ListMemories gives what was stored, the newest first", MEMORY,
     "order by updated_at descending, then key", check_memory_list, false},
    {"MEMO-04", B, WORD_NONE, "limit and offset choose a page", MEMORY,
     "take limit 0 as 100; give an empty list past the end", check_memory_pages, false},
    {"MEMO-05", B, WORD_NONE, "a category is matched exactly", MEMORY,
     "compare categories byte for byte; an empty one means all", check_memory_category, false},
    {"MEMO-06", B, WORD_MUST, "an empty key is INVALID_ARGUMENT", MEMORY,
     "refuse an empty key", check_memory_key, false},
    {"MEMO-07", B, WORD_MUST, "DeleteMemory removes the key", MEMORY,
     "delete by workspace and key, in every category", check_memory_delete, false},
    {"MEMO-08", B, WORD_MUST, "DeleteMemory of a key that is not there is NOT_FOUND", MEMORY,
     "answer NOT_FOUND when nothing was deleted", check_memory_missing, false},
    {"MEMO-09", S, WORD_NONE, "another workspace than the token's is PERMISSION_DENIED", MEMORY,
     "compare the request's workspace_id with the token's", check_memory_workspace, false},
    {"MEMO-10", S, WORD_MUST, "an empty workspace_id is INVALID_ARGUMENT", MEMORY,
     "require workspace_id", check_memory_no_workspace, false},
};
/* clang-format on */

const struct profile profile_converse = {
    .name = "converse",
    .against = "crawbl.agentruntime.v1, Converse and Memory",
    .checks = checks,
    .count = ARRAY_LEN(checks),
    .open = converse_open,
    .close = converse_close,
    .probe = converse_speaks,
};
