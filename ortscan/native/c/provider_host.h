// The onnxruntime that asked for the provider.
#pragma once
#include "provider_abi.h"

// `hands_captures_over`: what a body captures reaches the node that stands for the loop, as of 1.27.
typedef struct {
  const OrtApi *api;
  const OrtApiBase *base;
  const OrtLogger *logger;
  bool hands_captures_over;
} host;

enum { LOG_INFO = 1, LOG_WARNING = 2 };

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void log_line(const host *h, int level, const char *format, ...);

// Return a copy for the caller to free; null where memory is out.
char *copy_of(const char *text);
