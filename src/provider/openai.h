/* openai: the dialect of Chat Completions, streamed, and of all who speak it.
 *
 * OpenAI, Azure, OpenRouter, DeepSeek, Mistral, Groq, Ollama, vLLM, llama.cpp and LM Studio
 * agree on the road and differ in the details; what is known of each stands where it matters.
 * Two files: openai.c writes the question, openai_reply.c reads the answer. Their only common
 * knowledge is the opaque message: one object with the members that the assistant's message
 * carries besides its text and calls when it is sent back,
 *
 *     {"reasoning_details":[...]}      OpenRouter: signed or encrypted reasoning
 *     {"reasoning_content":"..."}      DeepSeek and others: wanted back beside tool calls
 *
 * Source   docs/internals/providers.md "openai".
 */
#ifndef WEIR_PROVIDER_OPENAI_H
#define WEIR_PROVIDER_OPENAI_H

#include "provider/dialect.h"

struct reply *openai_reply_new(reply_event_fn *on_reply, void *ctx);
bool openai_reply_feed(struct reply *reply, const struct sse_event *event);
bool openai_reply_read(struct reply *reply, struct json answer);
enum reply_outcome openai_reply_end(struct reply *reply, struct str *ret_model);
void openai_reply_free(struct reply *reply);

#endif
