/* prompt: turn the conversation of a TEXT_GENERATE request into a provider request.
 *
 * The text of a message is taken from its parts if it has any, otherwise from its content,
 * because upstream's SDK writes it to both. Pictures are included. Pictures that are referred
 * to as artifacts are read by attach.h and added before the model is asked.
 *
 * Memory   everything is copied to the arena.
 * Threads  none.
 * Source   contracts/nimi.md 1.3; checks.md K31.
 */
#ifndef WEIR_CONTRACT_NIMI_PROMPT_H
#define WEIR_CONTRACT_NIMI_PROMPT_H

#include "contract/nimi/fault.h"
#include "provider/provider.h"

struct prompt {
    struct provider_request request;
    struct model_options options;      /* request.options points here */
    struct str asked;                  /* the last user message */
    struct prompt_artifact *artifacts; /* still to be added */
    size_t artifact_count;
};

/* An uploaded picture and the message it belongs to. */
struct prompt_artifact {
    struct str id;
    struct message *message;
};

/* `ret` must not move afterwards.
 * errors  AI_INPUT_INVALID an unknown role, no user message, tools, or a system message at the
 *         end; AI_MODALITY_NOT_SUPPORTED a part that is neither text nor a picture, or a
 *         picture that is not in a user message; all with the place, "input[2].parts[1]: ..."
 *         */
MUST_CHECK bool prompt_build(const struct nimi_text_generate_scenario_spec *spec,
                             struct str model, struct arena *arena, struct prompt *ret,
                             struct fault *fault);

/* Put the bytes of an artifact into its message.
 * errors  AI_INPUT_INVALID the arena is full; AI_MODALITY_NOT_SUPPORTED it is not a picture */
MUST_CHECK bool prompt_attach(const struct prompt_artifact *artifact, struct str media_type,
                              struct str bytes, struct arena *arena, struct fault *fault);

#endif
