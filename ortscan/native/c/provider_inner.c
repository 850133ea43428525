#include "provider_inner.h"
#include "operator.h"
#include <stdlib.h>
#include <string.h>

enum { WARNINGS = 2, FATAL = 4 };

static OrtStatus *names_of(const OrtApi *api, inner *i) {
  OrtAllocator *allocator = 0;
  TRY(GetAllocatorWithDefaultOptions(&allocator));
  TRY(SessionGetInputCount(i->session, &i->n_inputs));
  TRY(SessionGetOutputCount(i->session, &i->n_outputs));
  i->inputs = calloc(i->n_inputs + 1, sizeof *i->inputs), i->outputs = calloc(i->n_outputs + 1, sizeof *i->outputs);
  if (!i->inputs || !i->outputs) return CreateStatus(STATUS_FAIL, "out of memory");
  for (size_t k = 0; k < i->n_inputs; k++) TRY(SessionGetInputName(i->session, k, allocator, i->inputs + k));
  for (size_t k = 0; k < i->n_outputs; k++) TRY(SessionGetOutputName(i->session, k, allocator, i->outputs + k));
  return 0;
}

static OrtStatus *make(const OrtApi *api, const OrtApiBase *base, inner *i, OrtSessionOptions *options, const void *model, size_t count) {
  TRY(SetIntraOpNumThreads(options, 1));
  TRY(SetInterOpNumThreads(options, 1));
  TRY(SetSessionLogSeverityLevel(options, FATAL)); // errors are returned anyway
  TRY(RegisterCustomOps(options, base));
  TRY(CreateEnv(WARNINGS, "ortscan", &i->env)); // returns the existing environment
  TRY(CreateSessionFromArray(i->env, model, count, options, &i->session));
  return names_of(api, i);
}

inner *inner_new(const OrtApi *api, const OrtApiBase *base, const void *model, size_t count, OrtStatus **failed) {
  OrtSessionOptions *options = 0;
  inner *i = calloc(1, sizeof *i);
  *failed = i ? CreateSessionOptions(&options) : CreateStatus(STATUS_FAIL, "out of memory");
  if (!*failed) *failed = make(api, base, i, options, model, count);
  if (options) ReleaseSessionOptions(options);
  if (!*failed) return i;
  inner_free(api, i);
  return 0;
}

static void free_names(const OrtApi *api, char **names, size_t count) {
  OrtAllocator *allocator = 0;
  OrtStatus *failed = GetAllocatorWithDefaultOptions(&allocator);
  for (size_t k = 0; k < count && names && !failed; k++)
    if (names[k]) failed = AllocatorFree(allocator, names[k]);
  if (failed) ReleaseStatus(failed);
  free(names);
}

void inner_free(const OrtApi *api, inner *i) {
  if (!i) return;
  free_names(api, i->inputs, i->n_inputs), free_names(api, i->outputs, i->n_outputs);
  if (i->session) ReleaseSession(i->session);
  if (i->env) ReleaseEnv(i->env);
  free(i);
}

OrtStatus *inner_run(const OrtApi *api, const inner *i, const char *const *inputs, const OrtValue *const *values, size_t n_inputs, const char *const *outputs, size_t n_outputs, OrtValue **given) {
  return Run(i->session, 0, inputs, values, n_inputs, outputs, n_outputs, given);
}
