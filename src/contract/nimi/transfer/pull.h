/* pull: read what a local model server says while it downloads a model.
 *
 * The answer to POST /api/pull of an Ollama-compatible server is JSON, one object a line:
 *
 *     {"status":"pulling manifest"}
 *     {"status":"pulling 6a07…","digest":"sha256:6a07…","total":4661211808,"completed":2139095}
 *     {"status":"verifying sha256 digest"}
 *     {"status":"success"}                        or at any time  {"error":"…"}
 *
 * A model has layers, each with a digest. Their sizes become known one after the other, so the
 * total may rise. Feed bytes as they arrive, in pieces of any size; there is no socket and no
 * clock in here.
 *
 * Memory   owns its line and its layers; all of them are bounded.
 * Threads  none.
 * Source   github.com/ollama/ollama, docs/api.md, "Pull a Model".
 */
#ifndef WEIR_CONTRACT_NIMI_TRANSFER_PULL_H
#define WEIR_CONTRACT_NIMI_TRANSFER_PULL_H

#include "base/err.h"
#include "wire/lines.h"

#define PULL_LINE_MAX_BYTES (16 * KIB)
#define PULL_LAYERS_MAX 256
#define PULL_TEXT_BYTES 200 /* of a status or an error, with its NUL */

enum pull_outcome {
    PULL_GOES_ON,
    PULL_SUCCEEDED, /* nothing after this is read */
    PULL_FAILED,    /* the server says why: `text` */
};

struct pull_layer {
    uint64_t digest; /* its hash */
    int64_t total, completed;
};

struct pull {
    struct lines lines;
    struct pull_layer layers[PULL_LAYERS_MAX];
    size_t layer_count;
    int64_t received, total; /* over all layers */
    enum pull_outcome outcome;
    char text[PULL_TEXT_BYTES]; /* the last status, or the error */
};

void pull_init(struct pull *pull);
void pull_done(struct pull *pull);

/* errors  ERR_MALFORMED a line is no such object, or its numbers cannot be true;
 *         ERR_TOO_LARGE a line or the number of layers is over its limit.
 *         Afterwards the pull is spent. */
MUST_CHECK bool pull_feed(struct pull *pull, struct str bytes, struct err *e);

/* The answer has ended. Reads a last line that no LF ends.
 * errors  as pull_feed(); ERR_UNAVAILABLE it ended before the outcome */
MUST_CHECK bool pull_end(struct pull *pull, struct err *e);

#endif
