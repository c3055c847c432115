/* audit_verify: look at the whole audit log, and name everything that is not as it was written.
 *
 * Found: any changed bit of a block; a block that is gone, twice there, or out of order; a
 * beginning that no record of pruning vouches for; an end before what a start, or the caller,
 * has seen. Not found: an end that is missing and was never seen; a chain that was written
 * again from some place to its end, by a program that computes the hashes (docs/audit.md).
 *
 * Memory   none but a page of the database.
 * Threads  the database's.
 */
#ifndef WEIR_STORE_AUDIT_VERIFY_H
#define WEIR_STORE_AUDIT_VERIFY_H

#include "store/audit.h"

struct audit_verdict {
    uint64_t first, last; /* numbers of the records that are there; 0: none */
    uint64_t blocks, bytes;
    struct audit_head head;
    size_t faults;
};

/* What a person noted of an earlier verdict: the number of the newest record and its block's
 * hash. */
struct audit_seen {
    uint64_t seq;
    uint8_t hash[AUDIT_HASH_BYTES];
};

/* Called for each fault, with a sentence about it. `seq` is where: a record, or the first record
 * of a block. */
typedef void audit_fault_fn(uint64_t seq, const char *text, void *ctx);

/* seen  may be NULL
 * True also when there are faults. False: the table cannot be read to its end. */
MUST_CHECK bool audit_verify(struct database *db, const struct audit_seen *seen,
                             audit_fault_fn *fault, void *ctx, struct audit_verdict *ret,
                             struct err *e);

#endif
