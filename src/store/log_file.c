#include "store/log_file.h"

#include "base/mem.h"
#include "store/page_file.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define GATHERED_BYTES (64 * KIB)
#define FRAME_BYTES 24 /* in front of each page */
#define COMMIT_AT 4    /* in a frame: four bytes, not zero for the last page of a commit */

struct log_file {
    sqlite3_file as_file; /* first: SQLite's pointer is ours */
    sqlite3_file *real;
    char *gathered;             /* NULL before the first write */
    size_t len;                 /* of it */
    sqlite3_int64 at;           /* where it belongs in the file */
    bool wants_page;            /* the last write was a frame that ends no commit */
    struct fold_window *window; /* of the fold that goes on; NULL: none */
    sqlite3_file *database;     /* where it goes to */
};

static struct log_file *log_of(sqlite3_file *file) {
    return (struct log_file *)file;
}

static sqlite3_file *real_of(sqlite3_file *file) {
    return log_of(file)->real;
}

/* --- gathering ---------------------------------------------------------------------------- */

static int log_file_pass_on(struct log_file *log) {
    size_t len = log->len;
    sqlite3_int64 at = log->at;
    if (len == 0) return SQLITE_OK;
    log->at += (sqlite3_int64)len;
    log->len = 0; /* also if it fails: the next commit begins where this one did */
    return log->real->pMethods->xWrite(log->real, log->gathered, (int)len, at);
}

/* Whether more of the same commit follows the `len` bytes that are written now. A frame alone, in
 * the place of an earlier one, may be the last one of a commit. */
static bool continues(struct log_file *log, const char *bytes, size_t len, bool follows) {
    static const char none[4];
    bool frame = len == FRAME_BYTES;
    bool commits = frame && memcmp(bytes + COMMIT_AT, none, sizeof(none)) != 0;
    bool more = (frame && !(commits && !follows)) || log->wants_page;
    log->wants_page = frame && !commits;
    return more;
}

static int log_file_write(sqlite3_file *file, const void *bytes, int amount, sqlite3_int64 at) {
    struct log_file *log = log_of(file);
    size_t len = (size_t)amount;
    bool follows = at == log->at + (sqlite3_int64)log->len;
    int result = SQLITE_OK;
    if (!follows) log->wants_page = false;
    if (!follows || len > GATHERED_BYTES - log->len) result = log_file_pass_on(log);
    if (result != SQLITE_OK) return result;
    if (len > GATHERED_BYTES) return log->real->pMethods->xWrite(log->real, bytes, amount, at);
    if (!log->gathered) log->gathered = mem_alloc(GATHERED_BYTES);
    if (log->len == 0) log->at = at;
    memcpy(log->gathered + log->len, bytes, len);
    log->len += len;
    return continues(log, bytes, len, follows) ? SQLITE_OK : log_file_pass_on(log);
}

/* --- the other calls ---------------------------------------------------------------------- */

static int log_file_close(sqlite3_file *file) {
    struct log_file *log = log_of(file);
    int written = log_file_pass_on(log);
    int closed = log->real->pMethods->xClose(log->real);
    free(log->gathered);
    free(log->real);
    file->pMethods = NULL;
    return written == SQLITE_OK ? closed : written;
}

static int log_file_read(sqlite3_file *file, void *to, int len, sqlite3_int64 at) {
    struct log_file *log = log_of(file);
    int result = log_file_pass_on(log);
    if (result != SQLITE_OK) return result;
    if (log->window && fold_window_read(log->window, log->real, page_file_taken(log->database),
                                        to, len, at, &result))
        return result;
    return log->real->pMethods->xRead(log->real, to, len, at);
}

static int log_file_truncate(sqlite3_file *file, sqlite3_int64 len) {
    int result = log_file_pass_on(log_of(file));
    if (result != SQLITE_OK) return result;
    return real_of(file)->pMethods->xTruncate(real_of(file), len);
}

