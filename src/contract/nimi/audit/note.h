/* note: a call's record in the audit log, and what it used.
 *
 * Every call that does more than read gets a record when it is over. A write with an idempotency
 * key is made once and recorded once, however many calls waited for it. Callers whom the
 * interceptors refuse are counted (store/audit_writer.h).
 *
 * Private to contract/nimi.
 *
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.6 K-AUDIT-001, 010, 011, 018.
 */
#ifndef WEIR_CONTRACT_NIMI_AUDIT_NOTE_H
#define WEIR_CONTRACT_NIMI_AUDIT_NOTE_H

#include "contract/nimi/call.h"

/* The call is over. */
void audit_note_call(const struct nimi_call *call);

/* An interceptor refused the call. */
void audit_note_refused(const struct nimi_call *call, const struct fault *fault);

/* A provider's probes changed their verdict (K-PROV). */
struct audit_writer;
void audit_note_provider(struct audit_writer *writer, const struct nimi_probed *probed);

#endif
