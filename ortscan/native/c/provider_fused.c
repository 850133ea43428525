#include "provider_fused.h"

OrtStatus *run_error(const OrtApi *api, const char *text) {
  fault all;
  refuse(&all, "OrtscanExecutionProvider: %.220s", text);
  return CreateStatus(STATUS_INVALID_ARGUMENT, all.text);
}

OrtStatus *source_value(const compute_info *c, OrtKernelContext *context, int32_t source, const OrtValue **value) {
  const OrtApi *api = c->claim->host.api;
  *value = c->claim->sources[source].value;
  if (*value) return 0;
  OrtStatus *failed = KernelContext_GetInput(context, (size_t)c->sources[source], value);
  return failed || *value ? failed : run_error(api, "an input is missing");
}
