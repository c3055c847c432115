#include "reader/method.h"

#include "base/attr.h"
#include "proto/health.pb.h"
#include "proto/nimi.pb.h"
#include "proto/runtime.pb.h"

#define NIMI "/nimi.runtime.v1.Runtime"
#define ROW(path) STR_INIT(path)
#define RUNS STR("/weir/v1/runs/")
#define EVENTS STR("/events")

/* Each stream of each contract. */
static const struct reader_method methods[] = {
    /* clang-format off */
    {ROW(NIMI "AiService/StreamScenario"),                    CLOSE_DONE,         READER_SCENARIO, NUMBERS_FROM_ONE,      &nimi_stream_scenario_request_table,                     &nimi_stream_scenario_event_table,     0, NULL},
    {ROW(NIMI "AiService/SubscribeScenarioJobEvents"),        CLOSE_TERMINAL,     READER_JOB,      NUMBERS_FROM_ONE_GAPS, &nimi_subscribe_scenario_job_events_request_table,       &nimi_scenario_job_event_table,        0, NIMI "AiService/GetScenarioJob"},
    {ROW(NIMI "WorkflowService/SubscribeWorkflowEvents"),     CLOSE_TERMINAL,     READER_WORKFLOW, NUMBERS_FROM_ONE_GAPS, &nimi_subscribe_workflow_events_request_table,           &nimi_workflow_event_table,            0, NIMI "WorkflowService/GetWorkflow"},
    {ROW(NIMI "AuditService/ExportAuditEvents"),              CLOSE_EOF,          READER_EXPORT,   NUMBERS_FROM_ZERO,     &nimi_export_audit_events_request_table,                 &nimi_audit_export_chunk_table,        0, NULL},
    {ROW(NIMI "AuditService/SubscribeRuntimeHealthEvents"),   CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_RISING,        &nimi_subscribe_runtime_health_events_request_table,     &nimi_runtime_health_event_table,      1, NIMI "AuditService/GetRuntimeHealth"},
    {ROW(NIMI "AuditService/SubscribeAIProviderHealthEvents"),CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_RISING,        &nimi_subscribe_ai_provider_health_events_request_table, &nimi_ai_provider_health_event_table,  1, NIMI "AuditService/ListAIProviderHealth"},
    {ROW(NIMI "AppService/SubscribeAppMessages"),             CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_RISING,        &nimi_subscribe_app_messages_request_table,              &nimi_app_message_event_table,         2, NULL},
    {ROW(NIMI "AccountService/SubscribeAccountSessionEvents"),CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_AFTER_SNAPSHOT,&nimi_subscribe_account_session_events_request_table,    &nimi_account_session_event_table,     2, NIMI "AccountService/GetAccountSessionStatus"},
    {ROW(NIMI "CognitionService/SubscribeMemoryEvents"),      CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_RISING,        &nimi_subscribe_memory_events_request_table,             &nimi_memory_event_table,              2, NIMI "CognitionService/History"},
    {ROW(NIMI "AgentService/SubscribeAgentEvents"),           CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_RISING,        &nimi_subscribe_agent_events_request_table,              &nimi_agent_event_table,               2, NIMI "AgentService/GetAgentState"},
    {ROW(NIMI "AiRealtimeService/ReadRealtimeEvents"),        CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_FROM_ONE,      &nimi_read_realtime_events_request_table,                &nimi_realtime_event_table,            2, NULL},
    {ROW(NIMI "LocalService/WatchLocalTransfers"),            CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_NONE,          &nimi_watch_local_transfers_request_table,               &nimi_local_transfer_progress_event_table,0, NIMI "LocalService/ListLocalTransfers"},
    {ROW("/grpc.health.v1.Health/Watch"),                     CLOSE_SUBSCRIPTION, READER_PLAIN,    NUMBERS_NONE,          &grpc_health_check_request_table,                        &grpc_health_check_response_table,     0, "/grpc.health.v1.Health/Check"},
    {ROW("/crawbl.agentruntime.v1.AgentRuntime/Converse"),    CLOSE_DONE,         READER_CONVERSE, NUMBERS_NONE,          &crawbl_converse_request_table,                          &crawbl_converse_event_table,          0, NULL},
    {ROW("/stream"),                                          CLOSE_DONE,         READER_TURN,     NUMBERS_NONE,          NULL,                                                    NULL,                                  0, NULL},
    {ROW("/weir/v1/runs/{id}/events"),                        CLOSE_TERMINAL,     READER_RUN,      NUMBERS_RISING,        NULL,                                                    NULL,                                  0, "/weir/v1/runs/{id}"},
    /* clang-format on */
};

/* "/weir/v1/runs/ID/events", "runs/ID/events". */
static bool is_run_events(struct str name) {
    if (str_starts(name, STR("runs/"))) {
        name = str_skip(name, STR("runs/").len);
    } else if (str_starts(name, RUNS)) {
        name = str_skip(name, RUNS.len);
    } else {
        return false;
    }
    if (name.len <= EVENTS.len || !str_ends(name, EVENTS)) return false;
    return str_is_plain(str_head(name, name.len - EVENTS.len), "-._~%");
}

static struct str last_part(struct str path) {
    size_t at = path.len;
    while (at > 0 && path.at[at - 1] != '/') at--;
    return str_skip(path, at);
}

const struct reader_method *reader_method_find(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        const struct reader_method *method = &methods[i];
        bool run = method->kind == READER_RUN;
        bool matches =
            run ? is_run_events(name)
                : str_equal(name, method->path) || str_equal(name, last_part(method->path));
        if (matches) return method;
    }
    return NULL;
}

const struct reader_method *reader_method_at(size_t index) {
    return index < ARRAY_LEN(methods) ? &methods[index] : NULL;
}

bool reader_kind_is_http(enum reader_kind kind) {
    return kind == READER_TURN || kind == READER_RUN;
}
