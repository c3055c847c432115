/* scripted: the offline provider. It plays a script and is no AI, and says so.
 *
 * Which reply of which scene is played follows from the request alone: the user's text of
 * this turn, the agent, and how often that agent's model has answered since. Time follows
 * the loop's clock: chunk n leaves at the start plus n times the pace, so a late loop does not
 * stretch a text. Without a pace, text leaves as fast as it is taken, at most
 * SCRIPTED_TURN_BYTES in a loop turn.
 *
 * Memory   one allocation a call; text is lent straight from the script unless it has holes.
 * Threads  a call belongs to its loop; the script is read-only and shared.
 */
#ifndef WEIR_PROVIDER_SCRIPTED_H
#define WEIR_PROVIDER_SCRIPTED_H

#include "provider/provider.h"
#include "wire/script.h"

#define SCRIPTED_TURN_BYTES (16 * KIB)

/* What the provider says about a script that has nothing (more) for a request. */
#define SCRIPTED_NO_SCENE "SCRIPT_NO_SCENE"
#define SCRIPTED_ENDED "SCRIPT_ENDED"

/* Borrows `script` until provider_free(), which accepts what this returns. */
struct provider *scripted_provider_new(struct str name, const struct script *script);

/* The script of the demo, examples/demo.yaml, as the build embedded it. */
extern const struct str demo_script;

#endif
