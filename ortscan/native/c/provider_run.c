#include "provider_run.h"
#include "provider_graph.h"
#include "provider_run_model.h"
#include "provider_run_plan.h"
#include <stdlib.h>
#include <string.h>

static OrtStatus *CALL compute(OrtComputeInfo *info, void *state, OrtKernelContext *context) {
  const compute_info *c = (void *)info;
  const int64_t begun = profile_begin(c->profile);
  bool fits = false;
  (void)state;
  OrtStatus *failed = c->claim->loop ? run_plan(c, context, &fits) : 0;
  if (!failed && !fits) failed = run_model(c, context);
  if (begun && c->name) profile_end(c->profile, c->name, begun);
  return failed;
}

static OrtStatus *CALL create_state(OrtComputeInfo *info, void *context, void **state) { return (void)context, *state = info, (OrtStatus *)0; }
static void CALL release_state(OrtComputeInfo *info, void *state) { (void)info, (void)state; }

static int32_t place_of(const OrtApi *api, const OrtValueInfo **all, size_t count, const char *name) {
  for (size_t i = 0; i < count && *name; i++)
    if (!strcmp(name_of(api, all[i]), name)) return (int32_t)i;
  return NOWHERE;
}

static bool place_all(compute_info *c, const OrtNode *fused) {
  const claim *k = c->claim;
  const OrtApi *api = k->host.api;
  size_t n_inputs, n_outputs, placed = 0, named = 0;
  const OrtValueInfo **inputs = list_of(api, NODE_INPUTS, fused, &n_inputs), **outputs = list_of(api, NODE_OUTPUTS, fused, &n_outputs);
  bool good = inputs && outputs;
  for (int32_t i = 0; i < k->n_sources && good; i++) {
    c->sources[i] = k->sources[i].name ? place_of(api, inputs, n_inputs, k->sources[i].name) : NOWHERE;
    good = k->sources[i].held.data || c->sources[i] != NOWHERE;
  }
  for (int32_t i = 0; i < k->n_results && good; i++) placed += (c->results[i] = place_of(api, outputs, n_outputs, k->results[i].name)) != NOWHERE;
  for (size_t i = 0; i < n_outputs && good; i++) named += *name_of(api, outputs[i]) != 0;
  free(inputs), free(outputs);
  return good && placed && placed == named; // every output is written
}

OrtComputeInfo *compute_info_new(claim *c, const OrtNode *fused, profile *p) {
  compute_info *made = calloc(1, sizeof *made);
  if (!made) return 0;
  made->base = (OrtComputeInfo){OBJECT_VERSION, create_state, compute, release_state};
  const OrtApi *api = c->host.api;
  const char *name = 0;
  made->claim = c, made->profile = p;
  if (went_well(api, Node_GetName(fused, &name)) && name) made->name = profile_name(p, c->title, name);
  atomic_fetch_add(&c->users, 1);
  made->sources = calloc((size_t)c->n_sources + 1, sizeof *made->sources), made->results = calloc((size_t)c->n_results + 1, sizeof *made->results);
  if (made->sources && made->results && place_all(made, fused)) return &made->base;
  compute_info_free(&made->base);
  return 0;
}

void compute_info_free(OrtComputeInfo *info) {
  compute_info *c = (void *)info;
  if (!c) return;
  claim_release(c->claim);
  free(c->sources), free(c->results), free(c);
}
