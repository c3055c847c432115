#include "store/create.h"

#include "store/check.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES (PATH_MAX + 64)

bool create_folder(const char *folder, struct err *e) {
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
bool create_file(struct database *like, const char *folder, const char *path, struct err *e) {
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
