/* ours: a public address that is ours, in a network namespace of our own.
 *
 * Call ours_enter() before threads are created. False: this machine does not allow it; skip the
 * tests that need it.
 */
#ifndef WEIR_TEST_CLIENT_OURS_H
#define WEIR_TEST_CLIENT_OURS_H

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OURS "93.184.216.34"

static inline bool ours_set_interface(const char *name, const char *ip) {
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(ip)};
    memcpy(&request.ifr_addr, &address, sizeof(address));
    bool good = ioctl(fd, SIOCSIFADDR, &request) == 0;
    request.ifr_flags = IFF_UP;
    good = good && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return good;
}

static inline bool ours_unshare(void) {
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
           ours_set_interface("lo", "127.0.0.1") && ours_set_interface("lo:1", OURS);
}

/* Tried in a process of its own first: one that is refused halfway has no network at all. */
static inline bool ours_may_enter(void) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) _exit(ours_unshare() ? 0 : 1);
    return waitpid(child, &status, 0) == child && status == 0;
}

static inline bool ours_enter(void) {
    return ours_may_enter() && ours_unshare();
}

#endif
