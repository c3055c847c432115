/* found: which models could be asked from here.
 *
 * Keys in the environment, and model servers that run on this machine: a first start offers
 * them, so that nobody has to read a page to leave the demo.
 *
 * Memory   what callbacks lend is borrowed.
 * Threads  any; found_servers() blocks up to FOUND_WAIT_MS.
 */
#ifndef WEIR_CLI_FOUND_H
#define WEIR_CLI_FOUND_H

#include "config/config.h"

#define FOUND_WAIT_MS 150

/* what: "OPENAI_API_KEY", "Ollama on 127.0.0.1:11434 (gemma3)"; model: "ollama/gemma3". */
typedef void found_fn(struct str what, struct str model, void *ctx);

/* Variables that hold a key. */
void found_keys(const struct config_input *input, found_fn *found, void *ctx);

/* Servers on this machine that list at least one model. */
void found_servers(found_fn *found, void *ctx);

/* The same beside whoever serves: ready first, then what was found, in one line each. */
struct found_watch;

/* NULL: no thread could be started, and nothing will be found. */
struct found_watch *found_watch_start(found_fn *found, void *ctx);

/* Waits for its end; NULL is fine. */
void found_watch_stop(struct found_watch *watch);

#endif
