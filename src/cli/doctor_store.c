/* doctor: checks the store's folder, its contents, and the disk. */
#include "base/clock.h"
#include "cli/daemon_process.h"
#include "cli/doctor.h"
#include "store/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LOOK_MAX_BYTES (256 * MIB) /* checking a larger database would take long */
#define DISK_LEAST_BYTES (64 * MIB)
#define DISK_GOOD_BYTES (1024 * MIB)
#define SYNC_ROUNDS 9
#define SYNC_GOOD_US (20 * 1000)
#define SYNC_WORST_US (1000 * 1000)

static void doctor_store_path_of(const struct config *config, const char *file,
                                 char ret[static PATH_MAX]) {
    snprintf(ret, PATH_MAX, STR_FMT "%s%s", STR_ARG(config->data), *file ? "/" : "", file);
}

/* --- the process that has it open --------------------------------------------------------- */

/* The process in the kernel's list of locks that has this file's. The list is read in several
 * calls, and an entry can be passed over when one in front of it goes away meanwhile. */
static long owner_in_lock_list(const struct stat *file) {
    char line[256];
    FILE *locks = fopen("/proc/locks", "re");
    long owner = 0;
    while (locks && !owner && fgets(line, sizeof(line), locks)) {
        long pid;
        unsigned major_number, minor_number;
        unsigned long inode;
        /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers that fit */
        if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%lu", &pid, &major_number, &minor_number,
                   &inode) != 4)
            continue;
        /* On file systems with several devices, the device number differs from stat()'s. */
        if (inode == file->st_ino) owner = pid;
    }
    if (locks) fclose(locks);
    return owner;
}

/* Taking the lock ourselves could keep a weir that starts at this moment from getting it. The
 * list of locks is for a process of another user, which daemon_process cannot look at. */
long doctor_store_owner(const struct config *config) {
    char path[PATH_MAX];
    struct stat info;
    struct daemon_process process;
    struct err e;
    if (daemon_process_find(config->data, &process, &e)) {
        long owner = process.pid;
        daemon_process_done(&process);
        return owner;
    }
    doctor_store_path_of(config, "weir.lock", path);
    return stat(path, &info) == 0 ? owner_in_lock_list(&info) : 0;
}

/* --- its contents ------------------------------------------------------------------------- */

/* Open the file as immutable: no files are created beside it, and no lock is taken. */
static void doctor_store_look_at(struct doctor *doctor, const char *path) {
    char uri[PATH_MAX + 64], fix[PATH_MAX + 64];
    sqlite3 *db = NULL;
    sqlite3_stmt *look = NULL;
    snprintf(uri, sizeof(uri), "file:%s?mode=ro&immutable=1", path);
    snprintf(fix, sizeof(fix), "sqlite3 '%s' 'PRAGMA integrity_check'", path);
    bool good =
        sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &look, NULL) == SQLITE_OK &&
        sqlite3_step(look) == SQLITE_ROW;
    const char *text = good ? (const char *)sqlite3_column_text(look, 0) : sqlite3_errmsg(db);
    good = good && strcmp(text, "ok") == 0;
    doctor_say(doctor, good ? FINDING_GOOD : FINDING_BAD, "store", good ? NULL : fix,
               good ? "%s is whole" : "%s is damaged: %s", path, text);
    sqlite3_finalize(look);
    sqlite3_close(db);
}

/* The log of a weir that runs is short, unless another process reads the database for long. */
static void check_log_length(struct doctor *doctor) {
    char path[PATH_MAX], fix[PATH_MAX + 16];
    struct stat info;
    doctor_store_path_of(doctor->config, "weir.db-wal", path);
    if (stat(path, &info) != 0 || (uint64_t)info.st_size < CHECKPOINT_LONG_BYTES) return;
    snprintf(fix, sizeof(fix), "fuser -v '%s'", path);
    doctor_say(
        doctor, FINDING_BAD, "store", fix,
        "%s has %llu MiB and grows while another process (a backup, a sqlite3 shell) reads "
        "the database and does not end its transaction; end that process",
        path, (unsigned long long)info.st_size / MIB);
}

/* A process that was killed leaves a write-ahead log, maybe half folded in: without that log, which
 * is not read here, the file's pages need not fit together. */
static bool has_log(const struct doctor *doctor) {
    char path[PATH_MAX];
    struct stat info;
    doctor_store_path_of(doctor->config, "weir.db-wal", path);
    return stat(path, &info) == 0 && info.st_size > 0;
}

static void check_database(struct doctor *doctor) {
    char path[PATH_MAX];
    struct stat info;
    doctor_store_path_of(doctor->config, "weir.db", path);
    long owner = doctor_store_owner(doctor->config);
    if (owner) {
        doctor_say(doctor, FINDING_NOTE, "store", NULL,
                   "%s: pid %ld has it open; it looked at its start", path, owner);
        check_log_length(doctor);
    } else if (stat(path, &info) != 0) {
        doctor_say(doctor, FINDING_GOOD, "store", NULL, "%s will be made at the first start",
                   path);
    } else if ((uint64_t)info.st_size > LOOK_MAX_BYTES) {
        doctor_say(doctor, FINDING_NOTE, "store", NULL,
                   "%s has %llu MiB, too much for a quick look; weir looks at its start", path,
                   (unsigned long long)info.st_size / MIB);
    } else if (has_log(doctor)) {
        doctor_say(
            doctor, FINDING_NOTE, "store", NULL,
            "%s: its write-ahead log is not folded in, as after a kill; weir looks at both at "
            "its start",
            path);
    } else {
        doctor_store_look_at(doctor, path);
    }
}

