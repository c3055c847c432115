#include "store/page_file.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FILE_HEADER_BYTES 100 /* in front of the first page's own */
#define VACUUMS_AT 52         /* in it; 0: the file does not vacuum itself */
#define LEAF_HEADER_BYTES 8
#define INNER_HEADER_BYTES 12

enum page_kind {
    INNER_OF_INDEX = 2,
    INNER_OF_TABLE = 5,
    LEAF_OF_INDEX = 10,
    LEAF_OF_TABLE = 13
};

struct page_file {
    sqlite3_file as_file; /* first: SQLite's pointer is ours */
    sqlite3_file *real;
    bool looked; /* since a lock was last taken, beside whose holder nobody writes */
    bool clears; /* what was seen then: each page that begins as one of a tree is one */
    struct fold_window *window;  /* of the fold that goes on; NULL: none */
    const volatile char *shared; /* the beginning of the wal-index; NULL: not mapped */
};

_Static_assert(sizeof(struct page_file) <= PAGE_FILE_BYTES, "SQLite gives it enough room");

static sqlite3_file *real_of(sqlite3_file *file) {
    return ((struct page_file *)file)->real;
}

/* --- the free room of a page -------------------------------------------------------------- */

static size_t number_at(const unsigned char *at) {
    return (size_t)at[0] << 8 | at[1];
}

/* 0: no page of a tree. */
static size_t header_bytes(unsigned char kind) {
    switch (kind) {
    case INNER_OF_INDEX:
    case INNER_OF_TABLE: return INNER_HEADER_BYTES;
    case LEAF_OF_INDEX:
    case LEAF_OF_TABLE: return LEAF_HEADER_BYTES;
    default: return 0;
    }
}

struct page_room page_file_room(const unsigned char page[static PAGE_FILE_PAGE_BYTES],
                                sqlite3_int64 at) {
    size_t begin = at == 0 ? FILE_HEADER_BYTES : 0;
    size_t header = header_bytes(page[begin]);
    if (header == 0) return (struct page_room){0};
    size_t cells = number_at(page + begin + 3), content = number_at(page + begin + 5);
    size_t from = begin + header + 2 * cells;
    if (content > PAGE_FILE_PAGE_BYTES || from >= content) return (struct page_room){0};
    return (struct page_room){from, content - from};
}

/* --- writing ------------------------------------------------------------------------------ */

static bool may_clear(sqlite3_file *real, const unsigned char vacuums[static 4]) {
    static const unsigned char never[4];
    sqlite3_int64 len = 0;
    return memcmp(vacuums, never, sizeof(never)) == 0 &&
           real->pMethods->xFileSize(real, &len) == SQLITE_OK && len <= PAGE_FILE_CLEARED_BYTES;
}

/* By the first page, which is the first one to be written if it is. */
static bool clears(struct page_file *file, const unsigned char *page, sqlite3_int64 at) {
    unsigned char vacuums[4];
    if (at == 0) {
        file->clears = may_clear(file->real, page + VACUUMS_AT);
    } else if (!file->looked) {
        int result =
            file->real->pMethods->xRead(file->real, vacuums, sizeof(vacuums), VACUUMS_AT);
        file->clears = result == SQLITE_OK && may_clear(file->real, vacuums);
    }
    file->looked = true;
    return file->clears;
}

/* The room of a page that is to be cleared as it is written. */
static struct page_room room_to_clear(struct page_file *file, const void *page,
                                      sqlite3_int64 at) {
    struct page_room room = page_file_room(page, at);
    return room.len && clears(file, page, at) ? room : (struct page_room){0};
}

/* Pages that follow each other, from the window of a fold. */
static int write_run(struct page_file *file, const struct fold_run *run, sqlite3_int64 at) {
    for (size_t i = 0; i < run->count; i++) {
        sqlite3_int64 place = at + (sqlite3_int64)(i * PAGE_FILE_PAGE_BYTES);
        char *page = run->room + i * PAGE_FILE_PAGE_BYTES;
        struct page_room room = room_to_clear(file, run->pages[i], place);
        memcpy(page, run->pages[i], PAGE_FILE_PAGE_BYTES);
        memset(page + room.from, 0, room.len);
    }
    int len = (int)(run->count * PAGE_FILE_PAGE_BYTES), result = SQLITE_OK;
    if (len) result = file->real->pMethods->xWrite(file->real, run->room, len, at);
    if (result == SQLITE_OK) fold_window_written(file->window, run);
    return result;
}

static int write_page(struct page_file *file, const void *bytes, sqlite3_int64 at) {
    sqlite3_file *real = file->real;
    unsigned char page[PAGE_FILE_PAGE_BYTES];
    struct page_room room = room_to_clear(file, bytes, at);
    if (room.len == 0) return real->pMethods->xWrite(real, bytes, sizeof(page), at);
    memcpy(page, bytes, sizeof(page));
    memset(page + room.from, 0, room.len);
    return real->pMethods->xWrite(real, page, sizeof(page), at);
}

