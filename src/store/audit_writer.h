/* audit_writer: one loop's records of the audit log that are part of no other commit.
 *
 * Calls that were answered, refused tokens, the daemon's life. They are gathered for
 * AUDIT_GATHER_MS and then written as one task of the store, so no loop waits for the disk. A
 * record that is not written when the process is killed is lost: what must not be lost is
 * written with the thing that it is about (audit.h).
 *
 * Refused callers are counted, not listed: for each contract, place and reason one record every
 * AUDIT_REFUSED_MS says how many there were, and at most AUDIT_REFUSED_KINDS of these at a time.
 * So a flood of them costs nothing.
 *
 * Memory   at most AUDIT_WAITING_BYTES of records wait while others are written. Beyond that they
 *          are dropped and counted, and a record says how many.
 * Threads  its loop.
 */
#ifndef WEIR_STORE_AUDIT_WRITER_H
#define WEIR_STORE_AUDIT_WRITER_H

#include "store/audit_record.h"
#include "store/store.h"

#define AUDIT_GATHER_MS 200
#define AUDIT_REFUSED_MS 10000
#define AUDIT_REFUSED_KINDS 16
#define AUDIT_WAITING_BYTES (256 * KIB)

struct audit_writer;

struct audit_writer *audit_writer_new(struct loop *loop, struct store *store);

/* Everything was written or given up: audit_writer_stop() has answered, or the store never
 * opened. NULL is fine. */
void audit_writer_free(struct audit_writer *writer);

/* Add a record; its time is set here if it is 0. Without a writer, or after its stop, nothing
 * happens. */
void audit_writer_add(struct audit_writer *writer, const struct audit_record *record);

/* A caller was refused: contract, capability, reason and outcome of `record` count. */
void audit_writer_refused(struct audit_writer *writer, const struct audit_record *record);

/* The daemon's own records: of the whole runtime. `detail` may be empty. */
void audit_writer_tell(struct audit_writer *writer, struct str domain, struct str operation,
                       enum err_code outcome, struct str detail);

/* Write what waits. `stopped` is called once, never before this returns. */
void audit_writer_stop(struct audit_writer *writer, task_fn *stopped, void *ctx);

#endif
