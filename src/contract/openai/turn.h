/* turn: one request of OpenAI's API that runs an agent. Private to this contract.
 *
 * What Chat Completions and Responses have in common: who asks, the session, a run that begins
 * or a decision that one waits for, refusals. The form is a struct of functions.
 *
 *     request ─▶ session named, a run of it waits ─▶ the last message decides ─┐
 *        │                └─▶ it decides nothing: the question again             ▼
 *        └─▶ a new run ─────────────────────────────────────────────▶ events ─▶ answer
 *
 * Memory   lives from its request until its answer is out or its caller is gone.
 * Threads  the instance's loop.
 */
#ifndef WEIR_CONTRACT_OPENAI_TURN_H
#define WEIR_CONTRACT_OPENAI_TURN_H

#include "contract/openai/completion.h"
#include "contract/openai/openai.h"
#include "contract/openai/api_error.h"
#include "contract/openai/request.h"

struct turn;

struct turn_form {
    MUST_CHECK bool (*read)(struct turn *turn, struct str body, struct str header_session,
                            struct err *e);
    const struct stream_wire *whole, *stream;
    /* Answer at once with a question (EVENT_APPROVAL) that is still open. */
    void (*ask_again)(struct turn *turn, const struct event *question);
};

struct turn {
    struct http_turn http;
    struct openai_instance *instance;
    const struct turn_form *form;
    struct openai_request request; /* valid until it is established */
    struct str param;              /* likewise: what a refusal is about, or empty */
    struct completion completion;
    struct text head;       /* the beginning of each chunk */
    bool begun;             /* a chunk has been sent */
    bool wants_usage;
};

/* Read the call's request and begin it in this form. */
void turn_serve(struct route_call *call, struct openai_instance *instance,
                const struct turn_form *form);

/* Note an event of the run; as completion_note(). */
bool turn_note(struct turn *turn, const struct event *event);

/* Whether the reasoning of this event's agent is shown. */
bool turn_shows(const struct turn *turn, const struct event *event);

/* How a run's end without an answer is shown. `last` is NULL if the cause was outside it. */
struct api_error turn_failure(enum close_cause cause, enum err_code status,
                            const struct event *last, struct str *ret_message);

/* Begin a frame: this answer's id and time. */
void turn_write_id(const struct turn *turn, const char *prefix, struct buf *out);

#endif
