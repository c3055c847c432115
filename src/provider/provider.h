/* provider: a source of model replies.
 *
 * A kind is one file that fills struct provider_kind; no other code knows which kind it talks
 * to. A call sends one request and reports events (wire/reply_event.h): thinking, text and tool
 * calls as they arrive, usage, and then exactly one ending. A run drives the call; a slow
 * listener pauses it.
 *
 * Memory   the caller owns the request and everything it points to, and keeps both alive until
 *          the ending or cancel(). An event is lent to the callback.
 * Threads  a call belongs to one loop; the provider itself is read-only and shared.
 */
#ifndef WEIR_PROVIDER_PROVIDER_H
#define WEIR_PROVIDER_PROVIDER_H

#include "base/err.h"
#include "loop/loop.h"
#include "provider/model_options.h"
#include "wire/reply_event.h"
#include "wire/trace_context.h"

enum message_role {
    MESSAGE_USER,        /* text: what a person said */
    MESSAGE_AGENT,       /* text: what `agent` answered */
    MESSAGE_TOOL_CALL,   /* `agent` called: call_id, tool, text = arguments (JSON object) */
    MESSAGE_TOOL_RESULT, /* call_id, text = result (JSON object), error */
    /* text: the next reply exactly as its provider sent it, including parts that only that
     * provider understands (signatures of its reasoning); tool = the dialect that reads it.
     * That dialect sends it back instead of the reply's own messages, which follow:
     * MESSAGE_AGENT and MESSAGE_TOOL_CALL up to the next result or user message. All other
     * dialects ignore it. */
    MESSAGE_OPAQUE,
    MESSAGE_SYSTEM, /* text: instructions that the caller placed between messages */
};

/* One entry of a conversation, oldest first. */
struct message {
    enum message_role role;
    bool error;    /* in a tool result: the call failed; in a user message: its turn failed */
    bool callers;  /* in a tool call: its result comes with a later turn, or never */
    bool answered; /* in a tool call of a run's own conversation: it has its result */
    /* In a system message: the caller's instructions for one turn. They stand before the whole
     * conversation, and later turns have their own or none. */
    bool instructions;
    struct str agent, text, call_id, tool;
    /* Of what a caller or a human said: the agent that it was said to, whose input guardrails have
     * read it. Or empty. No model is shown it. */
    struct str heard_by;
    /* Content beyond plain text: the whole content as one JSON array, as conversation/import.h
     * writes it, with `text` holding its text parts joined by blank lines. Or empty. */
    struct str parts;
};

/* A tool that the model may call. */
struct tool_offer {
    struct str name, description;
    struct str parameters; /* JSON Schema of the arguments */
};

#define TOOL_CHOICE_REQUIRED "*" /* no tool has this name */

struct provider_request {
    struct str agent;  /* slug of the calling agent */
    struct str model;  /* as configured; the provider may report a longer name */
    struct str system; /* instructions, or empty */
    const struct message *messages;
    size_t message_count;
    size_t turn_start; /* index in messages of the user message that this turn answers */
    const struct tool_offer *tools;
    size_t tool_count;
    /* Empty: the model decides; TOOL_CHOICE_REQUIRED: it must call one of them; else the name of
     * the one that it must call. */
    struct str tool_choice;
    const struct model_options *options; /* NULL: nothing is set */
    struct str schema; /* JSON Schema that the reply's text must match, or empty */
    bool schema_loose; /* the caller does not want the vendor to enforce it */
    /* For agents that are no models: a JSON object that the caller sent along, with the members
     * input (unless it was a text), config and metadata where it has them; or empty. */
    struct str extras;
    uint64_t run;                        /* the calling run, for the log; 0: unknown */
    struct str workspace, user, session; /* of that run, or empty */
    const struct trace_context *trace;   /* to pass on; NULL: there is none */
    bool takes_pieces; /* texts that came in several pieces may be reported at once */
    /* The caller is the operator: a failure contains all details and the remedy. Otherwise it
     * contains what a caller may read, and the rest goes to the log. */
    bool by_operator;
};

/* Notes with a meaning: the reply ended at a token limit, or before a stop sequence, whose args are
 * that as a JSON string (both sent before REPLY_DONE); the reply was not streamed (sent before
 * everything else). */
#define PROVIDER_CUT_NOTE "the reply was cut at its token limit"
#define PROVIDER_STOP_NOTE "the reply ended at a stop sequence"
#define PROVIDER_WHOLE_NOTE "the reply came all at once: its provider does not stream"

struct provider_call; /* defined by each kind */
struct provider;

struct provider_kind {
    const char *name; /* "scripted", "openai" */
    /* on_reply is called on the call's loop, never before start() has returned. After an ending
     * or cancel() it is not called again, and the call is freed. */
    struct provider_call *(*start)(struct provider *provider, struct loop *loop,
                                   const struct provider_request *request,
                                   reply_event_fn *on_reply, void *ctx);
    /* Until resume(), no callback is made and upstream is not read. */
    void (*pause)(struct provider_call *call);
    void (*resume)(struct provider_call *call);
    void (*cancel)(struct provider_call *call);
    /* The caller has the whole reply: it ends after what was reported so far. Only REPLY_DONE is
     * reported any more. NULL: there is nothing to be done with it; the caller cancels the call. */
    void (*finish)(struct provider_call *call);
    void (*free)(struct provider *provider);
    /* It reads no message before the request's turn, unless the turn begins with results of tools:
     * a request may lack them. */
    bool reads_turn_only;
};

/* The first member of every kind's own struct. */
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
