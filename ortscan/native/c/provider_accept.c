#include "provider_accept.h"
#include "labels.h"
#include "tensor.h"
#include <stdlib.h>
#include <string.h>

static bool list_inputs(claim *c, const answer *a, fault *why) {
  given *all = realloc(c->sources, sizeof *all * (size_t)(c->n_sources + a->n_inputs + 1));
  if (!all) return refuse(why, "out of memory");
  c->sources = all;
  free(c->inputs);
  if (!(c->inputs = calloc((size_t)a->n_inputs + 1, sizeof *c->inputs))) return refuse(why, "out of memory");
  for (int32_t i = 0; i < a->n_inputs; i++) {
    const tensor *x = &a->inputs[i].constant;
    c->inputs[i] = source_place(c, a->inputs[i].label);
    if (c->inputs[i] >= 0) continue;
    if (a->inputs[i].label != NO_LABEL) return refuse(why, "its input %d is none of the loop", (int)i);
    given *g = c->sources + c->n_sources;
    *g = (given){.label = NO_LABEL, .type = x->type, .held = *x};
    size_t size = (size_t)bytes_of(x->type);
    for (size_t d = 0; d < x->axes; d++) size *= (size_t)x->dims[d];
    if (!(g->held.data = malloc(size + 1))) return refuse(why, "out of memory");
    if (size) memcpy(g->held.data, x->data, size);
    c->inputs[i] = c->n_sources++;
  }
  return true;
}

static bool list_outputs(claim *c, const answer *a, fault *why) {
  bool *there = calloc((size_t)c->n_results + 1, sizeof *there);
  free(c->outputs), free(c->copies);
  c->outputs = calloc((size_t)a->n_outputs + 1, sizeof *c->outputs), c->copies = calloc((size_t)a->n_copies + 1, sizeof *c->copies);
  bool good = (there && c->outputs && c->copies) || refuse(why, "out of memory");
  for (int32_t i = 0; i < a->n_outputs && good; i++) {
    const int32_t place = c->outputs[i] = result_place(c, a->outputs[i]);
    if (place >= 0 ? there[place] : a->outputs[i] != NO_LABEL) good = refuse(why, "its output %d is none of the loop, or there twice", (int)i);
    else if (place >= 0) there[place] = true;
  }
  for (int32_t i = 0; i < a->n_copies && good; i++) {
    const answer_copy copy = {result_place(c, a->copies[i].output), source_place(c, a->copies[i].source)};
    c->copies[i] = copy;
    if (copy.output < 0 || copy.source < 0 || there[copy.output]) good = refuse(why, "its copy %d is of nothing, or there twice", (int)i);
    else if (c->results[copy.output].type != c->sources[copy.source].type) good = refuse(why, "its copy %d is of another type", (int)i);
    else there[copy.output] = true;
  }
  c->n_copies = good ? a->n_copies : 0;
  for (int32_t i = 0; i < c->n_results && good; i++)
    if (!there[i]) good = refuse(why, "it does not give output %d of the loop", (int)i);
  free(there);
  return good;
}

// Types must match because they decide how memory is read. Shapes are checked in each run.
static bool has_types(const claim *c, fault *why) {
  const plan *p = c->loop->plan;
  for (int32_t i = 0; i < p->n_inputs; i++)
    if (c->sources[c->inputs[i]].type != p->inputs[i].type) return refuse(why, "input %d of the plan is of another type", (int)i);
  for (int32_t i = first_output(p); i < p->n_states + p->n_outputs; i++) {
    const int32_t place = c->outputs[i - first_output(p)], type = i < p->n_states ? p->inputs[i].type : p->outputs[i - p->n_states].type;
    if (place >= 0 && c->results[place].type != type) return refuse(why, "output %d of the plan is of another type", (int)i);
  }
  return true;
}

static bool accept_plan(claim *c, const answer *a, const sources *all, fault *why) {
  const OrtApi *api = c->host.api;
  tensor *constants = calloc((size_t)a->n_inputs + 1, sizeof *constants);
  bool good = constants || refuse(why, "out of memory");
  for (int32_t i = 0; i < a->n_inputs && good; i++) {
    const given *g = c->sources + c->inputs[i];
    const source *s = g->name ? source_named(all, g->name) : 0;
    if (g->held.data) constants[i] = g->held;
    else if (s && s->constant && !went_well(api, read_tensor(api, s->constant, constants + i))) good = refuse(why, "a constant cannot be read");
  }
  good = good && (c->loop = loop_new(a->content, a->content_count, constants, a->n_inputs, why));
  free(constants);
  if (!good) return false;
  const plan *p = c->loop->plan;
  if (p->n_inputs == a->n_inputs && outputs_of(p) == a->n_outputs) return has_types(c, why);
  return refuse(why, "the plan has %d inputs and %d outputs, and it lists others", (int)p->n_inputs, (int)outputs_of(p));
}

static bool accept_model(claim *c, const answer *a, fault *why) {
  const OrtApi *api = c->host.api;
  OrtStatus *failed = 0;
  if (a->n_copies) return refuse(why, "a model has no copies");
  inner *made = inner_new(api, c->host.base, a->content, a->content_count, &failed);
  if (failed) refuse(why, "onnxruntime does not take the model in it: %.180s", GetErrorMessage(failed)), ReleaseStatus(failed);
  if (!made) return false;
  atomic_store(&c->inner, made);
  for (size_t i = 0; i < made->n_inputs; i++) {
    const int32_t label = label_in(made->inputs[i]);
    if (source_place(c, label) < 0) return refuse(why, "the model in it reads '%.60s'", made->inputs[i]);
  }
  for (int32_t r = 0; r < c->n_results; r++) {
    bool found = false;
    for (size_t i = 0; i < made->n_outputs; i++) found = found || label_in(made->outputs[i]) == c->results[r].label;
    if (!found) return refuse(why, "the model in it does not give output %d of the loop", (int)r);
  }
  return true;
}

bool claim_accept(claim *c, const answer *a, const sources *all, fault *why) {
  if (a->kind == A_MODEL ? accept_model(c, a, why) : list_inputs(c, a, why) && list_outputs(c, a, why) && accept_plan(c, a, all, why)) return true;
  loop_free(c->loop); // another answer may follow
  c->loop = 0;
  inner_free(c->host.api, atomic_exchange(&c->inner, 0));
  return false;
}
