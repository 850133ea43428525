#include "provider_host.h"
#include "provider_graph.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void log_line(const host *h, int level, const char *format, ...) {
  const OrtApi *api = h->api;
  char text[512];
  static const uint16_t nowhere[] = {'o', 'r', 't', 's', 'c', 'a', 'n', 0}; // Windows paths have 16-bit characters
  va_list rest;
  va_start(rest, format);
  vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
#if defined(_WIN32)
  const void *file = nowhere;
#else
  const void *file = "ortscan";
  (void)nowhere;
#endif
  if (h->logger) went_well(api, Logger_LogMessage(h->logger, level, text, file, 0, "OrtscanExecutionProvider"));
}

char *copy_of(const char *text) {
  char *copy = malloc(strlen(text) + 1);
  return copy ? strcpy(copy, text) : 0;
}
