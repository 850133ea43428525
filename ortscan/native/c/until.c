// Runs a Loop. Its stacks grow because the number of steps is unknown. They belong to the frame, and the next run reuses them unless
// they are large.
#include "until.h"
#include "growth.h"
#include "run.h"
#include <stdlib.h>

enum { FIRST_ROWS = 64, FIRST_BYTES = 1 << 20 };

static int64_t row_bytes(const frame *f, int32_t output) { return f->sizes.output_rows[output] * bytes_of(f->plan->outputs[output].type); }

// Make room for `rows` rows in each stack. Return the new capacity, or -1 without memory.
static int64_t make_room(frame *f, void **stacked, int64_t rows) {
  int64_t least = MOST_ELEMENTS;
  for (int32_t i = 0; i < f->plan->n_outputs; i++) {
    const int64_t row = row_bytes(f, i);
    stack *s = f->stacks + i;
    if (row && rows > PTRDIFF_MAX / 2 / row) return -1;
    if (!s->data || s->bytes < rows * row) {
      void *more = realloc(s->data, (size_t)(rows * row) + 1);
      if (!more) return -1;
      s->data = more, s->bytes = rows * row;
    }
    stacked[i] = s->data;
    if (row && s->bytes / row < least) least = s->bytes / row;
  }
  return least;
}

// Return for how many rows to make room after t steps: few large rows at first, later twice as many, and never more than the limit.
static int64_t rows_after(const frame *f, int64_t t, int64_t limit) {
  int64_t rows = t ? 2 * t : FIRST_ROWS;
  for (int32_t i = 0; i < f->plan->n_outputs && !t; i++) {
    const int64_t row = row_bytes(f, i), few = row ? FIRST_BYTES / row : rows;
    if (few < rows) rows = few ? few : 1;
  }
  return rows < limit ? rows : limit > 0 ? limit : 0;
}

bool frame_run_until(frame *f, run_data *d, void **stacked, int64_t limit, fault *why) {
  const bool first_alone = run_first_alone(f->plan);
  int64_t t = 0, room = make_room(f, stacked, rows_after(f, 0, limit));
  bool placed = false;
  run_begin(f, d);
  for (; room >= 0 && t < limit && *(const uint8_t *)run_state(f, d, 0, t); t++) {
    if (t == MOST_ELEMENTS) return refuse(why, "it goes on after %d steps", (int)MOST_ELEMENTS);
    if (t == room) placed = false, room = make_room(f, stacked, rows_after(f, t, limit));
    if (room < 0) break;
    if (!placed || (t == 1 && first_alone)) run_place(f, d, t);
    placed = true;
    f->step_number = t;
    run_clear_rows(f, d, t, 1);
    run_steps(f, 1);
    if (f->failed) return run_went_well(f, why);
    if (!grows(f->plan)) continue;
    if (!frame_grow(f, why)) return false;
    placed = false;
  }
  if (room < 0) return refuse(why, "there is no memory for the stacks of %lld steps", (long long)t);
  d->steps = t;
  return true;
}
