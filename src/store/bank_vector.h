/* bank_vector: the vectors of a bank's records, and which of them are still to be made.
 *
 * A bank with a dimension has a vector for each record, which a model makes after the record was
 * retained. They are made in the order of the records' numbers, so one number says how far a bank
 * has come, and nothing is forgotten over restarts:
 *
 *     retain ─▶ record n (bank.newest) ─▶ bank_behind_start() ─▶ a model
 *                                              ▲                    │
 *                       bank.embedded = n ◀────┴─ bank_embedded_start()
 *
 * The vectors of a bank are a space. When they are to be made again (bank_reindex_start) the bank
 * gets another space; those of the old one go in steps (bank_prune_start). What comes late for an
 * old space is dropped.
 *
 *     bank_vector.place = space << 39 | record      a space is one range of the table
 *     bank_vector.bytes = its numbers as IEEE 754 binary32, in the byte order of the machine
 *
 * Memory, Threads  as bank.h.
 */
#ifndef WEIR_STORE_BANK_VECTOR_H
#define WEIR_STORE_BANK_VECTOR_H

#include "store/bank.h"

#define BANK_DIMENSION_MAX 4096
#define BANK_VECTORS_MAX_BYTES (INT64_C(1024) * MIB) /* of one bank */
#define BANK_BEHIND_MAX 64                           /* records in one answer */
#define BANK_BEHIND_MAX_BYTES (256 * KIB)

/* A bank that has records without a vector. */
struct bank_behind {
    int64_t bank, space; /* no bank: there is none */
    size_t dimension;
    struct store_owner owner;
    struct str body; /* the bank's */
    /* Its next records. None: they were deleted, and `upto` can be noted. */
    const struct bank_behind_record {
        int64_t number;
        struct str words;
    } * records;
    size_t count;
    int64_t upto; /* the last of them */
};

/* Called once, on `loop`, never before the start function returns. */
typedef void bank_behind_fn(const struct bank_behind *behind, const struct err *failed,
                            void *ctx);

struct bank_behind_ask;

/* The first such bank whose number is higher than `after`. */
struct bank_behind_ask *bank_behind_start(struct store *store, struct loop *loop, int64_t after,
                                          bank_behind_fn *done, void *ctx);
void bank_behind_leave(
    struct bank_behind_ask *ask); /* `done` will not be called; NULL is fine */

struct bank_vector {
    int64_t number;      /* of the record */
    const float *values; /* NULL: it gets none */
};

/* Keep vectors, and note that the bank has come as far as the record `upto`. The values are
 * copied. Records that are gone, and another space than the bank's, change nothing. */
struct bank_ask *bank_embedded_start(struct store *store, struct loop *loop,
                                     const struct bank_behind *behind,
                                     const struct bank_vector *vectors, size_t count,
                                     int64_t upto, bank_done_fn *done, void *ctx);

/* Give the bank `name` another body and dimension, and make all its vectors again. The answer is
 * the bank as it is then; without an event, since no such event exists.
 * errors  ERR_NOT_FOUND the owner has no such bank there */
struct bank_ask *bank_reindex_start(struct store *store, struct loop *loop,
                                    const struct bank_where *where, struct str name,
                                    struct str body, size_t dimension, bank_done_fn *done,
                                    void *ctx);

#endif
