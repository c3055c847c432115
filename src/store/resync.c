#include "store/resync.h"

#include "base/mem.h"
#include "store/database.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

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

bool resync_log(const char *path, struct err *e) {
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
