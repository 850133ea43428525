// A recurrent node: what it computes, its packed weights, and what is kept from run to run. Safe to run from many threads at once.
#pragma once
#include "loop.h"

enum { CELL_MAGIC = 0x314C4543, CELL_WORDS = 26, MOST_HIDDEN = 65536 };
typedef enum { RNN_CELL, GRU_CELL, LSTM_CELL } cell_kind;
typedef enum { CELL_X, CELL_W, CELL_R, CELL_B, CELL_LENGTHS, CELL_H, CELL_C, CELL_P, CELL_INPUTS } cell_input;
typedef enum { CELL_Y, CELL_Y_H, CELL_Y_C, CELL_OUTPUTS } cell_output;
typedef enum { FORWARD, BACKWARD, BOTH } cell_direction;

typedef struct {
  cell_kind kind;
  int32_t hidden, linear_before_reset, input_forget;
  cell_direction direction;
  int32_t input[CELL_INPUTS], output[CELL_OUTPUTS]; // the place of each among those of the node, -1 where it is left out
  int32_t n_inputs, n_outputs;
  float clip;
  cell_function functions[2][3];
} cell_words;

// The weights of one direction, in the order of the kernels: blocks of 16 units, in each all of its gates.
typedef struct {
  float *w, *bias;     // of the projection of all steps: panels as products have them
  float *r, *r_hidden; // recurrent: all gates, or all but the last one, which is by itself
  float *bias_hidden;  // GRU with linear_before_reset: what is added before the reset
  float *peepholes;    // i, o, f of all units
  void *room;
} cell_weights;

typedef struct cell cell;
typedef struct cell_run_data {
  const tensor *inputs; // of the node, in its order
  float *outputs[CELL_OUTPUTS]; // null where there is none
  int64_t steps, rows, width;
} cell_run_data;

bool cell_read(const void *bytes, size_t count, cell_words *c, fault *why);

// See whether the inputs have the types and shapes of the cell's, or only its weights and what goes with them.
bool cell_shapes(const cell_words *c, const tensor *inputs, bool weights_only, fault *why);

// Return the cell, or null and why not; `constants` has null data where an input is not constant.
cell *cell_new(const void *bytes, size_t count, const tensor *constants, int32_t n_constants, fault *why);
void cell_free(cell *c);
const cell_words *cell_words_of(const cell *c);
static inline int64_t directions_of(const cell_words *c) { return c->direction == BOTH ? 2 : 1; }

// Do all of so many tasks, some of them at once, and return true; or do nothing.
typedef bool cell_threads(void *context, void (*task)(void *of, size_t i), size_t count, void *of);

// Run it with inputs that have its shapes; `threads` may be null.
bool cell_run(cell *c, const cell_run_data *d, cell_threads *threads, void *context, fault *why);

// Pack the weights of direction `way`; their room is malloced.
bool cell_pack(const cell_words *c, const tensor *inputs, int way, cell_weights *to, fault *why);

// The columns of the projection: all gates of all blocks of 16 units.
static inline int64_t cell_blocks(const cell_words *c) { return (c->hidden + PANEL - 1) / PANEL; }
static inline int64_t cell_gates(const cell_words *c) { return c->kind == RNN_CELL ? 1 : c->kind == GRU_CELL ? 3 : 4; }
static inline int64_t cell_columns(const cell_words *c) { return cell_blocks(c) * cell_gates(c) * PANEL; }
