/* watch: the subscriptions to the health of the runtime and of its providers.
 *
 * A subscriber gets the newest state at once, and then each change. While someone subscribes to
 * the runtime's health, a sample is published every second, so it is a heartbeat too. All get
 * the same events with the same numbers.
 *
 * Memory   the topics belong to the runtime; the beat is part of an instance.
 * Threads  health_publish* any; the rest belongs to the instance's loop.
 * Source   contracts/nimi.md 1.8, 6.6.
 */
#ifndef WEIR_CONTRACT_NIMI_HEALTH_WATCH_H
#define WEIR_CONTRACT_NIMI_HEALTH_WATCH_H

#include "contract/nimi/call.h"

#define HEALTH_BEAT_MS 1000

nimi_begin_fn health_subscribe, health_subscribe_providers;

/* Publish the runtime's state as it is now. */
void health_publish(struct nimi_runtime *runtime);

/* Publish what a probe found out about a provider. */
void health_publish_provider(struct nimi_runtime *runtime, const struct nimi_probed *probed);

/* An instance's part. */
void health_beat_init(struct nimi_instance *instance);

#endif
