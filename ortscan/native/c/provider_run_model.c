#include "provider_run_model.h"
#include "labels.h"
#include "tensor.h"
#include <stdlib.h>
#include <string.h>

// The names and values of the session's inputs and outputs.
typedef struct {
  const char **inputs, **outputs;
  const OrtValue **values;
  OrtValue **given;
  size_t n_outputs;
} exchange;

// Return the session. For a loop with a plan, the first thread that needs it makes it.
static OrtStatus *session_of(claim *c, inner **session) {
  const OrtApi *api = c->host.api;
  OrtStatus *failed = 0;
  if ((*session = atomic_load(&c->inner))) return 0;
  inner *made = inner_new(api, c->host.base, c->model.data, c->model.count, &failed), *there = 0;
  if (failed) return failed;
  if (atomic_compare_exchange_strong(&c->inner, &there, made)) there = made;
  else inner_free(api, made);
  return *session = there, (OrtStatus *)0;
}

static OrtStatus *collect(const compute_info *c, OrtKernelContext *context, const inner *session, exchange *x) {
  for (size_t i = 0; i < session->n_inputs; i++) {
    x->inputs[i] = session->inputs[i];
    OrtStatus *failed = source_value(c, context, source_place(c->claim, label_in(session->inputs[i])), x->values + i);
    if (failed) return failed;
  }
  for (size_t i = 0; i < session->n_outputs; i++) {
    const int32_t place = result_place(c->claim, label_in(session->outputs[i]));
    if (place >= 0 && c->results[place] != NOWHERE) x->outputs[x->n_outputs++] = session->outputs[i];
  }
  return 0;
}

// Copy the session's results to the outputs of the node, after checking that their types and sizes agree.
static OrtStatus *hand_over(const compute_info *c, OrtKernelContext *context, const char *name, const OrtValue *given) {
  const claim *k = c->claim;
  const OrtApi *api = k->host.api;
  const int32_t place = result_place(k, label_in(name));
  tensor from;
  OrtValue *value = 0;
  void *to = 0;
  size_t size = 0, room = 0;
  OrtStatus *failed = read_tensor(api, given, &from);
  if (!failed && (from.type != k->results[place].type || from.axes > MOST_RANK + 1)) failed = run_error(api, "a result is of another type, or has too many axes");
  if (!failed) failed = GetTensorSizeInBytes(given, &size);
  if (!failed) failed = KernelContext_GetOutput(context, (size_t)c->results[place], from.dims, from.axes, &value);
  if (failed || !value) return failed;
  failed = GetTensorSizeInBytes(value, &room);
  if (!failed && room != size) failed = run_error(api, "a result is of another size");
  if (!failed) failed = GetTensorMutableData(value, &to);
  if (!failed && size) memcpy(to, from.data, size);
  return failed;
}

OrtStatus *run_model(const compute_info *c, OrtKernelContext *context) {
  const OrtApi *api = c->claim->host.api;
  inner *session = 0;
  OrtStatus *failed = session_of(c->claim, &session);
  if (failed) return failed;
  exchange x = {.inputs = calloc(session->n_inputs + 1, sizeof *x.inputs), .outputs = calloc(session->n_outputs + 1, sizeof *x.outputs)};
  x.values = calloc(session->n_inputs + 1, sizeof *x.values), x.given = calloc(session->n_outputs + 1, sizeof *x.given);
  failed = x.inputs && x.outputs && x.values && x.given ? collect(c, context, session, &x) : run_error(api, "out of memory");
  if (!failed) failed = inner_run(api, session, x.inputs, x.values, session->n_inputs, x.outputs, x.n_outputs, x.given);
  for (size_t i = 0; i < x.n_outputs && !failed; i++) failed = hand_over(c, context, x.outputs[i], x.given[i]);
  for (size_t i = 0; i < x.n_outputs; i++)
    if (x.given[i]) ReleaseValue(x.given[i]);
  free(x.inputs), free(x.outputs), free(x.values), free(x.given);
  return failed;
}
