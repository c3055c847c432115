/* media_request: the bodies of /v1/embeddings and /v1/audio/speech, and whose model they ask.
 *
 * Memory   results are views into the body or lie in the caller's arena.
 * Threads  none.
 * Source   OpenAI API reference, "Create embeddings" and "Create speech".
 */
#ifndef WEIR_CONTRACT_OPENAI_MEDIA_REQUEST_H
#define WEIR_CONTRACT_OPENAI_MEDIA_REQUEST_H

#include "contract/openai/request.h"
#include "provider/media.h"

#define EMBEDDING_INPUTS_MAX 2048

struct media_ask {
    struct media_request request;
    struct str user;
    bool base64;       /* vectors as the bytes of 32-bit floats */
    bool names_format; /* speech */
};

MUST_CHECK bool embedding_request_parse(struct request_reading *reading, struct str body,
                                        struct media_ask *ret);
MUST_CHECK bool speech_request_parse(struct request_reading *reading, struct str body,
                                     struct media_ask *ret);

struct config;
struct team;

/* The media provider for ret->request.model: of the connector that lists the model or whose id
 * stands before it ("voice/espeak-ng"; the rest is the model then), else of the first that can
 * do the task. NULL: there is none. */
struct media *media_request_choose(const struct config *config, const struct team *team,
                                   struct media_request *request);

#endif
