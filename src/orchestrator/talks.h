/* talks: a user's message, and the turns of the agents that answer it.
 *
 *     start ─▶ stored (or refused) ─▶ a turn for each agent ─▶ over
 *
 * The user's message is stored, if the quota allows it. Then each agent that it is for gets a
 * turn (turn.h) at the workspace's runtime (drive.h); what the turn does is shown to the
 * workspace's room and written to its rows. A turn that has begun is finished and stored also
 * when no caller waits for it any more, so a talk that is cancelled lives on until then.
 *
 * A workspace has a limited number of turns at once; further ones wait for a place, and give up
 * after some time.
 *
 * Memory   a request is copied; the workspace is referenced. A talk frees itself after its last
 *          callback, or some time after talk_cancel().
 * Threads  the loop's.
 * Source   contracts of the orchestrator, "Orchestrator side".
 */
#ifndef WEIR_ORCHESTRATOR_TALKS_H
#define WEIR_ORCHESTRATOR_TALKS_H

#include "orchestrator/drive.h"
#include "orchestrator/rows.h"
#include "orchestrator/shown.h"

#define TALK_AGENTS_MAX 8

struct talks;
struct talk;

/* Show an event to all who have subscribed to the workspace. Both texts are lent. */
typedef void talks_emit_fn(struct str workspace, const char *event, struct str json, void *ctx);

struct talks_options {
    struct loop *loop;
    struct queries *database;
    struct driver *driver;
    talks_emit_fn *emit;
    void *ctx;
    size_t turns_max;            /* of a workspace at once */
    uint64_t wait_ms;            /* for a place */
    uint64_t stale_ms;           /* a placeholder that was not touched for this long is ended */
    void (*on_usage)(void *ctx); /* usage was stored; may be NULL */
};

struct talks *talks_new(const struct talks_options *options);
/* End all turns, and end stale ones no more. `done` follows when everything is stored, or was
 * given up. */
void talks_stop(struct talks *talks, task_fn *done, void *ctx);
void talks_free(struct talks *talks);
/* No turn runs. */
bool talks_idle(const struct talks *talks);

/* Where the text names an agent; characters, not bytes. */
struct talk_mention {
    size_t agent; /* its index in the workspace */
    uint64_t offset, length;
};

struct talk_request {
    struct workspace *workspace; /* with its conversation */
    struct str text, local_id;
    struct str attachments; /* a JSON array, or empty */
    const struct talk_mention *mentions;
    size_t mention_count;
};

/* What to answer when it is refused or could not be answered. */
struct talk_failure {
    int status;       /* of HTTP */
    const char *code; /* "QTA0001" */
    const char *text;
};

/* None is called before talk_start() has returned. */
struct talk_sink {
    /* The user's message is a row. again: it was one before, with the same local_id. */
    void (*on_stored)(struct str message, bool again, void *ctx);
    /* The last one. `answer` is the first agent's message as it was stored; NULL: there is none,
     * and failure says why. A message that was stored before gets the answer of its turn, which is
     * begun if it never was; with other words it is refused. */
    void (*on_over)(const struct shown_message *answer, const struct talk_failure *failure,
                    void *ctx);
    /* Bytes that the sender has not taken yet. While they are too many, the runtimes of the talk
     * are not read. NULL: the sender is shown no events. */
    size_t (*queued)(void *ctx);
};

struct talk *talk_start(struct talks *talks, const struct talk_request *request,
                        const struct talk_sink *sink, void *ctx);

/* No callback follows. Its turns end, unless another caller waits for their answer too, and
 * what was said is stored. */
void talk_cancel(struct talk *talk);

/* --- who asks another agent ----------------------------------------------------------------- */

/* The agent that a tool call is from. */
struct talk_asker {
    struct str agent;    /* its slug */
    struct uuid message; /* of that agent, in which it asks */
    struct str root;     /* the user's message that the turn answers */
};

/* The turn of this conversation whose agent is asking `slug` this. Each call is found once. The
 * texts are borrowed from the talk.
 * False: none is; ret_turns says whether any turn of the conversation runs. */
MUST_CHECK bool talks_claim(struct talks *talks, const struct workspace *workspace,
                            struct str slug, struct str message, struct talk_asker *ret,
                            bool *ret_turns);

/* Append `text` without the mentions, and without the blanks that are left over. */
void talk_without_mentions(struct str text, const struct talk_mention *mentions, size_t count,
                           struct buf *out);

#endif
