/* sigv4: sign a request as S3-compatible storage wants it (AWS Signature Version 4).
 *
 *     request ─▶ canonical request ─▶ string to sign ─▶ signature ─▶ Authorization
 *
 * The signature covers the method, the path, the query, the given headers and the SHA-256 of the
 * body. It holds for the day, the region and the service of its key, and servers accept it for
 * about 15 minutes around its time.
 *
 * Memory   appends to the caller's buffers; everything else is borrowed during the call.
 * Threads  any; values only.
 * Source   AWS General Reference, "Create a signed AWS API request"; Amazon S3 API Reference,
 *          "Authenticating requests (AWS Signature Version 4)".
 */
#ifndef WEIR_WIRE_SIGV4_H
#define WEIR_WIRE_SIGV4_H

#include "base/buf.h"
#include "wire/digest.h"

#define SIGV4_PAIRS_MAX 16  /* of a query, and of headers */
#define SIGV4_TIME_BYTES 17 /* "20130524T000000Z" and a NUL */

struct sigv4_pair {
    struct str name, value;
};

struct sigv4_request {
    struct str method;
    struct str path;                /* as sent, with sigv4_append_path(); "/" at least */
    const struct sigv4_pair *query; /* not encoded, in any order */
    size_t query_count;
    const struct sigv4_pair *headers; /* each name once, in lower case; all are signed */
    size_t header_count;
    struct str body_sum; /* SHA-256 of the body in hexadecimal digits */
};

struct sigv4_key {
    struct str access, secret, region, service;
};

/* The moment as it is signed and sent in x-amz-date. */
void sigv4_time(int64_t unix_s, char ret[SIGV4_TIME_BYTES]);

/* Append a path, each part percent-encoded, slashes as they are. */
bool sigv4_append_path(struct buf *out, struct str path);

/* Append "a=1&b=", sorted and percent-encoded: the same text is signed and sent. */
bool sigv4_append_query(struct buf *out, const struct sigv4_pair *query, size_t count);

/* The steps, for tests and for error reports. False at the buffer's limit. */
bool sigv4_canonical(const struct sigv4_request *request, struct buf *out);
bool sigv4_string_to_sign(const struct sigv4_key *key, const char *time, struct str canonical,
                          struct buf *out);

/* Append the value of the Authorization header. False at the buffer's limit. */
bool sigv4_authorize(const struct sigv4_key *key, const char *time,
                     const struct sigv4_request *request, struct buf *out);

#endif
