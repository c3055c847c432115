/* All tests of limits_test.c, over TLS. */
#define PEER_SECURE
#include "client/limits_test.c" /* NOLINT(bugprone-suspicious-include) */
