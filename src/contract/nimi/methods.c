#include "contract/nimi/methods.h"

#include "base/mem.h"
#include "contract/nimi/account/calls.h"
#include "contract/nimi/agent/agent.h"
#include "contract/nimi/app/app.h"
#include "contract/nimi/audit/audit.h"
#include "contract/nimi/auth/auth.h"
#include "contract/nimi/catalog/catalog.h"
#include "contract/nimi/grant/calls.h"
#include "contract/nimi/health/health.h"
#include "contract/nimi/health/watch.h"
#include "contract/nimi/job/jobs.h"
#include "contract/nimi/memory/memory.h"
#include "contract/nimi/realtime/realtime.h"
#include "contract/nimi/scenario/scenario.h"
#include "contract/nimi/transfer/transfers.h"
#include "contract/nimi/upload/receive.h"
#include "proto/nimi.pb.h"
#include "proto/nimi_connector.pb.h"

#include <assert.h>
#include <stdlib.h>

#define ACCOUNT "nimi.runtime.v1.RuntimeAccountService"
#define AGENT "nimi.runtime.v1.RuntimeAgentService"
#define AI "nimi.runtime.v1.RuntimeAiService"
#define AI_REALTIME "nimi.runtime.v1.RuntimeAiRealtimeService"
#define APP "nimi.runtime.v1.RuntimeAppService"
#define AUDIT "nimi.runtime.v1.RuntimeAuditService"
#define AUTH "nimi.runtime.v1.RuntimeAuthService"
#define COGNITION "nimi.runtime.v1.RuntimeCognitionService"
#define CONNECTOR "nimi.runtime.v1.RuntimeConnectorService"
#define GRANT "nimi.runtime.v1.RuntimeGrantService"
#define LOCAL "nimi.runtime.v1.RuntimeLocalService"
#define MODEL "nimi.runtime.v1.RuntimeModelService"
#define WORKFLOW "nimi.runtime.v1.RuntimeWorkflowService"
#define ROW(service, method) STR_INIT("/" service "/" method)

/* A request, and where it names a subject: nowhere, in a text, or in the message of a member. */
#define REQUEST(type) &type##_table, SUBJECT_NONE
#define REQUEST_OF(type, text) &type##_table, SUBJECT_AT(type, text)
#define REQUEST_WITH(type, member, of) &type##_table, SUBJECT_INSIDE(type, member, of)
#define UPLOAD                                                                                 \
    &nimi_upload_artifact_request_table,                                                       \
        SUBJECT_INSIDE_ONEOF(nimi_upload_artifact_request, metadata,                           \
                             nimi_upload_artifact_metadata, which_payload,                     \
                             NIMI_UPLOAD_ARTIFACT_REQUEST_METADATA)

/* One row per method: its path, how its stream ends, who may call it, facts for the
 * interceptors, its request, where the request names a subject, and the function that answers.
 * Guard and subject stand in the middle so that a row without them does not compile. */

