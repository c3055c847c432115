/* anthropic_reply: what a streamed answer of the Messages API says.
 *
 *     message_start ─▶ content_block_start ─▶ content_block_delta ... ─▶ content_block_stop
 *                        ▲ next block, or ─▶ message_delta (why it stopped) ─▶ message_stop
 *
 * A call of a tool is told when the next block begins or the reason to stop is known, not when
 * its own block ends: an answer that reaches its token limit may break off inside the arguments
 * and still end the block, and half a call must not be made.
 *
 * Memory   as dialect.h.
 * Threads  as dialect.h.
 * Source   Messages API 2023-06-01, "Streaming messages", "Handling stop reasons".
 */
#ifndef WEIR_PROVIDER_ANTHROPIC_REPLY_H
#define WEIR_PROVIDER_ANTHROPIC_REPLY_H

#include "provider/dialect.h"

/* reply_new, feed, read, end and reply_free of the dialect. */
struct reply *anthropic_reply_new(reply_event_fn *on_reply, void *ctx);
bool anthropic_reply_feed(struct reply *reply, const struct sse_event *event);
bool anthropic_reply_read(struct reply *reply, struct json answer);
enum reply_outcome anthropic_reply_end(struct reply *reply, struct str *ret_model);
void anthropic_reply_free(struct reply *reply);

#endif
