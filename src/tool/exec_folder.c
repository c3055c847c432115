#include "tool/exec_folder.h"

#include "base/buf.h"
#include "base/clock.h"
#include "tool/root.h"
#include "tool/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_MAX_BYTES (16 * KIB)
#define FILES "/files"

/* --- paths -------------------------------------------------------------------------------- */

static bool append_level(const char *name, struct str id, struct buf *path, struct err *e) {
    buf_append_byte(path, '/');
    buf_append(path, str_from(name));
    buf_append_byte(path, '/');
    return root_append_name(id, path, e) || err_add(e, "its folder among the %s", name);
}

static bool append_whole(const char *root, const struct exec_whose *whose, struct buf *path,
                         struct err *e) {
    buf_append(path, str_from(root));
    if (whose->workspace.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "the call belongs to no workspace");
    return append_level("workspaces", whose->workspace, path, e);
}

static bool append_folder(enum exec_scope scope, const struct exec_whose *whose,
                          struct buf *path, struct err *e) {
    if (scope != EXEC_WORKSPACE && !append_level("users", whose->user, path, e)) return false;
    if (scope == EXEC_SESSION && !append_level("sessions", whose->session, path, e))
        return false;
    buf_append(path, STR(FILES));
    return true;
}

/* --- unused folders ----------------------------------------------------------------------- */

/* No command runs in it any more. Links are removed, not followed. */
static void remove_all(char *folder) {
    char *const roots[] = {folder, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    FTSENT *entry;
    while (walk && (entry = fts_read(walk))) {
        switch (entry->fts_info) {
        case FTS_D: (void)chmod(entry->fts_accpath, 0700); break; /* before it is read */
        case FTS_DNR:
        case FTS_DP: (void)rmdir(entry->fts_accpath); break;
        default: (void)unlink(entry->fts_accpath);
        }
    }
    if (walk) fts_close(walk);
}

/* The folder around the files says when they were last used. No command can reach it and say
 * otherwise, so what is removed is never in use. */
static void mark_used(const char *files) {
    struct str around = str_from(files);
    char *path = str_dup(str_head(around, around.len - strlen(FILES)));
    (void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
    free(path);
}

static uint64_t changed_ms(const struct stat *about) {
    return (uint64_t)about->st_mtim.tv_sec * 1000 + (uint64_t)about->st_mtim.tv_nsec / 1000000;
}

static bool is_unused(const char *folder, uint64_t idle_ms) {
    struct stat about;
    return lstat(folder, &about) == 0 && S_ISDIR(about.st_mode) &&
           changed_ms(&about) + idle_ms < (uint64_t)clock_unix_ms();
}

typedef void each_fn(char *path, uint64_t idle_ms);

/* Call `each` with the path of each entry of the folder. */
static void each_entry(const char *folder, each_fn *each, uint64_t idle_ms) {
    DIR *list = opendir(folder);
    const struct dirent *entry;
    while (list && (entry = readdir(list))) { /* NOLINT(concurrency-mt-unsafe): our own list */
        struct buf path;
        if (entry->d_name[0] == '.' && (!entry->d_name[1] || entry->d_name[1] == '.')) continue;
        buf_init(&path, PATH_MAX_BYTES);
        buf_printf(&path, "%s/%s", folder, entry->d_name);
        if (buf_append_byte(&path, '\0')) each(path.at, idle_ms);
        buf_done(&path);
    }
    if (list) closedir(list);
}

static void sweep_session(char *folder, uint64_t idle_ms) {
    if (is_unused(folder, idle_ms)) remove_all(folder);
}

/* The same for the folder `name` in it. */
static void each_below(const char *folder, const char *name, each_fn *each, uint64_t idle_ms) {
    struct buf path;
    buf_init(&path, PATH_MAX_BYTES);
    buf_printf(&path, "%s/%s", folder, name);
    if (buf_append_byte(&path, '\0')) each_entry(path.at, each, idle_ms);
    buf_done(&path);
}

static void sweep_user(char *folder, uint64_t idle_ms) {
    each_below(folder, "sessions", sweep_session, idle_ms);
}

/* --- making ------------------------------------------------------------------------------- */

static bool refuse_folder(struct err *e) {
    return err_set(e, ERR_UNAVAILABLE, "the folder of the workspace cannot be made");
}

/* *ret_fresh: it was not there. */
static bool make_folders(char *path, size_t from, bool *ret_fresh, struct err *e) {
    for (char *at = path + from; (at = strchr(at, '/')); at++) {
        *at = '\0';
        int failed = mkdir(path, 0755) != 0 && errno != EEXIST;
        *at = '/';
        if (failed) return refuse_folder(e);
    }
    *ret_fresh = mkdir(path, 0755) == 0;
    return *ret_fresh || errno == EEXIST || refuse_folder(e);
}

bool exec_folder_make(const char *root, enum exec_scope scope, uint64_t idle_ms,
                      const struct exec_whose *whose, char **ret_folder, char **ret_whole,
                      struct err *e) {
    struct buf path;
    bool fresh = false;
    buf_init(&path, PATH_MAX_BYTES);
    bool fits = append_whole(root, whose, &path, e);
    size_t whole_len = path.len;
    fits = fits && append_folder(scope, whose, &path, e);
    if (fits && !buf_ok(&path))
        fits = err_set(e, ERR_INVALID_ARGUMENT, "the path of its folder is too long");
    char *folder = fits ? str_dup(buf_str(&path)) : NULL;
    char *whole = fits ? str_dup(str_head(buf_str(&path), whole_len)) : NULL;
    buf_done(&path);
    bool made = fits && make_folders(folder, strlen(root) + 1, &fresh, e);
    if (made && fresh && scope == EXEC_SESSION && idle_ms)
        each_below(whole, "users", sweep_user, idle_ms);
    if (made) mark_used(folder);
    if (!made || !sandbox_own(folder, e)) {
        free(folder);
        free(whole);
        return false;
    }
    *ret_folder = folder;
    *ret_whole = whole;
    return true;
}
