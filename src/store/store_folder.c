#include "store/store_folder.h"

#include "base/mem.h"
#include "store/check.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- making it ---------------------------------------------------------------------------- */

#define PATH_BYTES (PATH_MAX + 64)

bool store_folder_make(const char *folder, struct err *e) {
    char path[PATH_MAX];
    size_t len = strlen(folder);
    for (size_t i = 1; i <= len; i++) {
        if (folder[i] != '/' && folder[i] != '\0') continue;
        memcpy(path, folder, i);
        path[i] = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST && errno != EISDIR && i == len)
            return err_set(e, ERR_UNAVAILABLE,
                           "store %s: the folder cannot be made: %s; name another one with "
                           "--data",
                           folder, strerrordesc_np(errno));
    }
    return true;
}

static bool sync_path(const char *path, struct err *e) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = file >= 0 && fsync(file) == 0;
    if (!ok)
        err_set(e, ERR_UNAVAILABLE, "store %s: cannot be written to disk: %s; check the disk",
                path, strerrordesc_np(errno));
    if (file >= 0) close(file);
    return ok;
}

/* SQLite gives its other files the mode of this file. */
static bool make_private(const char *path, struct err *e) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return err_set(e, ERR_UNAVAILABLE,
                       "store %s: %s; make its folder writable for this user", path,
                       strerrordesc_np(errno));
    close(file);
    return true;
}

static bool fill_new(const struct database *like, const char *path, struct err *e) {
    char settings[160];
    snprintf(settings, sizeof(settings),
             "PRAGMA page_size = %d; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;"
             "PRAGMA application_id = %d",
             CHECK_PAGE_BYTES, SCHEMA_APPLICATION_ID);
    struct database db = {.at_step = like->at_step, .ctx = like->ctx};
    bool ok = database_open(&db, path, e);
    if (ok) database_trust(&db);
    ok = ok && database_run(&db, settings, e) && schema_migrate(&db, 0, e);
    /* Closing would fold the log too, but would not report a failure. */
    ok = ok && database_run(&db, "PRAGMA wal_checkpoint(TRUNCATE)", e);
    database_close(&db);
    return ok;
}

/* A new database is renamed when it is complete, so a file with the final name is never
 * partial. */
bool store_folder_make_file(struct database *like, const char *folder, const char *path,
                            struct err *e) {
    static const char *const leftovers[] = {"", "-wal", "-shm", "-journal"};
    char fresh[PATH_BYTES], file[PATH_BYTES + 8];
    snprintf(fresh, sizeof(fresh), "%s/weir.db.new", folder);
    for (size_t i = 0; i < ARRAY_LEN(leftovers); i++) {
        snprintf(file, sizeof(file), "%s%s", fresh, leftovers[i]);
        unlink(file);
    }
    if (!make_private(fresh, e) || !fill_new(like, fresh, e) || !sync_path(fresh, e))
        return false;
    database_reached(like, "new filled");
    if (rename(fresh, path) != 0)
        return err_set(e, ERR_UNAVAILABLE, "store %s: cannot be named: %s; check the disk",
                       path, strerrordesc_np(errno));
    database_reached(like, "new named");
    return sync_path(folder, e);
}

/* --- one process -------------------------------------------------------------------------- */

#define PID_TEXT_BYTES 16

static bool store_folder_refuse(int lock, const char *folder, struct err *e) {
    char pid[PID_TEXT_BYTES];
    ssize_t len = pread(lock, pid, sizeof(pid), 0);
    uint64_t number;
    struct str text = str_trim(str_of(pid, len > 0 ? (size_t)len : 0));
    if (str_to_u64(text, &number))
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "store %s/weir.db: process " STR_FMT " is using it; stop that one, or "
                       "give this one another folder with --data",
                       folder, STR_ARG(text));
    return err_set(e, ERR_FAILED_PRECONDITION,
                   "store %s/weir.db: another process is using it; stop that one, or give "
                   "this one another folder with --data",
                   folder);
}

