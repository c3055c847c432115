/* api_turn: one request of OpenAI's API that runs an agent. Private to this contract.
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
#ifndef WEIR_CONTRACT_OPENAI_API_TURN_H
#define WEIR_CONTRACT_OPENAI_API_TURN_H

#include "contract/completion.h"
#include "contract/openai/api_error.h"
#include "contract/openai/openai.h"
#include "contract/openai/request.h"

struct api_turn;

struct api_turn_form {
    void (*open)(struct api_turn *turn); /* makes turn->own; may be NULL */
    void (*free)(struct api_turn *turn); /* ends it; may be NULL */
    MUST_CHECK bool (*read)(struct api_turn *turn, struct str body, struct str header_session,
                            struct err *e);
    /* Its key is free; NULL: api_turn_go_on(). */
    void (*begin)(struct api_turn *turn, uint64_t mark);
    const struct stream_wire *whole, *stream;
    /* Answer at once with a question (EVENT_APPROVAL) that is still open. */
    void (*ask_again)(struct api_turn *turn, const struct event *question);
};

struct api_turn {
    struct http_turn http;
    struct openai_instance *instance;
    const struct api_turn_form *form;
    struct openai_request request; /* valid until it is established */
    struct str param;              /* likewise: what a refusal is about, or empty */
    struct completion completion;
    void *own;        /* the form's */
    struct text head; /* the beginning of each chunk */
    bool user_proved; /* the token names the user */
    bool begun;       /* a chunk has been sent */
    bool wants_usage;
};

/* A turn that answers `call` in this form, before its request is read. */
struct api_turn *api_turn_new(struct route_call *call, struct openai_instance *instance,
                              const struct api_turn_form *form);

/* Whose it is: the token's user, else the one that the request names.
 * errors  ERR_INVALID_ARGUMENT; ERR_TOO_LARGE the arena's limit */
MUST_CHECK bool api_turn_take_caller(struct api_turn *turn,
                                     const struct contract_caller *caller, struct err *e);

/* Read the call's request and begin it in this form. */
void api_turn_serve(struct route_call *call, struct openai_instance *instance,
                    const struct api_turn_form *form);

/* Begin the run, or give the message to the one that waits. */
void api_turn_go_on(struct api_turn *turn, uint64_t mark);

/* Refuse the request with a code of its own, and end the turn. */
void api_turn_refuse_as(struct api_turn *turn, int status, struct str code, struct str message,
                        struct str param);

/* Note an event of the run; as completion_note(). */
bool api_turn_note(struct api_turn *turn, const struct event *event);

/* Whether the reasoning of this event's agent is shown. */
bool api_turn_shows(const struct api_turn *turn, const struct event *event);

/* How a run's end without an answer is shown. `last` is NULL if the cause was outside it. */
struct api_error api_turn_failure(enum close_cause cause, enum err_code status,
                                  const struct event *last, struct str *ret_message);

/* Begin a frame: this answer's id and time. */
void api_turn_write_id(const struct api_turn *turn, const char *prefix, struct buf *out);

#endif
