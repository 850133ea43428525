// A fault: one sentence that says why a plan or a run is refused.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
  char text[256];
} fault;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static inline bool refuse(fault *why, const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  vsnprintf(why->text, sizeof why->text, format, rest);
  va_end(rest);
  return false;
}
