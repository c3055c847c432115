/* prompt: the conversation of a TEXT_GENERATE request, as providers take it.
 *
 * A message's words are its parts where it has any, else its content: upstream's SDK writes
 * them in both. Pictures go along; what is referred to as an artifact is read by attach.h and
 * put in before anybody is asked.
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
    struct str asked;                  /* what the user said last */
    struct prompt_artifact *artifacts; /* that are still to be put in */
    size_t artifact_count;
};

/* A picture that was uploaded, and the message that shows it. */
struct prompt_artifact {
    struct str id;
    struct message *message;
};

/* `ret` must stay where it is.
 * errors  AI_INPUT_INVALID a role nobody knows, no user, tools, a system message that is the
 *         last one; AI_MODALITY_NOT_SUPPORTED parts that are neither text nor pictures,
 * pictures of others than users; all with the place, "input[2].parts[1]: ..." */
MUST_CHECK bool prompt_build(const struct nimi_text_generate_scenario_spec *spec,
                             struct str model, struct arena *arena, struct prompt *ret,
                             struct fault *fault);

/* Put the bytes of an artifact in its place.
 * errors  AI_INPUT_INVALID the arena is full; AI_MODALITY_NOT_SUPPORTED it is no picture */
MUST_CHECK bool prompt_attach(const struct prompt_artifact *artifact, struct str media_type,
                              struct str bytes, struct arena *arena, struct fault *fault);

#endif
