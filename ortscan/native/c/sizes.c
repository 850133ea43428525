// Computes the sizes of a plan from its symbols.
#include "growth.h"
#include "resolved.h"

static bool size_of(const plan *p, int32_t i, const int64_t *symbols, int64_t *size, fault *why) {
  const int32_t *w = p->sizes + (int64_t)i * (1 + p->n_symbols);
  int64_t v = w[0];
  for (int32_t s = 0; s < p->n_symbols; s++)
    if (w[1 + s] && !symbols[s]) v = 0;
  if (v)
    for (int32_t s = 0; s < p->n_symbols; s++)
      for (int32_t e = 0; e < w[1 + s]; e++)
        if ((v *= symbols[s]) > MOST_ELEMENTS || v < -MOST_ELEMENTS) return refuse(why, "size %d is out of range for these inputs", (int)i);
  if (v < -MOST_ELEMENTS) return refuse(why, "size %d is out of range", (int)i);
  *size = v;
  return true;
}

// Count the elements of one step, after axis `grown` has grown by `rows`.
static bool row_of(const port *o, const int64_t *sizes, const char *name, int32_t i, int32_t grown, int64_t rows, int64_t *row, fault *why) {
  int64_t dims[MOST_RANK];
  bool empty = false;
  for (int32_t d = 0; d < o->rank; d++) {
    dims[d] = sizes[o->dims[d]] + (d == grown ? rows : 0);
    if (dims[d] < 0) return refuse(why, "axis %d of %s %d has a negative size", (int)d, name, (int)i);
    empty = empty || !dims[d];
  }
  *row = empty ? 0 : 1;
  for (int32_t d = 0; d < o->rank && !empty; d++)
    if ((*row *= dims[d]) > MOST_ELEMENTS) return refuse(why, "%s %d is too large", name, (int)i);
  return true;
}

// Sizes of regions are rounded up, so that each region is aligned for vectors.
static bool regions(const plan *p, resolved *z, fault *why) {
  z->regions[0] = 0;
  for (int32_t i = 0; i < p->n_regions; i++) {
    const int64_t size = z->sizes[p->regions[i]];
    if (size < 0) return refuse(why, "region %d has a negative size", (int)i);
    z->regions[i + 1] = z->regions[i] + (WORD * size + ALIGNED - 1) / ALIGNED * ALIGNED;
  }
  return true;
}

bool resolve(const plan *p, const int64_t *symbols, resolved *z, fault *why) {
  for (int32_t s = 0; s < p->n_symbols; s++)
    if (symbols[s] < 0 || symbols[s] > MOST_ELEMENTS) return refuse(why, "symbol %d is out of range", (int)s);
  for (int32_t i = 0; i < p->n_sizes; i++)
    if (!size_of(p, i, symbols, z->sizes + i, why)) return false;
  for (int32_t i = 0; i < p->n_inputs; i++)
    if (!row_of(p->inputs + i, z->sizes, "input", i, -1, 0, z->input_rows + i, why)) return false;
  for (int32_t i = 0; i < p->n_states; i++)
    if (!row_of(p->inputs + i, z->sizes, "state", i, grown_axis(p, i), grown_rows(p, i), z->new_rows + i, why)) return false;
  for (int32_t i = 0; i < p->n_outputs; i++)
    if (!row_of(p->outputs + i, z->sizes, "output", i, -1, 0, z->output_rows + i, why)) return false;
  return regions(p, z, why);
}
