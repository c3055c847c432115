/* realtime: a conversation with a model that stays open (RuntimeAiRealtimeService).
 *
 *     OpenRealtimeSession ─▶ OPENED            AppendRealtimeInput ─▶ TEXT_DELTA ...
 *                                              [AUDIO_CHUNK ... eof] COMPLETED | FAILED
 *     CloseRealtimeSession ─▶ COMPLETED, and the reader ends with OK
 *
 * Any model that answers with text can be talked to. What one call appends is one turn. A session
 * keeps its conversation in memory: it ends with the process, when its caller closes it, or when
 * it is idle for nimi.realtime_idle. Then its reader ends with CANCELLED.
 *
 * Memory   of the call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.6, 6.7; section 9 numbers 11, 41; checks.md K35.
 */
#ifndef WEIR_CONTRACT_NIMI_REALTIME_REALTIME_H
#define WEIR_CONTRACT_NIMI_REALTIME_REALTIME_H

#include "contract/nimi/call.h"

nimi_begin_fn realtime_open, realtime_append_input, realtime_read_events,
    realtime_close_session;

#endif
