#include "server/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

#define EXAMPLES "write host:port, [v6]:port, :port or unix:/path"

static bool parse_local(struct str text, struct str path, struct address *ret, struct err *e) {
    struct address address = {.len = sizeof(address.as.local)};
    address.as.local.sun_family = AF_UNIX;
    if (path.len == 0 || path.len >= sizeof(address.as.local.sun_path))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' names no socket: the path must have 1 to %zu bytes",
                       STR_ARG(text), sizeof(address.as.local.sun_path) - 1);
    memcpy(address.as.local.sun_path, path.at, path.len);
    *ret = address;
    return true;
}

/* Split "host:port" at the last colon, so that "[::1]:80" keeps its own. */
static bool split_port(struct str text, struct str *ret_host, uint64_t *ret_port) {
    size_t colon = text.len;
    while (colon > 0 && text.at[colon - 1] != ':') colon--;
    if (colon == 0) return false;
    if (!str_to_u64(str_skip(text, colon), ret_port) || *ret_port > 65535) return false;
    struct str host = str_head(text, colon - 1);
    if (host.len >= 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
        host = str_head(str_skip(host, 1), host.len - 2);
    else if (str_find_byte(host, ':') < host.len)
        return false;
    *ret_host = host;
    return true;
}

/* The address for ":port": all interfaces; the IPv6 socket serves IPv4 too. */
static struct address everywhere(uint16_t port) {
    struct address address = {.len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 *inet = (struct sockaddr_in6 *)&address.as.inet;
    inet->sin6_family = AF_INET6;
    inet->sin6_port = htons(port);
    inet->sin6_addr = in6addr_any;
    return address;
}

static bool address_look_up(struct str host, const char *port, int flags, struct address *ret) {
    char name[256];
    if (host.len >= sizeof(name)) return false;
    memcpy(name, host.at, host.len);
    name[host.len] = '\0';
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_PASSIVE | flags};
    struct addrinfo *found;
    if (getaddrinfo(name, port, &hints, &found) != 0) return false;
    *ret = (struct address){.len = found->ai_addrlen};
    memcpy(&ret->as, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

bool address_parse(struct str text, struct address *ret, struct err *e) {
    struct str host;
    uint64_t port;
    if (str_starts(text, STR("unix:"))) return parse_local(text, str_skip(text, 5), ret, e);
    if (!split_port(text, &host, &port))
        return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is not an address: " EXAMPLES,
                       STR_ARG(text));
    if (host.len == 0) {
        *ret = everywhere((uint16_t)port);
        return true;
    }
    char service[8];
    snprintf(service, sizeof(service), "%u", (unsigned)port);
    /* Numeric addresses first: a name lookup loads more libraries. */
    if (address_look_up(host, service, AI_NUMERICHOST, ret)) return true;
    if (address_look_up(str_equal(host, STR("localhost")) ? STR("127.0.0.1") : host, service, 0,
                        ret))
        return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "': no host has the name '" STR_FMT "'; " EXAMPLES,
                   STR_ARG(text), STR_ARG(host));
}

/* An IPv4 peer of a dual-stack socket appears as ::ffff:1.2.3.4. */
static bool is_mapped(const struct address *address, struct in_addr *ret) {
    const struct sockaddr_in6 *inet = (const struct sockaddr_in6 *)&address->as.inet;
    if (address->as.any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&inet->sin6_addr))
        return false;
    memcpy(ret, &inet->sin6_addr.s6_addr[12], sizeof(*ret));
    return true;
}

int address_port(const struct address *address) {
    switch (address->as.any.sa_family) {
    case AF_INET: return ntohs(((const struct sockaddr_in *)&address->as.inet)->sin_port);
    case AF_INET6: return ntohs(((const struct sockaddr_in6 *)&address->as.inet)->sin6_port);
    default: return 0;
    }
}

void address_print(const struct address *address, char *ret, size_t size) {
    char host[INET6_ADDRSTRLEN];
    struct in_addr mapped;
    const void *inet6 = &((const struct sockaddr_in6 *)&address->as.inet)->sin6_addr;
    const void *inet4 = &((const struct sockaddr_in *)&address->as.inet)->sin_addr;
    if (address_is_local(address)) {
        snprintf(ret, size, "unix");
    } else if (address->as.any.sa_family == AF_INET || is_mapped(address, &mapped)) {
        if (address->as.any.sa_family != AF_INET) inet4 = &mapped;
        inet_ntop(AF_INET, inet4, host, sizeof(host));
        snprintf(ret, size, "%s:%d", host, address_port(address));
    } else {
        inet_ntop(AF_INET6, inet6, host, sizeof(host));
        snprintf(ret, size, "[%s]:%d", host, address_port(address));
    }
}

bool address_is_loopback(const struct address *address) {
    const struct sockaddr_in6 *inet6 = (const struct sockaddr_in6 *)&address->as.inet;
    const struct sockaddr_in *inet4 = (const struct sockaddr_in *)&address->as.inet;
    struct in_addr mapped;
    if (address_is_local(address)) return true;
    if (is_mapped(address, &mapped)) return ntohl(mapped.s_addr) >> 24 == 127;
    if (address->as.any.sa_family == AF_INET) return ntohl(inet4->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&inet6->sin6_addr);
}

struct address_owner address_owner(const struct address *address) {
    const struct sockaddr_in6 *inet6 = (const struct sockaddr_in6 *)&address->as.inet;
    const struct sockaddr_in *inet4 = (const struct sockaddr_in *)&address->as.inet;
    struct in_addr v4 = inet4->sin_addr;
    struct address_owner owner = {.len = 0};
    if (address_is_local(address)) return owner;
    if (address->as.any.sa_family == AF_INET || is_mapped(address, &v4)) {
        owner.len = sizeof(v4);
        memcpy(owner.bytes, &v4, sizeof(v4));
    } else {
        owner.len = ADDRESS_OWNER_BYTES;
        memcpy(owner.bytes, &inet6->sin6_addr, ADDRESS_OWNER_BYTES);
    }
    return owner;
}
