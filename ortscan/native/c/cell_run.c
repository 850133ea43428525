// Runs a recurrent node in blocks of steps: first the projections of the block in one product, then its steps one by one.
#include "cell.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_OF_A_BLOCK = 65536, ROWS_OF_A_PRODUCT = 32, LEAST_PRODUCTS_OF_A_PART = 1 << 20, PROBES = 64, ROUNDS_OF_A_PROBE = 1000, MOST_LOOKS = 8, WIDENED_PANELS = 2 };

typedef struct { size_t numbers; float *room; } workroom;

struct cell {
  cell_words words;
  const isa *set;
  bool packed;
  cell_weights weights[2];
  _Atomic(workroom *) spare[SPARE_FRAMES];
  atomic_int looks, threads; // the number of probes for threads, and the most threads seen
};

// The buffers for the steps of one direction and a range of rows.
typedef struct {
  const cell_words *words;
  const cell_weights *weights;
  const isa *set;
  const cell_run_data *data;
  int way;
  bool backwards;
  int64_t first, rows;
  const int32_t *lengths; // of these rows; null if every row has all steps
  float *sums, *h, *h_new, *c, *reset, *update, *panels; // panels: widened columns of W
  int64_t at_once, down;
} direction_run;

const cell_words *cell_words_of(const cell *c) { return &c->words; }

cell *cell_new(const void *bytes, size_t count, const tensor *constants, int32_t n_constants, fault *why) {
  cell *c = calloc(1, sizeof *c);
  if (!c) {
    refuse(why, "out of memory");
    return 0;
  }
  for (int i = 0; i < SPARE_FRAMES; i++) atomic_init(c->spare + i, 0);
  atomic_init(&c->looks, 0), atomic_init(&c->threads, 1);
  bool good = (c->set = choose_isa()) != 0 || refuse(why, "ORTSCAN_ISA names no instruction set of this machine");
  good = good && cell_read(bytes, count, &c->words, why);
  if (good && c->words.n_inputs != n_constants) good = refuse(why, "the node has %d inputs, and its words say %d", (int)n_constants, (int)c->words.n_inputs);
  if (good) {
    c->packed = true;
    for (int i = CELL_W; i < CELL_INPUTS; i++)
      if ((i <= CELL_B || i >= CELL_P) && c->words.input[i] >= 0) c->packed = c->packed && constants[c->words.input[i]].data;
    if (c->packed) good = cell_shapes(&c->words, constants, true, why);
    for (int way = 0; way < directions_of(&c->words) && good && c->packed; way++) good = cell_pack(&c->words, constants, way, c->weights + way, why);
  }
  if (good) return c;
  cell_free(c);
  return 0;
}

static void room_free(workroom *room) {
  if (room) free(room->room);
  free(room);
}

void cell_free(cell *c) {
  if (!c) return;
  for (int i = 0; i < SPARE_FRAMES; i++) room_free(atomic_exchange(c->spare + i, 0));
  for (int way = 0; way < 2; way++) free(c->weights[way].room);
  free(c);
}

static workroom *room_of(cell *c, size_t numbers, fault *why) {
  workroom *room = 0;
  for (int i = 0; i < SPARE_FRAMES && !room; i++) room = atomic_exchange(c->spare + i, 0);
  if (room && room->numbers >= numbers) return room;
  room_free(room);
  room = calloc(1, sizeof *room);
  if (room && (room->room = malloc(numbers * sizeof(float) + ALIGNED))) return room->numbers = numbers, room;
  room_free(room);
  refuse(why, "there is no memory for a workspace of %zu numbers", numbers);
  return 0;
}

static void give_back(cell *c, workroom *room) {
  for (int i = 0; i < SPARE_FRAMES; i++) {
    workroom *none = 0;
    if (atomic_compare_exchange_strong(c->spare + i, &none, room)) return;
  }
  room_free(room);
}