static const struct nimi_row agent_rows[] = {
    /* clang-format off */
    {ROW(AGENT, "InitializeAgent"),      RPC_UNARY,         CLOSE_SINGLE,       GUARD_AGENT_WRITE, NIMI_ONCE,  REQUEST_WITH(nimi_initialize_agent_request, context, nimi_agent_request_context),       agent_initialize},
    {ROW(AGENT, "TerminateAgent"),       RPC_UNARY,         CLOSE_SINGLE,       GUARD_AGENT_WRITE, NIMI_ONCE,  REQUEST_WITH(nimi_terminate_agent_request, context, nimi_agent_request_context),        agent_terminate},
    {ROW(AGENT, "GetAgent"),             RPC_UNARY,         CLOSE_SINGLE,       GUARD_AGENT_READ,  NIMI_LOOKS, REQUEST_WITH(nimi_get_agent_request, context, nimi_agent_request_context),              agent_get},
    {ROW(AGENT, "ListAgents"),           RPC_UNARY,         CLOSE_SINGLE,       GUARD_AGENT_READ,  NIMI_LOOKS, REQUEST_WITH(nimi_list_agents_request, context, nimi_agent_request_context),            agent_list},
    {ROW(AGENT, "GetAgentState"),        RPC_UNARY,         CLOSE_SINGLE,       GUARD_AGENT_READ,  NIMI_LOOKS, REQUEST_WITH(nimi_get_agent_state_request, context, nimi_agent_request_context),        agent_get_state},
    {ROW(AGENT, "UpdateAgentState"),     RPC_UNARY,         CLOSE_SINGLE,       GUARD_AGENT_WRITE, NIMI_ONCE,  REQUEST_WITH(nimi_update_agent_state_request, context, nimi_agent_request_context),     agent_update_state},
    {ROW(AGENT, "SubscribeAgentEvents"), RPC_SERVER_STREAM, CLOSE_SUBSCRIPTION, GUARD_AGENT_READ,  NIMI_LOOKS, REQUEST_WITH(nimi_subscribe_agent_events_request, context, nimi_agent_request_context), agent_subscribe},
    /* clang-format on */
};

static const struct nimi_row ai_rows[] = {
    /* clang-format off */
    {ROW(AI, "StreamScenario"),             RPC_SERVER_STREAM, CLOSE_DONE,     GUARD_CALLER, 0,          REQUEST_WITH(nimi_stream_scenario_request, head, nimi_scenario_request_head),     scenario_stream},
    {ROW(AI, "ExecuteScenario"),            RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, NIMI_ONCE,  REQUEST_WITH(nimi_execute_scenario_request, head, nimi_scenario_request_head),    scenario_execute},
    {ROW(AI, "ListScenarioProfiles"),       RPC_UNARY,         CLOSE_SINGLE,   GUARD_OPEN,   NIMI_READS, REQUEST(nimi_list_scenario_profiles_request),                                     catalog_list_profiles},
    {ROW(AI, "PeekScheduling"),             RPC_UNARY,         CLOSE_SINGLE,   GUARD_OPEN,   NIMI_LOOKS, REQUEST(nimi_peek_scheduling_request),                                            catalog_peek_scheduling},
    {ROW(AI, "ListPresetVoices"),           RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, NIMI_READS, REQUEST_OF(nimi_list_preset_voices_request, subject_user_id),                     catalog_list_voices},
    {ROW(AI, "SubmitScenarioJob"),          RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, 0,          REQUEST_WITH(nimi_submit_scenario_job_request, head, nimi_scenario_request_head), jobs_submit},
    {ROW(AI, "GetScenarioJob"),             RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, NIMI_READS, REQUEST(nimi_get_scenario_job_request),                                           jobs_get},
    {ROW(AI, "CancelScenarioJob"),          RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, NIMI_ONCE,  REQUEST(nimi_cancel_scenario_job_request),                                        jobs_cancel},
    {ROW(AI, "SubscribeScenarioJobEvents"), RPC_SERVER_STREAM, CLOSE_TERMINAL, GUARD_CALLER, NIMI_READS, REQUEST(nimi_subscribe_scenario_job_events_request),                              jobs_subscribe},
    {ROW(AI, "GetScenarioArtifacts"),       RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, NIMI_READS, REQUEST(nimi_get_scenario_artifacts_request),                                     jobs_artifacts},
    {ROW(AI, "UploadArtifact"),             RPC_CLIENT_STREAM, CLOSE_SINGLE,   GUARD_CALLER, NIMI_BARE,  UPLOAD,                                                                           receive_begin},
    /* clang-format on */
};

