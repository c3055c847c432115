/* All tests of http_test.c but the proxy's, over TLS. */
#define PEER_SECURE
#include "client/http_test.c" /* NOLINT(bugprone-suspicious-include) */