// Compute the projections of `count` steps from t on.
static void project(const direction_run *d, int64_t t, int64_t count) {
  const int64_t columns = cell_columns(d->words), width = d->data->width, all = d->data->rows;
  const bool whole = d->rows == all; // then the steps are contiguous and form one matrix
  const float *x = (const float *)d->data->inputs[d->words->input[CELL_X]].data + (t * all + d->first) * width;
  const task product = {.n0 = 1, .n1 = whole ? 1 : (int)count, .n2 = 1, .n3 = 1, .m = (int)(whole ? count * all : d->rows), .n = (int)columns, .k = (int)width,
                        .down = {columns, width, 0, 0}, .across = {1, 1, 1, 1}, .s1 = {d->rows * columns, all * width, 0, 0}};
  const cell_weights *w = d->weights;
  if (w->w_format == FLOAT_WEIGHTS) {
    void *const at[MOST_OPERANDS] = {d->sums, (void *)x, w->w, w->bias};
    d->set->kernels[F32][GEMM](&product, at);
    return;
  }
  task some = product;
  for (int64_t column = 0; column < columns; column += some.n) { // two panels at a time, so that a sum need not wait for the previous one
    some.n = columns - column < WIDENED_PANELS * PANEL ? PANEL : WIDENED_PANELS * PANEL;
    for (int64_t i = column; i < column + some.n; i += PANEL)
      d->set->widen[w->w_format]((const char *)w->w + i * width * bytes_of_a_weight(w->w_format), w->w_scale ? w->w_scale + i : 0, d->panels + (i - column) * width, width);
    void *const at[MOST_OPERANDS] = {d->sums + column, (void *)x, d->panels, w->bias + column};
    d->set->kernels[F32][GEMM](&some, at);
  }
}

static bool is_usual(const cell_words *c, int way) {
  const cell_function *f = c->functions[way];
  const int32_t tanhs = c->kind == LSTM_CELL ? 2 : 1, first = c->kind == RNN_CELL ? 0 : 1;
  bool usual = isinf(c->clip) && c->input[CELL_P] < 0 && !c->input_forget && (!first || f[0].use == USE_SIGMOID);
  for (int32_t i = first; i < first + tanhs; i++) usual = usual && f[i].use == USE_TANH;
  return usual;
}

static int step_of(const cell_words *c) {
  return c->kind == RNN_CELL ? RNN_STEP : c->kind == LSTM_CELL ? LSTM_STEP : c->linear_before_reset ? GRU_LINEAR_STEP : GRU_STEP;
}

// Run step t for `count` rows from `row` on. `sums`: the projections of the first row.
static void rows_of_step(const direction_run *d, cell_kernel *run, const float *sums, int64_t t, int64_t row, int64_t count) {
  const cell_words *c = d->words;
  const int64_t columns = cell_columns(c), from = row * d->down, hidden = c->hidden;
  float *y = d->data->outputs[CELL_Y];
  cell_step s = {.hidden = (int)hidden, .blocks = (int)cell_blocks(c), .rows = (int)count, .sums = sums + row * columns, .sums_down = columns, .down = d->down,
                 .h = d->h + from, .h_new = d->h_new + from, .c = d->c ? d->c + from : 0, .reset = d->reset ? d->reset + from : 0,
                 .update = d->update ? d->update + from : 0, .r = d->weights->r, .r_hidden = d->weights->r_hidden, .scale = d->weights->r_scale, .scale_hidden = d->weights->hidden_scale, .bias_hidden = d->weights->bias_hidden,
                 .peepholes = d->weights->peepholes, .functions = c->functions[d->way], .clip = c->clip, .input_forget = c->input_forget, .turned = t & 1};
  s.y = y ? y + ((t * directions_of(c) + d->way) * d->data->rows + d->first + row) * hidden : 0;
  run(&s);
}

// Keep the states of rows that have no step t, and output zeros for these rows.
static void idle_rows(const direction_run *d, int64_t t, int64_t row, int64_t count) {
  float *y = d->data->outputs[CELL_Y];
  const int64_t hidden = d->words->hidden;
  memcpy(d->h_new + row * d->down, d->h + row * d->down, (size_t)(count * d->down) * sizeof(float));
  if (y) memset(y + ((t * directions_of(d->words) + d->way) * d->data->rows + d->first + row) * hidden, 0, (size_t)(count * hidden) * sizeof(float));
}

