/* chat: a conversation with an agent, in the terminal or over a pipe.
 *
 * The agent is at a running daemon, or at one that is started for the time of the command
 * (cli/own_daemon.h), with the store of the settings. So a session that was begun here can be
 * gone on with anywhere, and the other way round.
 *
 *     line ─▶ order (/new ...)                      chat_orders.c
 *       └───▶ turn: POST /stream, then the run's events are followed   chat_turn.c
 *               └─▶ a question: asked here, answered at /weir/v1/approvals   chat_ask.c
 *
 * A turn outlives a broken connection for a while: the events are read on after it. A command
 * that is killed is a reader less, and the daemon cancels the turn.
 *
 * Memory   chat_open() makes it, chat_close() ends it.
 * Threads  the main thread.
 */
#ifndef WEIR_CLI_CHAT_H
#define WEIR_CLI_CHAT_H

#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/event_show.h"
#include "cli/line_edit.h"
#include "cli/own_daemon.h"
#include "wire/lines.h"

struct chat_options {
    const struct config *config;
    int arg_count; /* the settings, for a daemon of its own */
    const char *const *args;
    const char *url, *token;            /* NULL: found by the settings */
    const char *session, *agent, *user; /* NULL: a new one; the first; anonymous */
    const char *color, *thinking;       /* NULL: auto; shown on a terminal, else folded */
    struct str once;                    /* not empty: this is all that is said */
    bool resumes;                       /* the newest session */
    bool alone;                         /* ask no running daemon */
    bool json;
};

/* --- chat_input.c: lines from the person or the program ----------------------------------- */

enum chat_line {
    CHAT_LINE,
    CHAT_OVER,        /* no more will come: the end of a file, or Ctrl-D */
    CHAT_INTERRUPTED, /* Ctrl-C */
};

#define CHAT_LINE_MAX_BYTES (4 * MIB)

struct chat_input {
    struct lines lines;
    struct buf line; /* the last one */
    bool terminal;   /* a person types, and gets prompts */
    bool edits;      /* and the line is edited here, not by the terminal */
    bool ended;
    bool too_long; /* by a line that is longer than one may be: nothing after it is read */
    struct line_history history;
    struct line_edit edit;
    struct buf ahead; /* edited: what came after the line's end */
};

/* from_program: lines of JSON; nothing is edited, and no history is kept. */
void chat_input_init(struct chat_input *input, bool from_program);
void chat_input_done(struct chat_input *input);

/* Keep a line for the arrow keys. */
void chat_input_remember(struct chat_input *input, struct str line);

/* Wait for a line; valid until the next one. */
enum chat_line chat_input_line(struct chat_input *input, const char *prompt, struct str *ret);

/* What begins a message after a line that was left: an edited one has ended its row. */
const char *chat_input_gap(const struct chat_input *input);

/* Drop what was typed ahead, so that it does not answer a question that the user has not seen.
 * Input that is no terminal stays. */
void chat_input_drop(struct chat_input *input);

/* How often Ctrl-C came since chat_interrupts_forget(). */
int chat_interrupts(void);
void chat_interrupts_forget(void);

/* --- the conversation --------------------------------------------------------------------- */

struct chat {
    const struct chat_options *options;
    struct daemon_target target;
    struct own_daemon own;
    struct http_pool *pool;
    struct loop *loop;
    struct chat_input input;
    struct event_show show;
    struct buf session, agent; /* the agent may be empty: the daemon's first */
    bool alone;                /* the daemon is `own` */
    bool leaves;               /* after this line */
    int code;                  /* EXIT_FAILED once a turn has failed */
};

/* Find or start the daemon and choose the session. */
MUST_CHECK bool chat_open(struct chat *chat, const struct chat_options *options, struct err *e);
void chat_close(struct chat *chat);

/* The command, from its options on: open, talk, close. */
int chat_run(const struct chat_options *options);

/* Take the first operand out of a command's arguments, in place: what is left are the settings.
 * Returns how many. */
int chat_settings(const struct config *config, const char **args, int count);

void chat_new_session(struct chat *chat);

/* Go on with the session of this name, or begin one.
 * errors  ERR_INVALID_ARGUMENT the name is too long for one; the session stays as it was */
MUST_CHECK bool chat_take_session(struct chat *chat, struct str name, struct err *e);

/* Say `problem`: to a person, or as {"type":"error"}. */
void chat_report(struct chat *chat, const struct err *problem);

/* --- chat_turn.c -------------------------------------------------------------------------- */

#define CHAT_PLACE_BYTES 64

/* What a run that waits asks. */
struct chat_question {
    struct buf event; /* as JSON: of kind approval */
    struct buf id;    /* of the approval: "<run>-<seq>" */
    struct buf run;
    char after[CHAT_PLACE_BYTES]; /* the place in the journal, to read on after it */
};

void chat_question_init(struct chat_question *question);
void chat_question_done(struct chat_question *question);

enum chat_end {
    CHAT_DONE,
    CHAT_ASKS,      /* the run waits: *ret_question */
    CHAT_CANCELLED, /* by Ctrl-C */
    CHAT_FAILED,    /* the run did, and that was shown */
    CHAT_BROKEN,    /* *e: it could not begin, or could not be read to its end */
    CHAT_LEFT,      /* a second Ctrl-C: the person wants to go */
};

/* Say `text`, and show what happens until the run ends or asks. */
enum chat_end chat_turn_say(struct chat *chat, struct str text,
                            struct chat_question *ret_question, struct err *e);

/* Show what happens after `question`, which was answered. It is overwritten by the next one. */
enum chat_end chat_turn_go_on(struct chat *chat, struct chat_question *question, struct err *e);

/* --- chat_ask.c --------------------------------------------------------------------------- */

enum chat_answer {
    CHAT_ANSWERED,
    CHAT_UNANSWERED, /* no one was there to answer: the run still waits */
    CHAT_ASK_LEFT,   /* a second Ctrl-C: the run waits on, and the person wants to go */
};

/* Show the question, and bring the answer to the daemon. */
enum chat_answer chat_ask(struct chat *chat, const struct chat_question *question);

/* The question that this session waits with, of an earlier turn. False: there is none. */
MUST_CHECK bool chat_find_question(struct chat *chat, struct chat_question *ret);

/* What a line means as the answer to a question about a call: the body for the daemon.
 * False: it is no answer. */
MUST_CHECK bool chat_decision(struct str line, bool from_program, struct buf *out);

/* --- chat_orders.c ------------------------------------------------------------------------ */

/* Obey a line that begins with a slash. False: it is to be said. */
MUST_CHECK bool chat_order(struct chat *chat, struct str line);

/* Whether the daemon has this agent; says so if not. */
MUST_CHECK bool chat_agent_is_known(struct chat *chat, struct str name, struct err *e);

#endif
