/* responses: the dialect of OpenAI's Responses API, streamed.
 *
 * Two files: responses.c writes the question, responses_reply.c reads the answer. Nothing is
 * stored at the vendor's, so reasoning travels with the conversation: the opaque message is the
 * array of the reply's output items as they came, when one of them is reasoning with encrypted
 * content.
 *
 * Source   docs/internals/providers.md "openai-responses".
 */
#ifndef WEIR_PROVIDER_RESPONSES_H
#define WEIR_PROVIDER_RESPONSES_H

#include "provider/dialect.h"

struct reply *responses_reply_new(reply_event_fn *on_reply, void *ctx);
bool responses_reply_feed(struct reply *reply, const struct sse_event *event);
bool responses_reply_read(struct reply *reply, struct json answer);
enum reply_outcome responses_reply_end(struct reply *reply, struct str *ret_model);
void responses_reply_free(struct reply *reply);

#endif
