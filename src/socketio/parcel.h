/* parcel: one encoded packet, shared by all clients that get it.
 *
 * It is kept as a whole WebSocket frame of a server, which is the same for every reader; its
 * end is the packet's text, for long polling.
 *
 * Private to socketio/.
 *
 * Memory   counted references; the last one frees it.
 * Threads  any; the contents are constant.
 */
#ifndef WEIR_SOCKETIO_PARCEL_H
#define WEIR_SOCKETIO_PARCEL_H

#include "base/buf.h"

struct parcel;

/* The caller owns one reference. */
struct parcel *parcel_new(struct str text);
struct parcel *parcel_ref(struct parcel *parcel);
void parcel_unref(struct parcel *parcel); /* accepts NULL */

struct str parcel_frame(const struct parcel *parcel);
struct str parcel_text(const struct parcel *parcel);

#endif