bool store_folder_lock(const char *folder, int *ret_lock, struct err *e) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/weir.lock", folder);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0 && errno == ENOTDIR)
        return err_set(e, ERR_UNAVAILABLE,
                       "store %s: it is no folder; name another one with --data", folder);
    if (lock < 0)
        return err_set(e, ERR_UNAVAILABLE,
                       "store %s: %s; make its folder writable for this user", path,
                       strerrordesc_np(errno));
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        bool taken = errno == EWOULDBLOCK;
        if (taken) store_folder_refuse(lock, folder, e);
        if (!taken)
            err_set(e, ERR_UNAVAILABLE,
                    "store %s: cannot be locked: %s; keep the data on a file system with "
                    "locks",
                    path, strerrordesc_np(errno));
        close(lock);
        return false;
    }
    char pid[PID_TEXT_BYTES];
    int len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    /* The pid only helps a process that is refused. On a full disk it is left out. */
    bool written = ftruncate(lock, 0) == 0 && pwrite(lock, pid, (size_t)len, 0) == len;
    (void)written;
    *ret_lock = lock;
    return true;
}

void store_folder_unlock(int lock) {
    if (lock == STORE_FOLDER_UNLOCKED) return;
    int emptied = ftruncate(lock, 0);
    (void)emptied; /* a stale pid in an unlocked file is harmless */
    close(lock);
}

/* --- files that are deleted --------------------------------------------------------------- */

static bool has_no_name(int file) {
    struct stat info;
    return fstat(file, &info) == 0 && info.st_nlink == 0;
}

/* With O_PATH, so that closing it takes no lock of SQLite's away. Some file systems (FUSE) do not
 * count names: what has none while it is opened by its name cannot be watched. */
static int watch_file(const char *path) {
    int file = open(path, O_PATH | O_CLOEXEC);
    if (file < 0 || !has_no_name(file)) return file;
    close(file);
    return -1;
}

void store_folder_watch(struct store_folder_watch *watch, const char *path) {
    char log[PATH_BYTES];
    snprintf(log, sizeof(log), "%s-wal", path);
    watch->files[0] = watch_file(path);
    watch->files[1] = watch_file(log);
}

void store_folder_unwatch(struct store_folder_watch *watch) {
    for (size_t i = 0; i < ARRAY_LEN(watch->files); i++) {
        if (watch->files[i] >= 0) close(watch->files[i]);
    }
    *watch = STORE_FOLDER_UNWATCHED;
}

bool store_folder_deleted(const struct store_folder_watch *watch) {
    for (size_t i = 0; i < ARRAY_LEN(watch->files); i++) {
        if (watch->files[i] >= 0 && has_no_name(watch->files[i])) return true;
    }
    return false;
}

/* --- the write-ahead log ------------------------------------------------------------------ */

#define PIECE_BYTES (64 * 1024) /* SQLite never writes more at once either */

static bool write_again(sqlite3_file *file, char *piece) {
    const sqlite3_io_methods *methods = file->pMethods;
    sqlite3_int64 len = 0;
    if (methods->xFileSize(file, &len) != SQLITE_OK) return false;
    for (sqlite3_int64 at = 0; at < len; at += PIECE_BYTES) {
        int size = len - at < PIECE_BYTES ? (int)(len - at) : PIECE_BYTES;
        if (methods->xRead(file, piece, size, at) != SQLITE_OK) return false;
        if (methods->xWrite(file, piece, size, at) != SQLITE_OK) return false;
    }
    return methods->xSync(file, SQLITE_SYNC_NORMAL) == SQLITE_OK;
}

static bool resync(sqlite3_vfs *vfs, const char *log) {
    sqlite3_file *file = mem_zero(1, (size_t)vfs->szOsFile);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL;
    bool ok = vfs->xOpen(vfs, log, file, flags, &flags) == SQLITE_OK;
    if (ok) {
        char *piece = mem_alloc(PIECE_BYTES);
        ok = write_again(file, piece);
        free(piece);
    }
    if (file->pMethods) file->pMethods->xClose(file);
    free(file);
    return ok;
}

bool store_folder_resync_log(const char *path, struct err *e) {
    char log[PATH_MAX + 8] = {0}; /* SQLite reads up to two NULs past a file name */
    struct stat info;
    snprintf(log, sizeof(log) - 2, "%s-wal", path);
    if (stat(log, &info) != 0 || info.st_size == 0) return true;
    database_configure();
    if (resync(sqlite3_vfs_find(NULL), log)) return true;
    return err_set(e, ERR_UNAVAILABLE,
                   "store %s: it cannot be read, written or synced; check the disk; the "
                   "system's log says more",
                   log);
}
