/* dial: from a name to a connected socket.
 *
 * The name is looked up on a thread (names.h). Its addresses are tried in the resolver's order,
 * the families in turn: a quarter of a second after one attempt, or as soon as it fails, the next
 * begins beside it. The first that connects wins. Each address is checked by `reach` right before
 * it is connected to.
 *
 *     looking up ─▶ connecting ─▶ on_dialled
 *
 * Where the place has a Unix socket, that is connected to instead, and nothing is looked up.
 *
 * Private to client/.
 *
 * Memory   dial_new() gives a dial that frees itself after on_dialled, or by dial_cancel().
 * Threads  the loop's.
 * Source   RFC 8305 (happy eyeballs).
 */
#ifndef WEIR_CLIENT_DIAL_H
#define WEIR_CLIENT_DIAL_H

#include "base/err.h"
#include "client/http.h"
#include "client/place.h"

struct dial;

/* fd: connected and nonblocking, the receiver's from now on; or -1, with `why`.
 * Never before dial_new() has returned.
 * errors  ERR_UNAVAILABLE unknown name, refused, no such socket; ERR_PERMISSION_DENIED out of reach */
typedef void dial_fn(int fd, const struct err *why, void *ctx);

struct dial *dial_new(struct place *place, struct str host, uint16_t port,
                      enum http_reach reach, dial_fn *on_dialled, void *ctx);
void dial_cancel(struct dial *dial); /* accepts NULL; nothing more is reported */

#endif
