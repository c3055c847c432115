/* audit: ListAuditEvents, ListUsageStats and ExportAuditEvents.
 *
 * All three read the audit log of one app: the body's app_id or the header's. With issuers of
 * tokens in the settings, the lists need a token and show what is its subject's; the export
 * needs one with the capability runtime.audit.export and shows the whole app. Without issuers
 * callers are believed, as everywhere in this protocol.
 *
 * Private to contract/nimi.
 *
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.8, 3.6, 6.5; checks.md K3.
 */
#ifndef WEIR_CONTRACT_NIMI_AUDIT_AUDIT_H
#define WEIR_CONTRACT_NIMI_AUDIT_AUDIT_H

#include "contract/nimi/call.h"
#include "store/audit_scan.h"

nimi_begin_fn audit_list_events, audit_list_usage, audit_export;

/* What a request may choose. */
struct audit_choice {
    struct str app, subject;
    const struct google_timestamp *from, *to;
};

/* Fill the filter, with texts kept by the call.
 * errors  PRINCIPAL_UNAUTHORIZED no app is named; APP_SCOPE_FORBIDDEN body and header name two */
MUST_CHECK bool audit_choose(struct nimi_call *call, const struct audit_choice *choice,
                             struct audit_filter *ret, struct fault *fault);

/* Whose records a list shows: the token's subject, else the one that was asked for. */
struct str audit_owner(const struct nimi_call *call, struct str asked);

/* The store, or NULL while there is none; then the call was refused. */
struct store *audit_store(struct nimi_call *call);

/* Refuse a call because the store could not read. */
void audit_unread(struct nimi_call *call, const struct err *failed);

#endif
