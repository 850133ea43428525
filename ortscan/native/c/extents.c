// Proves that a plan with these sizes stays within bounds, by the lowest and highest element of each access in 64 bits.
#include "growth.h"
#include "operations.h"
#include "resolved.h"
#include <stdlib.h>

static bool window(int64_t offset, int64_t count, int64_t limit) { return offset >= 0 && count >= 0 && offset + count <= limit; }

// Return whether offset + i[0] * strides[0] + ... stays in 0..count for all indices below the dims, and the number of these indices is in range.
// The sums cannot overflow: each stops at the first term that leaves the bounds, and a term is below 2^62.
static bool reaches(int64_t offset, const int64_t *dims, const int64_t *strides, int axes, int64_t count) {
  int64_t low = offset, high = offset, indices = 1;
  for (int d = 0; d < axes; d++)
    if (!dims[d]) return true;
  for (int d = 0; d < axes; d++) {
    int64_t far = (dims[d] - 1) * strides[d];
    if (low < 0 || high >= count || (indices *= dims[d]) > MOST_ELEMENTS) return false;
    if (far < 0) low += far;
    else high += far;
  }
  return low >= 0 && high < count;
}

static bool check_values(const plan *p, const resolved *z, fault *why) {
  for (int32_t i = 0; i < p->n_values; i++) {
    value_words v = p->values[i];
    const int64_t bytes = bytes_of(v.type);
    int64_t offset = z->sizes[v.offset], count = z->sizes[v.count], limit = 0, rows = 1;
    switch (v.kind) {
      case SCANNED: case CAPTURED: case OLD: limit = z->input_rows[v.index]; break; // the states are the first inputs
      case NEW: limit = z->new_rows[v.index]; break;
      case CONSTANT: limit = WORD * (int64_t)p->n_constants / bytes; break;
      case TEMPORARY: limit = WORD * z->sizes[p->regions[v.index]] / bytes; break;
      case ROWS: limit = WORD * z->sizes[p->regions[v.index]] / bytes; rows = p->block; break;
      case STACKED: limit = z->output_rows[v.index]; break;
      case PACK: limit = MOST_ELEMENTS; break;
      case STEP_NUMBER: limit = 1; break;
    }
    if (!window(offset, count * rows, limit)) return refuse(why, "value %d reaches outside its storage", (int)i);
  }
  return true;
}

typedef struct { int64_t from, to; } span; // bytes of the workspace

static int by_start(const void *a, const void *b) {
  int64_t x = ((const span *)a)->from, y = ((const span *)b)->from;
  return (x > y) - (x < y);
}

static bool apart_from(const span *taken, int64_t n, int64_t from, int64_t to) {
  int64_t low = 0, high = n; // the first span that ends after `from`
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (taken[middle].to <= from) low = middle + 1;
    else high = middle;
  }
  return from == to || low == n || taken[low].from >= to;
}

// Check that nothing else uses the storage of a state.
static bool check_states(const plan *p, const resolved *z, span *taken, fault *why) {
  int64_t n = 0;
  for (int32_t i = 0; i < p->n_states; i++) {
    state_words s = p->states[i];
    const int64_t bytes = bytes_of(p->inputs[i].type), row = bytes * z->new_rows[i];
    const int64_t size = s.storage == TWO_ROWS ? 2 * row : row, offset = bytes * offset_of_state(p, z->sizes, i);
    if (s.storage == ROWS_OF_AN_OUTPUT) {
      if (z->output_rows[s.place] != z->input_rows[i]) return refuse(why, "state %d is not of the size of a row of output %d", (int)i, (int)s.place);
      continue;
    }
    for (int32_t r = s.place; r < s.place + regions_of_state(p, i); r++) {
      if (!window(offset, size, WORD * z->sizes[p->regions[r]])) return refuse(why, "state %d reaches outside the workspace", (int)i);
      if (size) taken[n++] = (span){z->regions[r] + offset, z->regions[r] + offset + size};
    }
  }
  qsort(taken, (size_t)n, sizeof *taken, by_start);
  for (int64_t i = 1; i < n; i++)
    if (taken[i].from < taken[i - 1].to) return refuse(why, "two states overlap in the workspace");
  for (int32_t i = 0; i < p->n_values; i++) {
    value_words v = p->values[i];
    if (v.kind != TEMPORARY && v.kind != ROWS) continue;
    const int64_t bytes = bytes_of(v.type), from = z->regions[v.index] + bytes * z->sizes[v.offset];
    const int64_t to = from + bytes * z->sizes[v.count] * (v.kind == ROWS ? p->block : 1);
    if (!apart_from(taken, n, from, to)) return refuse(why, "value %d overlaps a state", (int)i);
  }
  return true;
}

