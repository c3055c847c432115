/* prompt: the conversation of a TEXT_GENERATE request, as providers take it.
 *
 * Memory   everything is copied to the arena.
 * Threads  none.
 * Source   contracts/nimi.md 1.3.
 */
#ifndef WEIR_CONTRACT_NIMI_PROMPT_H
#define WEIR_CONTRACT_NIMI_PROMPT_H

#include "contract/nimi/fault.h"
#include "provider/provider.h"

struct prompt {
    struct provider_request request;
    struct model_options options; /* request.options points here */
    struct str asked;             /* what the user said last */
};

/* `ret` must stay where it is.
 * errors  AI_INPUT_INVALID a role nobody knows, no user, tools; AI_MODALITY_NOT_SUPPORTED
 *         parts that are no text */
MUST_CHECK bool prompt_build(const struct nimi_text_generate_scenario_spec *spec,
                             struct str model, struct arena *arena, struct prompt *ret,
                             struct fault *fault);

#endif
