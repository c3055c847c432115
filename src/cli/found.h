/* found: find the models that could be used from here.
 *
 * It looks for keys in the environment and for model servers on this machine. A first start
 * offers them, so that leaving the demo needs no manual.
 *
 * Memory   text given to callbacks is lent.
 * Threads  any; found_servers() blocks up to FOUND_WAIT_MS.
 */
#ifndef WEIR_CLI_FOUND_H
#define WEIR_CLI_FOUND_H

#include "config/config.h"

#define FOUND_WAIT_MS 150

/* what: "OPENAI_API_KEY", "Ollama on 127.0.0.1:11434 (gemma3)"; model: "ollama/gemma3". */
typedef void found_fn(struct str what, struct str model, void *ctx);

/* Report the variables that hold a key. */
void found_keys(const struct config_input *input, found_fn *found, void *ctx);

/* Report the servers on this machine that list at least one model. */
void found_servers(found_fn *found, void *ctx);

/* found_servers() on a thread of its own, while a daemon starts and serves. `found` runs on
 * that thread. */
struct found_watch;

/* NULL: no thread could be started, and nothing will be reported. */
struct found_watch *found_watch_start(found_fn *found, void *ctx);

/* Wait for the thread to end. NULL is fine. */
void found_watch_stop(struct found_watch *watch);

#endif