static int page_file_write(sqlite3_file *at_file, const void *bytes, int len,
                           sqlite3_int64 at) {
    struct page_file *file = (struct page_file *)at_file;
    struct fold_run run;
    if (len != PAGE_FILE_PAGE_BYTES || at % PAGE_FILE_PAGE_BYTES != 0)
        return file->real->pMethods->xWrite(file->real, bytes, len, at);
    if (file->window && fold_window_run(file->window, bytes, at, &run))
        return write_run(file, &run, at);
    return write_page(file, bytes, at);
}

/* --- folding ------------------------------------------------------------------------------ */

#define TAKEN_AT 128 /* in the wal-index: the last frame that the present fold takes */

void page_file_fold_with(sqlite3_file *file, struct fold_window *window) {
    ((struct page_file *)file)->window = window;
}

uint32_t page_file_taken(const sqlite3_file *file) {
    const volatile char *shared = ((const struct page_file *)file)->shared;
    if (!shared) return 0;
    return __atomic_load_n((const volatile uint32_t *)(shared + TAKEN_AT), __ATOMIC_RELAXED);
}

/* --- the other calls ---------------------------------------------------------------------- */

static int page_file_close(sqlite3_file *file) {
    sqlite3_file *real = real_of(file);
    int result = real->pMethods->xClose(real);
    free(real);
    file->pMethods = NULL;
    return result;
}

static int page_file_read(sqlite3_file *file, void *to, int len, sqlite3_int64 at) {
    return real_of(file)->pMethods->xRead(real_of(file), to, len, at);
}

static int page_file_truncate(sqlite3_file *file, sqlite3_int64 len) {
    return real_of(file)->pMethods->xTruncate(real_of(file), len);
}

static int page_file_sync(sqlite3_file *file, int how) {
    return real_of(file)->pMethods->xSync(real_of(file), how);
}

static int page_file_size(sqlite3_file *file, sqlite3_int64 *ret) {
    return real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int page_file_lock(sqlite3_file *file, int level) {
    ((struct page_file *)file)->looked = false;
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int page_file_unlock(sqlite3_file *file, int level) {
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int page_file_is_reserved(sqlite3_file *file, int *ret) {
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int page_file_control(sqlite3_file *file, int what, void *value) {
    return real_of(file)->pMethods->xFileControl(real_of(file), what, value);
}

static int page_file_sector(sqlite3_file *file) {
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int page_file_traits(sqlite3_file *file) {
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int page_file_shm_map(sqlite3_file *file, int page, int size, int extend,
                             void volatile **ret) {
    int result = real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret);
    if (page == 0) ((struct page_file *)file)->shared = result == SQLITE_OK ? *ret : NULL;
    return result;
}

static int page_file_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    if (flags & SQLITE_SHM_LOCK) ((struct page_file *)file)->looked = false;
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static void page_file_shm_barrier(sqlite3_file *file) {
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int page_file_shm_unmap(sqlite3_file *file, int deletes) {
    ((struct page_file *)file)->shared = NULL;
    return real_of(file)->pMethods->xShmUnmap(real_of(file), deletes);
}

static const sqlite3_io_methods page_methods = {
    .iVersion = 2, /* with shared memory, without mapped reads: mmap_size is 0 */
    .xClose = page_file_close,
    .xRead = page_file_read,
    .xWrite = page_file_write,
    .xTruncate = page_file_truncate,
    .xSync = page_file_sync,
    .xFileSize = page_file_size,
    .xLock = page_file_lock,
    .xUnlock = page_file_unlock,
    .xCheckReservedLock = page_file_is_reserved,
    .xFileControl = page_file_control,
    .xSectorSize = page_file_sector,
    .xDeviceCharacteristics = page_file_traits,
    .xShmMap = page_file_shm_map,
    .xShmLock = page_file_shm_lock,
    .xShmBarrier = page_file_shm_barrier,
    .xShmUnmap = page_file_shm_unmap,
};

bool page_file_is(const sqlite3_file *file) {
    return file && file->pMethods == &page_methods;
}

int page_file_open(sqlite3_vfs *below, const char *path, sqlite3_file *file, int flags,
                   int *ret_flags) {
    sqlite3_file *real = mem_zero(1, (size_t)below->szOsFile);
    int result = below->xOpen(below, path, real, flags, ret_flags);
    *(struct page_file *)file = (struct page_file){.real = real};
    if (real->pMethods) {
        assert(real->pMethods->iVersion >= 2);
        file->pMethods = &page_methods;
    } else {
        free(real);
    }
    return result;
}
