/* media_fake: a media provider that is controlled by the test.
 *
 * As strict as provider_fake.h: giving after the ending fails an assert, cancelled calls are
 * freed, and lent memory is freed when the callback returns. Cancelling from inside a callback
 * is allowed.
 *
 * Memory   the test frees the media, when no call is out.
 * Threads  none.
 */
#ifndef WEIR_TEST_FAKE_MEDIA_FAKE_H
#define WEIR_TEST_FAKE_MEDIA_FAKE_H

#include "provider/media.h"

/* tasks: a set of 1 << enum media_task. */
struct media *fake_media_new(unsigned tasks);

/* It has these voices from now on (borrowed); it refuses this format; it has only this model;
 * it says no to everything, with this code. */
void fake_media_voices(struct media *media, const struct media_voice *voices, size_t count);
void fake_media_lacks(struct media *media, const char *format);
void fake_media_only(struct media *media, const char *model);
void fake_media_refuses(struct media *media, enum err_code code);

/* Calls that are out, the oldest first, and how many there ever were. */
size_t fake_media_calls(const struct media *media);
size_t fake_media_calls_ever(const struct media *media);
struct media_call *fake_media_call(const struct media *media, size_t index);
const struct media_request *fake_media_request(const struct media_call *call);

/* What it makes. False: the call was cancelled from inside, it is gone. */
bool fake_media_artifact(struct media_call *call, const char *type, struct str bytes);
bool fake_media_text(struct media_call *call, const char *text);
bool fake_media_vector(struct media_call *call, size_t input, const double *values,
                       size_t count);
bool fake_media_usage(struct media_call *call, int64_t prompt, int64_t completion);
void fake_media_done(struct media_call *call, const char *model);
void fake_media_fail(struct media_call *call, enum err_code code, const char *reason);

#endif