static const struct nimi_row ai_realtime_rows[] = {
    /* clang-format off */
    {ROW(AI_REALTIME, "OpenRealtimeSession"),  RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,  REQUEST_WITH(nimi_open_realtime_session_request, head, nimi_scenario_request_head), realtime_open},
    {ROW(AI_REALTIME, "AppendRealtimeInput"),  RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,  REQUEST(nimi_append_realtime_input_request),                                        realtime_append_input},
    {ROW(AI_REALTIME, "ReadRealtimeEvents"),   RPC_SERVER_STREAM, CLOSE_SUBSCRIPTION, GUARD_CALLER, NIMI_READS | NIMI_ALONE, REQUEST(nimi_read_realtime_events_request),                                         realtime_read_events},
    {ROW(AI_REALTIME, "CloseRealtimeSession"), RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,  REQUEST(nimi_close_realtime_session_request),                                       realtime_close_session},
    /* clang-format on */
};

static const struct nimi_row audit_rows[] = {
    /* clang-format off */
    {ROW(AUDIT, "GetRuntimeHealth"),                RPC_UNARY,         CLOSE_SINGLE,       GUARD_OPEN,         NIMI_READS,                 REQUEST(nimi_get_runtime_health_request),                    health_get},
    {ROW(AUDIT, "ListAIProviderHealth"),            RPC_UNARY,         CLOSE_SINGLE,       GUARD_OPEN,         NIMI_READS,                 REQUEST(nimi_list_ai_provider_health_request),               health_list_providers},
    {ROW(AUDIT, "SubscribeRuntimeHealthEvents"),    RPC_SERVER_STREAM, CLOSE_SUBSCRIPTION, GUARD_CALLER,       NIMI_READS,                 REQUEST(nimi_subscribe_runtime_health_events_request),       health_subscribe},
    {ROW(AUDIT, "SubscribeAIProviderHealthEvents"), RPC_SERVER_STREAM, CLOSE_SUBSCRIPTION, GUARD_CALLER,       NIMI_READS,                 REQUEST(nimi_subscribe_ai_provider_health_events_request),   health_subscribe_providers},
    {ROW(AUDIT, "ListAuditEvents"),                 RPC_UNARY,         CLOSE_SINGLE,       GUARD_SUBJECT,      NIMI_READS,                 REQUEST_OF(nimi_list_audit_events_request, subject_user_id), audit_list_events},
    {ROW(AUDIT, "ListUsageStats"),                  RPC_UNARY,         CLOSE_SINGLE,       GUARD_SUBJECT,      NIMI_READS,                 REQUEST_OF(nimi_list_usage_stats_request, subject_user_id),  audit_list_usage},
    {ROW(AUDIT, "ExportAuditEvents"),               RPC_SERVER_STREAM, CLOSE_EOF,          GUARD_AUDIT_EXPORT, NIMI_READS | NIMI_RECORDED, REQUEST(nimi_export_audit_events_request),                   audit_export},
    /* clang-format on */
};

static const struct nimi_row auth_rows[] = {
    /* clang-format off */
    {ROW(AUTH, "RegisterApp"),    RPC_UNARY, CLOSE_SINGLE, GUARD_OPEN,   NIMI_ONCE | NIMI_KNOWS,               REQUEST(nimi_register_app_request),                     auth_register_app},
    {ROW(AUTH, "OpenSession"),    RPC_UNARY, CLOSE_SINGLE, GUARD_CALLER, NIMI_ONCE | NIMI_KNOWS | NIMI_SECRET, REQUEST_OF(nimi_open_session_request, subject_user_id), auth_open_session},
    {ROW(AUTH, "RefreshSession"), RPC_UNARY, CLOSE_SINGLE, GUARD_CALLER, NIMI_ONCE | NIMI_KNOWS | NIMI_SECRET, REQUEST(nimi_refresh_session_request),                  auth_refresh_session},
    {ROW(AUTH, "RevokeSession"),  RPC_UNARY, CLOSE_SINGLE, GUARD_CALLER, NIMI_ONCE | NIMI_KNOWS,               REQUEST(nimi_revoke_session_request),                   auth_revoke_session},
    /* clang-format on */
};

