// Compares versions of onnxruntime.
#pragma once
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Return whether a version is 1.`minor` or newer.
static inline bool is_as_of(const char *version, int minor) {
  const int major = atoi(version);
  const char *rest = strchr(version, '.');
  return major > 1 || (major == 1 && rest && atoi(rest + 1) >= minor);
}
