/* admit: whether a scenario may be asked of a model, and of which.
 *
 * Steps 1 to 9 of the chain, in their order; the first that says no answers with a status. When
 * all have passed, the model is asked, and from then on the stream speaks for itself.
 *
 * Memory   what it finds lives as long as the settings.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.3 (K-KEYSRC-004); section 9 numbers 6, 22 to 25.
 */
#ifndef WEIR_CONTRACT_NIMI_ADMIT_H
#define WEIR_CONTRACT_NIMI_ADMIT_H

#include "contract/nimi/envelope.h"
#include "contract/nimi/nimi.h"

/* What the requests have in common. */
struct scenario {
    const struct nimi_scenario_request_head *head;
    int scenario_type, mode;
    const struct nimi_scenario_spec *spec;
    const struct nimi_scenario_extension *extensions;
    size_t extension_count;
};

/* The method it is asked by. Each has one execution mode, and a mode of 0 means that one. */
enum admit_by {
    ADMIT_STREAM,  /* StreamScenario */
    ADMIT_EXECUTE, /* ExecuteScenario */
    ADMIT_SUBMIT,  /* SubmitScenarioJob: text and vectors too, which the protocol leaves out */
};

struct admission {
    /* Its provider is there for TEXT_GENERATE, its media, with the task, for all others. */
    const struct nimi_connector *connector;
    struct str model; /* as its provider calls it */
    int route;        /* RoutePolicy */
};

/* errors  as the table of the chain has them */
MUST_CHECK bool admit_scenario(const struct nimi_settings *settings,
                               const struct envelope *envelope, const struct scenario *asked,
                               enum admit_by by, struct admission *ret, struct fault *fault);

/* Whose model it is that a request without a scenario names: the steps of admit_scenario() that
 * look for it. What its connector can do is not looked at. */
MUST_CHECK bool admit_model(const struct nimi_settings *settings,
                            const struct envelope *envelope,
                            const struct nimi_scenario_request_head *head, int scenario_type,
                            struct admission *ret, struct fault *fault);

/* app_id is there, and the same everywhere (step 3). */
MUST_CHECK bool admit_app(const struct envelope *envelope, struct str app_id,
                          struct fault *fault);

/* Which modes a scenario type admits: a set of 1 << ExecutionMode. */
unsigned admit_modes(int scenario_type);

/* Whether any connector that is on serves this type; `model` narrows it down to those that have
 * a model of this name, and may be empty. */
bool admit_serves(const struct nimi_settings *settings, int scenario_type, struct str model);

#endif