static const struct nimi_row cognition_rows[] = {
    /* clang-format off */
    {ROW(COGNITION, "CreateBank"),            RPC_UNARY,         CLOSE_SINGLE,       GUARD_MEMORY_WRITE, NIMI_ONCE,  REQUEST_WITH(nimi_create_bank_request, context, nimi_memory_request_context),             memory_create_bank},
    {ROW(COGNITION, "GetBank"),               RPC_UNARY,         CLOSE_SINGLE,       GUARD_MEMORY_READ,  NIMI_READS, REQUEST_WITH(nimi_get_bank_request, context, nimi_memory_request_context),                memory_get_bank},
    {ROW(COGNITION, "ListBanks"),             RPC_UNARY,         CLOSE_SINGLE,       GUARD_MEMORY_READ,  NIMI_READS, REQUEST_WITH(nimi_list_banks_request, context, nimi_memory_request_context),              memory_list_banks},
    {ROW(COGNITION, "DeleteBank"),            RPC_UNARY,         CLOSE_SINGLE,       GUARD_MEMORY_WRITE, NIMI_ONCE,  REQUEST_WITH(nimi_delete_bank_request, context, nimi_memory_request_context),             memory_delete_bank},
    {ROW(COGNITION, "Retain"),                RPC_UNARY,         CLOSE_SINGLE,       GUARD_MEMORY_WRITE, NIMI_ONCE,  REQUEST_WITH(nimi_retain_request, context, nimi_memory_request_context),                  memory_retain},
    {ROW(COGNITION, "Recall"),                RPC_UNARY,         CLOSE_SINGLE,       GUARD_MEMORY_READ,  NIMI_READS, REQUEST_WITH(nimi_recall_request, context, nimi_memory_request_context),                  memory_recall},
    {ROW(COGNITION, "History"),               RPC_UNARY,         CLOSE_SINGLE,       GUARD_MEMORY_READ,  NIMI_READS, REQUEST_WITH(nimi_history_request, context, nimi_memory_request_context),                 memory_history},
    {ROW(COGNITION, "DeleteMemory"),          RPC_UNARY,         CLOSE_SINGLE,       GUARD_MEMORY_WRITE, NIMI_ONCE,  REQUEST_WITH(nimi_delete_memory_request, context, nimi_memory_request_context),           memory_delete},
    {ROW(COGNITION, "SubscribeMemoryEvents"), RPC_SERVER_STREAM, CLOSE_SUBSCRIPTION, GUARD_MEMORY_READ,  NIMI_READS, REQUEST_WITH(nimi_subscribe_memory_events_request, context, nimi_memory_request_context), memory_subscribe},
    /* clang-format on */
};

static const struct nimi_row connector_rows[] = {
    /* clang-format off */
    {ROW(CONNECTOR, "GetConnector"),        RPC_UNARY, CLOSE_SINGLE, GUARD_CALLER, NIMI_READS, REQUEST_OF(nimi_wire_get_connector_request, owner_id),         catalog_get_connector},
    {ROW(CONNECTOR, "ListConnectors"),      RPC_UNARY, CLOSE_SINGLE, GUARD_CALLER, NIMI_READS, REQUEST_OF(nimi_wire_list_connectors_request, owner_id),       catalog_list_connectors},
    {ROW(CONNECTOR, "ListConnectorModels"), RPC_UNARY, CLOSE_SINGLE, GUARD_CALLER, NIMI_READS, REQUEST_OF(nimi_wire_list_connector_models_request, owner_id), catalog_list_connector_models},
    /* clang-format on */
};

