/* subject: where a request names the user for whom it is made.
 *
 * With issuers of tokens in the settings the subject is the token's, and what the request says
 * must not differ (call.c). So every row says where its request names one. A function returns
 * the place inside the request, or NULL when this request has none.
 *
 * Private to contract/nimi.
 *
 * Memory   points into the request.
 * Threads  any.
 */
#ifndef WEIR_CONTRACT_NIMI_SUBJECT_H
#define WEIR_CONTRACT_NIMI_SUBJECT_H

#include "contract/nimi/call.h"

nimi_subject_fn subject_is_not_named, subject_of_stream_scenario, subject_of_execute_scenario,
    subject_of_submit_scenario_job, subject_of_list_preset_voices, subject_of_upload_artifact,
    subject_of_open_session, subject_of_get_connector, subject_of_list_connectors,
    subject_of_list_connector_models, subject_of_send_app_message,
    subject_of_subscribe_app_messages, subject_of_list_audit_events,
    subject_of_list_usage_stats, subject_of_submit_workflow, subject_of_authorize_principal,
    subject_of_open_realtime_session;

#endif
