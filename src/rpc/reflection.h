/* reflection: a client asks what this server speaks, and is told in descriptors.
 *
 * Both names of the protocol are served, v1 and v1alpha; they differ in nothing else. The
 * answers come from the descriptor sets that the build makes of our .proto files. They are
 * read anew for each question: reflection is for people who explore, and a daemon that nobody
 * explores should hold nothing for it.
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

/* Make the files of a FileDescriptorSet known; the first of two with one name counts. */
void reflection_add(struct reflection *reflection, struct str descriptor_set);

/* The services that reflection speaks of as served here, itself among them; borrowed. */
void reflection_list(struct reflection *reflection, const struct rpc_service *services,
                     size_t count);

/* Its own services, for rpc_site_new(); they point at `reflection`. */
void reflection_services(struct reflection *reflection,
                         struct rpc_service ret[REFLECTION_SERVICES]);

#endif
