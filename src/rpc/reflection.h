/* reflection: describe the services of this server to clients, as descriptors.
 *
 * Both versions of the protocol are served, v1 and v1alpha; they differ only in name. The
 * answers come from the descriptor sets that the build makes from our .proto files. The sets
 * are decoded for each request: reflection is for people who explore a server, and an unused
 * feature should cost no memory.
 *
 * Memory   borrows the names and sets it is given; free it after its site.
 * Threads  one loop.
 * Source   grpc/doc/server-reflection.md
 */
#ifndef WEIR_RPC_REFLECTION_H
#define WEIR_RPC_REFLECTION_H

#include "rpc/rpc.h"

struct reflection;

#define REFLECTION_SERVICES 2
#define REFLECTION_SETS_MAX 16

struct reflection *reflection_new(void);
void reflection_free(struct reflection *reflection);

/* Add the files of a FileDescriptorSet. Of two files with the same name the first counts. */
void reflection_add(struct reflection *reflection, struct str descriptor_set);

/* Set the list of services served here, including reflection itself. Borrowed. */
void reflection_list(struct reflection *reflection, const struct rpc_service *services,
                     size_t count);

/* Its own services, for rpc_site_new(); they point to `reflection`. */
void reflection_services(struct reflection *reflection,
                         struct rpc_service ret[REFLECTION_SERVICES]);

#endif