static const struct nimi_row local_rows[] = {
    /* clang-format off */
    {ROW(LOCAL, "ListLocalAssets"),      RPC_UNARY,         CLOSE_SINGLE,       GUARD_OPEN,   NIMI_READS,              REQUEST(nimi_list_local_assets_request),      catalog_list_assets},
    {ROW(LOCAL, "InstallVerifiedAsset"), RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,  REQUEST(nimi_install_verified_asset_request), transfers_install},
    {ROW(LOCAL, "WatchLocalTransfers"),  RPC_SERVER_STREAM, CLOSE_SUBSCRIPTION, GUARD_CALLER, NIMI_LOOKS | NIMI_ALONE, REQUEST(nimi_watch_local_transfers_request),  transfers_watch},
    {ROW(LOCAL, "ListLocalTransfers"),   RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_LOOKS | NIMI_ALONE, REQUEST(nimi_list_local_transfers_request),   transfers_list},
    {ROW(LOCAL, "PauseLocalTransfer"),   RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,  REQUEST(nimi_pause_local_transfer_request),   transfers_pause},
    {ROW(LOCAL, "ResumeLocalTransfer"),  RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,  REQUEST(nimi_resume_local_transfer_request),  transfers_resume},
    {ROW(LOCAL, "CancelLocalTransfer"),  RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,  REQUEST(nimi_cancel_local_transfer_request),  transfers_cancel},
    /* clang-format on */
};

static const struct nimi_row model_rows[] = {
    /* clang-format off */
    {ROW(MODEL, "ListModels"),       RPC_UNARY, CLOSE_SINGLE, GUARD_OPEN, NIMI_READS, REQUEST(nimi_list_models_request),        catalog_list_models},
    {ROW(MODEL, "CheckModelHealth"), RPC_UNARY, CLOSE_SINGLE, GUARD_OPEN, NIMI_READS, REQUEST(nimi_check_model_health_request), catalog_check_model},
    /* clang-format on */
};

static const struct nimi_row app_rows[] = {
    /* clang-format off */
    {ROW(APP, "SendAppMessage"),       RPC_UNARY,         CLOSE_SINGLE,       GUARD_SUBJECT, NIMI_ONCE | NIMI_SESSION | NIMI_ALONE,  REQUEST_OF(nimi_send_app_message_request, subject_user_id),       app_send},
    {ROW(APP, "SubscribeAppMessages"), RPC_SERVER_STREAM, CLOSE_SUBSCRIPTION, GUARD_SUBJECT, NIMI_READS | NIMI_SESSION | NIMI_ALONE, REQUEST_OF(nimi_subscribe_app_messages_request, subject_user_id), app_subscribe},
    /* clang-format on */
};

static const struct nimi_row workflow_rows[] = {
    /* clang-format off */
    {ROW(WORKFLOW, "SubmitWorkflow"),          RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, 0,          REQUEST_OF(nimi_submit_workflow_request, subject_user_id), workflows_submit},
    {ROW(WORKFLOW, "GetWorkflow"),             RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, NIMI_READS, REQUEST(nimi_get_workflow_request),                        workflows_get},
    {ROW(WORKFLOW, "CancelWorkflow"),          RPC_UNARY,         CLOSE_SINGLE,   GUARD_CALLER, NIMI_ONCE,  REQUEST(nimi_cancel_workflow_request),                     workflows_cancel},
    {ROW(WORKFLOW, "SubscribeWorkflowEvents"), RPC_SERVER_STREAM, CLOSE_TERMINAL, GUARD_CALLER, NIMI_READS, REQUEST(nimi_subscribe_workflow_events_request),           workflows_subscribe},
    /* clang-format on */
};

