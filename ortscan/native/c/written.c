// Follows the instructions of one step, with one byte for each element of each value: whether the step has written it.
#include "written.h"
#include "growth.h"
#include "operations.h"
#include <stdlib.h>
#include <string.h>

// The marks of outputs and states hold one step. Values of an output or state share its marks; other values have their own.
typedef struct {
  const plan *plan;
  const resolved *sizes;
  uint8_t *marks;
  int64_t *outputs, *states, *values; // where the marks of each begin
  int64_t stacked;                    // marks of all outputs
} record;

static int64_t lay_out(record *r) {
  const plan *p = r->plan;
  int64_t total = 0;
  for (int32_t i = 0; i < p->n_outputs; total += r->sizes->output_rows[i++]) r->outputs[i] = total;
  r->stacked = total;
  for (int32_t i = 0; i < p->n_states; total += r->sizes->new_rows[i++]) r->states[i] = total;
  for (int32_t i = 0; i < p->n_values; total += r->sizes->sizes[p->values[i++].count]) r->values[i] = total;
  return total;
}

// Return the marks of a value, or null if it is complete before the step. `blocks`: old states have the marks of the new ones.
static uint8_t *marks_of(const record *r, int32_t value, bool blocks) {
  const value_words v = r->plan->values[value];
  const int64_t offset = r->sizes->sizes[v.offset];
  if (blocks != (v.kind == OLD)) return 0;
  switch (v.kind) {
    case STACKED: return r->marks + r->outputs[v.index] + offset;
    case OLD: case NEW: {
      const state_words s = r->plan->states[v.index];
      return r->marks + (s.storage == ROWS_OF_AN_OUTPUT ? r->outputs[s.place] : r->states[v.index]) + offset;
    }
    case TEMPORARY: case ROWS: return r->marks + r->values[value];
    default: return 0;
  }
}

// Mark a row of elements (`write`), or return whether all of them are marked.
static bool visit_row(uint8_t *marks, int64_t count, int64_t stride, bool write) {
  if (stride == 1 && write) return memset(marks, 1, (size_t)count);
  if (stride == 1) return !memchr(marks, 0, (size_t)count);
  for (int64_t i = 0; i < count; i++)
    if (write) marks[i * stride] = 1;
    else if (!marks[i * stride]) return false;
  return true;
}

// Do this for all rows. An operand that is indexed has an additional axis.
static bool visit(uint8_t *marks, const int64_t *dims, const int64_t *strides, int axes, bool write) {
  if (axes == 1) return visit_row(marks, *dims, *strides, write);
  const int64_t count = *strides ? *dims : 1; // a repeated row is visited once
  bool good = true;
  for (int64_t i = 0; i < count && good; i++) good = visit(marks + i * *strides, dims + 1, strides + 1, axes - 1, write);
  return good;
}

static bool follow_operand(const record *r, const instruction_words *w, int k, bool blocks) {
  const operand_words *o = w->operand + k;
  uint8_t *marks = o->value == NO_VALUE ? 0 : marks_of(r, o->value, blocks);
  const bool indexed = indexed_operand(w->op) == k;
  if (!marks || (indexed && k == 0)) return true; // whatever is written by indices does not count as written
  int64_t dims[1 + AXES], strides[1 + AXES];
  dims_of_operand(r->sizes, w, k, dims + 1);
  for (int d = 0; d < AXES; d++) strides[1 + d] = r->sizes->sizes[o->strides[d]];
  dims[0] = indexed ? r->sizes->sizes[w->m] : 1, strides[0] = indexed ? r->sizes->sizes[w->n] : 0;
  for (int d = 0; d <= AXES; d++)
    if (!dims[d]) return true;
  return visit(marks + r->sizes->sizes[o->offset], dims, strides, 1 + AXES, k == 0);
}

// Return whether an instruction has no elements. A reduction of none has a result.
static bool is_empty(const resolved *z, const instruction_words *w) {
  bool empty = false;
  const int family = operation_of(w->op).family, axes = family == PRODUCT ? 2 : family == REDUCTION ? 3 : AXES;
  for (int d = 0; d < axes; d++) empty = empty || !z->sizes[w->dims[d]];
  return empty || (family == PRODUCT && (!z->sizes[w->m] || !z->sizes[w->n]));
}

static bool follow_instruction(const record *r, const instruction_words *w, bool blocks) {
  bool good = true;
  for (int k = w->operands - 1; k >= 0 && good && !is_empty(r->sizes, w); k--) good = follow_operand(r, w, k, blocks);
  return good;
}

// A phase runs for all steps of a block. Its old states of the later steps are the new states of the earlier ones, which this phase or an
// earlier one must have written.
static bool follow_phase(const record *r, phase_words phase) {
  const instruction_words *first = r->plan->instructions + phase.first;
  const bool blocks = r->plan->block > 1;
  bool good = true;
  for (int32_t i = 0; i < phase.count && good; i++) {
    if (blocks && !phase.stepwise) good = follow_instruction(r, first + i, true);
    good = good && follow_instruction(r, first + i, false);
  }
  for (int32_t i = 0; i < phase.count && good && blocks && phase.stepwise; i++) good = follow_instruction(r, first + i, true);
  return good;
}

static bool follow(const record *r) {
  const plan *p = r->plan;
  for (int32_t i = 0; i < p->n_phases; i++)
    if (!follow_phase(r, p->phases[i])) return false;
  bool complete = !memchr(r->marks, 0, (size_t)r->stacked);
  for (int32_t i = 0; i < p->n_states; i++)
    if (p->states[i].storage == TWO_ROWS) complete = complete && !memchr(r->marks + r->states[i], 0, (size_t)r->sizes->new_rows[i]);
  return complete;
}

bool writes_before_reading(const plan *p, const resolved *z) {
  if (grows(p)) return false; // each step has other sizes
  record r = {.plan = p, .sizes = z};
  r.outputs = malloc(sizeof *r.outputs * ((size_t)p->n_outputs + (size_t)p->n_states + (size_t)p->n_values + 1));
  if (!r.outputs) return false;
  r.states = r.outputs + p->n_outputs, r.values = r.states + p->n_states;
  r.marks = calloc((size_t)lay_out(&r) + 1, 1);
  bool good = r.marks != 0;
  for (int32_t i = 0; i < p->n_states && good; i++)
    if (p->states[i].storage == IN_PLACE) memset(r.marks + r.states[i], 1, (size_t)z->new_rows[i]);
  good = good && follow(&r);
  free(r.marks);
  free(r.outputs);
  return good;
}
