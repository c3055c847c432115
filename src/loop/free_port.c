#include "loop/free_port.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

bool free_port(uint16_t *ret, struct err *e) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 &&
                getsockname(fd, (struct sockaddr *)&address, &len) == 0;
    if (fd >= 0) close(fd);
    if (!good) return err_set(e, ERR_RESOURCE_EXHAUSTED, "no port is free on 127.0.0.1");
    *ret = ntohs(address.sin_port);
    return true;
}
