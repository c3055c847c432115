/* contract: the agents as models of OpenAI's API, as a row of the table of contracts. A guest of
 * the listener "http".
 *
 *     GET  /v1/models, /v1/models/{model}
 *     POST /v1/chat/completions
 *
 * Threads  as contract/contract.h says.
 */
#ifndef WEIR_CONTRACT_OPENAI_CONTRACT_H
#define WEIR_CONTRACT_OPENAI_CONTRACT_H

#include "contract/contract.h"

extern const struct contract openai_contract;

#endif
