/* dialect: what the versions of A2A say differently: methods, states and errors.
 *
 *     0.3    message/send   {"kind":"message","role":"user"}   "input-required"
 *     1.0    SendMessage    {"role":"ROLE_USER"}               "TASK_STATE_INPUT_REQUIRED"
 *     breeder  tasks/send   AgentBreeder's own: flat, and three words for states
 *
 * The method's name tells the dialect, and a header A2A-Version that says another one is refused.
 * tasks/get and tasks/cancel are methods of two dialects: AgentBreeder says `task_id`.
 *
 * Memory   constant tables.
 * Threads  any.
 * Source   A2A 0.3 7 and 8; A2A 1.0 3.6, 5.4, 9.4; contracts/agentbreeder.md 5.1, 5.4.
 */
#ifndef WEIR_CONTRACT_A2A_DIALECT_H
#define WEIR_CONTRACT_A2A_DIALECT_H

#include "base/err.h"

enum a2a_dialect { A2A_0_3, A2A_1_0, A2A_BREEDER, A2A_DIALECT_COUNT };

enum a2a_operation {
    A2A_SEND,
    A2A_STREAM,
    A2A_GET,
    A2A_LIST,
    A2A_CANCEL,
    A2A_SUBSCRIBE,
    A2A_WEBHOOK_PUT,
    A2A_WEBHOOK_GET,
    A2A_WEBHOOK_LIST,
    A2A_WEBHOOK_DELETE,
    A2A_CARD,
};

struct a2a_method {
    struct str name;
    enum a2a_dialect dialect;
    enum a2a_operation operation;
};

/* The method of that name; NULL: there is none. */
const struct a2a_method *a2a_method_find(struct str name);

/* --- versions ----------------------------------------------------------------------------- */

enum a2a_version { A2A_VERSION_NONE, A2A_VERSION_0_3, A2A_VERSION_1_0, A2A_VERSION_OTHER };

/* Read the header A2A-Version: "1.0", "1.0.1"; empty: NONE. */
enum a2a_version a2a_version_read(struct str header);

/* Whether a request of this version may use the dialect. */
bool a2a_version_speaks(enum a2a_version version, enum a2a_dialect dialect);

/* --- states ------------------------------------------------------------------------------- */

enum a2a_state {
    A2A_SUBMITTED, /* the run waits for its session */
    A2A_WORKING,
    A2A_INPUT_REQUIRED, /* the run waits for a human */
    A2A_COMPLETED,
    A2A_FAILED,
    A2A_CANCELED,
    A2A_REJECTED, /* a guardrail blocked it */
    A2A_STATE_COUNT,
};

struct str a2a_state_name(enum a2a_state state, enum a2a_dialect dialect);
bool a2a_state_is_terminal(enum a2a_state state);

/* False: it is no state's name in 1.0. */
MUST_CHECK bool a2a_state_find(struct str name, enum a2a_state *ret);

/* --- errors ------------------------------------------------------------------------------- */

enum a2a_error {
    A2A_ERROR_PARSE,
    A2A_ERROR_INVALID_REQUEST,
    A2A_ERROR_METHOD_NOT_FOUND,
    A2A_ERROR_INVALID_PARAMS,
    A2A_ERROR_INTERNAL,
    A2A_ERROR_UNAVAILABLE, /* INTERNAL for JSON-RPC, 503 for HTTP */
    A2A_ERROR_TASK_NOT_FOUND,
    A2A_ERROR_TASK_NOT_CANCELABLE,
    A2A_ERROR_PUSH_NOT_SUPPORTED,
    A2A_ERROR_UNSUPPORTED_OPERATION,
    A2A_ERROR_CONTENT_TYPE,
    A2A_ERROR_VERSION,
    A2A_ERROR_COUNT,
};

struct a2a_error_row {
    int64_t code;       /* of JSON-RPC */
    int status;         /* of HTTP */
    struct str grpc;    /* "NOT_FOUND": google.rpc.Code */
    struct str reason;  /* "TASK_NOT_FOUND": google.rpc.ErrorInfo */
    int breeder_status; /* of HTTP, for AgentBreeder's JSON-RPC */
};

const struct a2a_error_row *a2a_error_row(enum a2a_error error);

/* What an error of ours is in A2A. */
enum a2a_error a2a_error_of(enum err_code code);

#endif
