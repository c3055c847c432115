/* workflows: the calls about workflows (close mode B).
 *
 * Source   contracts/nimi.md 3.5, 6.3; section 9 numbers 27 to 29, 42.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOWS_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOWS_H

#include "contract/nimi/call.h"

nimi_begin_fn workflows_submit, workflows_get, workflows_cancel, workflows_subscribe;

#endif
