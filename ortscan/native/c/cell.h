// A recurrent node: its attributes, packed weights and buffers that runs reuse. Thread-safe.
#pragma once
#include "loop.h"

enum { CELL_MAGIC = 0x314C4543, CELL_WORDS = 26, MOST_HIDDEN = 65536 };
typedef enum { RNN_CELL, GRU_CELL, LSTM_CELL } cell_kind;
typedef enum { CELL_X, CELL_W, CELL_R, CELL_B, CELL_LENGTHS, CELL_H, CELL_C, CELL_P, CELL_W_SCALE, CELL_R_SCALE, CELL_INPUTS } cell_input;
typedef enum { CELL_Y, CELL_Y_H, CELL_Y_C, CELL_OUTPUTS } cell_output;
typedef enum { FORWARD, BACKWARD, BOTH } cell_direction;

typedef struct {
  cell_kind kind;
  int32_t hidden, linear_before_reset, input_forget;
  cell_direction direction;
  int32_t input[CELL_INPUTS], output[CELL_OUTPUTS]; // the position of each in the node; -1 if omitted
  int32_t n_inputs, n_outputs;
  float clip;
  cell_function functions[2][3];
} cell_words;

// The weights of one direction, in the order of the kernels: blocks of 16 units, each with all gates.
typedef struct {
  cell_format w_format, r_format;
  void *w;             // for the projection of all steps, in panels of products
  float *bias;
  void *r, *r_hidden;  // recurrent: all gates; or r_hidden has the last gate and r the others
  float *w_scale, *r_scale, *hidden_scale; // of each column; null unless the format is int8
  float *bias_hidden;  // GRU with linear_before_reset: the bias added before the reset
  float *peepholes;    // i, o, f of all units
  void *room;
} cell_weights;

typedef struct cell cell;
typedef struct cell_run_data {
  const tensor *inputs; // in the order of the node
  float *outputs[CELL_OUTPUTS]; // null if omitted
  int64_t steps, rows, width;
} cell_run_data;

bool cell_read(const void *bytes, size_t count, cell_words *c, fault *why);

// Check the types and shapes of all inputs, or only those of the weights, biases and peepholes.
bool cell_shapes(const cell_words *c, const tensor *inputs, bool weights_only, fault *why);

// Return the cell, or null and the fault. `constants` has null data for inputs that are not constant.
cell *cell_new(const void *bytes, size_t count, const tensor *constants, int32_t n_constants, fault *why);
void cell_free(cell *c);
const cell_words *cell_words_of(const cell *c);
static inline int64_t directions_of(const cell_words *c) { return c->direction == BOTH ? 2 : 1; }

// Run `count` tasks, some in parallel, and return true; or do nothing and return false.
typedef bool cell_threads(void *context, void (*task)(void *of, size_t i), size_t count, void *of);

// Run the cell on inputs of the checked shapes. `threads` may be null.
bool cell_run(cell *c, const cell_run_data *d, cell_threads *threads, void *context, fault *why);

// Return how weights of an element type are stored; CELL_FORMATS if a cell cannot have them.
static inline cell_format format_of(int type) {
  return type == FLOAT ? FLOAT_WEIGHTS : type == INT8 ? INT8_WEIGHTS : type == FLOAT16 ? FLOAT16_WEIGHTS : type == BFLOAT16 ? BFLOAT16_WEIGHTS : CELL_FORMATS;
}

static inline int64_t bytes_of_a_weight(cell_format format) { return format == FLOAT_WEIGHTS ? 4 : format == INT8_WEIGHTS ? 1 : 2; }

// Pack the weights of direction `way` into malloced memory.
bool cell_pack(const cell_words *c, const tensor *inputs, int way, cell_weights *to, fault *why);

// The number of columns of the projection: all gates of all blocks of 16 units.
static inline int64_t cell_blocks(const cell_words *c) { return (c->hidden + PANEL - 1) / PANEL; }
static inline int64_t cell_gates(const cell_words *c) { return c->kind == RNN_CELL ? 1 : c->kind == GRU_CELL ? 3 : 4; }
static inline int64_t cell_columns(const cell_words *c) { return cell_blocks(c) * cell_gates(c) * PANEL; }
