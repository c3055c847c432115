/* notify: tell a service manager how we are.
 *
 * One datagram of NAME=value lines to the unix socket that NOTIFY_SOCKET names, as systemd
 * expects it from services of Type=notify or notify-reload. Without that variable nothing is
 * sent, and a manager that is gone is no reason to fail.
 *
 * Threads  any.
 * Source   sd_notify(3), "Well-known assignments".
 */
#ifndef WEIR_DAEMON_NOTIFY_H
#define WEIR_DAEMON_NOTIFY_H

#include <stddef.h>

/* It serves; also after reading the configuration again, whether that was taken or not. */
void notify_ready(size_t agent_count);
void notify_reloading(void);
void notify_stopping(void);

#endif
