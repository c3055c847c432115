/* openai_media: encode requests and decode responses of OpenAI's media APIs.
 *
 *     speech       POST /audio/speech          JSON ─▶ audio bytes
 *     embedding    POST /embeddings            JSON ─▶ JSON, one vector per input
 *     image        POST /images/generations    JSON ─▶ JSON, base64 or URLs
 *     transcript   POST /audio/transcriptions  form ─▶ JSON, text
 *
 * No socket and no clock: a test drives it with strings and the fuzzer with noise.
 *
 * Memory   borrows requests and responses. Decoded values live in the caller's arena, or in
 *          the response where no conversion was needed.
 * Threads  any; decode on a thread beside the loops.
 * Source   OpenAI's API reference (Audio, Embeddings, Images); docs/internals/media.md.
 */
#ifndef WEIR_PROVIDER_OPENAI_MEDIA_H
#define WEIR_PROVIDER_OPENAI_MEDIA_H

#include "provider/media_work.h"

/* OpenAI's pcm: one channel, signed 16 bits, little-endian. */
#define OPENAI_PCM_RATE_HZ 24000

/* The longest response body that is read. */
size_t openai_media_max_bytes(enum media_task task);

/* errors  ERR_INVALID_ARGUMENT what this API does not support, and what it does */
MUST_CHECK bool openai_media_check(const struct media_request *request, struct err *e);

/* The path to append to the base URL: "/audio/speech". */
const char *openai_media_path(enum media_task task);

/* Append the body to `out`, and the value of its content-type header to `type`.
 * errors  those of openai_media_check(); ERR_TOO_LARGE */
MUST_CHECK bool openai_media_body(const struct media_request *request, struct buf *type,
                                  struct buf *out, struct err *e);

/* Decode a 200 response. False: `ret_failure` is set.
 * type  its content-type header */
MUST_CHECK bool openai_media_read(const struct media_request *request, struct str type,
                                  struct str body, struct arena *arena, struct media_made *ret,
                                  struct reply_failure *ret_failure);

#endif
