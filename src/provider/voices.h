/* voices: the voices that espeak-ng lists.
 *
 *     Pty Language       Age/Gender VoiceName          File                 Other Languages
 *      2  en-gb           --/M      English_(Great_Britain) gmw/en          (en 2)
 *
 * The id of a voice is the last part of its file, "en". If two voices share it, the id of the
 * second is the whole file name.
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

/* Lines that are not voices are ignored, and so is a last line without an end, because it may
 * be cut.
 * errors  ERR_MALFORMED `text` contains no voice; ERR_TOO_LARGE too many voices */
MUST_CHECK bool voices_read(struct str text, struct voices **ret, struct err *e);
void voices_free(struct voices *voices); /* accepts NULL */

const struct media_voice *voices_all(const struct voices *voices, size_t *ret_count);

/* Find `voice` by its id, name, file or language. Without `voice`, take the best one for
 * `language` ("en", "de-AT", "pt_BR"), then for its first parts; without both, the English one.
 * *ret_file is espeak-ng's name for it.
 * errors  ERR_NOT_FOUND with the closest match */
MUST_CHECK bool voices_pick(const struct voices *voices, struct str voice, struct str language,
                            struct str *ret_file, struct err *e);

#endif
