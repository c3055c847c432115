#include "store/check.h"

#include "base/mem.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIX "restore it from a backup, or move its folder away to begin anew"

static bool damaged(const char *path, const char *what, struct err *e) {
    return err_set(e, ERR_DATA_LOSS, "store %s: %s; " FIX, path, what);
}

/* --- the header --------------------------------------------------------------------------- */

#define HEADER_BYTES 100

/* Bytes that never change in our databases, by offset. (SQLite file format, 1.3) */
static const struct {
    size_t at, len;
    const char *bytes;
} header_rows[] = {
    {0, 16, "SQLite format 3"},  /* with its NUL */
    {16, 2, "\x10\x00"},         /* page size 4096 */
    {18, 2, "\x02\x02"},         /* written and read as WAL */
    {20, 1, "\x00"},             /* no reserved space at the end of a page */
    {21, 3, "\x40\x20\x20"},     /* payload fractions */
    {48, 8, "\0\0\0\0\0\0\0\0"}, /* default cache size, largest root page */
    {64, 4, "\0\0\0\0"},         /* incremental vacuum */
    {72, 20, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
};

static uint32_t number_at(const char *bytes) {
    const unsigned char *at = (const unsigned char *)bytes;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool check_header(const char *path, int file, struct err *e) {
    char header[HEADER_BYTES];
    if (pread(file, header, sizeof(header), 0) != HEADER_BYTES)
        return damaged(path, "it is cut off within its header", e);
    for (size_t i = 0; i < ARRAY_LEN(header_rows); i++) {
        if (memcmp(header + header_rows[i].at, header_rows[i].bytes, header_rows[i].len) != 0)
            return damaged(path, "its header is damaged, or it is another kind of file", e);
    }
    if (number_at(header + 68) == SCHEMA_APPLICATION_ID) return true;
    return err_set(e, ERR_FAILED_PRECONDITION,
                   "store %s: this database is not a weir's, or its header is damaged; name "
                   "another folder with --data",
                   path);
}

static off_t length_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : 0;
}

static off_t wal_length(const char *path) {
    char wal[PATH_MAX];
    snprintf(wal, sizeof(wal), "%s-wal", path);
    return length_of(wal);
}

bool check_file(const char *path, const struct mark *mark, bool *ret_new, struct err *e) {
    *ret_new = length_of(path) == 0;
    if (*ret_new) {
        if (mark->epoch > 0 || wal_length(path) > 0)
            return damaged(path, "it is missing or empty, yet there was one", e);
        return true;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return err_set(e, ERR_UNAVAILABLE,
                       "store %s: %s; make it readable and writable for this user", path,
                       strerrordesc_np(errno));
    bool ok = check_header(path, file, e);
    close(file);
    return ok;
}

/* --- the length --------------------------------------------------------------------------- */

#define WAL_HEADER_BYTES 32
#define FRAME_HEADER_BYTES 24

/* Clear the bits of pages found in the write-ahead log; `missing` has one bit for each page
 * after `first`. Returns the number of bits cleared. */
static size_t strike_frames(int wal, uint64_t first, unsigned char *missing, uint64_t count) {
    char header[WAL_HEADER_BYTES], frame[FRAME_HEADER_BYTES];
    if (pread(wal, header, sizeof(header), 0) != (ssize_t)sizeof(header)) return 0;
    size_t struck = 0;
    off_t at = WAL_HEADER_BYTES;
    while (pread(wal, frame, sizeof(frame), at) == (ssize_t)sizeof(frame)) {
        at += FRAME_HEADER_BYTES + CHECK_PAGE_BYTES;
        uint64_t page = number_at(frame);
        if (memcmp(frame + 8, header + 16, 8) != 0) break; /* the salts of an earlier round */
        if (page <= first || page - first > count) continue;
        unsigned char bit = (unsigned char)(1u << ((page - first - 1) % 8));
        if (missing[(page - first - 1) / 8] & bit) struck++;
        missing[(page - first - 1) / 8] &= (unsigned char)~bit;
    }
    return struck;
}

/* Check that every page is in the file or, before the checkpoint, in the write-ahead log. */
static bool check_length(struct database *db, uint64_t pages, struct err *e) {
    uint64_t in_file = (uint64_t)length_of(db->path) / CHECK_PAGE_BYTES;
    if (in_file >= pages) return true;
    uint64_t count = pages - in_file;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s-wal", db->path);
    int wal = open(path, O_RDONLY | O_CLOEXEC);
    if (wal < 0 || count > (uint64_t)length_of(path) / CHECK_PAGE_BYTES) {
        if (wal >= 0) close(wal);
        return damaged(db->path, "it is cut off", e);
    }
    unsigned char *missing = mem_alloc((size_t)(count / 8 + 1));
    memset(missing, 0xFF, (size_t)(count / 8 + 1));
    size_t struck = strike_frames(wal, in_file, missing, count);
    free(missing);
    close(wal);
    return struck == count || damaged(db->path, "it is cut off", e);
}

/* --- the content -------------------------------------------------------------------------- */

/* Check that everything acknowledged earlier is present. */
static bool check_mark(struct database *db, const struct rows *rows, const struct mark *mark,
                       int64_t epoch, struct err *e) {
    if (rows->newest >= mark->newest && epoch >= mark->epoch) return true;
    return err_set(e, ERR_DATA_LOSS,
                   "store %s: it ends at row %" PRId64 " of start %" PRId64 ", yet row %" PRId64
                   " of start %" PRId64 " was acknowledged: it or its -wal file is damaged; "
                   "restore both from a backup, and remove weir.mark beside them to accept "
                   "what they hold",
                   db->path, rows->newest, epoch, mark->newest, mark->epoch);
}

/* When SQLite has no memory to read a page, its verdict reads as if the page were bad. */
static bool is_out_of_memory(struct str verdict) {
    struct str words = STR("unable to get the page. error code=7"); /* SQLITE_NOMEM */
    return str_find(verdict, words) < verdict.len;
}

/* SQLite's own check of every page. */
static bool check_pages(struct database *db, struct err *e) {
    struct database_rows check =
        database_ask(db, "PRAGMA integrity_check(1)", (struct sql_values){0}, e);
    struct str verdict = database_next(&check, e) ? database_bytes(check.row, 0) : STR_EMPTY;
    if (check.ok && is_out_of_memory(verdict)) {
        check.ok =
            err_set(e, ERR_UNAVAILABLE,
                    "store %s: there is too little memory to check it; free some", db->path);
    } else if (check.ok && !str_equal(verdict, STR("ok"))) {
        check.ok = damaged(db->path, "its pages do not fit together", e);
    }
    return database_end(&check);
}

static bool count_row(const struct row *row, void *ctx, struct err *e) {
    (void)e;
    size_t *left = ctx;
    *left = row->bytes.len < *left ? *left - row->bytes.len : 0;
    return true;
}

/* Reading a row verifies its checksum. */
static bool check_rows(struct rows *rows, int64_t after, struct err *e) {
    size_t left = CHECK_TAIL_BYTES;
    return row_each(rows, after, SIZE_MAX / 2, count_row, &left, e);
}

bool check_content(struct database *db, struct rows *rows, const struct mark *mark,
                   int64_t epoch, int64_t projected, struct err *e) {
    int64_t pages = 0;
    if (!database_number(db, "PRAGMA page_count", &pages, e)) return false;
    if (!check_length(db, (uint64_t)pages, e)) return false;
    if (!check_mark(db, rows, mark, epoch, e)) return false;
    if ((uint64_t)pages * CHECK_PAGE_BYTES <= CHECK_WHOLE_BYTES)
        return check_pages(db, e) && check_rows(rows, 0, e);
    int64_t tail = rows->newest - CHECK_TAIL_ROWS;
    return check_rows(rows, projected < tail ? projected : tail, e);
}
