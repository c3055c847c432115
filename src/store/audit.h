/* audit: the audit log, as a chain of blocks in the table `audit`. Private to store/.
 *
 * The records of one transaction are one block (or a few: AUDIT_BLOCK_BYTES). Each block has the
 * hash of the block before it, so no bit of a block, no block and no order of blocks can change
 * without every later hash changing too:
 *
 *     first  1        4        5              hash = SHA-256(name of this format · previous ·
 *     count  3        1        2                     first · count · at_ms · upto · bytes)
 *     prev.  0 ◀──┐   hash 1 ◀─┐  hash 4      numbers: 8 bytes, lowest first
 *     bytes  ...  └── hash     └─ hash
 *
 * `first` is the number of the block's first record, and numbers have no gaps. `upto` counts the
 * bytes of all records ever written. `at_ms` is the time of the transaction.
 *
 * A record of what a transaction changes is in that transaction, so what was acknowledged is in
 * the log. The core adds records of runs itself, from the events of the rows (audit_see).
 * Tasks add theirs with audit_note().
 *
 * Blocks older or more than the limits allow are deleted from the front, some in each
 * transaction that writes a block. A record `runtime.audit pruned` then has the hash of the last
 * deleted block, which is the `previous` of the first one left: so the chain has a beginning
 * that a record vouches for.
 *
 * Memory   the records of one transaction; a little for each run that has begun and not ended,
 *          and 16 bytes for one that waits for a human.
 * Threads  the store's.
 * Source   contracts/nimi.md 3.6 K-AUDIT; docs/audit.md for what this proves and what not.
 */
#ifndef WEIR_STORE_AUDIT_H
#define WEIR_STORE_AUDIT_H

#include "store/audit_record.h"
#include "store/audit_run.h"
#include "store/database.h"
#include "store/row.h"
#include "wire/event.h"

#include <stdatomic.h>

#define AUDIT_HASH_BYTES 32
#define AUDIT_BLOCK_BYTES (64 * KIB) /* a block is closed when it has this much */

/* The end of the chain. */
struct audit_head {
    uint64_t seq; /* of the newest record; 0: there is none */
    uint64_t upto;
    uint8_t hash[AUDIT_HASH_BYTES];
};

/* How long records are kept, and how many bytes of them; 0: for ever, without a limit. Any
 * thread may change them. */
struct audit_limits {
    _Atomic uint64_t keep_ms, keep_bytes;
};

struct audit {
    struct database *db;
    const struct audit_limits *limits; /* NULL: everything is kept; audit_open() leaves it */
    struct prepared *append, *oldest, *remove;
    struct audit_head head; /* committed */
    struct audit_head next; /* in the open transaction */
    struct buf records;     /* of the next block */
    struct audit_said said; /* by them */
    uint64_t count;         /* how many */
    int64_t now_ms;         /* of this transaction; 0: not asked yet */
    struct audit_runs runs; /* unfinished ones */
    int64_t row;            /* the one that is being read */
    int64_t oldest_ms;      /* of the first block; INT64_MAX: not known, ask */
    uint64_t oldest_upto;
};

/* Open the chain at its end. Each start notes in `meta` how long the chain is (AUDIT_LENGTH); one
 * that is shorter than that note has lost records. The numbers then go on after the note, so
 * that the gap stays to be seen. */
MUST_CHECK bool audit_open(struct audit *audit, struct database *db, struct err *e);
void audit_close(struct audit *audit);

/* Outside a transaction's records: another process has written to the chain. */
MUST_CHECK bool audit_reread(struct audit *audit, struct err *e);

/* Within a transaction: audit_begin(); records; audit_finish() writes what is not written yet.
 * Then audit_kept() after the commit, or audit_undone(). */
void audit_begin(struct audit *audit);
int64_t audit_now(struct audit *audit); /* Unix time, the same in a whole transaction */
MUST_CHECK bool audit_add(struct audit *audit, const struct audit_record *record,
                          struct err *e);
MUST_CHECK bool audit_finish(struct audit *audit, struct err *e);
void audit_kept(struct audit *audit);
void audit_undone(struct audit *audit);

/* Add what an event of `run` in a row of the log tells: runs that begin and end, questions to
 * humans and their answers. A shared row has nothing but text. */
MUST_CHECK bool audit_see(struct audit *audit, int64_t row, uint64_t run,
                          const struct event *event, struct err *e);

/* The records of tasks. Without an open store (a test's own database) nothing is added. */
MUST_CHECK bool audit_note(struct database *db, const struct audit_record *record,
                           struct err *e);

/* The same for encoded records, one after the other. */
MUST_CHECK bool audit_note_all(struct database *db, struct str records, struct err *e);

/* The hash of a block, from its columns. */
struct audit_block {
    uint64_t first, count, upto;
    int64_t at_ms;
    struct str previous, hash, bytes;
};
void audit_hash(const struct audit_block *block, uint8_t ret[AUDIT_HASH_BYTES]);

/* SQL: how many records the chain has had. */
#define AUDIT_LENGTH                                                                           \
    "coalesce((SELECT first + count - 1 FROM audit ORDER BY first DESC LIMIT 1), 0)"

#define AUDIT_BLOCK_COLUMNS "first, count, at_ms, upto, previous, hash, bytes"

/* The columns above, from 0 on; borrowed until the next step. */
struct audit_block audit_block_of(struct prepared *row);

/* SHA-256 of texts one after the other, each after its length. */
void audit_digest(const struct str *texts, size_t count, uint8_t ret[AUDIT_HASH_BYTES]);

#endif
