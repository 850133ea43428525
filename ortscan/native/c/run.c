// Runs the steps of a plan in a prepared frame. Nothing is checked here because extents.c has proven the bounds.
#include "run.h"
#include "growth.h"
#include <string.h>

// The address of a value in step t, its stride per step, and whether it alternates between two buffers.
typedef struct {
  char *at;
  ptrdiff_t step; // in bytes
  int sign;
} place;

static place of_row(char *data, bool backwards, int64_t steps, int64_t t, int64_t row) { // `row`: bytes of a row
  return (place){data + (backwards ? steps - 1 - t : t) * row, (ptrdiff_t)(backwards ? -row : row), 1};
}

static place of_output(const frame *f, const run_data *d, int32_t output, int64_t t) {
  const plan *p = f->plan;
  const int64_t row = f->sizes.output_rows[output] * bytes_of(p->outputs[output].type);
  return of_row(d->outputs[p->n_states + output], p->outputs[output].backwards, d->steps, t, row);
}

// Return the position of a state in the workspace; `second`: in the second of its regions.
static char *kept_at(const frame *f, int32_t state, bool second) {
  const state_words s = f->plan->states[state];
  return f->regions[s.place + (second ? regions_of_state(f->plan, state) - 1 : 0)].at + offset_of_state(f->plan, f->sizes.sizes, state) * bytes_of(f->plan->inputs[state].type);
}

static place of_state(const frame *f, const run_data *d, value_words v, int64_t t) {
  state_words s = f->plan->states[v.index];
  const int64_t bytes = bytes_of(f->plan->inputs[v.index].type), row = f->sizes.input_rows[v.index] * bytes;
  if (s.storage == ROWS_OF_AN_OUTPUT) {
    place new = of_output(f, d, s.place, t);
    if (v.kind == NEW) return new;
    return (place){t ? new.at - new.step : d->inputs[v.index], new.step, 1}; // the first step runs alone, then all addresses are set again
  }
  const bool second = (t & 1) != (v.kind == NEW);
  char *at = kept_at(f, v.index, second);
  if (s.storage != TWO_ROWS) return (place){at, 0, 1};
  return (place){at + (second ? row : 0), (ptrdiff_t)(second ? -row : row), -1};
}

static place of_value(const frame *f, const run_data *d, value_words v, int64_t t) {
  const plan *p = f->plan;
  const int64_t bytes = bytes_of(v.type);
  int64_t offset = f->sizes.sizes[v.offset] * bytes;
  place at = {0, 0, 1};
  switch (v.kind) {
    case SCANNED: at = of_row(d->inputs[v.index], p->inputs[v.index].backwards, d->steps, t, f->sizes.input_rows[v.index] * bytes); break;
    case CAPTURED: at.at = d->inputs[v.index]; break;
    case CONSTANT: at.at = (char *)p->constants; break;
    case TEMPORARY: at.at = f->regions[v.index].at; break;
    case ROWS: at = (place){f->regions[v.index].at, p->block == 1 ? 0 : (ptrdiff_t)(f->sizes.sizes[v.count] * bytes), 1}; break;
    case STACKED: at = of_output(f, d, v.index, t); break;
    case OLD: case NEW: at = of_state(f, d, v, t); break;
    case PACK: at.at = (char *)f->packs[v.index], offset = 0; break;
    case STEP_NUMBER: at.at = (char *)&f->step_number; break;
  }
  at.at += offset;
  return at;
}

static place of_operand(const frame *f, const run_data *d, const task *t, int k, int64_t step) {
  place at = {0, 0, 1};
  if (t->value[k] != NO_VALUE) at = of_value(f, d, f->plan->values[t->value[k]], step), at.at += t->offset[k];
  return at;
}

static void put(micro *m, int k, place at) {
  m->p[k] = at.at, m->step[k] = at.step;
  m->moves = m->moves || at.step, m->turns |= (uint8_t)((at.sign < 0) << k);
}

static void spread(float *to, const void *number) {
  for (int i = 0; i < 16; i++) to[i] = *(const float *)number;
}