static int log_file_sync(sqlite3_file *file, int how) {
    int result = log_file_pass_on(log_of(file));
    if (result != SQLITE_OK) return result;
    return real_of(file)->pMethods->xSync(real_of(file), how);
}

static int log_file_size(sqlite3_file *file, sqlite3_int64 *ret) {
    int result = log_file_pass_on(log_of(file));
    if (result != SQLITE_OK) return result;
    return real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int log_file_lock(sqlite3_file *file, int level) {
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int log_file_unlock(sqlite3_file *file, int level) {
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int log_file_is_reserved(sqlite3_file *file, int *ret) {
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int log_file_control(sqlite3_file *file, int what, void *value) {
    return real_of(file)->pMethods->xFileControl(real_of(file), what, value);
}

static int log_file_sector(sqlite3_file *file) {
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int log_file_traits(sqlite3_file *file) {
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static const sqlite3_io_methods log_methods = {
    .iVersion = 1, /* a log has no shared memory of its own */
    .xClose = log_file_close,
    .xRead = log_file_read,
    .xWrite = log_file_write,
    .xTruncate = log_file_truncate,
    .xSync = log_file_sync,
    .xFileSize = log_file_size,
    .xLock = log_file_lock,
    .xUnlock = log_file_unlock,
    .xCheckReservedLock = log_file_is_reserved,
    .xFileControl = log_file_control,
    .xSectorSize = log_file_sector,
    .xDeviceCharacteristics = log_file_traits,
};

/* --- folding ------------------------------------------------------------------------------ */

static void fold_with(sqlite3_file *database, sqlite3_file *log, struct fold_window *window) {
    page_file_fold_with(database, window);
    log_of(log)->window = window;
    log_of(log)->database = database;
}

int log_file_fold(sqlite3 *handle, int how) {
    sqlite3_file *database = NULL, *log = NULL;
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &database);
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (!page_file_is(database) || !log || log->pMethods != &log_methods)
        return sqlite3_wal_checkpoint_v2(handle, NULL, how, NULL, NULL);
    struct fold_window *window = fold_window_new();
    fold_with(database, log, window);
    int result = sqlite3_wal_checkpoint_v2(handle, NULL, how, NULL, NULL);
    fold_with(database, log, NULL);
    fold_window_free(window);
    return result;
}

/* --- the file system ---------------------------------------------------------------------- */

/* One for the process, as SQLite keeps them. `below` changes only where a test puts another one
 * there, before it opens a database. */
static struct {
    pthread_mutex_t lock;
    sqlite3_vfs *below;
    sqlite3_vfs vfs;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int files_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                      int *ret_flags) {
    (void)vfs;
    if (flags & SQLITE_OPEN_MAIN_DB)
        return page_file_open(files.below, path, file, flags, ret_flags);
    if (!(flags & SQLITE_OPEN_WAL))
        return files.below->xOpen(files.below, path, file, flags, ret_flags);
    sqlite3_file *real = mem_zero(1, (size_t)files.below->szOsFile);
    int result = files.below->xOpen(files.below, path, real, flags, ret_flags);
    *log_of(file) = (struct log_file){.real = real};
    if (real->pMethods) {
        file->pMethods = &log_methods;
    } else {
        free(real);
    }
    return result;
}

const char *log_file_system(void) {
    pthread_mutex_lock(&files.lock);
    sqlite3_vfs *below = sqlite3_vfs_find(NULL);
    if (below != files.below) {
        if (files.below) sqlite3_vfs_unregister(&files.vfs);
        files.below = below;
        files.vfs = *below; /* all but these is handed on as it stands */
        files.vfs.zName = "weir";
        files.vfs.xOpen = files_open;
        if (files.vfs.szOsFile < (int)sizeof(struct log_file))
            files.vfs.szOsFile = (int)sizeof(struct log_file);
        if (files.vfs.szOsFile < PAGE_FILE_BYTES) files.vfs.szOsFile = PAGE_FILE_BYTES;
        sqlite3_vfs_register(&files.vfs, 0);
    }
    pthread_mutex_unlock(&files.lock);
    return files.vfs.zName;
}
