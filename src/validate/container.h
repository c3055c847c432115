/* container: targets that are images, run with docker or podman.
 *
 * The engine is a program that is found in $PATH and answers `info`. A container is removed when
 * it ends. Its secrets are passed through the environment, not on the command line.
 *
 * Threads  the main thread; the functions block, each for a bounded time.
 */
#ifndef WEIR_VALIDATE_CONTAINER_H
#define WEIR_VALIDATE_CONTAINER_H

#include "validate/target.h"

/* errors  ERR_UNAVAILABLE there is no engine that works; the text says what was tried */
MUST_CHECK bool container_find_engine(struct target *target, struct err *e);

/* Append the words of the command that runs the image, each ended by NUL. Its name is kept in
 * target->container. */
void container_command(struct target *target, const struct target_boot *boot, uint16_t port,
                       struct buf *words);

void container_kill(struct target *target);

#endif