/* A login's proof is in its request, so neither of its calls needs a token. */
static const struct nimi_row account_rows[] = {
    /* clang-format off */
    {ROW(ACCOUNT, "GetAccountSessionStatus"),       RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_READS | NIMI_ALONE,                 REQUEST(nimi_get_account_session_status_request),       account_get_status},
    {ROW(ACCOUNT, "SubscribeAccountSessionEvents"), RPC_SERVER_STREAM, CLOSE_SUBSCRIPTION, GUARD_CALLER, NIMI_READS | NIMI_ALONE,                 REQUEST(nimi_subscribe_account_session_events_request), account_subscribe},
    {ROW(ACCOUNT, "BeginLogin"),                    RPC_UNARY,         CLOSE_SINGLE,       GUARD_OPEN,   NIMI_ONCE | NIMI_ALONE,                  REQUEST(nimi_begin_login_request),                      account_login},
    {ROW(ACCOUNT, "CompleteLogin"),                 RPC_UNARY,         CLOSE_SINGLE,       GUARD_OPEN,   NIMI_ONCE | NIMI_SESSION | NIMI_ALONE,   REQUEST(nimi_complete_login_request),                   account_complete_login},
    {ROW(ACCOUNT, "GetAccessToken"),                RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_SESSION | NIMI_ALONE,               REQUEST(nimi_get_access_token_request),                 account_get_token},
    {ROW(ACCOUNT, "RefreshAccountSession"),         RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_PROVES | NIMI_SESSION | NIMI_ALONE, REQUEST(nimi_refresh_account_session_request),          account_refresh},
    {ROW(ACCOUNT, "Logout"),                        RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,                  REQUEST(nimi_logout_request),                           account_logout},
    {ROW(ACCOUNT, "SwitchAccount"),                 RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,                  REQUEST(nimi_switch_account_request),                   account_switch},
    {ROW(ACCOUNT, "IssueScopedAppBinding"),         RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,                  REQUEST(nimi_issue_scoped_app_binding_request),         account_issue_binding},
    {ROW(ACCOUNT, "RevokeScopedAppBinding"),        RPC_UNARY,         CLOSE_SINGLE,       GUARD_CALLER, NIMI_ONCE | NIMI_ALONE,                  REQUEST(nimi_revoke_scoped_app_binding_request),        account_revoke_binding},
    /* clang-format on */
};

static const struct nimi_row grant_rows[] = {
    /* clang-format off */
    {ROW(GRANT, "AuthorizeExternalPrincipal"), RPC_UNARY, CLOSE_SINGLE, GUARD_SUBJECT, NIMI_ONCE | NIMI_KNOWS | NIMI_SECRET, REQUEST_OF(nimi_authorize_external_principal_request, subject_user_id), grant_authorize},
    {ROW(GRANT, "ValidateAppAccessToken"),     RPC_UNARY, CLOSE_SINGLE, GUARD_CALLER,  NIMI_READS | NIMI_KNOWS,              REQUEST(nimi_validate_app_access_token_request),                        grant_validate},
    {ROW(GRANT, "RevokeAppAccessToken"),       RPC_UNARY, CLOSE_SINGLE, GUARD_SUBJECT, NIMI_ONCE | NIMI_KNOWS,               REQUEST(nimi_revoke_app_access_token_request),                          grant_revoke},
    {ROW(GRANT, "IssueDelegatedAccessToken"),  RPC_UNARY, CLOSE_SINGLE, GUARD_SUBJECT, NIMI_ONCE | NIMI_KNOWS | NIMI_SECRET, REQUEST(nimi_issue_delegated_access_token_request),                     grant_delegate},
    {ROW(GRANT, "ListTokenChain"),             RPC_UNARY, CLOSE_SINGLE, GUARD_SUBJECT, NIMI_READS | NIMI_KNOWS,              REQUEST(nimi_list_token_chain_request),                                 grant_list_chain},
    /* clang-format on */
};