static void steps_of(direction_run *d) {
  const cell_run_data *data = d->data;
  const cell_kernels kernels = d->set->cells[d->weights->r_format][step_of(d->words)];
  cell_kernel *run = is_usual(d->words, d->way) ? kernels.usual : kernels.any;
  const int64_t columns = cell_columns(d->words);
  for (int64_t done = 0, count; done < data->steps; done += count) {
    count = data->steps - done < d->at_once ? data->steps - done : d->at_once;
    const int64_t first = d->backwards ? data->steps - done - count : done;
    project(d, first, count);
    for (int64_t i = 0; i < count; i++) {
      const int64_t k = d->backwards ? count - 1 - i : i, t = first + k;
      const float *sums = d->sums + k * d->rows * columns;
      for (int64_t row = 0, end; row < d->rows; row = end) {
        const bool has_step = !d->lengths || d->lengths[row] > t;
        end = d->lengths ? row + 1 : d->rows;
        while (end < d->rows && (d->lengths[end] > t) == has_step) end++;
        if (has_step) rows_of_step(d, run, sums, t, row, end - row);
        else idle_rows(d, t, row, end - row);
      }
      float *old = d->h;
      d->h = d->h_new, d->h_new = old;
    }
  }
}

static void load_state(const direction_run *d, cell_input which, float *to) {
  const int64_t hidden = d->words->hidden;
  const int32_t place = d->words->input[which];
  memset(to, 0, (size_t)(d->rows * d->down) * sizeof(float));
  if (place < 0) return;
  const float *from = (const float *)d->data->inputs[place].data + (d->way * d->data->rows + d->first) * hidden;
  for (int64_t row = 0; row < d->rows; row++) memcpy(to + row * d->down, from + row * hidden, (size_t)hidden * sizeof(float));
}

// The final state of a row without steps is zero, as in onnxruntime. A GRU without lengths and steps crashes onnxruntime; here it keeps its state.
static void store_state(const direction_run *d, cell_output which, const float *from) {
  const int64_t hidden = d->words->hidden;
  float *to = d->data->outputs[which];
  const bool zeros = !d->data->steps && (d->words->kind != GRU_CELL || d->words->input[CELL_LENGTHS] >= 0);
  if (!to) return;
  to += (d->way * d->data->rows + d->first) * hidden;
  for (int64_t row = 0; row < d->rows; row++)
    if (zeros || (d->lengths && !d->lengths[row])) memset(to + row * hidden, 0, (size_t)hidden * sizeof(float));
    else memcpy(to + row * hidden, from + row * d->down, (size_t)hidden * sizeof(float));
}

// Return whether some row has fewer steps than the input. Refuse lengths out of range.
static bool lengths_of(const cell_words *c, const cell_run_data *data, const int32_t **lengths, fault *why) {
  *lengths = 0;
  if (c->input[CELL_LENGTHS] < 0) return true;
  const int32_t *given = data->inputs[c->input[CELL_LENGTHS]].data;
  for (int64_t row = 0; row < data->rows; row++) {
    if (given[row] < 0 || given[row] > data->steps) return refuse(why, "length %d of row %lld is not between 0 and the %lld steps", (int)given[row], (long long)row, (long long)data->steps);
    if (given[row] < data->steps) *lengths = given;
  }
  return true;
}

// A run split into parts that may run in parallel: directions and ranges of rows.
typedef struct {
  cell *cell;
  const cell_run_data *data;
  const cell_weights *weights;
  const int32_t *lengths;
  int64_t rows_of_a_part, parts; // per direction
  atomic_bool failed;
  fault why;
} parts_run;

