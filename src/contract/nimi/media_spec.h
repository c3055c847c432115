/* media_spec: turn a scenario spec into a media request.
 *
 * Everything that cannot be done is refused here, before the call is accepted: numbers outside
 * the protocol's limits, unknown voices, options that no media interface supports, and whatever
 * this one says it cannot do (media_check).
 *
 * Memory   a request borrows from the spec, until media_spec_keep() copies it.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.3, 6.2 "limits".
 */
#ifndef WEIR_CONTRACT_NIMI_MEDIA_SPEC_H
#define WEIR_CONTRACT_NIMI_MEDIA_SPEC_H

#include "base/arena.h"
#include "contract/nimi/fault.h"
#include "provider/media.h"

/* errors  AI_MEDIA_SPEC_INVALID a number outside its limits; AI_VOICE_INPUT_INVALID,
 *         AI_VOICE_ASSET_NOT_FOUND the voice; AI_MEDIA_OPTION_UNSUPPORTED the rest */
MUST_CHECK bool media_spec_speech(const struct nimi_speech_synthesize_scenario_spec *spec,
                                  struct media *media, struct str model,
                                  struct media_request *ret, struct fault *fault);

/* errors  AI_MEDIA_OPTION_UNSUPPORTED not possible with this media interface */
MUST_CHECK bool media_spec_embedding(const struct nimi_text_embed_scenario_spec *spec,
                                     struct media *media, struct str model,
                                     struct media_request *ret, struct fault *fault);

/* errors  AI_MEDIA_SPEC_INVALID no prompt, a number outside its limits;
 *         AI_MEDIA_OPTION_UNSUPPORTED not possible with any media interface, or with this one
 */
MUST_CHECK bool media_spec_image(const struct nimi_image_generate_scenario_spec *spec,
                                 struct media *media, struct str model,
                                 struct media_request *ret, struct fault *fault);

/* Audio that came in chunks is joined in the arena.
 * errors  AI_MEDIA_SPEC_INVALID no audio, or a number outside its limits;
 *         AI_MEDIA_OPTION_UNSUPPORTED as above; AI_INPUT_INVALID no room in the arena */
MUST_CHECK bool media_spec_transcript(const struct nimi_speech_transcribe_scenario_spec *spec,
                                      struct media *media, struct str model,
                                      struct arena *arena, struct media_request *ret,
                                      struct fault *fault);

/* Copy everything that `request` borrows.
 * errors  AI_INPUT_INVALID it does not fit in the arena */
MUST_CHECK bool media_spec_keep(struct media_request *request, struct arena *arena,
                                struct fault *fault);

#endif
