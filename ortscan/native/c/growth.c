#include "growth.h"
#include <string.h>

static const int32_t *exponents(const plan *p, int32_t size) { return p->sizes + (int64_t)size * (1 + p->n_symbols) + 1; }

int32_t growth_of_symbol(const plan *p, int32_t symbol) {
  const symbol_words s = p->symbols[symbol];
  return s.input < p->n_states && grown_axis(p, s.input) == axis_of_symbol(s) ? grown_rows(p, s.input) : 0;
}

bool grows(const plan *p) {
  bool any = false;
  for (int32_t i = 0; i < p->n_states; i++) any = any || grown_axis(p, i) >= 0;
  return any;
}

// Return whether a size changes in each step.
static bool varies(const plan *p, int32_t size) {
  bool any = false;
  for (int32_t s = 0; s < p->n_symbols; s++) any = any || (exponents(p, size)[s] && growth_of_symbol(p, s));
  return any;
}

static bool any_varies(const plan *p, const int32_t *sizes, int32_t count) {
  bool any = false;
  for (int32_t i = 0; i < count; i++) any = any || varies(p, sizes[i]);
  return any;
}

// Return whether a size is one symbol: a length before the step, which grows like `state`.
static bool is_length_of(const plan *p, int32_t size, int32_t state) {
  int32_t sum = 0, symbol = 0;
  for (int32_t s = 0; s < p->n_symbols; s++)
    if (exponents(p, size)[s]) sum += exponents(p, size)[s], symbol = s;
  return sum == 1 && exponents(p, size)[-1] == 1 && p->symbols[symbol].axis >= 0 && growth_of_symbol(p, symbol) == grown_rows(p, state);
}

static bool state_is_valid(const plan *p, int32_t i, fault *why) {
  const int32_t rows = p->states[i].offset, axis = grown_axis(p, i);
  bool is_number = true;
  for (int32_t s = 0; s < p->n_symbols; s++) is_number = is_number && !exponents(p, rows)[s];
  if (p->form != LOOP_FORM || !is_number || grown_rows(p, i) < 1) return refuse(why, "state %d cannot grow by size %d", (int)i, (int)rows);
  return is_length_of(p, p->inputs[i].dims[axis], i) || refuse(why, "the length of state %d is not what it grows by", (int)i);
}

bool growth_is_valid(const plan *p, fault *why) {
  for (int32_t s = 0; s < p->n_symbols; s++)
    if (p->symbols[s].axis < 0 && !growth_of_symbol(p, s)) return refuse(why, "symbol %d is of an axis that does not grow", (int)s);
  for (int32_t i = 0; i < p->n_states; i++) {
    if (grown_axis(p, i) >= 0 && !state_is_valid(p, i, why)) return false;
    if (varies(p, p->states[i].offset)) return refuse(why, "the offset of state %d changes in each step", (int)i);
  }
  for (int32_t i = 0; i < p->n_inputs; i++)
    for (int32_t d = 0; d < p->inputs[i].rank; d++)
      if ((i >= p->n_states || d != grown_axis(p, i)) && varies(p, p->inputs[i].dims[d])) return refuse(why, "axis %d of input %d changes in each step", (int)d, (int)i);
  for (int32_t i = 0; i < p->n_outputs; i++)
    if (any_varies(p, p->outputs[i].dims, p->outputs[i].rank)) return refuse(why, "the rows of output %d change in each step", (int)i);
  for (int32_t i = 0; i < p->n_packs; i++) {
    const pack_words k = p->packs[i];
    if (any_varies(p, (int32_t[]){k.offset, k.k, k.n, k.stride_k, k.stride_n}, 5)) return refuse(why, "pack %d changes in each step", (int)i);
  }
  return true;
}

void copy_grown(const plan *p, const resolved *z, int32_t state, void *to, const void *from, bool into_workspace) {
  const port *o = p->inputs + state;
  const int32_t axis = grown_axis(p, state);
  const int64_t bytes = bytes_of(o->type), n = z->sizes[o->dims[axis]];
  int64_t before = 1, after = bytes;
  if (!z->input_rows[state]) return;
  for (int32_t d = 0; d < axis; d++) before *= z->sizes[o->dims[d]];
  for (int32_t d = axis + 1; d < o->rank; d++) after *= z->sizes[o->dims[d]];
  for (int64_t i = 0; i < before; i++)
    for (int64_t j = 0; j < n; j++) {
      const int64_t outside = (i * n + j) * after, inside = (j * before + i) * after;
      memcpy((char *)to + (into_workspace ? inside : outside), (const char *)from + (into_workspace ? outside : inside), (size_t)after);
    }
}
