/* exec: a tool that runs the model's command in a sandbox (tool/sandbox.h).
 *
 * A command starts in a folder of its session, and may write there (tool/exec_folder.h). The files
 * of a workspace are counted together. What it says and its exit code are the result, also where it
 * fails. A command that takes too long, says too much or fills the folder is ended with all that
 * it started, and the result says why.
 *
 *     waits for a slot ─▶ its folder is made ─▶ runs, and is watched ─▶ ended
 *
 * Memory   options are copied.
 * Threads  read-only once made, except its slots; a call belongs to its loop.
 * Source   docs/tools.md "exec"; checks.md X7.
 */
#ifndef WEIR_TOOL_EXEC_H
#define WEIR_TOOL_EXEC_H

#include "tool/exec_folder.h"
#include "tool/sandbox.h"
#include "tool/tool.h"

struct exec_options {
    struct str root; /* folder of all workspaces; empty: no such tool */
    struct sandbox_limits limits;
    uint64_t scope;        /* enum exec_scope: which calls share a folder */
    uint64_t idle_ms;      /* after that, the folder of a session may be removed */
    uint64_t disk_bytes;   /* what the folders of a workspace may hold */
    uint64_t output_bytes; /* of both outputs of a command */
    uint64_t timeout_ms;
    uint64_t at_once; /* calls, over all loops; others wait */
};

/* The caller ends it with tool_free(). Blocks: it runs a command once, to see that it works.
 * errors  ERR_UNIMPLEMENTED this machine has no sandbox, and why; those of making the
 *         root */
MUST_CHECK bool exec_tool_new(const struct exec_options *options, struct tool **ret,
                              struct err *e);

/* Whether this machine can run a sandbox; `why` says what it lacks. Blocks. */
bool exec_works(struct err *why);

#endif
