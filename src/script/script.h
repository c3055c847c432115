/* script: the replies of an offline model and its tools, written in YAML.
 *
 * A script names agents, tools and scenes. A scene answers one kind of user text. Its replies
 * are lists of steps, one list for each time the agent's model is called in that turn. A reply
 * thus depends only on the conversation: nothing is remembered between calls, any number of
 * runs may read a script at the same time, and a restart changes nothing.
 *
 * docs/script.md describes the format for authors.
 *
 * Memory   one arena; everything a script points to ends with script_free().
 * Threads  read-only after script_parse(); any thread may read it.
 */
#ifndef WEIR_SCRIPT_SCRIPT_H
#define WEIR_SCRIPT_SCRIPT_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/event.h"

/* Pace of the output: `chunk` characters every `every_us`. */
struct script_pace {
    uint64_t every_us; /* 0 = as fast as the reader accepts */
    uint64_t chunk;    /* characters, or bytes when `bytes`; 0 = all at once */
    bool bytes;        /* may split characters, as some vendors do */
};

/* One piece of a text: literal text, or a hole such as {input}. */
enum script_hole {
    HOLE_NONE,
    HOLE_INPUT,  /* what the user said */
    HOLE_TOPIC,  /* the same, one line of at most SCRIPT_TOPIC_BYTES */
    HOLE_RESULT, /* the latest tool result in this turn; {result.KEY}: one member of it */
    HOLE_ANSWER, /* a person's answer to an approval request */
    HOLE_AGENT,  /* the slug of the speaking agent */
    HOLE_ARGS,   /* a tool's arguments; {args.KEY}: one member of them */
};

#define SCRIPT_TOPIC_BYTES 80

struct script_piece {
    enum script_hole hole;
    struct str text; /* HOLE_NONE: the literal. {result.KEY}, {args.KEY}: the key, or empty */
};

struct script_text {
    const struct script_piece *pieces;
    size_t count;
    size_t
        ascii; /* so many bytes at the front of a text without holes are ASCII; 0: not known */
    bool json; /* values are escaped as part of a JSON string */
};

/* The values of the holes. */
struct script_values {
    struct str input, result, answer, agent, args;
};

enum script_step_kind {
    STEP_TEXT,
    STEP_THINKING,
    STEP_REPEAT,    /* `times` chunks of exactly this text */
    STEP_WAIT,      /* for `wait_us` */
    STEP_TOOL_CALL, /* including a transfer */
    STEP_APPROVAL,
    STEP_USAGE,
    STEP_MODEL, /* the model name reported from here on */
    STEP_FAIL,  /* an error that ends the call */
    STEP_STALL, /* no further output, for ever */
    STEP_EOF,   /* the stream ends without a finish reason: a failure */
    STEP_BAD_UTF8,
};

struct script_step {
    enum script_step_kind kind;
    struct script_text text; /* text, thinking, repeat; the question; the message of a fail */
    struct script_text args; /* tool_call, approval: one JSON object */
    struct str id, tool;     /* tool_call, approval; if the id is empty, the run chooses one */
    struct script_pace pace; /* text, thinking, repeat */
    uint64_t times;          /* repeat */
    uint64_t wait_us;
    struct event_usage usage;
    struct str model;
    enum err_code code; /* fail, eof */
    struct str reason;
};

struct script_steps {
    const struct script_step *at;
    size_t count;
};

/* One reply of the model. When it branches, `plain` is empty. */
struct script_reply {
    bool branches; /* on a person's answer to an approval request */
    struct script_steps plain, approved, refused;
};

struct script_scene {
    struct str agent; /* empty = any */
    struct str match; /* part of the user's text, ASCII case ignored; empty = any text */
    bool exact;       /* `match` is the whole text, with its case */
    bool once;        /* after the last reply: fail, instead of repeating it */
    const struct script_reply *replies;
    size_t reply_count; /* at least 1 */
    unsigned line;
};

struct script_agent {
    struct str slug, description;
    const struct str *delegates;
    size_t delegate_count;
    bool all_tools; /* all tools of the script; otherwise those listed */
    const struct str *tools;
    size_t tool_count;
};

struct script_answer {
    struct script_text result; /* one JSON object */
    bool error;
    struct str message; /* when error */
    bool stall;         /* no answer, ever */
    uint64_t after_us;
};

struct script_tool {
    struct str name, description;
    struct str parameters; /* JSON Schema */
    const struct script_answer *answers;
    size_t answer_count; /* at least 1; call n gets answer n, then from the first again */
};

struct script {
    struct str model;            /* the model name it reports; empty = that of the request */
    struct script_agent *agents; /* the first one is the default */
    size_t agent_count;
    struct script_tool *tools;
    size_t tool_count;
    struct script_scene *scenes;
    size_t scene_count;
    struct arena *arena;
};

/* The caller owns the result; script_free() accepts NULL. `file` is used only in errors.
 * errors  ERR_MALFORMED, ERR_TOO_LARGE; the text starts with FILE:LINE:COL */
MUST_CHECK bool script_parse(struct str file, struct str text, struct script **ret,
                             struct err *e);
void script_free(struct script *script);

const struct script_agent *script_agent_find(const struct script *script, struct str slug);
const struct script_tool *script_tool_find(const struct script *script, struct str name);

/* The first scene that matches this agent and user text, or NULL. */
const struct script_scene *script_scene_find(const struct script *script, struct str agent,
                                             struct str input);

/* The steps of the scene's reply at `index`, from 0; NULL: the scene is over. */
const struct script_steps *script_reply_get(const struct script_scene *scene, size_t index,
                                            bool approved);

/* Whether it has no holes; if so, *ret is the text, ready to lend. */
bool script_text_literal(const struct script_text *text, struct str *ret);

/* Append the text with its holes filled. False at the buffer's limit. */
bool script_text_render(const struct script_text *text, const struct script_values *values,
                        struct buf *out);

#endif
