/* provider: somebody who can answer for a model.
 *
 * A kind is one file that fills struct provider_kind; nobody else knows which kind is there.
 * A call asks once and reports (wire/reply_event.h): thinking, text and tool calls as they
 * come, usage, and then exactly one ending. A run drives it; a slow listener pauses it.
 *
 * Memory   the request and all it points to stay the caller's and must live until the ending
 *          or provider_call_cancel(). An event is lent to the callback.
 * Threads  a call belongs to one loop; the provider itself is read-only and shared.
 */
#ifndef WEIR_PROVIDER_PROVIDER_H
#define WEIR_PROVIDER_PROVIDER_H

#include "base/err.h"
#include "loop/loop.h"
#include "wire/reply_event.h"

enum message_role {
    MESSAGE_USER,        /* text: what a person said */
    MESSAGE_AGENT,       /* text: what `agent` answered */
    MESSAGE_TOOL_CALL,   /* agent asked: call_id, tool, text = arguments (JSON object) */
    MESSAGE_TOOL_RESULT, /* call_id, text = result (JSON object), error */
    /* text: the next reply as its provider sent it, byte for byte, with what only that provider
     * understands (signatures of its reasoning); tool = the dialect that reads it. That dialect
     * sends it back in place of the reply's own messages, which follow: MESSAGE_AGENT and
     * MESSAGE_TOOL_CALL up to the next result or user. All others pass over it. */
    MESSAGE_OPAQUE,
    MESSAGE_SYSTEM, /* text: instructions that a caller put between its messages */
};

/* One entry of a conversation, oldest first. */
struct message {
    enum message_role role;
    bool error; /* of a result: the call failed; of a user's: its turn did not end well */
    struct str agent, text, call_id, tool;
    /* What holds more than text: the whole content as one JSON array, as conversation/import.h
     * writes it, `text` being its text parts, a blank line between two; or empty. */
    struct str parts;
};

/* A tool that the model may ask for. */
struct tool_offer {
    struct str name, description;
    struct str parameters; /* JSON Schema of the arguments */
};

/* How a model should answer. What is not set is left to the provider. */
struct model_options {
    int64_t output_tokens_max; /* 0: not set */
    double temperature, top_p; /* below 0: not set */
    struct str effort;         /* of reasoning: "low", "medium", "high"; empty: not set */
    int64_t thinking_tokens;   /* budget of reasoning; 0: not set */
};

#define MODEL_OPTIONS_NONE ((struct model_options){.temperature = -1, .top_p = -1})

struct provider_request {
    struct str agent;  /* slug of the agent that asks */
    struct str model;  /* as configured; the provider may answer under a longer name */
    struct str system; /* instructions, or empty */
    const struct message *messages;
    size_t message_count;
    size_t turn_start; /* index in messages of the user message that this turn answers */
    const struct tool_offer *tools;
    size_t tool_count;
    const struct model_options *options; /* NULL: nothing is set */
    struct str schema; /* JSON Schema that the reply's text must follow, or empty */
    uint64_t run;      /* who asks, for the log; 0: not said */
    /* The operator asks: a failure says all that is known of it, and what to do. Otherwise it
     * says what its caller may read, and the rest goes to the log. */
    bool by_operator;
};

/* Notes that have a meaning: the reply ended at a limit of tokens (before REPLY_DONE); it came
 * all at once (before everything else). */
#define PROVIDER_CUT_NOTE "the reply was cut at its token limit"
#define PROVIDER_WHOLE_NOTE "the reply came all at once: its provider does not stream"

struct provider_call; /* each kind's own */
struct provider;

struct provider_kind {
    const char *name; /* "scripted", "openai" */
    /* on_reply is called on the loop of the call, and never before start() has returned. After
     * an ending, or after cancel(), it is not called any more and the call is gone. */
    struct provider_call *(*start)(struct provider *provider, struct loop *loop,
                                   const struct provider_request *request,
                                   reply_event_fn *on_reply, void *ctx);
    /* No callbacks until resumed, and upstream is not read meanwhile. */
    void (*pause)(struct provider_call *call);
    void (*resume)(struct provider_call *call);
    void (*cancel)(struct provider_call *call);
    void (*free)(struct provider *provider);
};

/* What every kind's own struct begins with. */
struct provider {
    const struct provider_kind *kind;
    struct str name; /* as configured */
};

static inline struct provider_call *provider_call_start(struct provider *provider,
                                                        struct loop *loop,
                                                        const struct provider_request *request,
                                                        reply_event_fn *on_reply, void *ctx) {
    return provider->kind->start(provider, loop, request, on_reply, ctx);
}

static inline void provider_free(struct provider *provider) {
    if (provider) provider->kind->free(provider);
}

#endif
