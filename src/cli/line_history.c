#include "cli/line_history.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"
#include "wire/json.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM (2 * HISTORY_LINES) /* of lines, in memory and in the file */
#define LINE_WRITTEN_MAX (6 * HISTORY_LINE_MAX_BYTES + 16)
#define FILE_MAX_BYTES (64 * MIB)

/* --- in memory ---------------------------------------------------------------------------- */

struct str line_history_at(const struct line_history *history, size_t back) {
    return text_str(history->lines[history->count - back]);
}

static void line_history_drop_oldest(struct line_history *history, size_t count) {
    for (size_t i = 0; i < count; i++) text_done(&history->lines[i]);
    history->count -= count;
    memmove(history->lines, history->lines + count, history->count * sizeof(*history->lines));
}

/* False: it is not worth keeping. */
static bool line_history_remember(struct line_history *history, struct str line) {
    if (!str_trim(line).len || line.at[0] == ' ' || line.len > HISTORY_LINE_MAX_BYTES)
        return false;
    if (history->count && str_equal(line_history_at(history, 1), line)) return false;
    if (history->count == ROOM) line_history_drop_oldest(history, ROOM - HISTORY_LINES);
    history->lines[history->count++] = text_copy(line);
    return true;
}

/* --- the file ----------------------------------------------------------------------------- */

static void line_history_write_line(struct str line, struct buf *out) {
    json_put_str(out, line);
    buf_append_byte(out, '\n');
}

static void line_history_read_line(struct line_history *history, struct str line) {
    struct json value = {.kind = JSON_NONE};
    struct err e;
    struct str text;
    struct arena *arena = arena_new(2 * HISTORY_LINE_MAX_BYTES);
    bool good = line.len <= LINE_WRITTEN_MAX && json_read(line, &value, &e) &&
                value.kind == JSON_STRING && json_str(value, arena, &text);
    if (good) (void)line_history_remember(history, text);
    arena_free(arena);
}

/* Returns how many lines the file has. */
static size_t line_history_read_lines(struct line_history *history, const char *path) {
    struct buf all;
    struct err e;
    size_t count = 0;
    buf_init(&all, FILE_MAX_BYTES);
    if (file_read(str_from(path), &all, &e)) {
        for (struct str rest = buf_str(&all); rest.len; count++)
            line_history_read_line(history, str_split(rest, '\n', &rest));
    }
    buf_done(&all);
    return count;
}

/* Open the file with its lock. Another process may rewrite it meanwhile: then that one is opened.
 * -1: it cannot be. */
static int open_locked(const char *path) {
    for (int tries = 0; tries < 10; tries++) {
        struct stat opened, there;
        int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0) return -1;
        if (flock(file, LOCK_EX) == 0 && fstat(file, &opened) == 0 && stat(path, &there) == 0 &&
            opened.st_ino == there.st_ino && opened.st_dev == there.st_dev)
            return file;
        close(file);
    }
    return -1;
}

/* A line that a crash has cut short is ended first. */
static void append_line(const char *path, struct str line) {
    struct buf text;
    char last = '\n';
    int file = open_locked(path);
    if (file < 0) return;
    buf_init(&text, LINE_WRITTEN_MAX + 1);
    off_t size = lseek(file, 0, SEEK_END);
    if (size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n')
        buf_append_byte(&text, '\n');
    line_history_write_line(line, &text);
    ssize_t wrote = write(file, text.at, text.len);
    (void)wrote; /* on a full disk the line lasts as long as the command */
    buf_done(&text);
    close(file);
}

/* The lock of the file before is held until the new one has its place. */
static void write_newest(const struct line_history *history, const char *path) {
    char next[PATH_MAX];
    struct buf text;
    size_t from = history->count > HISTORY_LINES ? history->count - HISTORY_LINES : 0;
    buf_init(&text, FILE_MAX_BYTES);
    for (size_t i = from; i < history->count; i++)
        line_history_write_line(text_str(history->lines[i]), &text);
    snprintf(next, sizeof(next), "%s.new", path);
    int file = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool whole = file >= 0 && write(file, text.at, text.len) == (ssize_t)text.len;
    if (file >= 0) whole = close(file) == 0 && whole;
    if (!whole || rename(next, path) != 0) unlink(next);
    buf_done(&text);
}

/* The folders above it, for this user alone. */
static void make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static void line_history_load(struct line_history *history) {
    char *path = str_dup(text_str(history->path));
    size_t count = line_history_read_lines(history, path);
    int locked = count > ROOM ? open_locked(path) : -1;
    if (locked >= 0) {
        while (history->count) line_history_drop_oldest(history, history->count);
        (void)line_history_read_lines(history, path);
        write_newest(history, path);
        close(locked);
    }
    free(path);
}

/* --- the whole ---------------------------------------------------------------------------- */

void line_history_init(struct line_history *history, struct str path) {
    *history = (struct line_history){.lines = mem_zero(ROOM, sizeof(struct text)),
                                     .path = text_copy(path)};
    if (path.len) line_history_load(history);
}

void line_history_done(struct line_history *history) {
    line_history_drop_oldest(history, history->count);
    free(history->lines);
    text_done(&history->path);
}

void line_history_add(struct line_history *history, struct str line) {
    if (!line_history_remember(history, line) || !text_str(history->path).len) return;
    char *path = str_dup(text_str(history->path));
    make_folders(path);
    append_line(path, line);
    free(path);
}

void line_history_path(struct buf *out) {
    /* NOLINTBEGIN(concurrency-mt-unsafe): a command has one thread so far */
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    /* NOLINTEND(concurrency-mt-unsafe) */
    if (state && state[0] == '/')
        buf_printf(out, "%s/weir/chat_history", state);
    else if (home && home[0] == '/')
        buf_printf(out, "%s/.local/state/weir/chat_history", home);
}
