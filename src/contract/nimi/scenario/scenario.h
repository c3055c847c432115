/* scenario: ask a model, and answer as a stream (mode A) or at once.
 *
 *     admitted ─▶ waits for a slot ─▶ asked: STARTED ─▶ ... ─▶ COMPLETED | FAILED, OK
 *      │ status       │ status            └─▶ CANCELLED (stopping), RESOURCE_EXHAUSTED (K20)
 *
 * Until the model is asked, every failure is a status with its reason. Afterwards the stream
 * itself carries the failure and ends OK. A unary call is the same work with one reply.
 *
 * Memory   the work belongs to its call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.3, 6.1; checks.md K2, K3, K20, K25.
 */
#ifndef WEIR_CONTRACT_NIMI_SCENARIO_SCENARIO_H
#define WEIR_CONTRACT_NIMI_SCENARIO_SCENARIO_H

#include "contract/nimi/call.h"

nimi_begin_fn scenario_stream, scenario_execute;

#endif
