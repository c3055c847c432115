#include "loop/free_port.h"

#include "base/file.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANGE "/proc/sys/net/ipv4/ip_local_port_range"
#define RESERVED "/proc/sys/net/ipv4/ip_local_reserved_ports"
#define SETTING_MAX_BYTES (256 * KIB)
#define DRAWS 64
#define ANY_PORT 0

/* Those drawn last, by whatever thread. The child of one may not listen yet. */
static pthread_mutex_t drawn_lock = PTHREAD_MUTEX_INITIALIZER;
static uint16_t drawn[FREE_PORT_APART];
static size_t drawn_count;

/* Where few ports are left below the kernel's, half of them may be drawn again. */
static bool note_drawn(uint16_t port, uint16_t count) {
    size_t apart = count / 2 < FREE_PORT_APART ? count / 2 : FREE_PORT_APART;
    bool fresh = true;
    pthread_mutex_lock(&drawn_lock);
    for (size_t i = 1; fresh && i <= apart && i <= drawn_count; i++)
        fresh = drawn[(drawn_count - i) % FREE_PORT_APART] != port;
    if (fresh) drawn[drawn_count++ % FREE_PORT_APART] = port;
    pthread_mutex_unlock(&drawn_lock);
    return fresh;
}

/* Try a port. False: it is not free. */
static bool free_port_try(uint16_t port, uint16_t *ret) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 &&
                getsockname(fd, (struct sockaddr *)&address, &len) == 0;
    if (fd >= 0) close(fd);
    if (good) *ret = ntohs(address.sin_port);
    return good;
}

/* Linux has a tab between the two, gVisor a space. */
uint16_t free_port_count(struct str range) {
    uint64_t lowest;
    struct str rest, first = str_split(str_trim(range), '\t', &rest);
    bool reads = str_to_u64(str_split(first, ' ', &rest), &lowest) &&
                 lowest > FREE_PORT_LOWEST && lowest <= UINT16_MAX;
    return reads ? (uint16_t)(lowest - FREE_PORT_LOWEST) : 0;
}

bool free_port_is_reserved(struct str reserved, uint16_t port) {
    struct str rest = str_trim(reserved);
    while (rest.len) {
        uint64_t first, last;
        struct str end, part = str_split(rest, ',', &rest);
        if (!str_to_u64(str_split(part, '-', &end), &first)) continue;
        if (!end.len || !str_to_u64(end, &last)) last = first;
        if (port >= first && port <= last) return true;
    }
    return false;
}

/* Empty if it cannot be read. */
static void read_setting(struct str path, struct buf *ret) {
    struct err e;
    buf_init(ret, SETTING_MAX_BYTES);
    if (!file_read(path, ret, &e)) buf_clear(ret);
}

static bool draw(uint16_t count, struct str reserved, uint16_t *ret) {
    uint16_t random;
    for (size_t i = 0; count && i < DRAWS; i++) {
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) return false;
        uint16_t port = (uint16_t)(FREE_PORT_LOWEST + random % count);
        if (!free_port_is_reserved(reserved, port) && free_port_try(port, ret) &&
            note_drawn(port, count))
            return true;
    }
    return false;
}

bool free_port(uint16_t *ret, struct err *e) {
    struct buf range, reserved;
    read_setting(STR(RANGE), &range);
    read_setting(STR(RESERVED), &reserved);
    bool drew = draw(free_port_count(buf_str(&range)), buf_str(&reserved), ret);
    buf_done(&range);
    buf_done(&reserved);
    return drew || free_port_try(ANY_PORT, ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "no port is free on 127.0.0.1");
}