static const struct {
    struct str name;
    const struct nimi_row *rows;
    size_t row_count;
} services[NIMI_SERVICES] = {
    [NIMI_AGENT] = {STR_INIT(AGENT), agent_rows, ARRAY_LEN(agent_rows)},
    [NIMI_AI] = {STR_INIT(AI), ai_rows, ARRAY_LEN(ai_rows)},
    [NIMI_AI_REALTIME] = {STR_INIT(AI_REALTIME), ai_realtime_rows, ARRAY_LEN(ai_realtime_rows)},
    [NIMI_APP] = {STR_INIT(APP), app_rows, ARRAY_LEN(app_rows)},
    [NIMI_AUDIT] = {STR_INIT(AUDIT), audit_rows, ARRAY_LEN(audit_rows)},
    [NIMI_AUTH] = {STR_INIT(AUTH), auth_rows, ARRAY_LEN(auth_rows)},
    [NIMI_COGNITION] = {STR_INIT(COGNITION), cognition_rows, ARRAY_LEN(cognition_rows)},
    [NIMI_CONNECTOR] = {STR_INIT(CONNECTOR), connector_rows, ARRAY_LEN(connector_rows)},
    [NIMI_LOCAL] = {STR_INIT(LOCAL), local_rows, ARRAY_LEN(local_rows)},
    [NIMI_MODEL] = {STR_INIT(MODEL), model_rows, ARRAY_LEN(model_rows)},
    [NIMI_WORKFLOW] = {STR_INIT(WORKFLOW), workflow_rows, ARRAY_LEN(workflow_rows)},
    [NIMI_ACCOUNT] = {STR_INIT(ACCOUNT), account_rows, ARRAY_LEN(account_rows)},
    [NIMI_GRANT] = {STR_INIT(GRANT), grant_rows, ARRAY_LEN(grant_rows)},
};

/* Index of the first row of a service, among the rows of all services. NIMI_SERVICES: how many
 * rows there are. */
static size_t first_row(size_t service) {
    size_t first = 0;
    for (size_t i = 0; i < service; i++) first += services[i].row_count;
    return first;
}

const struct nimi_row *nimi_row_at(size_t index) {
    for (size_t i = 0; i < NIMI_SERVICES; i++) {
        if (index < services[i].row_count) return &services[i].rows[index];
        index -= services[i].row_count;
    }
    return NULL;
}

/* The rows in the form of rpc/, in the same order. */
struct nimi_methods {
    struct rpc_method *methods;
    const struct nimi_row **rows;
};

struct nimi_methods *nimi_methods_new(void) {
    struct nimi_methods *methods = MEM_NEW(struct nimi_methods);
    size_t count = first_row(NIMI_SERVICES);
    methods->methods = mem_zero(count, sizeof(*methods->methods));
    methods->rows = mem_zero(count, sizeof(void *));
    return methods;
}

void nimi_methods_free(struct nimi_methods *methods) {
    if (!methods) return;
    free(methods->methods);
    free(methods->rows);
    free(methods);
}

const struct nimi_row *nimi_row_of(const struct nimi_instance *instance,
                                   const struct rpc_method *method) {
    return instance->methods->rows[method - instance->methods->methods];
}

/* A message of a client stream is a chunk and has a limit of its own. */
static struct rpc_method methods_method_of(const struct nimi_row *row,
                                           size_t message_max_bytes) {
    bool chunks = row->kind == RPC_CLIENT_STREAM;
    return (struct rpc_method){.path = row->path,
                               .kind = row->kind,
                               .handler = &nimi_handler,
                               .ends = row->ends,
                               .established = RPC_BY_HANDLER,
                               .auth = RPC_OPEN, /* row->guard decides */
                               .deadline_ms = chunks ? RECEIVE_TOTAL_MS : 0,
                               .request_max_bytes =
                                   chunks ? RECEIVE_CHUNK_MAX_BYTES + RECEIVE_WRAPPING_BYTES
                                          : message_max_bytes};
}

void nimi_service(struct nimi_instance *instance, size_t service, struct rpc_service *ret) {
    size_t first = first_row(service);
    *ret = (struct rpc_service){.name = services[service].name,
                                .methods = &instance->methods->methods[first],
                                .method_count = services[service].row_count,
                                .ctx = instance};
    for (size_t r = 0; r < services[service].row_count; r++) {
        const struct nimi_row *row = &services[service].rows[r];
        assert(row->guard > 0 && row->guard < GUARD_COUNT && row->subject.where && row->begin);
        instance->methods->rows[first + r] = row;
        instance->methods->methods[first + r] =
            methods_method_of(row, instance->settings->message_max_bytes);
    }
}

void nimi_services(struct nimi_instance *instance, struct rpc_service *ret) {
    for (size_t i = 0; i < NIMI_SERVICES; i++) nimi_service(instance, i, &ret[i]);
}
