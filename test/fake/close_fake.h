/* close_fake: close(2) that checks whether the loop still watches the descriptor.
 *
 * Once a descriptor is closed, another loop may get its number. If libuv then removes it from
 * its epoll, it removes the other loop's.
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
