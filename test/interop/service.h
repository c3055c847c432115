/* service: grpc.testing.TestService, with which other implementations test servers.
 *
 * One handler for each kind of call, written as in a contract.
 *
 * Source   grpc/doc/interop-test-descriptions.md
 */
#ifndef WEIR_TEST_INTEROP_SERVICE_H
#define WEIR_TEST_INTEROP_SERVICE_H

#include "rpc/rpc.h"

/* `*opened` counts the calls that reached a handler; it must outlive the site. */
struct rpc_service interop_service(size_t *opened);

#endif
