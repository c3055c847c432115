/* service: grpc.testing.TestService, which clients of other makes test servers with.
 *
 * One handler for each kind of call there is, written as a contract would write it.
 *
 * Source   grpc/doc/interop-test-descriptions.md
 */
#ifndef WEIR_TEST_INTEROP_SERVICE_H
#define WEIR_TEST_INTEROP_SERVICE_H

#include "rpc/rpc.h"

/* `*opened` counts the calls that reached a handler; it must outlive the site. */
struct rpc_service interop_service(size_t *opened);

#endif
