/* config_files: whether a start could open the files and folders that the settings name.
 *
 * Nothing is made or written. A folder that a start makes itself may be missing.
 *
 * Threads  the main one; it reads files. */
#ifndef WEIR_CLI_CONFIG_FILES_H
#define WEIR_CLI_CONFIG_FILES_H

#include "config/config.h"

/* Each mistake becomes a problem of the config. */
void config_files_check(struct config *config);

#endif
