/* contract: the agents as models of Anthropic's API, as a row of the table of contracts. A guest of
 * the listener "http".
 *
 *     POST /v1/messages, /v1/messages/count_tokens
 *
 * Threads  as contract/contract.h says.
 */
#ifndef WEIR_CONTRACT_ANTHROPIC_CONTRACT_H
#define WEIR_CONTRACT_ANTHROPIC_CONTRACT_H

#include "contract/contract.h"

extern const struct contract anthropic_contract;
extern const struct setting_rows anthropic_rows; /* options.c */

#endif
