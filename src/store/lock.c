#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define PID_TEXT_BYTES 16

static bool lock_refuse(int lock, const char *folder, struct err *e) {
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

bool lock_take(const char *folder, int *ret_lock, struct err *e) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/weir.lock", folder);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return err_set(e, ERR_UNAVAILABLE,
                       "store %s: %s; make its folder writable for this user", path,
                       strerrordesc_np(errno));
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        bool taken = errno == EWOULDBLOCK;
        if (taken) lock_refuse(lock, folder, e);
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

void lock_drop(int lock) {
    if (lock == LOCK_NONE) return;
    int emptied = ftruncate(lock, 0);
    (void)emptied; /* a stale pid in an unlocked file is harmless */
    close(lock);
}
