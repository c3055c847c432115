/* pod: this process as the pod of a Crawbl workspace.
 *
 * The orchestrator's webhook starts it with the flags and variables of the agent runtime that
 * it was made for, as a user who owns no files, on a read-only root. What weir does not support
 * is accepted and named in one warning.
 */
#ifndef WEIR_CONTRACT_CRAWBL_POD_H
#define WEIR_CONTRACT_CRAWBL_POD_H

#include "config/config.h"

/* Flags that are accepted and ignored; ends with NULL. */
extern const char *const pod_unused_flags[];

/* Add one warning that names every ignored flag and variable. */
void pod_warn(struct config *config, const struct config_input *input);

/* Choose another folder if the usual one cannot be written and none was set.
 * errors  ERR_UNAVAILABLE there is none */
MUST_CHECK bool pod_data(struct config *config, struct err *e);

/* Set the model if there is none. */
void pod_model(struct config *config);

/* Enable the search that this endpoint implies, if it is not empty. */
void pod_search(struct str searxng, struct config *config);

#endif
