// Packs the weights of a recurrent node for its kernels: for each block of 16 units, all gates one after the other.
#include "cell.h"
#include <stdlib.h>
#include <string.h>

// Write 16 rows of a matrix [units, depth] as columns. `apart`: the floats between the entries for k and k + 1.
static void pack_columns(const float *rows, int64_t units, int64_t depth, float *to, int64_t apart) {
  for (int64_t k = 0; k < depth; k++)
    for (int64_t u = 0; u < PANEL; u++) to[k * apart + u] = u < units ? rows[u * depth + k] : 0;
}

static const float *values_of(const cell_words *c, const tensor *inputs, cell_input which, int64_t of_a_way, int way) {
  return c->input[which] < 0 ? 0 : (const float *)inputs[c->input[which]].data + of_a_way * way;
}

bool cell_pack(const cell_words *c, const tensor *inputs, int way, cell_weights *to, fault *why) {
  const int64_t h = c->hidden, gates = cell_gates(c), blocks = cell_blocks(c), columns = cell_columns(c), width = inputs[c->input[CELL_W]].dims[2];
  const bool linear = c->kind == GRU_CELL && c->linear_before_reset, apart = c->kind == GRU_CELL && !linear;
  const int64_t first = apart ? gates - 1 : gates; // the gates that share a recurrent product
  const size_t numbers = (size_t)(columns * (width + h + 1) + 4 * blocks * PANEL);
  float *next = malloc(numbers * sizeof(float) + ALIGNED);
  if (!(to->room = next)) return refuse(why, "there is no memory for packed weights of %zu numbers", numbers);
  next = (float *)(((uintptr_t)next + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
  to->w = next, next += columns * width;
  to->r = next, next += blocks * PANEL * first * h;
  to->r_hidden = next, next += blocks * PANEL * (gates - first) * h;
  to->bias = next, next += columns;
  to->bias_hidden = next, next += blocks * PANEL;
  to->peepholes = c->input[CELL_P] < 0 ? 0 : next;
  const float *w = values_of(c, inputs, CELL_W, gates * h * width, way), *r = values_of(c, inputs, CELL_R, gates * h * h, way);
  const float *b = values_of(c, inputs, CELL_B, 2 * gates * h, way), *p = values_of(c, inputs, CELL_P, 3 * h, way);
  for (int64_t block = 0; block < blocks; block++)
    for (int64_t g = 0; g < gates; g++) {
      const int64_t at = g * h + block * PANEL, units = h - block * PANEL < PANEL ? h - block * PANEL : PANEL, panel = block * gates + g;
      pack_columns(w + at * width, units, width, to->w + panel * PANEL * width, PANEL);
      // an RNN packs four blocks together; the last one to three blocks are packed singly
      const int64_t side = c->kind != RNN_CELL ? first : block < blocks / 4 * 4 ? 4 : 1, beside = c->kind != RNN_CELL ? g : side == 4 ? block % 4 : 0;
      float *recurrent = g < first ? to->r + ((c->kind != RNN_CELL ? block * first : block - beside) * h + beside) * PANEL : to->r_hidden + block * h * PANEL;
      pack_columns(r + at * h, units, h, recurrent, g < first ? side * PANEL : PANEL);
      const bool later = linear && g == 2;
      for (int64_t u = 0; u < PANEL; u++) {
        const bool there = b && u < units;
        to->bias[panel * PANEL + u] = there ? b[at + u] + (later ? 0 : b[gates * h + at + u]) : 0;
        if (later) to->bias_hidden[block * PANEL + u] = there ? b[gates * h + at + u] : 0;
      }
    }
  for (int64_t i = 0; p && i < 3 * blocks * PANEL; i++) {
    const int64_t unit = i % (blocks * PANEL);
    to->peepholes[i] = unit < h ? p[i / (blocks * PANEL) * h + unit] : 0;
  }
  return true;
}
