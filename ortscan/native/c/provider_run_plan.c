#include "provider_run_plan.h"
#include "run.h"
#include "tensor.h"
#include "until.h"
#include <stdlib.h>
#include <string.h>

enum { ROOM = 32 }; // up to this many tensors need no malloc

static int64_t nothing; // the address of an empty tensor

typedef struct {
  const compute_info *info;
  OrtKernelContext *context;
  const plan *plan;
  tensor *inputs;
  void **data, **outputs, **scratch; // of the inputs, the outputs and the unused outputs
  int64_t steps;
} running;

// Return the bytes of a tensor plus 1, or 0 on overflow.
static size_t bytes_for(int type, const int64_t *dims, size_t axes) {
  size_t size = (size_t)bytes_of(type);
  for (size_t d = 0; d < axes; d++) {
    if (dims[d] < 0 || (dims[d] && size > PTRDIFF_MAX / (uint64_t)dims[d])) return 0;
    size *= (size_t)dims[d];
  }
  return size + 1;
}

// Return the address of a result, or null if it is unused.
static OrtStatus *room_for(const running *r, int32_t result, const int64_t *dims, size_t axes, void **data) {
  const OrtApi *api = r->info->claim->host.api;
  OrtValue *value = 0;
  *data = 0;
  if (result < 0 || r->info->results[result] == NOWHERE) return 0;
  TRY(KernelContext_GetOutput(r->context, (size_t)r->info->results[result], dims, axes, &value));
  if (value) TRY(GetTensorMutableData(value, data));
  if (value && !*data) *data = &nothing;
  return 0;
}

static OrtStatus *output_at(const running *r, const frame *f, int32_t i, void **data) {
  const plan *p = r->plan;
  int64_t dims[MOST_RANK + 1];
  const size_t axes = dims_of_output(f, i, r->steps, dims);
  TRY(room_for(r, r->info->claim->outputs[i - first_output(p)], dims, axes, data));
  if (*data) return 0;
  const size_t size = bytes_for(i < p->n_states ? p->inputs[i].type : p->outputs[i - p->n_states].type, dims, axes);
  if (!size || !(r->scratch[i] = malloc(size))) return run_error(r->info->claim->host.api, "out of memory");
  return *data = r->scratch[i], (OrtStatus *)0;
}

static OrtStatus *run_scan(running *r, frame *f) {
  for (int32_t i = 0; i < r->plan->n_states + r->plan->n_outputs; i++) TRY(output_at(r, f, i, r->outputs + i));
  fault why;
  return frame_run(f, &(run_data){r->data, r->outputs, r->steps}, &why) ? 0 : run_error(r->info->claim->host.api, why.text);
}

// Run a Loop. Its first state is the condition, which is no output. Stacks are copied when their size is known.
static OrtStatus *run_loop(running *r, frame *f) {
  const plan *p = r->plan;
  uint8_t condition;
  fault why;
  run_data d = {r->data, r->outputs, 0};
  const int64_t limit = r->steps;
  r->outputs[0] = &condition;
  if (!frame_run_until(f, &d, r->outputs + p->n_states, limit, &why)) return run_error(r->info->claim->host.api, why.text);
  for (int32_t i = 1; i < p->n_states; i++) TRY(output_at(r, f, i, r->outputs + i));
  run_finish(f, &d);
  r->steps = d.steps;
  for (int32_t i = 0; i < p->n_outputs; i++) {
    int64_t dims[MOST_RANK + 1];
    void *all;
    const size_t axes = dims_of_output(f, p->n_states + i, d.steps, dims);
    const size_t bytes = (size_t)(f->sizes.output_rows[i] * bytes_of(p->outputs[i].type)) * (size_t)d.steps;
    TRY(room_for(r, r->info->claim->outputs[p->n_states + i - first_output(p)], dims, axes, &all));
    if (bytes && all) memcpy(all, r->outputs[p->n_states + i], bytes);
  }
  return 0;
}

static OrtStatus *copy_sources(const running *r) {
  const claim *k = r->info->claim;
  const OrtApi *api = k->host.api;
  for (int32_t i = 0; i < k->n_copies; i++) {
    const OrtValue *value = 0;
    tensor x;
    void *to = 0;
    size_t size = 0;
    if (r->info->results[k->copies[i].output] == NOWHERE) continue;
    TRY(source_value(r->info, r->context, k->copies[i].source, &value));
    TRY(read_tensor(api, value, &x));
    TRY(GetTensorSizeInBytes(value, &size));
    if (x.axes > MOST_RANK + 1) return run_error(api, "a result has too many axes");
    TRY(room_for(r, k->copies[i].output, x.dims, x.axes, &to));
    if (size && to) memcpy(to, x.data, size);
  }
  return 0;
}

static OrtStatus *read_inputs(running *r) {
  const claim *k = r->info->claim;
  for (int32_t i = 0; i < r->plan->n_inputs; i++) {
    const given *g = k->sources + k->inputs[i];
    const OrtValue *value = 0;
    r->inputs[i] = g->held;
    if (!g->held.data) {
      TRY(source_value(r->info, r->context, k->inputs[i], &value));
      TRY(read_tensor(k->host.api, value, r->inputs + i));
    }
    r->data[i] = r->inputs[i].data ? r->inputs[i].data : &nothing;
  }
  return 0;
}

static OrtStatus *run(running *r, bool *fits) {
  const claim *k = r->info->claim;
  fault why;
  TRY(read_inputs(r));
  frame *f = loop_begin(k->loop, r->inputs, &r->steps, &why);
  if (!f) return 0;
  *fits = true;
  OrtStatus *failed = r->plan->form == LOOP_FORM ? run_loop(r, f) : run_scan(r, f);
  loop_end(k->loop, f);
  return failed ? failed : copy_sources(r);
}

OrtStatus *run_plan(const compute_info *c, OrtKernelContext *context, bool *fits) {
  const plan *p = c->claim->loop->plan;
  const size_t n_inputs = (size_t)p->n_inputs, n_outputs = (size_t)(p->n_states + p->n_outputs);
  tensor few[ROOM], *inputs = n_inputs <= ROOM ? few : malloc(sizeof *inputs * n_inputs);
  void *some[3 * ROOM], **data = n_inputs + 2 * n_outputs <= 3 * ROOM ? some : malloc(sizeof *data * (n_inputs + 2 * n_outputs));
  OrtStatus *failed = inputs && data ? 0 : run_error(c->claim->host.api, "out of memory");
  if (!failed) {
    running r = {c, context, p, inputs, data, data + n_inputs, data + n_inputs + n_outputs, 0};
    memset(r.scratch, 0, n_outputs * sizeof *r.scratch);
    failed = run(&r, fits);
    for (size_t i = 0; i < n_outputs; i++) free(r.scratch[i]);
  }
  if (inputs != few) free(inputs);
  if (data != some) free(data);
  return failed;
}
