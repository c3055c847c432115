#include "tape/folder.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "wire/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_DIGITS 12
#define WHO_MAX_BYTES 40
#define NAME_BYTES 128
#define EXTENSION STR(".json")

static const char *reason(int error) {
    const char *known = strerrordesc_np(error);
    return known ? known : "the system gives no reason";
}

static bool folder_refuse(struct err *e, const char *what, struct str path, int error) {
    enum err_code code = error == ENOSPC || error == EDQUOT ? ERR_RESOURCE_EXHAUSTED
                         : error == ENOENT                  ? ERR_NOT_FOUND
                         : error == EACCES                  ? ERR_PERMISSION_DENIED
                                                            : ERR_UNAVAILABLE;
    return err_set(e, code, "%s '" STR_FMT "': %s", what, STR_ARG(path), reason(error));
}

/* --- making ------------------------------------------------------------------------------- */

bool folder_make(struct str folder, struct err *e) {
    char *path = str_dup(folder);
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    int error = errno;
    if (made) { /* the existing entry may be a file, or belong to another user */
        made = access(path, W_OK | X_OK) == 0;
        error = errno;
        struct stat found;
        if (made && stat(path, &found) == 0 && !S_ISDIR(found.st_mode)) {
            made = false;
            error = ENOTDIR;
        }
    }
    free(path);
    if (made) return true;
    folder_refuse(e, "record into the folder", folder, error);
    return false;
}

/* --- writing ------------------------------------------------------------------------------ */

static void put_hash(struct str text, char digits[HASH_DIGITS + 1]) {
    uint8_t digest[DIGEST_BYTES];
    digest_text(text, digest);
    digest_digits(digest, HASH_DIGITS, digits);
    digits[HASH_DIGITS] = '\0';
}

/* Keep only characters that every file system accepts. */
static void put_plain(struct str text, char room[WHO_MAX_BYTES + 1]) {
    size_t len = text.len < WHO_MAX_BYTES ? text.len : WHO_MAX_BYTES;
    for (size_t i = 0; i < len; i++) {
        char c = text.at[i];
        bool plain = str_is_alnum(c) || c == '_';
        room[i] = plain ? c : '_';
    }
    room[len] = '\0';
}

static bool folder_write_all(int fd, struct str bytes) {
    while (bytes.len) {
        ssize_t wrote = write(fd, bytes.at, bytes.len);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return false;
        bytes = str_skip(bytes, (size_t)wrote);
    }
    return fsync(fd) == 0;
}

/* Use the first free number; an existing file is never replaced. */
static bool give_name(int dir, const char *temporary, const struct folder_name *name) {
    char hash[HASH_DIGITS + 1], who[WHO_MAX_BYTES + 1], file[NAME_BYTES];
    put_hash(name->hashed, hash);
    put_plain(name->who, who);
    for (unsigned long number = 1;; number++) {
        snprintf(file, sizeof(file), STR_FMT "-%s-%s-%lu.json", STR_ARG(name->kind), who, hash,
                 number);
        if (linkat(dir, temporary, dir, file, 0) == 0) return true;
        if (errno != EEXIST) return false;
    }
}

static bool write_in(int dir, const struct folder_name *name, struct str bytes) {
    char temporary[NAME_BYTES];
    snprintf(temporary, sizeof(temporary), ".recording-%ld-%lu", (long)getpid(), name->serial);
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    bool done = folder_write_all(fd, bytes) && give_name(dir, temporary, name);
    int error = errno;
    close(fd);
    unlinkat(dir, temporary, 0);
    errno = error;
    return done;
}

bool folder_write(const char *folder, const struct folder_name *name, struct str bytes,
                  struct err *e) {
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = dir >= 0 && write_in(dir, name, bytes);
    int error = errno;
    if (dir >= 0) close(dir);
    if (done) return true;
    return folder_refuse(e, "write a recording into", str_from(folder), error);
}

/* --- reading ------------------------------------------------------------------------------ */

static int is_recording(const struct dirent *entry) {
    struct str name = str_from(entry->d_name);
    return name.at[0] != '.' && str_ends(name, EXTENSION);
}

static bool read_one(const char *folder, const char *name, size_t max_bytes,
                     folder_file_fn *on_file, void *ctx, struct err *e) {
    struct buf path, text;
    buf_init(&path, 64 * KIB);
    buf_init(&text, max_bytes);
    buf_printf(&path, "%s/%s", folder, name);
    bool done =
        file_read(buf_str(&path), &text, e) && on_file(str_from(name), buf_str(&text), ctx, e);
    buf_done(&path);
    buf_done(&text);
    return done;
}

bool folder_read(const char *folder, size_t file_max_bytes, folder_file_fn *on_file, void *ctx,
                 struct err *e) {
    struct dirent **entries;
    int count = scandir(folder, &entries, is_recording, alphasort);
    if (count < 0) return folder_refuse(e, "replay the folder", str_from(folder), errno);
    bool done = true;
    for (int i = 0; i < count; i++) {
        if (done) done = read_one(folder, entries[i]->d_name, file_max_bytes, on_file, ctx, e);
        free(entries[i]);
    }
    free((void *)entries);
    return done;
}
