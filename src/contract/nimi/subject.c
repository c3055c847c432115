#include "contract/nimi/subject.h"

#include "proto/nimi.pb.h"
#include "proto/nimi_connector.pb.h"

/* A request is decoded into memory of its own; only its tables are constant. */
#define WRITABLE(type, at) ((type *)(uintptr_t)(at))

struct str *subject_is_not_named(void *request) {
    (void)request;
    return NULL;
}

static struct str *of_head(const struct nimi_scenario_request_head *head) {
    return head ? &WRITABLE(struct nimi_scenario_request_head, head)->subject_user_id : NULL;
}

struct str *subject_of_stream_scenario(void *request) {
    return of_head(((struct nimi_stream_scenario_request *)request)->head);
}

struct str *subject_of_execute_scenario(void *request) {
    return of_head(((struct nimi_execute_scenario_request *)request)->head);
}

struct str *subject_of_submit_scenario_job(void *request) {
    return of_head(((struct nimi_submit_scenario_job_request *)request)->head);
}

struct str *subject_of_open_realtime_session(void *request) {
    return of_head(((struct nimi_open_realtime_session_request *)request)->head);
}

struct str *subject_of_list_preset_voices(void *request) {
    return &((struct nimi_list_preset_voices_request *)request)->subject_user_id;
}

struct str *subject_of_upload_artifact(void *request) {
    const struct nimi_upload_artifact_request *message = request;
    if (message->which_payload != NIMI_UPLOAD_ARTIFACT_REQUEST_METADATA) return NULL;
    return &WRITABLE(struct nimi_upload_artifact_metadata, message->metadata)->subject_user_id;
}

struct str *subject_of_open_session(void *request) {
    return &((struct nimi_open_session_request *)request)->subject_user_id;
}

struct str *subject_of_get_connector(void *request) {
    return &((struct nimi_wire_get_connector_request *)request)->owner_id;
}

struct str *subject_of_list_connectors(void *request) {
    return &((struct nimi_wire_list_connectors_request *)request)->owner_id;
}

struct str *subject_of_list_connector_models(void *request) {
    return &((struct nimi_wire_list_connector_models_request *)request)->owner_id;
}

struct str *subject_of_send_app_message(void *request) {
    return &((struct nimi_send_app_message_request *)request)->subject_user_id;
}

struct str *subject_of_subscribe_app_messages(void *request) {
    return &((struct nimi_subscribe_app_messages_request *)request)->subject_user_id;
}

struct str *subject_of_list_audit_events(void *request) {
    return &((struct nimi_list_audit_events_request *)request)->subject_user_id;
}

struct str *subject_of_list_usage_stats(void *request) {
    return &((struct nimi_list_usage_stats_request *)request)->subject_user_id;
}

struct str *subject_of_submit_workflow(void *request) {
    return &((struct nimi_submit_workflow_request *)request)->subject_user_id;
}

struct str *subject_of_authorize_principal(void *request) {
    return &((struct nimi_authorize_external_principal_request *)request)->subject_user_id;
}
