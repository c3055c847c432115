/* names: from a name to its addresses.
 *
 * The C library's lookups block, so each lookup has a thread. All requests for a name that is
 * being looked up share the lookup. A loop has at most NAMES_THREADS_MAX threads; other names
 * wait their turn. Results are not cached.
 *
 *     asked ─▶ waiting ─▶ looked up on a thread ─▶ fn, for everyone who still waits
 *
 * Private to client/.
 *
 * Memory   a wait lives inside its owner until fn is called or names_cancel().
 * Threads  the loop's. A thread without waiters ends when the resolver returns. */
#ifndef WEIR_CLIENT_NAMES_H
#define WEIR_CLIENT_NAMES_H

#include "base/str.h"
#include "loop/loop.h"

#include <netinet/in.h>

#define NAMES_THREADS_MAX 16
#define NAMES_ADDRESSES_MAX 16

union name_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

struct name_addresses {
    union name_address at[NAMES_ADDRESSES_MAX];
    size_t count;
};

/* Addresses of other families, and those beyond the limit, are left out. */
void name_addresses_add(struct name_addresses *list, const struct sockaddr *address);

/* failed: result of getaddrinfo(); 0: success, perhaps without any address. */
typedef void names_fn(const struct name_addresses *found, int failed, void *ctx);

struct lookup;

struct names {
    struct loop *loop;
    struct list lookups; /* running or waiting for a thread, in the order of asking */
    size_t threads;
};

struct name_wait {
    struct list link;
    struct lookup *lookup; /* NULL: it does not wait */
    names_fn *fn;
    void *ctx;
};

void names_init(struct names *names, struct loop *loop);

/* Forget all lookups; no wait is left. */
void names_leave(struct names *names);

/* fn is not called before this returns. */
void names_ask(struct names *names, struct str name, struct name_wait *wait, names_fn *fn,
               void *ctx);
void names_cancel(struct name_wait *wait); /* harmless when it does not wait */

#endif
