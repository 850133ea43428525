// The kernel of the operator ai.ortscan::Cell1.
#include "cell_operator.h"
#include "cell.h"
#include "operator.h"
#include "tensor.h"
#include <stdlib.h>

typedef struct { const OrtApi *api; cell *cell; } cell_kernel_state;

void CALL cell_kernel_destroy(void *kernel) {
  if (kernel) cell_free(((cell_kernel_state *)kernel)->cell);
  free(kernel);
}

static OrtStatus *make(const OrtApi *api, const OrtKernelInfo *info, cell_kernel_state *made, char **bytes) {
  size_t count, inputs, outputs;
  tensor constants[CELL_INPUTS] = {{0}};
  fault why;
  TRY(plan_of(api, info, bytes, &count));
  TRY(KernelInfo_GetInputCount(info, &inputs));
  TRY(KernelInfo_GetOutputCount(info, &outputs));
  if (inputs > CELL_INPUTS) return say_text(api, "a cell has too many inputs");
  TRY(constants_of(api, info, constants, inputs));
  if (!(made->cell = cell_new(*bytes, count, constants, (int32_t)inputs, &why))) return say(api, &why);
  return (size_t)cell_words_of(made->cell)->n_outputs == outputs ? 0 : say_text(api, "a cell has other outputs than its words say");
}

OrtStatus *cell_kernel_create(const OrtApi *api, const OrtKernelInfo *info, void **kernel) {
  *kernel = 0;
  cell_kernel_state *made = calloc(1, sizeof *made);
  if (!made) return say_text(api, "out of memory");
  made->api = api;
  char *bytes = 0;
  OrtStatus *failed = make(api, info, made, &bytes);
  free(bytes);
  if (failed) cell_kernel_destroy(made);
  else *kernel = made;
  return failed;
}

typedef struct { const OrtApi *api; OrtKernelContext *context; } pool;

static bool in_pool(void *context, void (*task)(void *of, size_t i), size_t count, void *of) {
  const pool *p = context;
  const OrtApi *api = p->api;
  OrtStatus *failed = KernelContext_ParallelFor(p->context, task, count, 0, of);
  if (failed) ReleaseStatus(failed);
  return !failed;
}

OrtStatus *CALL cell_kernel_compute(void *kernel, OrtKernelContext *context) {
  const cell_kernel_state *o = kernel;
  const OrtApi *api = o->api;
  const cell_words *c = cell_words_of(o->cell);
  tensor inputs[CELL_INPUTS];
  cell_run_data d = {.inputs = inputs};
  fault why;
  for (int32_t i = 0; i < c->n_inputs; i++) {
    const OrtValue *value = 0;
    TRY(KernelContext_GetInput(context, (size_t)i, &value));
    if (!value) return say_text(api, "an input is missing");
    TRY(read_tensor(api, value, inputs + i));
  }
  if (!cell_shapes(c, inputs, false, &why)) return say(api, &why);
  const int64_t *x = inputs[c->input[CELL_X]].dims;
  d.steps = x[0], d.rows = x[1], d.width = x[2];
  for (int i = 0; i < CELL_OUTPUTS; i++) {
    const int64_t dims[] = {d.steps, directions_of(c), d.rows, c->hidden};
    const size_t first = i != CELL_Y;
    OrtValue *value = 0;
    void *data = 0;
    if (c->output[i] < 0) continue;
    TRY(KernelContext_GetOutput(context, (size_t)c->output[i], dims + first, 4 - first, &value));
    if (!value) return say_text(api, "an output is missing");
    TRY(GetTensorMutableData(value, &data));
    d.outputs[i] = data;
  }
  return cell_run(o->cell, &d, in_pool, &(pool){api, context}, &why) ? 0 : say(api, &why);
}