static bool part(parts_run *r, int way, int64_t first, fault *why) {
  const cell_words *w = &r->cell->words;
  const cell_run_data *data = r->data;
  const int64_t rows = data->rows - first < r->rows_of_a_part ? data->rows - first : r->rows_of_a_part;
  const int64_t columns = cell_columns(w), down = cell_blocks(w) * PANEL, state = rows * down;
  direction_run d = {.words = w, .weights = r->weights + way, .set = r->cell->set, .data = data, .way = way, .backwards = w->direction == BACKWARD || way,
                     .first = first, .rows = rows, .lengths = r->lengths ? r->lengths + first : 0, .down = down};
  d.at_once = NUMBERS_OF_A_BLOCK / (rows * columns);
  if (d.at_once * rows < ROWS_OF_A_PRODUCT) d.at_once = (ROWS_OF_A_PRODUCT + rows - 1) / rows;
  if (d.at_once > data->steps) d.at_once = data->steps;
  const int64_t widened = d.weights->w_format == FLOAT_WEIGHTS ? 0 : data->width * PANEL * WIDENED_PANELS;
  workroom *room = room_of(r->cell, (size_t)(d.at_once * rows * columns + 5 * state + widened), why);
  if (!room) return false;
  float *next = (float *)(((uintptr_t)room->room + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
  d.h = next, d.h_new = next += state, d.c = next += state, d.reset = next += state, d.update = next += state, d.panels = next += state, d.sums = next += widened;
  load_state(&d, CELL_H, d.h);
  memset(d.h_new, 0, (size_t)state * sizeof(float)); // clears the padding of the units
  load_state(&d, CELL_C, d.c);
  steps_of(&d);
  store_state(&d, CELL_Y_H, d.h);
  store_state(&d, CELL_Y_C, d.c);
  give_back(r->cell, room);
  return true;
}

static void one_part(void *of, size_t i) {
  parts_run *r = of;
  fault why;
  if (!part(r, (int)((int64_t)i / r->parts), (int64_t)i % r->parts * r->rows_of_a_part, &why) && !atomic_exchange(&r->failed, true)) r->why = why;
}

static void note_thread(void *of, size_t i) {
  static _Thread_local char here;
  for (volatile int round = 0; round < ROUNDS_OF_A_PROBE; round++) {} // long enough for other threads to wake and take tasks
  ((const void **)of)[i] = &here;
}

// Estimate the number of threads by counting those that take tasks, because onnxruntime does not tell it to a kernel.
static int threads_of(cell *c, cell_threads *threads, void *context) {
  const void *by[PROBES] = {0};
  int seen = 0;
  if (atomic_fetch_add(&c->looks, 1) >= MOST_LOOKS) return atomic_fetch_sub(&c->looks, 1), atomic_load(&c->threads);
  if (threads(context, note_thread, PROBES, by))
    for (int i = 0; i < PROBES; i++) {
      int first = 0;
      while (by[first] != by[i]) first++;
      seen += first == i;
    }
  int before = atomic_load(&c->threads);
  while (before < seen && !atomic_compare_exchange_weak(&c->threads, &before, seen)) {}
  return before > seen ? before : seen;
}

// Choose as many parts as threads, if each has enough work for a thread.
static void part_rows(parts_run *r, cell_threads *threads, void *context) {
  const cell_words *w = &r->cell->words;
  const int64_t rows = r->data->rows, ways = directions_of(w), of_a_row = r->data->steps * cell_columns(w) * (w->hidden + r->data->width);
  r->rows_of_a_part = rows, r->parts = 1;
  if (!threads || rows * ways < 2 || rows * of_a_row < 2 * LEAST_PRODUCTS_OF_A_PART / ways) return;
  const int64_t parts = threads_of(r->cell, threads, context) / ways;
  const int64_t least = (LEAST_PRODUCTS_OF_A_PART + of_a_row - 1) / of_a_row;
  if (parts > 1) r->rows_of_a_part = (rows + parts - 1) / parts;
  if (r->rows_of_a_part < least) r->rows_of_a_part = least < rows ? least : rows;
  r->parts = (rows + r->rows_of_a_part - 1) / r->rows_of_a_part;
}

bool cell_run(cell *c, const cell_run_data *data, cell_threads *threads, void *context, fault *why) {
  const int64_t ways = directions_of(&c->words);
  cell_weights own[2] = {{0}};
  parts_run r = {.cell = c, .data = data, .weights = c->packed ? c->weights : own};
  atomic_init(&r.failed, false);
  if (!lengths_of(&c->words, data, &r.lengths, why)) return false;
  if (!data->rows) return true;
  bool good = true;
  for (int way = 0; way < ways && good && !c->packed; way++) good = cell_pack(&c->words, data->inputs, way, own + way, why);
  part_rows(&r, threads, context);
  const size_t count = (size_t)(ways * r.parts);
  if (good && !(count > 1 && threads && atomic_load(&c->threads) > 1 && threads(context, one_part, count, &r)))
    for (size_t i = 0; i < count; i++) one_part(&r, i);
  for (int way = 0; way < 2; way++) free(own[way].room);
  if (good && atomic_load(&r.failed)) *why = r.why, good = false;
  return good;
}
