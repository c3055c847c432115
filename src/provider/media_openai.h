/* media_openai: speech, images, transcripts and embeddings from a server with OpenAI's API.
 *
 * It uses the same address, key, headers, time limits, retries and error texts as the chat
 * provider. Two things differ. If wav or pcm arrives in another sample rate, it is resampled
 * here (wire/wave.h). Voices are listed only for OpenAI itself; those of other servers are not
 * known.
 *
 *     asking ─▶ shaping ─▶ over           the states and moves of media_work.h
 *      ▲ │ refused, 408, 409, 429, 5xx: retry after Retry-After or a growing pause
 *      └─┘
 *
 * Memory   the options are copied; the pool must outlive the result.
 * Threads  as media.h.
 * Source   openai_media.h.
 */
#ifndef WEIR_PROVIDER_MEDIA_OPENAI_H
#define WEIR_PROVIDER_MEDIA_OPENAI_H

#include "provider/media.h"
#include "provider/remote.h"

struct media *media_openai_new(const struct remote_options *options);

#endif
