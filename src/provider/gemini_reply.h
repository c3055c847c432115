/* gemini_reply: what a streamed answer of generateContent says.
 *
 * Every event is a whole response that holds the next parts of the answer; there is no last
 * event, only a finishReason in one of them and counts that grow until the stream ends.
 *
 * Memory   as dialect.h.
 * Threads  as dialect.h.
 * Source   Gemini API v1beta, GenerateContentResponse; "Thought signatures".
 */
#ifndef WEIR_PROVIDER_GEMINI_REPLY_H
#define WEIR_PROVIDER_GEMINI_REPLY_H

#include "provider/dialect.h"

/* reply_new, feed, read, end and reply_free of the dialect. */
struct reply *gemini_reply_new(reply_event_fn *on_reply, void *ctx);
bool gemini_reply_feed(struct reply *reply, const struct sse_event *event);
bool gemini_reply_read(struct reply *reply, struct json answer);
enum reply_outcome gemini_reply_end(struct reply *reply, struct str *ret_model);
void gemini_reply_free(struct reply *reply);

#endif
