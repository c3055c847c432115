#include "helper/powercut_vfs.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR 512
#define PIECE 4096   /* of a larger write any may reach the disk without the others */
#define FILES_MAX 64 /* of one life: names that were ever opened, those deleted too */

/* What happened to a file since its last sync: bytes written, or a new length. */
struct change {
    char *bytes; /* NULL: the file's length became `at` */
    size_t at, len;
};

struct image {
    char *bytes;
    size_t len, room;
};

struct file {
    char *path;
    struct image synced;
    struct change *changes;
    size_t change_count, change_room;
    bool fresh;   /* made, and its name is not surely on the disk */
    bool deleted; /* and that is not surely on the disk either */
    bool gone;    /* ... now it is */
};

struct handle {
    sqlite3_file base;
    struct file *file; /* NULL: a temporary one */
    sqlite3_file *real;
};

/* One disk for the process: SQLite's interface has no place for a context of ours. */
static struct {
    struct powercut options;
    sqlite3_vfs vfs, *real;
    pthread_mutex_t lock;
    uint64_t state;
    size_t done; /* operations */
    size_t syncs, failed_syncs;
    struct file files[FILES_MAX];
    size_t file_count;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t draw(size_t limit) {
    disk.state ^= disk.state << 13;
    disk.state ^= disk.state >> 7;
    disk.state ^= disk.state << 17;
    return (size_t)((disk.state >> 11) % limit);
}

/* --- contents ----------------------------------------------------------------------------- */

static void image_reach(struct image *image, size_t len) {
    if (len > image->room) {
        image->room = len * 2;
        image->bytes = mem_resize(image->bytes, image->room);
    }
    if (len > image->len) memset(image->bytes + image->len, 0, len - image->len);
    if (len > image->len) image->len = len;
}

static void image_apply(struct image *image, const struct change *change) {
    if (!change->bytes) {
        image_reach(image, change->at);
        image->len = change->at;
        return;
    }
    image_reach(image, change->at + change->len);
    memcpy(image->bytes + change->at, change->bytes, change->len);
}

static void forget_changes(struct file *file) {
    for (size_t i = 0; i < file->change_count; i++) free(file->changes[i].bytes);
    file->change_count = 0;
}

static void file_add_change(struct file *file, struct change change) {
    if (file->change_count == file->change_room) {
        file->change_room = file->change_room ? file->change_room * 2 : 64;
        file->changes = mem_resize(file->changes, file->change_room * sizeof(struct change));
    }
    file->changes[file->change_count++] = change;
}

/* SQLite syncs the folder with a file that it has made, and so does the store. */
static void file_sync(struct file *file) {
    for (size_t i = 0; i < file->change_count; i++)
        image_apply(&file->synced, &file->changes[i]);
    forget_changes(file);
    if (!file->fresh) return;
    file->fresh = false;
    for (size_t i = 0; i < disk.file_count; i++) disk.files[i].gone |= disk.files[i].deleted;
}

static struct file *file_find(const char *path) {
    for (size_t i = 0; i < disk.file_count; i++) {
        if (!disk.files[i].deleted && strcmp(disk.files[i].path, path) == 0)
            return &disk.files[i];
    }
    return NULL;
}

/* What is there when a file is first opened was there when the power came. */
static struct file *file_track(const char *path, bool existed) {
    struct file *file = file_find(path);
    if (file) return file;
    assert(disk.file_count < FILES_MAX);
    file = &disk.files[disk.file_count++];
    *file = (struct file){.path = str_dup(str_from(path)), .fresh = !existed};
    struct stat info;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0) return file;
    bool ok = fstat(from, &info) == 0;
    assert(ok);
    image_reach(&file->synced, (size_t)info.st_size);
    ssize_t len = pread(from, file->synced.bytes, file->synced.len, 0);
    assert(len == (ssize_t)file->synced.len);
    close(from);
    return file;
}

/* --- the cut ------------------------------------------------------------------------------ */

/* Keep the head or the tail of it, cut where two sectors of the file meet. */
static void tear(struct change *change) {
    if (!change->bytes) return;
    size_t first = (change->at / SECTOR + 1) * SECTOR, end = change->at + change->len;
    if (first >= end) return;
    size_t cut = first + draw((end - first + SECTOR - 1) / SECTOR) * SECTOR - change->at;
    bool head = draw(2) == 0;
    if (head) {
        change->len = cut;
        return;
    }
    memmove(change->bytes, change->bytes + cut, change->len - cut);
    change->at += cut;
    change->len -= cut;
}

static void shuffle(struct change *changes, size_t count) {
    for (size_t i = count; i > 1; i--) {
        size_t other = draw(i);
        struct change kept = changes[i - 1];
        changes[i - 1] = changes[other];
        changes[other] = kept;
    }
}

