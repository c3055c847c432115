/* wslay: libwslay, loaded on first use.
 *
 * Debian ships it as a shared object only, and a daemon that serves no WebSocket should start
 * without it. Its functions are looked up by name once and called through this table, under
 * their own names.
 *
 * Private to wire/.
 *
 * Memory   stays for the life of the process.
 * Threads  wslay_load() any; it blocks, as it reads a file. The table is constant afterwards.
 */
#ifndef WEIR_WIRE_WSLAY_H
#define WEIR_WIRE_WSLAY_H

#include "base/err.h"

#include <sys/types.h>
#include <wslay/wslay.h>

/* clang-format off */
#define WSLAY_FUNCTIONS(USE)                                                                   \
    USE(wslay_frame_context_init) USE(wslay_frame_context_free) USE(wslay_frame_send)          \
    USE(wslay_frame_recv)
/* clang-format on */

struct wslay {
#define MEMBER(name) __typeof__(name) *name;
    WSLAY_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Fill the table, once.
 * errors  ERR_UNAVAILABLE the library is not installed, or lacks what we need */
MUST_CHECK bool wslay_load(struct err *e);

/* The table, once wslay_load() has succeeded. */
const struct wslay *wslay_loaded(void);

#endif
