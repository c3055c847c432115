/* admit: decide whether a scenario may run, and on which model.
 *
 * Steps 1 to 9 of the chain, in order. The first step that fails refuses the call with a
 * status. When all have passed the model is asked, and from then on errors appear in the
 * stream.
 *
 * Memory   the result points into the settings.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.3 (K-KEYSRC-004); section 9 numbers 6, 22 to 25.
 */
#ifndef WEIR_CONTRACT_NIMI_ADMIT_H
#define WEIR_CONTRACT_NIMI_ADMIT_H

#include "contract/nimi/envelope.h"
#include "contract/nimi/nimi.h"

#define ADMIT_TIMEOUT_MAX_MS 300000 /* the most a request may ask for */
#define ADMIT_MODEL_MAX_BYTES 1024  /* replies, events and records repeat it */

/* The members that all scenario requests have in common. */
struct scenario {
    const struct nimi_scenario_request_head *head;
    int scenario_type, mode;
    const struct nimi_scenario_spec *spec;
    const struct nimi_scenario_extension *extensions;
    size_t extension_count;
};

/* The method that was called. Each has one execution mode, and a mode of 0 means that one. */
enum admit_by {
    ADMIT_STREAM,  /* StreamScenario */
    ADMIT_EXECUTE, /* ExecuteScenario */
    ADMIT_SUBMIT,  /* SubmitScenarioJob: also text and embeddings, beyond the protocol */
};

struct admission {
    /* It has a provider for TEXT_GENERATE, and a media interface that can do the task for every
     * other type. */
    const struct nimi_connector *connector;
    struct str model; /* under its provider's name for it */
    int route;        /* RoutePolicy */
};

/* errors  those in the table of the chain */
MUST_CHECK bool admit_scenario(const struct nimi_settings *settings,
                               const struct envelope *envelope, const struct scenario *asked,
                               enum admit_by by, struct admission *ret, struct fault *fault);

/* Find the connector and model of a request without a scenario. Runs the steps of
 * admit_scenario() that look for them, without checking what the connector can do. */
MUST_CHECK bool admit_model(const struct nimi_settings *settings,
                            const struct envelope *envelope,
                            const struct nimi_scenario_request_head *head, int scenario_type,
                            struct admission *ret, struct fault *fault);

/* Find the connector and model of a conversation, whose messages come later: the steps of
 * admit_scenario() that do not look at messages. Its connector has a provider. */
MUST_CHECK bool admit_session(const struct nimi_settings *settings,
                              const struct envelope *envelope,
                              const struct nimi_scenario_request_head *head,
                              const struct nimi_scenario_extension *extensions,
                              size_t extension_count, struct admission *ret,
                              struct fault *fault);

/* Check that app_id is present and the same everywhere (step 3). */
MUST_CHECK bool admit_app(const struct envelope *envelope, struct str app_id,
                          struct fault *fault);

/* Bound the clocks by the time that the request gives. */
void admit_clocks(const struct nimi_scenario_request_head *head,
                  struct model_call_clocks *clocks);

/* The execution modes of a scenario type, as a set of 1 << ExecutionMode. */
unsigned admit_modes(int scenario_type);

/* Whether any enabled connector serves this type. Unless `model` is empty, only connectors with
 * a model of that name count. */
bool admit_serves(const struct nimi_settings *settings, int scenario_type, struct str model);

#endif