void run_place(frame *f, const run_data *d, int64_t t) {
  for (micro *m = f->program.micros, *end = m + f->program.n_micros; m < end; m++) {
    m->moves = m->turns = 0;
    if (m->code == SPREAD) put(m, 1, of_operand(f, d, m->task, m->operand, t));
    for (int k = 0; k < MOST_OPERANDS && m->code != SPREAD && m->code != END; k++) {
      place at = of_operand(f, d, m->task, k, t);
      if (m->on[k]) put(m, k, at);
      else if (!at.step) spread(m->p[k], at.at); // constant; otherwise a SPREAD micro repeats it in each step
    }
  }
}

static void clear(void *data, int64_t bytes) {
  if (bytes) memset(data, 0, (size_t)bytes);
}

void run_clear_rows(const frame *f, const run_data *d, int64_t first, int64_t count) {
  for (int32_t i = 0; i < f->plan->n_outputs && f->clears; i++) {
    const int64_t row = f->sizes.output_rows[i] * bytes_of(f->plan->outputs[i].type);
    clear((char *)d->outputs[f->plan->n_states + i] + first * row, count * row);
  }
}

static void copy(void *to, const void *from, int64_t bytes) {
  if (bytes) memcpy(to, from, (size_t)bytes);
}

void run_begin(frame *f, const run_data *d) {
  const plan *p = f->plan;
  f->failed = 0;
  for (int32_t i = 0; i < p->n_regions && f->clears; i++) clear(f->regions[i].at, f->regions[i].bytes);
  for (int32_t i = 0; i < p->n_packs; i++)
    if (!f->shared[i]) pack_matrix(d->inputs[p->packs[i].input], p->inputs[p->packs[i].input].type, &f->sizes, p->packs[i], f->packs[i]);
  for (int32_t i = 0; i < p->n_states; i++)
    if (grown_axis(p, i) >= 0) copy_grown(p, &f->sizes, i, kept_at(f, i, false), d->inputs[i], true);
    else if (p->states[i].storage != ROWS_OF_AN_OUTPUT) copy(kept_at(f, i, false), d->inputs[i], f->sizes.input_rows[i] * bytes_of(p->inputs[i].type));
}

const void *run_state(const frame *f, const run_data *d, int32_t state, int64_t t) {
  const value_words old = {.kind = OLD, .index = state};
  return t ? of_state(f, d, old, t).at : d->inputs[state];
}

void run_finish(const frame *f, const run_data *d) {
  const plan *p = f->plan;
  for (int32_t i = 0; i < p->n_states; i++)
    if (grown_axis(p, i) >= 0) copy_grown(p, &f->sizes, i, d->outputs[i], kept_at(f, i, d->steps & 1), false);
    else copy(d->outputs[i], run_state(f, d, i, d->steps), f->sizes.input_rows[i] * bytes_of(p->inputs[i].type));
}

void run_steps(const frame *f, int64_t count) {
  for (int32_t i = 0; i < f->program.n_lists; i++) f->set->run[f->program.kinds[i]](f->program.micros + f->program.lists[i], count);
}

bool run_first_alone(const plan *p) {
  bool alone = false;
  for (int32_t i = 0; i < p->n_states; i++) alone = alone || p->states[i].storage == ROWS_OF_AN_OUTPUT;
  return alone;
}

bool run_went_well(const frame *f, fault *why) {
  if (!f->failed) return true;
  const int32_t number = f->failed - 1, op = f->plan->instructions[number].op;
  if (op == DIV || op == MOD) return refuse(why, "instruction %d divides an integer by zero", (int)number);
  return refuse(why, "instruction %d has an index that is out of range", (int)number);
}

bool frame_run(frame *f, const run_data *d, fault *why) {
  const plan *p = f->plan;
  const bool first_alone = run_first_alone(p);
  run_begin(f, d);
  run_clear_rows(f, d, 0, d->steps);
  for (int64_t t = 0, count; t < d->steps; t += count) {
    count = d->steps - t;
    if (t == 0 && first_alone) count = 1;
    else if (p->block > 1 && count > p->block) count = p->block;
    run_place(f, d, t);
    run_steps(f, count);
  }
  run_finish(f, d);
  return run_went_well(f, why);
}
