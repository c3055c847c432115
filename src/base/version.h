/* version: the version of the program and of what it installs. */
#ifndef WEIR_BASE_VERSION_H
#define WEIR_BASE_VERSION_H

#define WEIR_VERSION "0.1.0"

#endif
