/* target: what is validated: a server that runs, or one that is started for it.
 *
 *     http://host:port/base        a server that runs
 *     -- ./server --port {port}    a command: started, awaited, and ended with its process group
 *     registry/agent:1.2           an image: the same, through docker or podman
 *
 * A command gets a free port, in PORT and in place of each {port} of its arguments; its token is
 * in AGENT_AUTH_TOKEN. An image gets PORT only when it is tested for it; its port is published
 * on a free one of this machine. A target can be started again with another environment.
 *
 * While it starts, /health is asked until it says that it is healthy. How that went is kept.
 *
 * Memory   the caller ends a target with target_done(). Texts of the options are borrowed.
 * Threads  the main thread. */
#ifndef WEIR_VALIDATE_TARGET_H
#define WEIR_VALIDATE_TARGET_H

#include "loop/child.h"
#include "validate/ask.h"

enum target_kind { TARGET_URL, TARGET_COMMAND, TARGET_IMAGE };

#define TARGET_OUTPUT_MAX_BYTES (64 * KIB)

struct target_options {
    struct str url;             /* a URL, or ... */
    const char *const *command; /* its words, ends with NULL, or ... */
    struct str image;
    uint64_t image_port;     /* on which the image listens; 0: 8080 */
    const char *const *more; /* NAME=VALUE, ends with NULL */
    struct str token;        /* what it gets as AGENT_AUTH_TOKEN */
    uint64_t boot_timeout_ms, timeout_ms;
    struct str signing_key; /* what it gets as CRAWBL_MCP_SIGNING_KEY */
    bool any_answer;        /* it is up when it takes connections: it need not speak HTTP */
};

enum target_port { TARGET_PORT_USUAL, TARGET_PORT_TOLD }; /* see the environment PORT */

/* How one start differs from the usual one. */
struct target_boot {
    bool open;               /* without a token */
    enum target_port port;   /* of an image */
    const char *const *more; /* NAME=VALUE besides, ends with NULL; NULL: none */
};

/* What an endpoint answered while the target loaded. */
struct loading_answer {
    bool seen; /* false: it was not asked, or loading had ended before it answered */
    struct reply reply;
};

/* What was seen while the target started. */
struct target_start {
    bool answered;        /* /health gave a response */
    bool healthy;         /* ... and said so */
    unsigned loading;     /* how often it said that it is loading */
    unsigned odd;         /* responses that are neither; connections that broke */
    struct reply odd_one; /* the first of them */
    struct loading_answer invoke, stream; /* asked when it first said that it is loading */
};

struct target {
    enum target_kind kind;
    const struct target_options *options;
    struct asker *asker;
    struct buf url; /* where it is now */
    struct target_start start;
    struct buf output; /* of the process: its newest bytes */
    struct child *child;
    struct buf engine;    /* docker or podman, with its path */
    struct buf container; /* the name of the container */
    bool ended;           /* the process is gone */
    bool stopping;
    int exit_code, exit_signal;
};

/* errors  ERR_INVALID_ARGUMENT the URL; ERR_UNAVAILABLE no container engine that works;
 *         ERR_NOT_FOUND no such command */
MUST_CHECK bool target_open(const struct target_options *options, struct asker *asker,
                            struct target *ret, struct err *e);
void target_done(struct target *target);

/* Start it (a URL: only look at it) and wait until it is healthy or the time is up.
 * errors  ERR_UNAVAILABLE it ended, or does not answer: the text has its output */
MUST_CHECK bool target_boot(struct target *target, const struct target_boot *boot,
                            struct err *e);

/* Whether the command has ended, or no container was started, and another program answers on its
 * port, as when that program had taken the port first: what was examined is not the target. `e` says
 * so. */
MUST_CHECK bool target_is_replaced(struct target *target, struct err *e);

/* End it; nothing to do for a URL. */
void target_stop(struct target *target);

#endif
