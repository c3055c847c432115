/* catalog: what an app asks first: which connectors and models there are.
 *
 * Everything comes from the connectors of the settings and what the prober last saw of them. A
 * connector with an owner is shown only to that owner, as the ten-step chain admits it.
 *
 *     ListLocalAssets, ListModels, CheckModelHealth     the models of local connectors
 *     ListConnectors, GetConnector, ListConnectorModels all connectors
 *
 * Memory   borrows the instance.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.13, 3.6 "Paging"; upstream's connector.proto and model.proto.
 */
#ifndef WEIR_CONTRACT_NIMI_CATALOG_CATALOG_H
#define WEIR_CONTRACT_NIMI_CATALOG_CATALOG_H

#include "contract/nimi/call.h"

nimi_begin_fn catalog_list_assets, catalog_list_models, catalog_check_model;
nimi_begin_fn catalog_list_connectors, catalog_get_connector, catalog_list_connector_models;

#endif
