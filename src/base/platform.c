/* platform.c: compiles the static assertions of platform.h once. */
#include "platform.h"

typedef int stki_platform_checked;
