/* catalog: what an app asks first: which connectors, models and voices there are.
 *
 * Everything comes from the connectors of the settings and what the prober last saw of them. A
 * connector with an owner is shown only to that owner, as the ten-step chain admits it.
 *
 *     ListLocalAssets, ListModels, CheckModelHealth     the models of local connectors
 *     ListConnectors, GetConnector, ListConnectorModels all connectors
 *     ListScenarioProfiles, PeekScheduling              what can be asked, and would it wait
 *     ListPresetVoices                                  the voices of a model
 *
 * Memory   borrows the instance.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.5, 1.13, 3.6 "Paging", 5; upstream's connector.proto and model.proto.
 */
#ifndef WEIR_CONTRACT_NIMI_CATALOG_CATALOG_H
#define WEIR_CONTRACT_NIMI_CATALOG_CATALOG_H

#include "contract/nimi/call.h"

nimi_begin_fn catalog_list_assets, catalog_list_models, catalog_check_model;
nimi_begin_fn catalog_list_connectors, catalog_get_connector, catalog_list_connector_models;
nimi_begin_fn catalog_list_profiles, catalog_peek_scheduling, catalog_list_voices;

#endif
