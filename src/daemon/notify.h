/* notify: report our state to a service manager.
 *
 * One datagram of NAME=value lines to the unix socket that NOTIFY_SOCKET names, as systemd
 * expects from services of Type=notify or notify-reload. Without that variable nothing is sent.
 * Errors of sending are ignored.
 *
 * Threads  any.
 * Source   sd_notify(3), "Well-known assignments".
 */
#ifndef WEIR_DAEMON_NOTIFY_H
#define WEIR_DAEMON_NOTIFY_H

#include <stddef.h>

/* The daemon serves. Also sent after a reload, whether or not the new configuration was used.
 */
void notify_ready(size_t agent_count);
void notify_reloading(void);
void notify_stopping(void);

#endif
