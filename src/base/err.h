/* err: what went wrong, for the program and for the person.
 *
 * A function that can fail returns bool and fills a struct err: a code that the program can
 * act on, and a sentence that says what failed, why, and how to fix it. err_set() starts the
 * error where it happens. err_add() prepends context on the way up. Both return false, so a
 * failure reads `return err_set(...)`.
 *
 * err_kinds is the one table that maps a code to each transport's status.
 *
 * Memory   a plain value; text is cut at its size, on a character boundary.
 * Threads  none.
 * Source   gRPC status codes (grpc/statuscodes.md); RFC 9110 15 for HTTP.
 */
#ifndef WEIR_BASE_ERR_H
#define WEIR_BASE_ERR_H

#include "base/str.h"

/* In the order of the gRPC status codes: a code's number is its grpc-status. */
enum err_code {
    ERR_NONE,
    ERR_CANCELLED,
    ERR_UNKNOWN,
    ERR_INVALID_ARGUMENT,
    ERR_DEADLINE_EXCEEDED,
    ERR_NOT_FOUND,
    ERR_ALREADY_EXISTS,
    ERR_PERMISSION_DENIED,
    ERR_RESOURCE_EXHAUSTED,
    ERR_FAILED_PRECONDITION,
    ERR_ABORTED,
    ERR_OUT_OF_RANGE,
    ERR_UNIMPLEMENTED,
    ERR_INTERNAL,
    ERR_UNAVAILABLE,
    ERR_DATA_LOSS,
    ERR_UNAUTHENTICATED,
    /* From here on: kinds that HTTP distinguishes and gRPC does not. */
    ERR_MALFORMED, /* the bytes do not parse */
    ERR_TOO_LARGE, /* one of our size limits was reached */
    /* A request was sent and its answer was lost: it is unknown whether it took effect. */
    ERR_EFFECT_UNKNOWN,
    ERR_OUT_OF_MEMORY, /* the ceiling of base/mem.h was reached */
    /* The store cannot tell yet whether it kept something: repeat it with the same key. */
    ERR_OUTCOME_UNKNOWN,
    ERR_CODE_COUNT,
};

struct err_kind {
    const char *name; /* the canonical gRPC name, for searching */
    int grpc_status;  /* 0 to 16 */
    int http_status;  /* 200 to 599 */
    bool retry;       /* whether asking again later, unchanged, can help */
};

extern const struct err_kind err_kinds[ERR_CODE_COUNT];

#define ERR_TEXT_BYTES 480

struct err {
    enum err_code code;
    uint32_t retry_after_ms;   /* when asking again can help; 0: unknown. err_set() clears it */
    char text[ERR_TEXT_BYTES]; /* ends in NUL; valid UTF-8, whatever was quoted */
};

/* Start an error. Returns false. */
PRINTF_LIKE(3, 4) bool err_set(struct err *e, enum err_code code, const char *format, ...);

/* Put "context: " in front of the text. Returns false. */
PRINTF_LIKE(2, 3) bool err_add(struct err *e, const char *format, ...);

static inline struct str err_text(const struct err *e) {
    return str_from(e->text);
}

static inline struct str err_name(enum err_code code) {
    return str_from(err_kinds[code].name);
}

/* The code with this canonical name, or ERR_UNKNOWN. The comparison ignores case and
 * underscores ("NotFound" is NOT_FOUND) and accepts both spellings of CANCELLED. */
enum err_code err_code_named(struct str name);

#endif
