/* view: a record of the audit log as AuditEventRecord, in protobuf and in JSON.
 *
 * What the message has no field for stands in `payload`: request_id, run, contract, outcome,
 * model, detail, digest and the counts. The JSON is protobuf's, with the names of the proto
 * file, and leaves out what is not set.
 *
 * Private to contract/nimi.
 *
 * Memory   a view borrows the record and must not move.
 * Threads  any; values only.
 * Source   contracts/nimi.md 1.8, 3.6 K-AUDIT-018, 6.5; section 9 number 31.
 */
#ifndef WEIR_CONTRACT_NIMI_AUDIT_VIEW_H
#define WEIR_CONTRACT_NIMI_AUDIT_VIEW_H

#include "contract/nimi/reason.h"
#include "store/audit_scan.h"

#define AUDIT_VIEW_FIELDS 16

struct audit_view {
    struct nimi_audit_event_record event;
    struct google_timestamp at;
    struct google_struct payload;
    struct google_struct_fields_entry fields[AUDIT_VIEW_FIELDS];
    struct google_value values[AUDIT_VIEW_FIELDS];
    size_t count;
    char id[24], run[24], digest[2 * 32];
};

void audit_view_init(struct audit_view *view, const struct audit_record *record);

/* Append the view as one JSON object. */
void audit_view_json(const struct audit_view *view, struct buf *out);

/* A text of the record as a message may have it: up to what is no UTF-8. Earlier versions kept a
 * caller's headers as they came. */
struct str audit_view_text(const struct audit_record *record, enum audit_text text);

/* CALLER_KIND_... of what a caller says it is ("third-party-app"), and back; 0 and empty: none
 * of them. */
int32_t audit_view_caller_kind(struct str name);
struct str audit_view_caller_name(int32_t kind);

/* Restrict the filter to records that are shown with this reason code.
 * False: there is no such code. */
bool audit_view_filter(int32_t reason, struct audit_filter *filter);

#endif
