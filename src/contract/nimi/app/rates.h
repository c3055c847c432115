/* rates: how often an app may send, and when two apps have begun to answer each other for ever.
 *
 *     a sender   RATES_SENDER_MAX messages in any second
 *     a pair     more than RATES_PAIR_MAX answers in a second are a loop: the pair is broken for
 *                RATES_BROKEN_MS. An answer goes the other way than the message before it, so a
 *                stream of messages from one app to another is no loop
 *
 * At RATES_KEYS_MAX senders, or pairs, the one that sent longest ago is forgotten.
 *
 * Memory   owns copies.
 * Threads  any; one lock.
 * Source   contracts/nimi.md 3.7 (K-APP-005).
 */
#ifndef WEIR_CONTRACT_NIMI_APP_RATES_H
#define WEIR_CONTRACT_NIMI_APP_RATES_H

#include "base/str.h"

#define RATES_SENDER_MAX 100
#define RATES_PAIR_MAX 20
#define RATES_WINDOW_MS 1000
#define RATES_BROKEN_MS 60000
#define RATES_KEYS_MAX 4096

struct rates;

struct rates *rates_new(void);
void rates_free(struct rates *rates); /* NULL is fine */

enum rates_verdict { RATES_OK, RATES_TOO_MANY, RATES_LOOP };

/* Ask for one message now. Only a message that may be sent is counted. */
enum rates_verdict rates_send(struct rates *rates, struct str from, struct str to,
                              uint64_t now_ms);

#endif