bool pack_within_bounds(const plan *p, const resolved *z, int32_t i, fault *why) {
  pack_words k = p->packs[i];
  int64_t dims[2] = {z->sizes[k.k], z->sizes[k.n]}, strides[2] = {z->sizes[k.stride_k], z->sizes[k.stride_n]};
  if (dims[0] < 0 || dims[1] < 0 || (dims[0] && (dims[1] + 15) / 16 * 16 > MOST_ELEMENTS / dims[0])) return refuse(why, "pack %d is too large", (int)i);
  return reaches(z->sizes[k.offset], dims, strides, 2, z->input_rows[k.input]) || refuse(why, "pack %d reaches outside its input", (int)i);
}

void dims_of_operand(const resolved *z, const instruction_words *w, int k, int64_t *dims) {
  operation op = operation_of(w->op);
  for (int d = 0; d < AXES; d++) dims[d] = z->sizes[w->dims[d]];
  if (op.family == REDUCTION && k == 0) dims[3] = 1;
  if (op.family == SEARCH && k == 0) dims[3] = w->op == TOP_K ? z->sizes[w->m] : 1;
  if (op.family != PRODUCT) return;
  dims[2] = z->sizes[k == 2 ? w->k : w->m];
  dims[3] = z->sizes[k == 1 ? w->k : w->n];
}

static bool strides_fit(family kind, int k, int64_t n0, int64_t s0) {
  if (n0 <= 1 || kind == COPYING || kind == PRODUCT || kind == INDEXED) return true;
  if (kind == REDUCTION && k == 0) return s0 == 0;
  return s0 == 1 || (k && s0 == 0);
}

static bool check_instruction(const plan *p, const resolved *z, int32_t i, fault *why) {
  const instruction_words *w = p->instructions + i;
  operation op = operation_of(w->op);
  const int32_t *dims = w->dims, matrix[3] = {w->m, w->n, w->k};
  for (int d = 0; d < AXES; d++)
    if (z->sizes[dims[d]] < 0) return refuse(why, "instruction %d has a negative size", (int)i);
  for (int d = 0; d < 3 && op.family == PRODUCT; d++)
    if (z->sizes[matrix[d]] < 0) return refuse(why, "instruction %d has a negative size", (int)i);
  const int64_t axis = z->sizes[w->m];
  const bool reduces = op.family == REDUCTION || w->op == ARG_MAX || w->op == ARG_MIN;
  if ((op.family == INDEXED || w->op == TOP_K) && axis < 0) return refuse(why, "instruction %d has a negative size", (int)i);
  if (w->op == TOP_K && axis > z->sizes[dims[3]]) return refuse(why, "instruction %d finds more than there are", (int)i);
  for (int k = 0; k < w->operands; k++) {
    const operand_words *o = w->operand + k;
    if (o->value == NO_VALUE) continue;
    value_words v = p->values[o->value];
    int64_t over[AXES], strides[AXES];
    dims_of_operand(z, w, k, over);
    for (int d = 0; d < AXES; d++) strides[d] = z->sizes[o->strides[d]];
    if (v.kind == PACK) {
      pack_words b = p->packs[v.index];
      bool plain = !z->sizes[o->offset] && !strides[0] && !strides[1] && !strides[2] && !strides[3];
      if (z->sizes[b.k] != over[2] || z->sizes[b.n] != over[3] || !plain) return refuse(why, "instruction %d is not of the size of its pack", (int)i);
      continue;
    }
    for (int d = 0; d < AXES && holds_indices(w->op, k); d++)
      if (!over[d] && !strides[d]) over[d] = 1; // the result is empty, but the indices are still checked
    const bool finds = op.family == INDEXED && k == indexed_operand(w->op);
    if (finds && !axis) continue; // an empty axis: every index is out of range, and nothing is accessed
    const int64_t offset = z->sizes[o->offset], far = finds ? (axis - 1) * z->sizes[w->n] : 0;
    // checking the lowest and the highest index suffices
    if (!reaches(offset, over, strides, AXES, z->sizes[v.count]) || !reaches(offset + far, over, strides, AXES, z->sizes[v.count])) return refuse(why, "operand %d of instruction %d reaches outside its value", k, (int)i);
    if (!strides_fit(reduces && k == 0 ? REDUCTION : (family)op.family, k, z->sizes[dims[3]], strides[3])) return refuse(why, "operand %d of instruction %d has an inner stride it cannot have", k, (int)i);
  }
  return true;
}

bool within_bounds(const plan *p, const resolved *z, fault *why) {
  if (p->form == LOOP_FORM && (z->input_rows[0] != 1 || z->input_rows[p->n_states] != 1)) return refuse(why, "the condition or the limit is not one element");
  span *taken = malloc(sizeof *taken * (2 * (size_t)p->n_states + 1));
  bool good = taken ? check_values(p, z, why) && check_states(p, z, taken, why) : refuse(why, "out of memory");
  free(taken);
  for (int32_t i = 0; i < p->n_packs && good; i++) good = pack_within_bounds(p, z, i, why);
  for (int32_t i = 0; i < p->n_instructions && good; i++) good = check_instruction(p, z, i, why);
  return good;
}
