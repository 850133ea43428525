// The onnxruntime that loaded the provider.
#pragma once
#include "provider_abi.h"

// `hands_captures_over`: from 1.27 on, captured values of a body are passed to the fused node.
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

// Return a copy that the caller frees, or null without memory.
char *copy_of(const char *text);
