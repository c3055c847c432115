/* fetch: serve the artifacts of jobs over HTTP.
 *
 *     http://HOST:PORT/v1/artifacts/TOKEN      GET, HEAD; one byte range
 *
 * The address is the capability: 192 random bits that are stored with the artifact
 * (store/artifact.h), are deleted with it and are shown only to callers who may see the job.
 * The address reveals nothing else, and there is no other way to the artifact. The host is that
 * of the HTTP listener; if that listens on every address, it is the host the caller used.
 *
 * Memory   a reader holds one piece; the next is read when most of it has been sent.
 * Threads  an instance's loop.
 * Source   contracts/nimi.md 1.5, 6.2; RFC 9110 14 (ranges), 13.1.5 (If-Range).
 */
#ifndef WEIR_CONTRACT_NIMI_FETCH_H
#define WEIR_CONTRACT_NIMI_FETCH_H

#include "contract/nimi/call.h"
#include "store/artifact.h"

#define FETCH_PATH "/v1/artifacts/"
#define FETCH_URI_MAX_BYTES 512

/* Make a new random token. */
void fetch_token(char ret[static ARTIFACT_TOKEN_BYTES]);

/* Append the URL at which this caller can fetch the artifact with `token`. False: it has no
 * token, or no HTTP listener is open. */
bool fetch_uri(const struct nimi_call *call, struct str token, struct buf *out);

/* The host of an authority such as "example.org:1" or "[::1]". Empty when it cannot be used in
 * a URL. */
struct str fetch_host(struct str authority);

/* The byte range that a Range header asks for, of `size` bytes. */
enum fetch_range {
    FETCH_WHOLE, /* no range, or a form we do not support: RFC 9110 14.2 */
    FETCH_PART,
    FETCH_OUTSIDE, /* 416 */
};

enum fetch_range fetch_range(struct str header, uint64_t size, uint64_t *ret_first,
                             uint64_t *ret_last);

/* The route's handler; `instance` is a struct nimi_instance. */
void fetch_artifact(struct route_call *call, void *instance);

#endif
