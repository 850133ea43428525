// Reads the words of a recurrent node and checks that each of them is known.
#include "cell.h"
#include <string.h>

static bool read_ports(uint32_t word, int32_t count, int32_t *place, int32_t *n) {
  *n = 0;
  for (int32_t i = 0; i < count; i++) place[i] = word >> i & 1 ? (*n)++ : -1;
  return !(word >> count);
}

bool cell_read(const void *bytes, size_t count, cell_words *c, fault *why) {
  int32_t w[CELL_WORDS];
  if (count != sizeof w) return refuse(why, "a cell has %d words, and this has %zu bytes", CELL_WORDS, count);
  memcpy(w, bytes, sizeof w);
  if (w[0] != CELL_MAGIC) return refuse(why, "these are no words of a cell");
  if (w[1] < RNN_CELL || w[1] > LSTM_CELL || w[3] < FORWARD || w[3] > BOTH || w[4] & ~3) return refuse(why, "the cell is of no known kind");
  if (w[2] < 1 || w[2] > MOST_HIDDEN) return refuse(why, "the cell has %d units", (int)w[2]);
  c->kind = (cell_kind)w[1], c->hidden = w[2], c->direction = (cell_direction)w[3], c->linear_before_reset = w[4] & 1, c->input_forget = w[4] >> 1;
  const bool ports = read_ports((uint32_t)w[5], CELL_INPUTS, c->input, &c->n_inputs) && read_ports((uint32_t)w[6], CELL_OUTPUTS, c->output, &c->n_outputs);
  const bool lstm = c->kind == LSTM_CELL || (c->input[CELL_C] < 0 && c->input[CELL_P] < 0 && c->output[CELL_Y_C] < 0);
  if (!ports || !lstm || (w[5] & 7) != 7 || !w[6]) return refuse(why, "the cell has other inputs or outputs than its kind has");
  memcpy(&c->clip, w + 7, sizeof c->clip);
  if (!(c->clip > 0)) return refuse(why, "the cell's clip is no number above 0");
  for (int i = 0; i < 6; i++) {
    cell_function *f = &c->functions[i / 3][i % 3];
    memcpy(f, w + 8 + 3 * i, sizeof *f);
    if (f->use < 0 || f->use >= CELL_FUNCTIONS) return refuse(why, "the cell has an unknown activation %d", (int)f->use);
  }
  return true;
}

// Check that input `which` exists and has these dims; -1 matches any.
static bool is_shaped(const cell_words *c, const tensor *inputs, cell_input which, int type, size_t axes, const int64_t *dims, fault *why) {
  const int32_t place = c->input[which];
  if (place < 0) return true;
  const tensor *x = inputs + place;
  bool fits = x->type == type && x->axes == axes;
  for (size_t d = 0; d < axes && fits; d++) fits = dims[d] < 0 || x->dims[d] == dims[d];
  return fits || refuse(why, "input %d of the cell has another type or shape than its hidden size and its other inputs say", (int)place);
}

// Check the type and the shape of weights, and that they have a scale only if they are int8.
static bool are_weights(const cell_words *c, const tensor *inputs, cell_input which, cell_input scale, int64_t width, fault *why) {
  const int64_t ways = directions_of(c), all = cell_gates(c) * c->hidden;
  const int type = inputs[c->input[which]].type;
  const cell_format format = format_of(type);
  if (format == CELL_FORMATS || (format == INT8_WEIGHTS) != (c->input[scale] >= 0)) return refuse(why, "input %d of the cell has element type %d and %s scale", (int)c->input[which], type, c->input[scale] < 0 ? "no" : "a");
  if (format != FLOAT_WEIGHTS && c->kind == RNN_CELL) return refuse(why, "an RNN cell has only float weights");
  return is_shaped(c, inputs, which, type, 3, (int64_t[]){ways, all, width}, why) && is_shaped(c, inputs, scale, FLOAT, 3, (int64_t[]){ways, all, 1}, why);
}

bool cell_shapes(const cell_words *c, const tensor *inputs, bool weights_only, fault *why) {
  const int64_t ways = directions_of(c), h = c->hidden, all = cell_gates(c) * h;
  const int64_t width = inputs[c->input[CELL_W]].axes == 3 ? inputs[c->input[CELL_W]].dims[2] : 0;
  const bool weights = are_weights(c, inputs, CELL_W, CELL_W_SCALE, -1, why) && are_weights(c, inputs, CELL_R, CELL_R_SCALE, h, why) &&
                       is_shaped(c, inputs, CELL_B, FLOAT, 2, (int64_t[]){ways, 2 * all}, why) && is_shaped(c, inputs, CELL_P, FLOAT, 2, (int64_t[]){ways, 3 * h}, why);
  if (!weights || weights_only) return weights;
  const tensor *x = inputs + c->input[CELL_X];
  if (!is_shaped(c, inputs, CELL_X, FLOAT, 3, (int64_t[]){-1, -1, width}, why)) return false;
  if (x->dims[0] > INT32_MAX || x->dims[1] > INT32_MAX || width > INT32_MAX) return refuse(why, "the cell's input is too large");
  return is_shaped(c, inputs, CELL_LENGTHS, INT32, 1, (int64_t[]){x->dims[1]}, why) && is_shaped(c, inputs, CELL_H, FLOAT, 3, (int64_t[]){ways, x->dims[1], h}, why) &&
         is_shaped(c, inputs, CELL_C, FLOAT, 3, (int64_t[]){ways, x->dims[1], h}, why);
}
