/* exec_folder: where a command of the tool exec works.
 *
 *     <root>/workspaces/<workspace>/files                                    scope: workspace
 *     <root>/workspaces/<workspace>/users/<user>/files                       scope: user
 *     <root>/workspaces/<workspace>/users/<user>/sessions/<session>/files    scope: session
 *
 * Only the last folder of a path is visible to the command. The folder of a session is removed
 * when no command has begun in it for long, once another session begins.
 *
 * Threads  any; folders are made and removed under the lock of the caller.
 */
#ifndef WEIR_TOOL_EXEC_FOLDER_H
#define WEIR_TOOL_EXEC_FOLDER_H

#include "base/err.h"
#include "base/str.h"

enum exec_scope { EXEC_SESSION, EXEC_USER, EXEC_WORKSPACE };

struct exec_whose {
    struct str workspace, user, session;
};

/* Make the folder, and mark it as used. *ret_folder is its path and *ret_whole that of all folders
 * of the workspace; the caller frees both. `idle_ms`: how long the folder of another session may be
 * unused; 0: for ever.
 * A command must not run longer than that. blocks
 * errors  ERR_INVALID_ARGUMENT an id is too long; ERR_UNAVAILABLE, ERR_PERMISSION_DENIED */
MUST_CHECK bool exec_folder_make(const char *root, enum exec_scope scope, uint64_t idle_ms,
                                 const struct exec_whose *whose, char **ret_folder,
                                 char **ret_whole, struct err *e);

#endif