static void lose_changes(struct file *file) {
    static const size_t of_eight[] = {0, 1, 4, 7, 8, 8}; /* how much gets through */
    size_t kept = of_eight[draw(ARRAY_LEN(of_eight))];
    if (file->change_count == 0) return;
    tear(&file->changes[draw(2) ? draw(file->change_count) : file->change_count - 1]);
    if (draw(2)) shuffle(file->changes, file->change_count);
    for (size_t i = 0; i < file->change_count; i++) {
        if (draw(8) < kept) image_apply(&file->synced, &file->changes[i]);
    }
}

static void write_out(const struct file *file) {
    int to = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert(to >= 0);
    ssize_t len = pwrite(to, file->synced.bytes, file->synced.len, 0);
    assert(len == (ssize_t)file->synced.len);
    close(to);
}

static bool survives(const struct file *file) {
    if (file->gone || (file->deleted && file->fresh)) return false;
    return (!file->deleted && !file->fresh) || draw(2) == 0;
}

/* Of two files of one name the later one takes the place of the one that was deleted. */
static _Noreturn void cut(void) {
    for (size_t i = 0; i < disk.file_count; i++) unlink(disk.files[i].path);
    for (size_t i = 0; i < disk.file_count; i++) {
        struct file *file = &disk.files[i];
        if (!survives(file)) continue;
        lose_changes(file);
        write_out(file);
    }
    if (disk.options.on_cut) disk.options.on_cut(disk.options.ctx);
    _exit(0);
}

/* Count an operation that is about to happen; the lock is held. */
static void tick(void) {
    if (++disk.done == disk.options.at) cut();
}

/* --- a file, as SQLite sees it ------------------------------------------------------------ */

static sqlite3_file *real_of(sqlite3_file *base) {
    return ((struct handle *)base)->real;
}

static int handle_close(sqlite3_file *base) {
    return real_of(base)->pMethods->xClose(real_of(base));
}

static int handle_read(sqlite3_file *base, void *to, int len, sqlite3_int64 at) {
    return real_of(base)->pMethods->xRead(real_of(base), to, len, at);
}

static void note_change(sqlite3_file *base, struct change change) {
    struct file *file = ((struct handle *)base)->file;
    if (file) file_add_change(file, change);
    if (!file) free(change.bytes);
}

/* One more sync, or write: whether it fails. */
static bool next_fails(bool writes) {
    if (writes != disk.options.fail_writes) return false;
    disk.syncs++;
    bool fails = disk.syncs >= disk.options.fail_from && disk.syncs <= disk.options.fail_to;
    disk.failed_syncs += fails;
    return fails;
}

static int handle_write(sqlite3_file *base, const void *from, int len, sqlite3_int64 at) {
    pthread_mutex_lock(&disk.lock);
    tick();
    bool fails = next_fails(true);
    int result = SQLITE_IOERR_WRITE;
    if (!fails || disk.options.fail_keeps)
        result = real_of(base)->pMethods->xWrite(real_of(base), from, len, at);
    for (size_t done = 0; result == SQLITE_OK && done < (size_t)len;) {
        struct change change = {.at = (size_t)at + done, .len = (size_t)len - done};
        if (change.len > PIECE) change.len = PIECE;
        change.bytes = mem_alloc(change.len);
        memcpy(change.bytes, (const char *)from + done, change.len);
        note_change(base, change);
        done += change.len;
    }
    pthread_mutex_unlock(&disk.lock);
    return fails ? SQLITE_IOERR_WRITE : result;
}

static int handle_truncate(sqlite3_file *base, sqlite3_int64 len) {
    pthread_mutex_lock(&disk.lock);
    tick();
    int result = real_of(base)->pMethods->xTruncate(real_of(base), len);
    if (result == SQLITE_OK) note_change(base, (struct change){.at = (size_t)len});
    pthread_mutex_unlock(&disk.lock);
    return result;
}

