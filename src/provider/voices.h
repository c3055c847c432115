/* voices: those that espeak-ng says it has.
 *
 *     Pty Language       Age/Gender VoiceName          File                 Other Languages
 *      2  en-gb           --/M      English_(Great_Britain) gmw/en          (en 2)
 *
 * What others call it (id) is the last part of its file, "en"; where two have the same, the
 * second is called by all of it.
 *
 * Memory   a list owns its text.
 * Threads  read-only once made.
 */
#ifndef WEIR_PROVIDER_VOICES_H
#define WEIR_PROVIDER_VOICES_H

#include "base/err.h"
#include "provider/media.h"

#define VOICES_MAX 1024
#define VOICES_MAX_BYTES (256 * KIB) /* of what is read */

struct voices;

/* Lines that are no voices are passed over; a last one without its end may be cut, so it is
 * too. errors  ERR_MALFORMED there is no voice in `text`; ERR_TOO_LARGE there are too many */
MUST_CHECK bool voices_read(struct str text, struct voices **ret, struct err *e);
void voices_free(struct voices *voices); /* NULL is fine */

const struct media_voice *voices_all(const struct voices *voices, size_t *ret_count);

/* The voice that is meant, by its id, name, file or language; without `voice` the best one for
 * `language` ("en", "de-AT", "pt_BR"), then for its first parts; without both the one for
 * English. *ret_file is what espeak-ng calls it.
 * errors  ERR_NOT_FOUND with the nearest one */
MUST_CHECK bool voices_pick(const struct voices *voices, struct str voice, struct str language,
                            struct str *ret_file, struct err *e);

#endif
