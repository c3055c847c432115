/* sqlstate: what a server's error means for the caller.
 *
 * Threads  any; values only.
 * Source   PostgreSQL 15, appendix A "PostgreSQL Error Codes".
 */
#ifndef WEIR_POSTGRES_SQLSTATE_H
#define WEIR_POSTGRES_SQLSTATE_H

#include "base/err.h"

enum sqlstate_way {
    SQLSTATE_FINAL,     /* the request fails */
    SQLSTATE_AGAIN,     /* it met others: send it again on the same connection */
    SQLSTATE_RECONNECT, /* the connection is of no use: make it again, then send it again */
};

struct sqlstate {
    enum err_code code;
    enum sqlstate_way way;
    const char *fix; /* what a person can do; may be NULL */
};

/* `sqlstate` has five characters; another text is an unknown error. */
struct sqlstate sqlstate_means(struct str sqlstate);

#endif
