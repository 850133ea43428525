// The kernel of the operators ai.ortscan::Scan1 and Loop1, which run loop plans.
#include "operator.h"
#include "base64.h"
#include "tensor.h"
#include "run.h"
#include "until.h"
#include <stdlib.h>
#include <string.h>

enum { ROOM = 32 }; // up to this many tensors need no malloc

typedef struct {
  const OrtApi *api;
  loop *loop;
  form form;
} operator;

OrtStatus *say(const OrtApi *api, const fault *why) {
  fault all;
  refuse(&all, "ai.ortscan: %.220s", why->text);
  return CreateStatus(STATUS_INVALID_ARGUMENT, all.text);
}

OrtStatus *say_text(const OrtApi *api, const char *text) {
  fault why;
  refuse(&why, "%s", text);
  return say(api, &why);
}

void CALL kernel_destroy(void *kernel) {
  if (kernel) loop_free(((operator *)kernel)->loop);
  free(kernel);
}

OrtStatus *constants_of(const OrtApi *api, const OrtKernelInfo *info, tensor *constants, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int is_constant = 0;
    const OrtValue *value = 0;
    TRY(KernelInfoGetConstantInput_tensor(info, i, &is_constant, &value));
    if (is_constant && value) TRY(read_tensor(api, value, constants + i));
  }
  return 0;
}

OrtStatus *plan_of(const OrtApi *api, const OrtKernelInfo *info, char **bytes, size_t *count) {
  *bytes = 0, *count = 0;
  OrtStatus *asked = KernelInfoGetAttribute_string(info, "plan", 0, count); // returns the size with the final zero
  if (asked && !*count) return asked;
  if (asked) ReleaseStatus(asked);
  if (!(*bytes = malloc(*count + 1))) return say_text(api, "out of memory");
  TRY(KernelInfoGetAttribute_string(info, "plan", *bytes, count));
  if (*count) --*count;
  return base64_decode(*bytes, *count, count) ? 0 : say_text(api, "the attribute plan is no base64");
}

static OrtStatus *make(const OrtApi *api, const OrtKernelInfo *info, operator *made, char **bytes, tensor **constants) {
  size_t count, inputs, outputs;
  fault why;
  TRY(plan_of(api, info, bytes, &count));
  TRY(KernelInfo_GetInputCount(info, &inputs));
  TRY(KernelInfo_GetOutputCount(info, &outputs));
  if (inputs > MOST_PORTS || !(*constants = calloc(inputs + 1, sizeof **constants))) return say_text(api, "too many inputs");
  TRY(constants_of(api, info, *constants, inputs));
  if (!(made->loop = loop_new(*bytes, count, *constants, (int32_t)inputs, &why))) return say(api, &why);
  const plan *p = made->loop->plan;
  if (p->form != (int32_t)made->form) return say_text(api, "the plan is of a loop of the other form");
  if (inputs == (size_t)p->n_inputs && outputs == (size_t)outputs_of(p)) return 0;
  refuse(&why, "the node has %zu inputs and %zu outputs, and its plan has %d and %d", inputs, outputs, (int)p->n_inputs, (int)outputs_of(p));
  return say(api, &why);
}

OrtStatus *kernel_create(const OrtApi *api, const OrtKernelInfo *info, form form, void **kernel) {
  *kernel = 0;
  operator *made = calloc(1, sizeof *made);
  if (!made) return say_text(api, "out of memory");
  made->api = api, made->form = form;
  char *bytes = 0;
  tensor *constants = 0;
  OrtStatus *failed = make(api, info, made, &bytes, &constants);
  free(bytes);
  free(constants);
  if (failed) kernel_destroy(made);
  else *kernel = made;
  return failed;
}

static int64_t nothing; // the address of an empty tensor

static OrtStatus *output_of(const OrtApi *api, OrtKernelContext *context, const frame *f, int32_t i, int64_t steps, void **data) {
  int64_t dims[MOST_RANK + 1];
  const size_t axes = dims_of_output(f, i, steps, dims);
  OrtValue *value = 0;
  TRY(KernelContext_GetOutput(context, (size_t)(i - first_output(f->plan)), dims, axes, &value));
  if (!value) return say_text(api, "an output is missing");
  TRY(GetTensorMutableData(value, data));
  if (!*data) *data = &nothing;
  return 0;
}

// Run a Loop. Its first state is the condition, which is no output. Stacks are copied when their size is known.
static OrtStatus *run_until(const OrtApi *api, OrtKernelContext *context, frame *f, void *const *inputs, int64_t limit) {
  const plan *p = f->plan;
  void **outputs = (void **)inputs + p->n_inputs, **stacked = outputs + p->n_states;
  uint8_t condition;
  run_data d = {inputs, outputs, 0};
  fault why;
  outputs[0] = &condition;
  if (!frame_run_until(f, &d, stacked, limit, &why)) return say(api, &why);
  for (int32_t i = 1; i < p->n_states; i++) TRY(output_of(api, context, f, i, 0, outputs + i));
  run_finish(f, &d);
  for (int32_t i = 0; i < p->n_outputs; i++) {
    void *all;
    const size_t bytes = (size_t)(f->sizes.output_rows[i] * bytes_of(p->outputs[i].type)) * (size_t)d.steps;
    TRY(output_of(api, context, f, p->n_states + i, d.steps, &all));
    if (bytes) memcpy(all, stacked[i], bytes);
  }
  return 0;
}

static OrtStatus *run(const operator *o, OrtKernelContext *context, tensor *inputs, void **data) {
  const OrtApi *api = o->api;
  const plan *p = o->loop->plan;
  const int32_t n_outputs = p->n_states + p->n_outputs;
  void **outputs = data + p->n_inputs;
  fault why;
  int64_t steps = 0;
  for (int32_t i = 0; i < p->n_inputs; i++) {
    const OrtValue *value = 0;
    TRY(KernelContext_GetInput(context, (size_t)i, &value));
    if (!value) return say_text(api, "an input is missing");
    TRY(read_tensor(api, value, inputs + i));
    data[i] = inputs[i].data ? inputs[i].data : &nothing;
  }
  frame *f = loop_begin(o->loop, inputs, &steps, &why);
  if (!f) return say(api, &why);
  OrtStatus *failed = 0;
  if (p->form == LOOP_FORM) failed = run_until(api, context, f, data, steps);
  for (int32_t i = 0; i < n_outputs && !failed && p->form == SCAN_FORM; i++) failed = output_of(api, context, f, i, steps, outputs + i);
  if (!failed && p->form == SCAN_FORM && !frame_run(f, &(run_data){data, outputs, steps}, &why)) failed = say(api, &why);
  loop_end(o->loop, f);
  return failed;
}

OrtStatus *CALL kernel_compute(void *kernel, OrtKernelContext *context) {
  const operator *o = kernel;
  const OrtApi *api = o->api;
  const plan *p = o->loop->plan;
  const size_t n_inputs = (size_t)p->n_inputs, n_data = n_inputs + (size_t)(p->n_states + p->n_outputs);
  if (n_data <= ROOM) {
    tensor inputs[ROOM];
    void *data[ROOM];
    return run(o, context, inputs, data);
  }
  tensor *inputs = malloc(sizeof *inputs * n_inputs);
  void **data = malloc(sizeof *data * n_data);
  OrtStatus *failed = inputs && data ? run(o, context, inputs, data) : say_text(api, "out of memory");
  free(inputs);
  free(data);
  return failed;
}
