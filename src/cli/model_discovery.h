/* model_discovery: find the models that could be used from here.
 *
 * It looks for keys in the environment and for model servers on this machine. A first start
 * offers them, so that leaving the demo needs no manual.
 *
 * Memory   text given to callbacks is lent.
 * Threads  any; model_discovery_servers() blocks up to MODEL_DISCOVERY_WAIT_MS.
 */
#ifndef WEIR_CLI_MODEL_DISCOVERY_H
#define WEIR_CLI_MODEL_DISCOVERY_H

#include "config/config.h"

#define MODEL_DISCOVERY_WAIT_MS 150

/* what: "OPENAI_API_KEY", "Ollama on 127.0.0.1:11434 (gemma3)"; model: "ollama/gemma3". */
typedef void model_discovery_fn(struct str what, struct str model, void *ctx);

/* Report the variables that hold a key. */
void model_discovery_keys(const struct config_input *input, model_discovery_fn *found,
                          void *ctx);

/* Append the first model that a server's response to GET /v1/models lists. False: it lists none, so
 * it is no model server; or it is a weir, which lists its agents; or the name is longer than 256
 * bytes or holds what a terminal would act on. */
bool model_discovery_read(struct str answer, struct buf *ret);

/* Report the servers on this machine that list at least one model. */
void model_discovery_servers(model_discovery_fn *found, void *ctx);

/* model_discovery_servers() on a thread of its own, while a daemon starts and serves. `found`
 * runs on that thread. */
struct model_discovery_watch;

/* NULL: no thread could be started, and nothing will be reported. */
struct model_discovery_watch *model_discovery_watch_start(model_discovery_fn *found, void *ctx);

/* Wait for the thread to end. NULL is fine. */
void model_discovery_watch_stop(struct model_discovery_watch *watch);

#endif
