/* task: what a run is in A2A: one fold of its events, and the same written in each dialect.
 *
 *     started ─▶ submitted, working ─▶ text: the artifact "answer" ─▶ completed
 *                  ▲      │
 *                  └──────┴─ approval: input-required; the question is the status's message
 *
 * The artifact has all texts of the run in order, with a blank line between two replies, as a
 * stream of them has. The history has what the user said, what was asked, and what was answered.
 *
 * Memory   owns its texts; each is bounded, and of a long history the beginning is forgotten.
 * Threads  none.
 * Source   A2A 0.3 6; A2A 1.0 4.1, 4.2; checks.md K30.
 */
#ifndef WEIR_CONTRACT_A2A_TASK_H
#define WEIR_CONTRACT_A2A_TASK_H

#include "base/text.h"
#include "contract/a2a/dialect.h"
#include "conversation/seam.h"
#include "wire/json.h"

#define A2A_ARTIFACT "answer"

/* One message. */
struct a2a_line {
    bool by_user;
    uint64_t seq;     /* of the event that said it */
    struct text id;   /* the caller's own for it; empty: "<run>-<seq>" */
    struct text text; /* or empty */
    struct text data; /* a JSON object beside it, or empty */
};

struct a2a_task {
    uint64_t run;
    enum a2a_state state;
    struct text session, agent;
    int64_t started_ms, at_ms; /* Unix time; of the last change of its state since then */
    struct seam seam;
    struct buf answer;
    size_t said;    /* bytes of the answer so far */
    bool passes_on; /* texts are sent on as they come, and need not be kept */
    struct a2a_line *lines;
    size_t line_count;
    size_t line_bytes;
    struct a2a_line note;      /* the status's message; empty: it has none */
    uint64_t question;         /* seq of the approval that waits, or 0 */
    struct text question_call; /* the call whose result answers it */
    int64_t tokens;            /* total of what is known */
};

void a2a_task_init(struct a2a_task *task, uint64_t run);
void a2a_task_done(struct a2a_task *task);

/* Forget the messages of its history. */
void a2a_task_forget_lines(struct a2a_task *task);

/* Take an event in. True: it is text that begins another reply, after a blank line. */
bool a2a_task_note(struct a2a_task *task, const struct event *event, uint64_t seq);

/* A run that has no event yet. `said` and `extras` are its request's, or empty. */
void a2a_task_queued(struct a2a_task *task, struct str session, struct str said,
                     struct str extras);

/* When its state changed last, as its status has it; now, if it has not begun. */
int64_t a2a_task_unix_ms(const struct a2a_task *task);

/* --- writing ------------------------------------------------------------------------------ */

struct a2a_view {
    enum a2a_dialect dialect;
    int64_t history_max; /* newest messages; negative: all */
    bool artifacts;
};

/* One Task object. */
void a2a_task_write(const struct a2a_task *task, const struct a2a_view *view,
                    struct json_writer *w);

/* The members of an update: taskId and contextId; status. */
void a2a_task_write_names(const struct a2a_task *task, struct json_writer *w);
void a2a_task_write_status(const struct a2a_task *task, enum a2a_dialect dialect,
                           struct json_writer *w);

/* A message of the agent that has only data, as the status of work that goes on. */
void a2a_task_write_step(const struct a2a_task *task, enum a2a_dialect dialect, uint64_t seq,
                         struct str data, struct json_writer *w);

/* The member `artifact` with this text. */
void a2a_artifact_write(struct str text, enum a2a_dialect dialect, struct json_writer *w);

/* AgentBreeder's flat task, without its braces. */
void a2a_task_write_flat(const struct a2a_task *task, struct json_writer *w);

#endif
