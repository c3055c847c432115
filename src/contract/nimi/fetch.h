/* fetch: what jobs made, over HTTP.
 *
 *     http://HOST:PORT/v1/artifacts/TOKEN      GET, HEAD; one byte range
 *
 * The address is the capability: 192 random bits that stand beside the artifact in the store
 * (store/artifact.h), live and go with it, and are told to nobody but who may see the job. It
 * says nothing else, and nothing else leads to it. The host is that of the HTTP listener, or
 * the one that the caller came by where it listens everywhere.
 *
 * Memory   a reader holds one piece; the next is read when this one has nearly left.
 * Threads  a desk's loop.
 * Source   contracts/nimi.md 1.5, 6.2; RFC 9110 14 (ranges), 13.1.5 (If-Range).
 */
#ifndef WEIR_CONTRACT_NIMI_FETCH_H
#define WEIR_CONTRACT_NIMI_FETCH_H

#include "contract/nimi/call.h"
#include "store/artifact.h"

#define FETCH_PATH "/v1/artifacts/"
#define FETCH_URI_MAX_BYTES 512

/* One that nobody can guess. */
void fetch_token(char ret[static ARTIFACT_TOKEN_BYTES]);

/* Append where whoever made this call finds the artifact with `token`. False: it has none, or
 * nothing listens. */
bool fetch_uri(const struct nimi_call *call, struct str token, struct buf *out);

/* The host of an authority, "example.org:1" or "[::1]"; empty when it is none that may stand in
 * an address. */
struct str fetch_host(struct str authority);

/* One range of `size` bytes, as a Range header asks for it. */
enum fetch_range {
    FETCH_WHOLE, /* none is asked for, or it is in no form that is served: RFC 9110 14.2 */
    FETCH_PART,
    FETCH_OUTSIDE, /* 416 */
};

enum fetch_range fetch_range(struct str header, uint64_t size, uint64_t *ret_first,
                             uint64_t *ret_last);

/* The handler; `desk` is a struct nimi_desk. */
void fetch_artifact(struct route_call *call, void *desk);

#endif
