/* close_fake: close(2), with a look at whether the loop still watches what is closed.
 *
 * Once a descriptor is closed its number may be another loop's, and what libuv then takes out
 * of its epoll is somebody else's.
 *
 * Threads  the loop's.
 */
#ifndef WEIR_TEST_FAKE_CLOSE_FAKE_H
#define WEIR_TEST_FAKE_CLOSE_FAKE_H

#include "loop/loop.h"

/* Look at this loop from now on and count from 0; NULL: at none. */
void close_fake_watch(struct loop *loop);

/* Descriptors that were closed while they were watched. */
unsigned close_fake_early(void);

#endif
