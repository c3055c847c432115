/* scripted: the offline provider. It plays a script, is not an AI, and says so.
 *
 * The request alone determines which reply of which scene is played: the user's text of this
 * turn, the agent, and how often that agent's model has answered since. Chunk n leaves at the
 * start time plus n times the pace, by the loop's clock, so a late loop does not delay the rest
 * of the text. Without a pace, text leaves as fast as it is accepted, at most
 * SCRIPTED_TURN_BYTES per loop turn.
 *
 * Memory   one allocation per call; text is lent from the script itself unless it has
 *          placeholders.
 * Threads  a call belongs to its loop; the script is read-only and shared.
 */
#ifndef WEIR_PROVIDER_SCRIPTED_H
#define WEIR_PROVIDER_SCRIPTED_H

#include "provider/provider.h"
#include "script/script.h"

#define SCRIPTED_TURN_BYTES (8 * KIB)

/* Sent when the script has no reply, or no further reply, for a request. */
#define SCRIPTED_NO_SCENE "SCRIPT_NO_SCENE"
#define SCRIPTED_ENDED "SCRIPT_ENDED"

/* Borrows `script` until provider_free(), which accepts what this returns. */
struct provider *scripted_provider_new(struct str name, const struct script *script);

/* The script of the demo, examples/demo.yaml, as the build embedded it. */
extern const struct str demo_script;

#endif
