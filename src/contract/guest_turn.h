/* guest_turn: one request to a guest that runs an agent.
 *
 * Who asks, the session, a run that begins or a decision that one waits for: the same in every
 * such contract. A form is what differs.
 *
 *     request ─▶ its session is named, and a run of it waits ─▶ the text decides ──┐
 *        │                        └─▶ it decides nothing: the question again       ▼
 *        └─▶ a new run ───────────────────────────────────────────────▶ events ─▶ answer
 *
 * Memory   the first member of the contract's own struct, which form->free frees; it lives from its
 *          request until its answer is out or its caller is gone.
 * Threads  the guest's loop.
 */
#ifndef WEIR_CONTRACT_GUEST_TURN_H
#define WEIR_CONTRACT_GUEST_TURN_H

#include "base/text.h"
#include "contract/guest.h"
#include "contract/run_head.h"

struct guest_turn;

/* What a form reads of a request; texts in the turn's arena. */
struct guest_request {
    struct str agent;               /* empty: the first one */
    struct str user;                /* if the token names none; empty: "anonymous" */
    struct str session;             /* empty: a conversation of its own */
    struct str text;                /* what the user says last; a decision, if a run waits */
    const struct message *messages; /* the caller's list; NULL: only `text` */
    size_t message_count;
    enum brought_policy brought;
    struct str schema, system, extras; /* as struct run_request has them */
    bool schema_loose;                 /* likewise */
    const struct tool_offer *tools;    /* likewise */
    size_t tool_count;
    bool args_as_text;
    struct str tool_choice;
    const struct model_options *options; /* likewise */
    uint64_t approval_run, approval_seq; /* the question that it answers; 0: none is named */
    uint64_t newest_known;               /* as struct run_request has it */
    bool decides; /* it must be a decision: without a question it is refused */
    bool streams;
    bool promised; /* it is answered with the run's id at once */
};

/* A refusal that no struct err tells. */
enum guest_refusal {
    GUEST_KEY_REUSED,  /* its idempotency key was used for another request */
    GUEST_SEVERAL,     /* several runs of the session wait; the request names none */
    GUEST_NO_QUESTION, /* no run waits with the question that it names */
};

struct guest_form {
    struct str contract; /* recorded with the runs */
    MUST_CHECK bool (*read)(struct guest_turn *turn, struct str body, struct guest_request *ret,
                            struct err *e);
    /* The request is read: look up what else says whose it is, then http_turn_enter(). Optional. */
    void (*prepare)(struct guest_turn *turn);
    /* Its key is free: check what must be checked now, then guest_turn_go_on(). Optional. */
    void (*begin)(struct guest_turn *turn, uint64_t mark);
    const struct stream_wire *whole, *stream;
    /* Answer a request that was refused before a run was read: as it has been, or by a rule. */
    void (*refuse)(struct guest_turn *turn, const struct err *why);
    void (*refuse_for)(struct guest_turn *turn, enum guest_refusal why);
    /* Answer at once with a question (EVENT_APPROVAL) that is still open. */
    void (*ask_again)(struct guest_turn *turn, const struct event *question);
    void (*free)(struct guest_turn *turn); /* the last call */
};

struct guest_turn {
    struct http_turn http;
    struct guest *guest;
    const struct guest_form *form;
    struct guest_request request; /* valid until it is established */
    struct str param;             /* of a refusal: the member at fault, or empty */
    bool user_proved;             /* the token names the user */
    struct text session;          /* where the conversation goes on */
    bool session_shown;           /* in the head of the answer */
    /* With a key that another request has used: the run that began with it, and the question that it
     * decided, or 0. */
    uint64_t joined_run, joined_seq;
    struct run_head *head; /* while it says which session is the run's */
};

/* A turn that answers `call` in this form, before anything is read. `turn` is zeroed but for what is
 * the form's own. */
void guest_turn_init(struct guest_turn *turn, struct route_call *call, struct guest *guest,
                     const struct guest_form *form);

/* Whose it is: the token's user, else the one that the request names.
 * errors  ERR_INVALID_ARGUMENT; ERR_TOO_LARGE the arena's limit */
MUST_CHECK bool guest_turn_take_caller(struct guest_turn *turn,
                                       const struct contract_caller *caller, struct err *e);

/* Take the call: guest_turn_init(), read its request, and begin. */
void guest_turn_serve(struct guest_turn *turn, struct route_call *call, struct guest *guest,
                      const struct guest_form *form, const struct contract_caller *caller);

/* Begin the run, or give the text to the one that waits. */
void guest_turn_go_on(struct guest_turn *turn, uint64_t mark);

/* Whether the reasoning of this event's agent is shown. */
bool guest_turn_shows(const struct guest_turn *turn, const struct event *event);

/* The code and the sentence of an end without an answer. `last` is NULL if its cause was outside the
 * run. */
enum err_code guest_turn_failure(enum close_cause cause, enum err_code status,
                                 const struct event *last, struct str *ret_reason,
                                 struct str *ret_message);

#endif
