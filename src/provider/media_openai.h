/* media_openai: speech, pictures, transcripts and vectors of a server that speaks OpenAI's API.
 *
 * It stands beside the provider of the conversations: the same address, key, headers, time
 * limits, retries and words for what goes wrong. Two things it does itself: another sample rate
 * of wav and pcm is resampled here (wire/wave.h), and only what is known of OpenAI's own voices
 * can be listed; of other servers none are known.
 *
 *     asking ─▶ shaping ─▶ over           states and their moves are those of media_work.h
 *      ▲ │ refused, 408, 409, 429, 5xx: again after Retry-After or a growing pause
 *      └─┘
 *
 * Memory   the options are copied; the pool must outlive the media.
 * Threads  as media.h.
 * Source   openai_media.h.
 */
#ifndef WEIR_PROVIDER_MEDIA_OPENAI_H
#define WEIR_PROVIDER_MEDIA_OPENAI_H

#include "provider/media.h"
#include "provider/remote.h"

struct media *media_openai_new(const struct remote_options *options);

#endif
