#include "daemon/client_lock.h"

#include "base/buf.h"

#include <fcntl.h>
#include <unistd.h>

enum { BYTE_USES, BYTE_STARTS };

int client_lock_open(struct str folder, bool makes) {
    struct buf path;
    buf_init(&path, folder.len + 32);
    buf_printf(&path, STR_FMT "/" CLIENT_LOCK_NAME "%c", STR_ARG(folder), '\0');
    int file = open(path.at, O_RDWR | (makes ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW, 0600);
    buf_done(&path);
    return file;
}

static bool client_lock_set(int file, int command, short kind, off_t byte) {
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(file, command, &lock) == 0;
}

bool client_lock_try(int file) {
    return client_lock_set(file, F_OFD_SETLK, F_RDLCK, BYTE_USES);
}

bool client_lock_wait(int file) {
    return client_lock_set(file, F_OFD_SETLKW, F_RDLCK, BYTE_USES);
}

bool client_lock_alone(int file) {
    return client_lock_set(file, F_OFD_SETLK, F_WRLCK, BYTE_USES);
}

bool client_lock_begin(int file) {
    return client_lock_set(file, F_OFD_SETLKW, F_WRLCK, BYTE_STARTS);
}

void client_lock_begun(int file) {
    (void)client_lock_set(file, F_OFD_SETLK, F_UNLCK,
                          BYTE_STARTS); /* unlocking does not fail */
}
