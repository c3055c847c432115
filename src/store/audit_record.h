/* audit_record: one entry of the audit log, and its bytes.
 *
 *     record = length varint · at_ms varint · field*
 *     field  = tag byte · value      value = length varint · bytes   (tags below 63)
 *                                          | varint                  (tags from 63 on)
 *
 * Fields stand in the order of their tags, each at most once, and a field that is not set has no
 * bytes. Of what happens in every turn, domain and operation are one number (tag 63). A reader
 * skips tags that it does not know. The tags are on disk: never change one.
 *
 * A record of a block need not repeat what records before it in the block said last: tag 71 is a
 * set of bits, of what is as it was said (audit_said). So the end of a turn does not name its
 * owner once more.
 *
 * Memory   a decoded record borrows the bytes, and with tag 71 those of records before it.
 * Threads  any; values only.
 */
#ifndef WEIR_STORE_AUDIT_RECORD_H
#define WEIR_STORE_AUDIT_RECORD_H

#include "base/buf.h"
#include "base/err.h"

enum audit_text {
    AUDIT_DOMAIN,      /* "runtime.run", "runtime.memory", "runtime.lifecycle" ... */
    AUDIT_OPERATION,   /* "start", "put", "ready" ... */
    AUDIT_WORKSPACE,   /* of whom; for Nimi the app. Empty: of the whole runtime */
    AUDIT_USER,        /* for Nimi the subject */
    AUDIT_CONTRACT,    /* the contract it came by, or "agent": a tool of an agent */
    AUDIT_CALLER_KIND, /* what the caller says it is */
    AUDIT_CALLER,
    AUDIT_SURFACE,
    AUDIT_TRACE,
    AUDIT_CAPABILITY, /* the agent, tool, method or listener that it is about */
    AUDIT_MODEL,
    AUDIT_REASON, /* a stable name for programs: "AUTH_TOKEN_INVALID" */
    AUDIT_DIGEST, /* SHA-256 of the payload: 32 bytes */
    AUDIT_DETAIL, /* words for people, without secrets */
    AUDIT_TEXTS,
};

enum audit_number {
    AUDIT_RUN,
    AUDIT_OUTCOME, /* an enum err_code; absent: nothing has come of it yet */
    AUDIT_COUNT,   /* how many this record stands for */
    AUDIT_INPUT_TOKENS,
    AUDIT_OUTPUT_TOKENS,
    AUDIT_COMPUTE_MS,
    AUDIT_QUEUE_MS,
    AUDIT_NUMBERS,
};

#define AUDIT_TEXT_MAX_BYTES 256 /* of each text; longer ones are cut */
#define AUDIT_DETAIL_MAX_BYTES 1024
#define AUDIT_RECORD_MAX_BYTES                                                                 \
    (AUDIT_DETAIL_MAX_BYTES + AUDIT_TEXTS * (AUDIT_TEXT_MAX_BYTES + 8))
#define AUDIT_RECORD_ENCODED_BYTES (AUDIT_RECORD_MAX_BYTES + 128) /* with numbers and length */

struct audit_record {
    uint64_t seq;  /* 1, 2, 3 ...; not in the bytes: it follows from the place */
    int64_t at_ms; /* Unix time */
    struct str texts[AUDIT_TEXTS]; /* empty: not set */
    bool set[AUDIT_NUMBERS];
    uint64_t numbers[AUDIT_NUMBERS]; /* valid where set */
};

static inline void audit_set(struct audit_record *record, enum audit_number number,
                             uint64_t value) {
    record->set[number] = true;
    record->numbers[number] = value;
}

/* A number's value, or -1 when it is not set. */
static inline int64_t audit_get(const struct audit_record *record, enum audit_number number) {
    return record->set[number] ? (int64_t)record->numbers[number] : -1;
}

/* Who did it: by which contract, and as which user; either may be empty. */
struct audit_actor {
    struct str contract, user;
};
#define AUDIT_NOBODY ((struct audit_actor){STR_EMPTY, STR_EMPTY})

/* "domain", "operation", ... as JSON and the command line name them. */
const char *audit_text_name(enum audit_text text);
const char *audit_number_name(enum audit_number number);

/* What the records of a block said last, from its first one on; all zero: nothing yet. Borrows
 * their bytes, which must not move. */
struct audit_said {
    bool some;
    bool has_run;
    int64_t at_ms;
    uint64_t run;
    struct str texts[AUDIT_TEXTS]; /* of those that may be referred to */
};

/* Append the record's bytes. Texts are cut to their limits, at a character; in AUDIT_DETAIL what
 * looks like a secret is hidden. False at the buffer's limit, and nothing is appended.
 * said  what the record may refer to, and to which it is added; NULL: it stands by itself */
bool audit_record_encode(const struct audit_record *record, struct audit_said *said,
                         struct buf *out);

/* Read the first record of *bytes and move *bytes past it. `seq` is 0.
 * said    what the records before it in its block said; it is added. NULL: there is no block
 * errors  ERR_DATA_LOSS truncated, fields that are no fields, or it refers to what was not said */
MUST_CHECK bool audit_record_decode(struct str *bytes, struct audit_said *said,
                                    struct audit_record *ret, struct err *e);

/* A digest or a hash as text; `room` has two bytes for each of its AUDIT_DIGEST_BYTES. */
#define AUDIT_DIGEST_BYTES 32
struct str audit_hex(struct str digest, char room[2 * AUDIT_DIGEST_BYTES]);

/* Append a time as text: "2026-03-01T12:00:00.250Z". False when the year has more than four
 * digits. */
bool audit_time(int64_t at_ms, struct buf *out);

/* Append the record as one JSON object:
 * {"seq":1,"at":"2026-03-01T12:00:00.250Z","domain":...}. A digest is written in hex, an outcome
 * as the name of its code. */
bool audit_record_json(const struct audit_record *record, struct buf *out);

#endif
