/* All tests of websocket_call_test.c, over TLS. */
#define PEER_SECURE
#include "client/websocket_call_test.c" /* NOLINT(bugprone-suspicious-include) */
