// Runs the steps of a plan in a frame that is ready. Nothing is checked here: extents.c has proven it all.
#include "frame.h"
#include <string.h>

// Where a value is in step t, what its address moves by from step to step, and whether it goes to and fro.
typedef struct {
  float *at;
  ptrdiff_t step;
  int sign;
} place;

static place of_row(float *data, bool backwards, int64_t steps, int64_t t, int64_t row) {
  return (place){data + (backwards ? steps - 1 - t : t) * row, (ptrdiff_t)(backwards ? -row : row), 1};
}

static place of_output(const frame *f, const run_data *d, int32_t output, int64_t t) {
  const plan *p = f->plan;
  return of_row(d->outputs[p->n_states + output], p->outputs[output].backwards, d->steps, t, f->sizes.output_rows[output]);
}

static place of_state(const frame *f, const run_data *d, value_words v, int64_t t) {
  state_words s = f->plan->states[v.index];
  int64_t row = f->sizes.input_rows[v.index];
  float *at = f->memory + f->sizes.sizes[s.offset];
  if (s.storage == IN_PLACE) return (place){at, 0, 1};
  if (s.storage == TWO_ROWS) {
    bool second = (t & 1) != (v.kind == NEW);
    return (place){at + (second ? row : 0), (ptrdiff_t)(second ? -row : row), -1};
  }
  place new = of_output(f, d, s.output, t);
  if (v.kind == NEW) return new;
  return (place){t ? new.at - new.step : d->inputs[v.index], new.step, 1}; // the first step runs alone, and then all is placed again
}

static place of_value(const frame *f, const run_data *d, value_words v, int64_t t) {
  const plan *p = f->plan;
  int64_t offset = f->sizes.sizes[v.offset];
  place at = {0, 0, 1};
  switch (v.kind) {
    case SCANNED: at = of_row(d->inputs[v.index], p->inputs[v.index].backwards, d->steps, t, f->sizes.input_rows[v.index]); break;
    case CAPTURED: at.at = d->inputs[v.index]; break;
    case CONSTANT: at.at = (float *)p->constants; break;
    case TEMPORARY: at.at = f->memory; break;
    case ROWS: at = (place){f->memory, p->block == 1 ? 0 : (ptrdiff_t)f->sizes.sizes[v.count], 1}; break;
    case STACKED: at = of_output(f, d, v.index, t); break;
    case OLD: case NEW: at = of_state(f, d, v, t); break;
    case PACK: at.at = f->packs[v.index], offset = 0; break;
  }
  at.at += offset;
  return at;
}

static void place_all(frame *f, const run_data *d, int64_t t) {
  for (int32_t i = 0; i < f->plan->n_instructions; i++) {
    task *x = f->tasks + i;
    x->moves = 0, x->turns = false;
    for (int k = 0; k < MOST_OPERANDS; k++) {
      place at = {0, 0, 1};
      if (x->value[k] != NO_VALUE) at = of_value(f, d, f->plan->values[x->value[k]], t), at.at += x->offset[k];
      x->p[k] = at.at, x->step[k] = at.step, x->sign[k] = at.sign;
      x->moves = at.step ? k + 1 : x->moves, x->turns = x->turns || at.sign < 0;
    }
  }
}

static void perform_outer(const task *x) {
  for (int i = 0; i < x->n3; i++)
    for (int j = 0; j < x->n2; j++) {
      float *p[MOST_OPERANDS];
      for (int k = 0; k < MOST_OPERANDS; k++) p[k] = x->p[k] ? x->p[k] + i * x->s3[k] + j * x->s2[k] : 0;
      x->run(x, p);
    }
}

#if defined(__clang__)
#define UNROLLED_NOT _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define UNROLLED_NOT
#endif
static inline void perform(task *x) {
  if (x->outer) perform_outer(x);
  else x->run(x, x->p);
  const int moves = x->moves;
  UNROLLED_NOT for (int k = 0; k < moves; k++) x->p[k] += x->step[k];
  if (x->turns)
    for (int k = 0; k < moves; k++) x->step[k] *= x->sign[k];
}

static void one_step(const plan *p, task *tasks) {
  for (int32_t i = 0; i < p->n_phases; i++)
    for (task *x = tasks + p->phases[i].first, *end = x + p->phases[i].count; x < end; x++) perform(x);
}

static void one_block(const plan *p, task *tasks, int64_t steps) {
  for (int32_t i = 0; i < p->n_phases; i++) {
    task *first = tasks + p->phases[i].first, *end = first + p->phases[i].count;
    if (p->phases[i].stepwise) {
      for (int64_t s = 0; s < steps; s++)
        for (task *x = first; x < end; x++) perform(x);
    } else {
      for (task *x = first; x < end; x++)
        for (int64_t s = 0; s < steps; s++) perform(x);
    }
  }
}

static void copy(float *to, const float *from, int64_t count) {
  if (count) memcpy(to, from, sizeof *to * (size_t)count);
}

static void begin(const frame *f, const run_data *d) {
  const plan *p = f->plan;
  for (int32_t i = 0; i < p->n_packs; i++)
    if (!f->shared[i]) pack_matrix(d->inputs[p->packs[i].input], &f->sizes, p->packs[i], f->packs[i]);
  for (int32_t i = 0; i < p->n_states; i++)
    if (p->states[i].storage != ROWS_OF_AN_OUTPUT) copy(f->memory + f->sizes.sizes[p->states[i].offset], d->inputs[i], f->sizes.input_rows[i]);
}

static void finish(const frame *f, const run_data *d) {
  const plan *p = f->plan;
  for (int32_t i = 0; i < p->n_states; i++) {
    value_words old = {.kind = OLD, .index = i};
    copy(d->outputs[i], d->steps ? of_state(f, d, old, d->steps).at : d->inputs[i], f->sizes.input_rows[i]);
  }
}

void frame_run(frame *f, const run_data *d) {
  const plan *p = f->plan;
  bool first_alone = false;
  for (int32_t i = 0; i < p->n_states; i++) first_alone = first_alone || p->states[i].storage == ROWS_OF_AN_OUTPUT;
  begin(f, d);
  for (int64_t t = 0, count; t < d->steps; t += count) {
    count = d->steps - t;
    if (t == 0 && first_alone) count = 1;
    else if (p->block > 1 && count > p->block) count = p->block;
    place_all(f, d, t);
    if (p->block > 1) one_block(p, f->tasks, count);
    else
      for (int64_t s = 0; s < count; s++) one_step(p, f->tasks);
  }
  finish(f, d);
}
