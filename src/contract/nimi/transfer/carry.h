/* carry: the request to the local model server that downloads a model.
 *
 *     POST {base}/api/pull {"model":…,"stream":true} ─▶ pull.h ─▶ download_report(), _finish()
 *
 * To stop is to close the connection: the server keeps what it has. A server that says nothing
 * for nimi.transfer_silence, or what cannot be true, ends the download as failed.
 *
 * Private to contract/nimi/transfer.
 *
 * Memory   of the download.
 * Threads  the download's home.
 */
#ifndef WEIR_CONTRACT_NIMI_TRANSFER_CARRY_H
#define WEIR_CONTRACT_NIMI_TRANSFER_CARRY_H

#include "contract/nimi/transfer/download.h"

/* Start the request. It may finish the download at once. */
void download_carry_start(struct download *download);

/* Close the connection. Harmless when no request runs. */
void download_carry_stop(struct download *download);

/* Append the URL to be asked: "http://host:11434/v1" is "http://host:11434/api/pull". */
void download_url(struct str base_url, struct buf *out);

#endif