/* The real disk is spared: this process only dies by our hand. */
static int handle_sync(sqlite3_file *base, int flags) {
    (void)flags;
    struct file *file = ((struct handle *)base)->file;
    pthread_mutex_lock(&disk.lock);
    tick();
    bool fails = next_fails(false);
    if (file && !fails) file_sync(file);
    if (file && fails && !disk.options.fail_keeps) forget_changes(file);
    pthread_mutex_unlock(&disk.lock);
    return fails ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int handle_size(sqlite3_file *base, sqlite3_int64 *ret) {
    return real_of(base)->pMethods->xFileSize(real_of(base), ret);
}

static int handle_lock(sqlite3_file *base, int level) {
    return real_of(base)->pMethods->xLock(real_of(base), level);
}

static int handle_unlock(sqlite3_file *base, int level) {
    return real_of(base)->pMethods->xUnlock(real_of(base), level);
}

static int handle_check_lock(sqlite3_file *base, int *ret) {
    return real_of(base)->pMethods->xCheckReservedLock(real_of(base), ret);
}

static int handle_control(sqlite3_file *base, int what, void *value) {
    return real_of(base)->pMethods->xFileControl(real_of(base), what, value);
}

static int handle_sector(sqlite3_file *base) {
    return real_of(base)->pMethods->xSectorSize(real_of(base));
}

static int handle_traits(sqlite3_file *base) {
    return real_of(base)->pMethods->xDeviceCharacteristics(real_of(base));
}

static int handle_shm_map(sqlite3_file *base, int page, int size, int extend,
                          void volatile **ret) {
    return real_of(base)->pMethods->xShmMap(real_of(base), page, size, extend, ret);
}

static int handle_shm_lock(sqlite3_file *base, int offset, int count, int flags) {
    return real_of(base)->pMethods->xShmLock(real_of(base), offset, count, flags);
}

static void handle_shm_barrier(sqlite3_file *base) {
    real_of(base)->pMethods->xShmBarrier(real_of(base));
}

static int handle_shm_unmap(sqlite3_file *base, int deletes) {
    return real_of(base)->pMethods->xShmUnmap(real_of(base), deletes);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* with shared memory, without mapped reads */
    .xClose = handle_close,
    .xRead = handle_read,
    .xWrite = handle_write,
    .xTruncate = handle_truncate,
    .xSync = handle_sync,
    .xFileSize = handle_size,
    .xLock = handle_lock,
    .xUnlock = handle_unlock,
    .xCheckReservedLock = handle_check_lock,
    .xFileControl = handle_control,
    .xSectorSize = handle_sector,
    .xDeviceCharacteristics = handle_traits,
    .xShmMap = handle_shm_map,
    .xShmLock = handle_shm_lock,
    .xShmBarrier = handle_shm_barrier,
    .xShmUnmap = handle_shm_unmap,
};

/* --- the file system ---------------------------------------------------------------------- */

static int disk_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags,
                     int *ret_flags) {
    (void)vfs;
    struct handle *handle = (struct handle *)base;
    *handle = (struct handle){.real = (sqlite3_file *)(handle + 1)};
    pthread_mutex_lock(&disk.lock);
    bool existed = path && access(path, F_OK) == 0;
    int result = disk.real->xOpen(disk.real, path, handle->real, flags, ret_flags);
    if (handle->real->pMethods) base->pMethods = &methods;
    if (result == SQLITE_OK && path) handle->file = file_track(path, existed);
    pthread_mutex_unlock(&disk.lock);
    return result;
}

static int disk_delete(sqlite3_vfs *vfs, const char *path, int sync_folder) {
    (void)vfs;
    pthread_mutex_lock(&disk.lock);
    tick();
    int result = disk.real->xDelete(disk.real, path, 0);
    struct file *file = result == SQLITE_OK ? file_find(path) : NULL;
    if (file) {
        file->deleted = true;
        file->gone = sync_folder;
    }
    pthread_mutex_unlock(&disk.lock);
    return result;
}

void powercut_begin(const struct powercut *powercut) {
    disk.options = *powercut;
    disk.state = powercut->seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    disk.real = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.real; /* all but these is handed on as it stands */
    disk.vfs.zName = "powercut";
    disk.vfs.szOsFile += (int)sizeof(struct handle);
    disk.vfs.xOpen = disk_open;
    disk.vfs.xDelete = disk_delete;
    sqlite3_vfs_register(&disk.vfs, 1);
}

/* --- what happens beside SQLite ----------------------------------------------------------- */

_Noreturn void powercut_now(void) {
    pthread_mutex_lock(&disk.lock);
    cut();
}

size_t powercut_syncs(size_t *ret_failed) {
    pthread_mutex_lock(&disk.lock);
    size_t syncs = disk.syncs;
    *ret_failed = disk.failed_syncs;
    pthread_mutex_unlock(&disk.lock);
    return syncs;
}

void powercut_tick(void) {
    pthread_mutex_lock(&disk.lock);
    tick();
    pthread_mutex_unlock(&disk.lock);
}

void powercut_synced(const char *path) {
    pthread_mutex_lock(&disk.lock);
    struct file *file = file_find(path);
    if (file) file_sync(file);
    pthread_mutex_unlock(&disk.lock);
}

void powercut_renamed(const char *from, const char *to) {
    pthread_mutex_lock(&disk.lock);
    struct file *file = file_find(from);
    if (file) {
        free(file->path);
        file->path = str_dup(str_from(to));
    }
    pthread_mutex_unlock(&disk.lock);
}

size_t powercut_draw(size_t limit) {
    return draw(limit);
}
