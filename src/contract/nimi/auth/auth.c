#include "contract/nimi/auth/auth.h"

#include "base/clock.h"
#include "contract/nimi/auth/sessions.h"
#include "contract/nimi/facts.h"
#include "contract/nimi/moment.h"
#include "contract/nimi/owner.h"
#include "proto/nimi.pb.h"

#include <stdio.h>

#define SUBJECT_MAX_BYTES (64 * KIB)
#define CLOCKS_MARGIN_MS (5 * 60 * 1000ll) /* by which the clocks of replicas may differ */
#define REVOKED_KEPT_MS ((SESSIONS_TTL_MAX_S + 3600) * 1000ll) /* until it would have expired */

static struct sessions *sessions_of(const struct nimi_call *call) {
    return call->instance->runtime->sessions;
}

/* --- the app ------------------------------------------------------------------------------ */

void auth_register_app(struct nimi_call *call, const void *request) {
    const struct nimi_register_app_request *from = request;
    char made[ULID_LEN + 1];
    struct str app_instance = from->app_instance_id;
    struct fault fault;
    if (!owner_app(call, from->app_id, &fault) ||
        (app_instance.len && !owner_id("app_instance_id", app_instance, &fault))) {
        nimi_refuse(call, &fault);
        return;
    }
    if (app_instance.len == 0) {
        ulid_new(made);
        app_instance = str_of(made, ULID_LEN);
    }
    const struct fact_app_fact app = {from->app_id, app_instance};
    facts_tell(facts_change(
        call, &(struct fact_fact){.app = &app}, clock_unix_ms() + FACTS_APP_KEPT_MS,
        &nimi_register_app_response_table,
        &(struct nimi_register_app_response){.app_instance_id = app_instance,
                                             .accepted = true,
                                             .reason_code = NIMI_ACTION_EXECUTED}));
}

/* --- its sessions ------------------------------------------------------------------------- */

static bool may_open(const struct nimi_call *call, const struct nimi_open_session_request *from,
                     struct fault *fault) {
    if (!owner_app(call, from->app_id, fault) ||
        (from->subject_user_id.len &&
         !owner_id("subject_user_id", from->subject_user_id, fault)))
        return false;
    return sessions_registered(sessions_of(call), from->app_id, from->app_instance_id) ||
           fault_set(fault, NIMI_APP_NOT_REGISTERED,
                     "this app_instance_id of the app is not registered; call RegisterApp "
                     "first");
}

/* The session is opened, or has a new token. */
static void tell_session(struct nimi_call *call, const struct session_opened *opened,
                         struct str app, struct str subject, int64_t until_ms,
                         const struct pb_message *type, const void *reply) {
    uint8_t digest[RANDOM_TOKEN_DIGEST_BYTES];
    random_token_digest(str_from(opened->token), digest);
    const struct fact_session_fact session = {.session_id = str_from(opened->id),
                                              .app_id = app,
                                              .subject = subject,
                                              .digest = str_of(digest, sizeof(digest)),
                                              .expires_ms = opened->expires_ms};
    facts_tell(
        facts_change(call, &(struct fact_fact){.session = &session}, until_ms, type, reply));
}

void auth_open_session(struct nimi_call *call, const void *request) {
    const struct nimi_open_session_request *from = request;
    struct session_opened opened;
    struct fault fault;
    if (!may_open(call, from, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    session_make(from->ttl_seconds, clock_unix_ms(), &opened);
    const struct google_timestamp issued = nimi_moment(opened.issued_ms);
    const struct google_timestamp expires = nimi_moment(opened.expires_ms);
    tell_session(call, &opened, from->app_id, call->subject,
                 opened.expires_ms + CLOCKS_MARGIN_MS, &nimi_open_session_response_table,
                 &(struct nimi_open_session_response){.session_id = str_from(opened.id),
                                                      .issued_at = &issued,
                                                      .expires_at = &expires,
                                                      .session_token = str_from(opened.token),
                                                      .reason_code = NIMI_ACTION_EXECUTED});
    explicit_bzero(&opened, sizeof(opened));
}

/* RefreshSession and RevokeSession name only the session; the app is the header's. */
static bool app_is_known(const struct nimi_call *call, struct str session_id,
                         struct fault *fault) {
    if (str_trim(session_id).len == 0)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "the request needs a session_id");
    return call->envelope.app_id.len ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "x-nimi-app-id is missing; it says whose session this is");
}

