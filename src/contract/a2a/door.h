/* door: one request of an A2A client, from the method to the answer.
 *
 *     JSON-RPC ─┐                    ┌─▶ send, stream ──▶ a new run, or the answer that one waits for
 *     HTTP+JSON ┴▶ a2a_call, request ┼─▶ get, cancel, subscribe ─▶ the run of that id, if it may be seen
 *                                    ├─▶ list ──▶ one run after the other
 *                                    └─▶ card
 *
 * A run of another workspace or user is as unknown as one that does not exist, and takes as long to
 * refuse (late.h). Who has subscribed is first sent the task as it is, from events up to `from`,
 * and then each event after it: nothing is missing between the two, and nothing comes twice.
 *
 * Private to this contract.
 *
 * Memory   freed with the answer, or when the client has left.
 * Threads  the loop of its call.
 * Source   A2A 1.0 3; checks.md K23, K29.
 */
#ifndef WEIR_CONTRACT_A2A_DOOR_H
#define WEIR_CONTRACT_A2A_DOOR_H

#include "contract/a2a/request.h"
#include "contract/a2a/shared_webhooks.h"
#include "contract/a2a/task.h"
#include "contract/a2a/webhooks.h"
#include "contract/agent_card.h"
#include "contract/guest.h"
#include "contract/late.h"
#include "contract/run_summary.h"

struct a2a_settings {
    struct guest_settings guest; /* first: the guest reads it */
    struct agent_card_settings card;
    enum http_reach webhook_reach;
};

struct a2a_instance {
    struct guest guest; /* first; its settings are a struct a2a_settings */
    struct store *store;
    struct webhooks *webhooks;      /* the process's */
    struct shared_webhooks *shared; /* the process's, where replicas share the store; or NULL */
    struct push_place place;        /* of webhooks on this loop */
};

static inline const struct a2a_settings *a2a_settings(const struct a2a_instance *instance) {
    return (const struct a2a_settings *)instance->guest.settings;
}

/* contract.c: its routes; borrows `instance`, a struct a2a_instance. */
void a2a_table(void *instance, struct route_table *ret);

enum a2a_binding { A2A_JSONRPC, A2A_REST };

struct a2a_list;

struct a2a_call {
    struct http_turn http;
    struct a2a_instance *instance;
    enum a2a_binding binding;
    enum a2a_dialect dialect;
    enum a2a_operation operation;
    struct text id; /* the raw id of a JSON-RPC request; empty: null */
    struct contract_caller caller;
    struct text agent;          /* slug, or empty */
    struct a2a_request request; /* its texts are valid until the run is read */
    struct a2a_task task;
    struct run_summary summary;
    struct run_scan *scan;
    struct late late;
    void (*found)(struct a2a_call *call); /* the run that is asked for may be seen */
    uint64_t mark;                        /* of its idempotency key */
    uint64_t from;                        /* the task is shown once this event is in it */
    uint64_t seq;                         /* of the last event that was read */
    bool shown;                           /* it has been: updates follow */
    struct a2a_list *list;
    struct kept_ask *keeping;           /* the webhook that is put, or those that are read */
    struct shared_webhook *putting;     /* the same, where replicas share the store */
    struct webhook_claim_ask *claiming; /* room for one, or it is removed */
    void (*has_room)(struct a2a_call *call);
};

/* --- call.c: its life --------------------------------------------------------------------- */

/* Identify the caller. NULL: it has been refused. */
struct a2a_call *a2a_call_new(struct route_call *route, struct a2a_instance *instance,
                              enum a2a_binding binding);
void a2a_call_free(struct http_turn *http);

/* The request has been read: do it. */
void a2a_call_enter(struct a2a_call *call);

/* Whose runs it may see: the rules of /weir/v1. */
bool a2a_may_see(const struct a2a_call *call, struct str workspace, struct str user);

/* --- lookup.c: a run by its id ------------------------------------------------------------ */

/* Read it into call->task, from memory or from the store; then call->found, or the refusal. */
void a2a_look_up(struct a2a_call *call, uint64_t run, void (*found)(struct a2a_call *call));

/* Begin `summary` of a run, whose events go to `task`. True: it is complete. */
bool a2a_read_live(struct a2a_call *call, uint64_t run);

/* --- send.c, tasks.c, list.c: the operations ---------------------------------------------- */

void a2a_send(struct a2a_call *call, uint64_t mark);
void a2a_join(struct a2a_call *call, uint64_t run, uint64_t seq);
MUST_CHECK bool a2a_take_print(struct a2a_call *call, struct err *e);
void a2a_cancel(struct a2a_call *call);
void a2a_subscribe(struct a2a_call *call);
void a2a_list(struct a2a_call *call);
void a2a_list_free(struct a2a_list *list);
void a2a_card(struct a2a_call *call);

/* --- webhook_calls.c: push notifications --------------------------------------------------- */

void a2a_webhooks(struct a2a_call *call); /* the operations on them */

/* Whether the operation is one of these and they are off; the call has been refused. */
MUST_CHECK bool a2a_refuse_webhooks(struct a2a_call *call);

/* Go on once the webhook that the message names, if it does, has room; or refuse the call. */
void a2a_check_webhook(struct a2a_call *call, void (*has_room)(struct a2a_call *call));

/* The webhook that the message names gets the task. */
void a2a_add_webhook(struct a2a_call *call, uint64_t run);

/* --- reply.c: answers --------------------------------------------------------------------- */

/* Answer with call->task, and end the call. */
void a2a_reply_task(struct a2a_call *call);

/* Answer with a result, which is accepted JSON. */
void a2a_reply(struct a2a_call *call, const struct buf *result);

/* Refuse, and end the call. */
void a2a_fail(struct a2a_call *call, enum a2a_error error, struct str message);
void a2a_refuse(struct http_turn *http, const struct err *why); /* it goes on to end it */

/* Append an error's answer, or an event with it. */
void a2a_write_failure(const struct a2a_call *call, enum a2a_error error, struct str message,
                       struct buf *out);

/* The body of what the routes themselves refuse. */
void a2a_failure_body(const struct route_failure *failure, struct buf *out);

/* --- stream.c: the events of a run -------------------------------------------------------- */

extern const struct stream_wire a2a_task_wire, a2a_stream_wire;

/* The task as the first event, where the run has ended or waits as the only one. */
void a2a_stream_task(struct a2a_call *call);

/* --- rpc.c, rest.c: the bindings; card.c -------------------------------------------------- */

route_fn a2a_rpc;
route_fn a2a_rest_send, a2a_rest_stream, a2a_rest_list, a2a_rest_get, a2a_rest_post,
    a2a_rest_card;
route_fn a2a_rest_put_webhook, a2a_rest_get_webhook, a2a_rest_list_webhooks,
    a2a_rest_delete_webhook;
route_fn a2a_card_route;

/* Find the agent that the path names. False: there is none, and the call has been refused. */
MUST_CHECK bool a2a_take_agent(struct a2a_call *call);

#endif
