#include "loop/free_port.h"

#include "base/file.h"

#include <arpa/inet.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANGE "/proc/sys/net/ipv4/ip_local_port_range"
#define DRAWS 64
#define ANY_PORT 0

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

uint16_t free_port_count(struct str range) {
    uint64_t lowest;
    struct str rest;
    bool reads = str_to_u64(str_split(str_trim(range), '\t', &rest), &lowest) &&
                 lowest > FREE_PORT_LOWEST && lowest <= UINT16_MAX;
    return reads ? (uint16_t)(lowest - FREE_PORT_LOWEST) : 0;
}

static uint16_t read_count(void) {
    struct buf range;
    struct err e;
    buf_init(&range, 256);
    uint16_t count = file_read(STR(RANGE), &range, &e) ? free_port_count(buf_str(&range)) : 0;
    buf_done(&range);
    return count;
}

bool free_port(uint16_t *ret, struct err *e) {
    uint16_t random, count = read_count();
    for (size_t i = 0; count && i < DRAWS; i++) {
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) break;
        if (free_port_try((uint16_t)(FREE_PORT_LOWEST + random % count), ret)) return true;
    }
    return free_port_try(ANY_PORT, ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "no port is free on 127.0.0.1");
}