static void refuse_session(struct nimi_call *call, enum session_verdict verdict) {
    nimi_refuse_for(call,
                    verdict == SESSION_OVER ? NIMI_SESSION_EXPIRED : NIMI_APP_NOT_REGISTERED,
                    "this app has no such session any more; call OpenSession");
}

/* The fact also ends the token that it replaces, which may have a longer time. */
static void reply_refreshed(struct nimi_call *call, struct session_opened *opened,
                            struct str subject) {
    const struct google_timestamp expires = nimi_moment(opened->expires_ms);
    tell_session(
        call, opened, call->envelope.app_id, subject, clock_unix_ms() + REVOKED_KEPT_MS,
        &nimi_refresh_session_response_table,
        &(struct nimi_refresh_session_response){.session_id = str_from(opened->id),
                                                .expires_at = &expires,
                                                .session_token = str_from(opened->token),
                                                .reason_code = NIMI_ACTION_EXECUTED});
    explicit_bzero(opened, sizeof(*opened));
}

void auth_refresh_session(struct nimi_call *call, const void *request) {
    const struct nimi_refresh_session_request *from = request;
    struct session_opened opened;
    struct buf subject;
    struct fault fault;
    if (!app_is_known(call, from->session_id, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    buf_init(&subject, SUBJECT_MAX_BYTES);
    enum session_verdict verdict =
        sessions_renew(sessions_of(call), from->session_id, call->envelope.app_id,
                       call->subject, from->ttl_seconds, clock_unix_ms(), &opened, &subject);
    if (verdict == SESSION_VALID)
        reply_refreshed(call, &opened, buf_str(&subject));
    else
        refuse_session(call, verdict);
    buf_done(&subject);
}

/* Revoking twice is no mistake: the session is over either way. */
void auth_revoke_session(struct nimi_call *call, const void *request) {
    const struct nimi_revoke_session_request *from = request;
    struct fault fault;
    if (!app_is_known(call, from->session_id, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    bool found = sessions_may_end(sessions_of(call), from->session_id, call->envelope.app_id,
                                  call->subject);
    const struct fact_fact fact = {.revoked_session_id = from->session_id};
    const struct nimi_ack ack = {.ok = true,
                                 .reason_code = NIMI_ACTION_EXECUTED,
                                 .action_hint =
                                     found ? STR_EMPTY : STR("there was no such session")};
    if (found)
        facts_tell(facts_change(call, &fact, clock_unix_ms() + REVOKED_KEPT_MS, &nimi_ack_table,
                                &ack));
    else
        nimi_reply(call, &nimi_ack_table, &ack);
}

/* --- the session of another call ---------------------------------------------------------- */

static struct str header_of(struct nimi_call *call, const char *name) {
    struct str value = lent_read(rpc_metadata(call->rpc, str_from(name), NULL));
    return value.at ? str_trim(value) : STR_EMPTY;
}

void auth_take_session(struct nimi_call *call) {
    call->session_asked = call->session_token = STR_EMPTY;
    if (!(call->row->facts & NIMI_SESSION)) return;
    call->session_asked = rpc_keep(call->rpc, header_of(call, "x-nimi-session-id"));
    call->session_token = rpc_keep(call->rpc, header_of(call, "x-nimi-session-token"));
}

bool auth_check_session(struct nimi_call *call, struct fault *fault) {
    if (call->session_asked.len == 0) return true;
    switch (sessions_check(sessions_of(call), call->session_asked, call->session_token,
                           call->envelope.app_id, clock_unix_ms())) {
    case SESSION_VALID: call->session = call->session_asked; return true;
    case SESSION_OVER:
        return fault_set(fault, NIMI_SESSION_EXPIRED,
                         "this session has expired; call OpenSession");
    case SESSION_UNKNOWN: break;
    }
    return fault_set(fault, NIMI_APP_NOT_REGISTERED,
                     "the app has no such session, or this is not its token; call OpenSession");
}
