/* openai_media: what OpenAI's API has beside conversations, as bodies and back.
 *
 *     speech       POST /audio/speech          JSON ─▶ the sound itself
 *     embedding    POST /embeddings            JSON ─▶ JSON, a vector an input
 *     image        POST /images/generations    JSON ─▶ JSON, base64 or addresses
 *     transcript   POST /audio/transcriptions  a form ─▶ JSON, a text
 *
 * No socket and no clock: a test drives it with strings and the fuzzer with noise.
 *
 * Memory   borrows requests and answers; what is read lives in the caller's arena, and in the
 *          answer where nothing had to be changed.
 * Threads  any; reading is work for a thread beside the loops.
 * Source   OpenAI's API reference (Audio, Embeddings, Images); docs/internals/media.md.
 */
#ifndef WEIR_PROVIDER_OPENAI_MEDIA_H
#define WEIR_PROVIDER_OPENAI_MEDIA_H

#include "provider/media_work.h"

/* What pcm is there: one channel of signed 16 bits, little-endian. */
#define OPENAI_PCM_RATE_HZ 24000

/* The longest body that is read. */
size_t openai_media_max_bytes(enum media_task task);

/* errors  ERR_INVALID_ARGUMENT what this API cannot be asked, and what it can */
MUST_CHECK bool openai_media_check(const struct media_request *request, struct err *e);

/* "/audio/speech", behind the base URL. */
const char *openai_media_path(enum media_task task);

/* Append the body to `out`, and the value of its content-type header to `type`.
 * errors  those of openai_media_check(); ERR_TOO_LARGE */
MUST_CHECK bool openai_media_body(const struct media_request *request, struct buf *type,
                                  struct buf *out, struct err *e);

/* What stands in an answer of 200. False: `ret_failure` is set.
 * type  of its content, as its head says */
MUST_CHECK bool openai_media_read(const struct media_request *request, struct str type,
                                  struct str body, struct arena *arena, struct media_made *ret,
                                  struct reply_failure *ret_failure);

#endif