void doctor_store(struct doctor *doctor) {
    char folder[PATH_MAX], fix[PATH_MAX + 32];
    struct stat info;
    if (doctor->config->store.url.len) {
        doctor_say(doctor, FINDING_GOOD, "store", NULL,
                   "in PostgreSQL, as WEIR_STORE_URL says");
        return;
    }
    doctor_store_path_of(doctor->config, "", folder);
    snprintf(fix, sizeof(fix), "mkdir -p '%s'", folder);
    if (stat(folder, &info) != 0) {
        if (errno == ENOENT)
            doctor_say(doctor, FINDING_NOTE, "store", fix, "%s is not there yet; weir makes it",
                       folder);
        else
            doctor_say(doctor, FINDING_BAD, "store", "weir doctor --data /var/tmp/weir",
                       "%s: %s", folder, strerrordesc_np(errno));
        return;
    }
    if (!S_ISDIR(info.st_mode)) {
        doctor_say(doctor, FINDING_BAD, "store", "weir doctor --data /var/tmp/weir",
                   "%s is not a folder", folder);
        return;
    }
    if (access(folder, R_OK | W_OK | X_OK) != 0) {
        snprintf(fix, sizeof(fix), "sudo chown -R %ld '%s'", (long)geteuid(), folder);
        doctor_say(doctor, FINDING_BAD, "store", fix, "%s: this user may not write there",
                   folder);
        return;
    }
    doctor_say(doctor, FINDING_GOOD, "store", NULL, "%s can be written", folder);
    check_database(doctor);
}

/* --- the disk ----------------------------------------------------------------------------- */

/* Find the folder, or its nearest existing parent. */
static bool nearest_folder(const struct config *config, char ret[static PATH_MAX]) {
    struct stat info;
    doctor_store_path_of(config, "", ret);
    while (*ret && stat(ret, &info) != 0) {
        char *slash = strrchr(ret, '/');
        if (!slash) return snprintf(ret, PATH_MAX, ".") > 0;
        slash[slash == ret] = '\0'; /* "/" itself stays */
    }
    return *ret != '\0';
}

static void check_room(struct doctor *doctor, const char *folder) {
    struct statvfs disk;
    char fix[PATH_MAX + 16];
    if (statvfs(folder, &disk) != 0) return;
    uint64_t bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    enum finding finding = bytes < DISK_LEAST_BYTES  ? FINDING_BAD
                           : bytes < DISK_GOOD_BYTES ? FINDING_NOTE
                                                     : FINDING_GOOD;
    snprintf(fix, sizeof(fix), "df -h '%s'", folder);
    doctor_say(doctor, finding, "disk", finding == FINDING_GOOD ? NULL : fix,
               "%llu MiB are free", (unsigned long long)(bytes / MIB));
}

static int doctor_store_compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The median time of a durable write of one page. */
static bool measure_sync(const char *folder, uint64_t *ret_us) {
    char path[PATH_MAX + 32], page[4096];
    uint64_t took_us[SYNC_ROUNDS];
    snprintf(path, sizeof(path), "%s/.weir-doctor-XXXXXX", folder);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) return false;
    unlink(path);
    memset(page, 'x', sizeof(page));
    bool done = true;
    for (size_t i = 0; i < SYNC_ROUNDS && done; i++) {
        uint64_t began_us = clock_mono_us();
        done = pwrite(fd, page, sizeof(page), (off_t)(i * sizeof(page))) ==
                   (ssize_t)sizeof(page) &&
               fdatasync(fd) == 0;
        took_us[i] = clock_mono_us() - began_us;
    }
    close(fd);
    if (!done) return false;
    qsort(took_us, SYNC_ROUNDS, sizeof(took_us[0]), doctor_store_compare);
    *ret_us = took_us[SYNC_ROUNDS / 2];
    return true;
}

static void check_sync(struct doctor *doctor, const char *folder) {
    uint64_t us;
    if (!measure_sync(folder, &us)) {
        doctor_say(doctor, FINDING_BAD, "disk", "weir doctor --data /var/tmp/weir",
                   "nothing can be written to %s", folder);
        return;
    }
    enum finding finding = us > SYNC_WORST_US  ? FINDING_BAD
                           : us > SYNC_GOOD_US ? FINDING_NOTE
                                               : FINDING_GOOD;
    doctor_say(doctor, finding, "disk",
               finding == FINDING_GOOD ? NULL : "weir serve --durability normal",
               "a write is safe after %.1f ms; each turn waits for one or two",
               (double)us / 1000);
}

void doctor_disk(struct doctor *doctor) {
    char folder[PATH_MAX];
    if (!nearest_folder(doctor->config, folder)) return;
    check_room(doctor, folder);
    check_sync(doctor, folder);
}
