/* address: listen addresses in text form.
 *
 *     127.0.0.1:8080   [::1]:8080   localhost:8080   :8080 (everywhere)   unix:/run/weir.sock
 *
 * Memory   a plain value.
 * Threads  any; it may look up a host name, so call it only at start.
 */
#ifndef WEIR_SERVER_ADDRESS_H
#define WEIR_SERVER_ADDRESS_H

#include "base/err.h"

#include <sys/socket.h>
#include <sys/un.h>

struct address {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_storage inet;
        struct sockaddr_un local;
    } as;
};

/* ERR_INVALID_ARGUMENT: not an address. */
MUST_CHECK bool address_parse(struct str text, struct address *ret, struct err *e);

/* "127.0.0.1:51234", "[::1]:51234", "unix"; ends in NUL, cut at `size`. */
void address_print(const struct address *address, char *ret, size_t size);

bool address_is_loopback(const struct address *address); /* unix sockets are, too */

static inline bool address_is_local(const struct address *address) {
    return address->as.any.sa_family == AF_UNIX;
}

/* The identity of a peer without its port: an IPv4 address, or the first half of an IPv6
 * address, because one host may own a whole /64. Empty for unix sockets. */
#define ADDRESS_OWNER_BYTES 8

struct address_owner {
    uint8_t len;
    char bytes[ADDRESS_OWNER_BYTES];
};

struct address_owner address_owner(const struct address *address);

int address_port(const struct address *address); /* 0 for unix sockets */

#endif
