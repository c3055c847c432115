/* app: messages between apps (RuntimeAppService).
 *
 * Each receiving app has a topic of its own. A message is published there; nothing is stored,
 * so unread messages are gone after a restart, and when it falls out of the window.
 *
 * Memory   of the call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.9, 3.7, 6.7; section 9 number 36.
 */
#ifndef WEIR_CONTRACT_NIMI_APP_APP_H
#define WEIR_CONTRACT_NIMI_APP_APP_H

#include "contract/nimi/call.h"

#define APP_FILTERS_MAX 100     /* apps that a subscriber names */
#define APP_TYPE_MAX_BYTES 1024 /* of a message_type */
#define APP_PAYLOAD_MAX_BYTES (64 * KIB)

nimi_begin_fn app_send, app_subscribe;

#endif
