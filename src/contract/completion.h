/* completion: what a run comes to, gathered from its events for every contract that shows it as a message.
 *
 * Memory   owns its texts; completion_done() ends it.
 * Threads  none.
 */
#ifndef WEIR_CONTRACT_COMPLETION_H
#define WEIR_CONTRACT_COMPLETION_H

#include "base/text.h"
#include "conversation/seam.h"
#include "wire/event.h"
#include "wire/json.h"

#define COMPLETION_TEXT_MAX_BYTES (64 * MIB)

struct completion {
    uint64_t run;
    struct text model;   /* as the caller named it, or the agent that was asked */
    struct text session; /* where the conversation goes on */
    bool shaped;         /* the text must follow a schema: it is shown when it is whole */
    bool keeps_text;     /* for an answer in one piece */
    struct seam seam;
    struct buf reply;     /* the text of the reply that goes on */
    struct buf reasoning; /* of the turn, where it is shown */
    struct buf calls;     /* of the caller's tools: items of a JSON array, as Chat has them */
    size_t call_count;
    bool cut;         /* the newest reply was cut at its token limit */
    struct text stop; /* the stop sequence that it ended at; empty: none */
    bool usage_known;
    struct event_usage usage; /* sums; TOKENS_UNKNOWN if one is */
};

void completion_init(struct completion *completion);
void completion_done(struct completion *completion);

/* Note an event. True: it is text, and a blank line comes before it in a stream. */
bool completion_note(struct completion *completion, const struct event *event);

/* Append the text of the whole answer: of a run that is done, or whose caller has to make calls,
 * or that waits for a person (EVENT_APPROVAL). */
void completion_append_text(const struct completion *completion, const struct event *last,
                            struct buf *out);

/* What a person is asked. */
void completion_append_question(const struct event *event, struct buf *out);

/* "stop", "length", "tool_calls", "content_filter" */
struct str completion_finish_reason(const struct completion *completion,
                                    const struct event *last);

/* Whether a guardrail ended the run, or the model refused to answer, which is an answer and not a
 * failure. */
bool completion_is_filtered(const struct event *last);

/* Then: what the caller reads. Of a model that said something, its words. */
struct str completion_refusal(const struct event *last);

/* The members of a call, as Chat has them. `event` is an EVENT_TOOL_CALL. */
void completion_write_call(const struct event *event, struct json_writer *json);

/* Whether the sums of usage are complete. */
bool completion_knows_usage(const struct completion *completion);

/* "weir":{"run","session","approval":{...}}; `last` may be NULL. */
void completion_write_weir(const struct completion *completion, const struct event *last,
                           struct json_writer *json);

#endif
