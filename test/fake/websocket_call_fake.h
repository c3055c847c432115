/* websocket_call_fake: a server of one WebSocket at a time that says what the test says.
 *
 * Defines the functions of client/websocket_call.h. Saying while paused is allowed for as much as
 * one read may bring; saying after the end is an assert.
 *
 * Memory   the last call's request and what was sent are kept until the next call starts.
 * Threads  none.
 */
#ifndef WEIR_TEST_FAKE_WEBSOCKET_CALL_FAKE_H
#define WEIR_TEST_FAKE_WEBSOCKET_CALL_FAKE_H

#include "client/websocket_call.h"

/* The newest call; NULL: it is over. How many there ever were. */
struct websocket_call *fake_websocket(void);
size_t fake_websockets_ever(void);

struct str fake_websocket_url(void);

/* All that was sent since this was last asked, one message a line. */
struct str fake_websocket_sent(void);

/* From now on so many bytes wait to be sent; and then they were. */
void fake_websocket_waits(size_t bytes);

bool fake_websocket_paused(void);

void fake_websocket_open(void);
void fake_websocket_say(const char *text);
void fake_websocket_end(const struct websocket_end *end);

void fake_websocket_done(void); /* free what is kept */

#endif
