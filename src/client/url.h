/* url: the parts of an http: or https: URL, and where a redirect leads.
 *
 * Private to client/.
 *
 * Memory   views into the text; url_follow() writes to a buffer.
 * Threads  none.
 * Source   RFC 3986 3 and 5.2; RFC 9110 4.2.
 */
#ifndef WEIR_CLIENT_URL_H
#define WEIR_CLIENT_URL_H

#include "base/buf.h"

struct url {
    bool secure;          /* https: */
    struct str user;      /* user name and password, or at == NULL */
    struct str host;      /* without the brackets of an IPv6 address */
    struct str authority; /* host and port as written */
    uint16_t port;
    struct str path;  /* without '?', may be empty */
    struct str query; /* with '?', may be empty */
};

enum url_kind {
    URL_FINE,
    URL_BROKEN,       /* no URL */
    URL_OTHER_SCHEME, /* ftp:, file: */
    URL_RARE,         /* legal, and left to libcurl: a host that is not ASCII, or has a zone */
};

enum url_kind url_read(struct str text, struct url *ret);

/* The target of a request line: path and query, "/" at least. */
void url_append_target(const struct url *url, struct buf *ret);

/* The URL that `location` means, seen from `base`; ret is replaced. Fragments are dropped.
 * False: too long. */
MUST_CHECK bool url_follow(const struct url *base, struct str location, struct buf *ret);

#endif
