#include "growth.h"
#include "loop.h"
#include <stdlib.h>

static bool fits(const plan *p, const resolved *z, int32_t i, const tensor *x, fault *why) {
  const port *o = p->inputs + i;
  const size_t lead = o->kind == SCANNED_INPUT;
  if (x->type != o->type) return refuse(why, "input %d has element type %d, and the plan says %d", (int)i, x->type, (int)o->type);
  if (x->axes != (size_t)o->rank + lead) return refuse(why, "input %d has %zu axes, and the plan says %zu", (int)i, x->axes, (size_t)o->rank + lead);
  for (size_t d = 0; z && d < (size_t)o->rank; d++)
    if (x->dims[d + lead] != z->sizes[o->dims[d]])
      return refuse(why, "axis %zu of input %d is %lld, and the plan says %lld", d + lead, (int)i, (long long)x->dims[d + lead], (long long)z->sizes[o->dims[d]]);
  return true;
}

static bool is_static(const plan *p, int32_t size) {
  for (int32_t e = 0; e < p->n_symbols; e++)
    if (p->sizes[(int64_t)size * (1 + p->n_symbols) + 1 + e]) return false;
  return true;
}

// Return whether a pack can be made before the first run: a constant whose sizes have no symbols.
static bool is_known(const plan *p, const pack_words *w, const tensor *constants, int32_t n_constants) {
  const port *o = p->inputs + w->input;
  bool known = w->input < n_constants && constants[w->input].data;
  for (int32_t d = 0; d < o->rank; d++) known = known && is_static(p, o->dims[d]);
  return known && is_static(p, w->offset) && is_static(p, w->k) && is_static(p, w->n) && is_static(p, w->stride_k) && is_static(p, w->stride_n);
}

static bool pack_constants(loop *l, const tensor *constants, int32_t n_constants, fault *why) {
  const plan *p = l->plan;
  int64_t ones[MOST_SYMBOLS];
  for (int32_t s = 0; s < MOST_SYMBOLS; s++) ones[s] = 1; // any values, because the packs do not depend on them
  frame *f = frame_new(p, l->set, (const float *const *)l->packs);
  bool good = f || refuse(why, "out of memory");
  // a plan with symbols is proven in its first run; here only the sizes and the packs matter
  if (good) good = p->n_symbols ? resolve(p, ones, &f->sizes, why) : frame_ready(f, ones, why);
  for (int32_t i = 0; i < p->n_packs && good; i++) {
    const pack_words *w = p->packs + i;
    const resolved *z = &f->sizes;
    if (!is_known(p, w, constants, n_constants)) continue;
    good = fits(p, z, w->input, constants + w->input, why) && pack_within_bounds(p, z, i, why);
    if (!good) break;
    l->packs[i] = malloc(sizeof(float) * packed_elements(z->sizes[w->k], z->sizes[w->n]) + 1);
    if (l->packs[i]) pack_matrix(constants[w->input].data, p->inputs[w->input].type, z, *w, l->packs[i]);
    else good = refuse(why, "out of memory");
  }
  frame_free(f); // its memory for packs is not needed
  return good;
}

loop *loop_new(const void *bytes, size_t count, const tensor *constants, int32_t n_constants, fault *why) {
  loop *l = calloc(1, sizeof *l);
  if (!l) {
    refuse(why, "out of memory");
    return 0;
  }
  for (int i = 0; i < SPARE_FRAMES; i++) atomic_init(l->spare + i, 0);
  if (!(l->set = choose_isa())) refuse(why, "ORTSCAN_ISA names no instruction set of this machine");
  else if ((l->plan = plan_read(bytes, count, why))) {
    l->packs = calloc((size_t)l->plan->n_packs + 1, sizeof *l->packs);
    if (!l->packs) refuse(why, "out of memory");
    else if (pack_constants(l, constants, n_constants, why)) return l;
  }
  loop_free(l);
  return 0;
}

void loop_free(loop *l) {
  if (!l) return;
  for (int i = 0; i < SPARE_FRAMES; i++) frame_free(atomic_exchange(l->spare + i, 0));
  for (int32_t i = 0; l->packs && i < l->plan->n_packs; i++) free(l->packs[i]);
  free(l->packs);
  plan_free(l->plan);
  free(l);
}

frame *loop_begin(loop *l, const tensor *inputs, int64_t *steps, fault *why) {
  const plan *p = l->plan;
  int64_t symbols[MOST_SYMBOLS] = {0};
  for (int32_t i = 0; i < p->n_inputs; i++)
    if (!fits(p, 0, i, inputs + i, why)) return 0;
  for (int32_t s = 0; s < p->n_symbols; s++) {
    const symbol_words from = p->symbols[s];
    symbols[s] = inputs[from.input].dims[axis_of_symbol(from)] + (from.axis < 0 ? grown_rows(p, from.input) : 0);
  }
  *steps = p->form == LOOP_FORM ? 0 : inputs[p->n_states].dims[0];
  if (*steps < 0 || *steps > MOST_ELEMENTS) {
    refuse(why, "%lld steps are out of range", (long long)*steps);
    return 0;
  }
  frame *f = 0;
  for (int i = 0; i < SPARE_FRAMES && !f; i++) f = atomic_exchange(l->spare + i, 0);
  if (!f) f = frame_new(p, l->set, (const float *const *)l->packs);
  bool good = f ? frame_ready(f, symbols, why) : refuse(why, "out of memory");
  for (int32_t i = 0; i < p->n_inputs && good; i++) {
    good = fits(p, &f->sizes, i, inputs + i, why);
    if (good && p->inputs[i].kind == SCANNED_INPUT && inputs[i].dims[0] != *steps)
      good = refuse(why, "input %d has %lld steps, and input %d has %lld", (int)i, (long long)inputs[i].dims[0], (int)p->n_states, (long long)*steps);
  }
  if (good && p->form == LOOP_FORM) *steps = *(const int64_t *)inputs[p->n_states].data;
  if (good) return f;
  frame_free(f);
  return 0;
}

void loop_end(loop *l, frame *f) {
  frame_let_go(f);
  for (int i = 0; i < SPARE_FRAMES; i++) {
    frame *none = 0;
    if (atomic_compare_exchange_strong(l->spare + i, &none, f)) return;
  }
  frame_free(f);
}

size_t dims_of_output(const frame *f, int32_t output, int64_t steps, int64_t *dims) {
  const plan *p = f->plan;
  const bool stacked = output >= p->n_states;
  const port *o = stacked ? p->outputs + (output - p->n_states) : p->inputs + output;
  dims[0] = steps;
  for (int32_t d = 0; d < o->rank; d++) dims[d + stacked] = f->sizes.sizes[o->dims[d]];
  return (size_t)o->rank + stacked;
}
