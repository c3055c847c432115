/* console: the web console, served at /weir/ from files in the program.
 *
 *     /weir           308 to /weir/
 *     /weir/          the page; every view of it is a fragment of this address
 *     /weir/{file}    its scripts, styles and pictures
 *
 * The files are the same for everyone and reveal nothing, so they need no token: the page asks
 * for it and sends it with each request to /weir/v1. While the operator has set no token, only
 * peers on this machine get the files, and the rules for web pages hold (a link from another site
 * may lead here: it is the person who follows it).
 *
 * Memory   none of its own; a call without gzip holds one file decompressed while it is sent.
 * Threads  an instance belongs to one loop.
 * Source   checks.md K6; RFC 9110 13.1.2 (If-None-Match), 12.5.3 (Accept-Encoding); CSP 3.
 */
#ifndef WEIR_CONTRACT_CONSOLE_CONTRACT_H
#define WEIR_CONTRACT_CONSOLE_CONTRACT_H

#include "contract/contract.h"

extern const struct contract console_contract;

#endif
