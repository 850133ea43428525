// Packs the weights of a recurrent node for its kernels: for each block of 16 units, all gates one after the other.
#include "cell.h"
#include <stdlib.h>
#include <string.h>

// Write 16 rows of a matrix [units, depth] of type T as columns. `apart`: the elements between the entries for k and k + 1.
#define PACK_COLUMNS(T) \
  static void pack_##T(const T *rows, int64_t units, int64_t depth, T *to, int64_t apart) { \
    for (int64_t k = 0; k < depth; k++) \
      for (int64_t u = 0; u < PANEL; u++) to[k * apart + u] = u < units ? rows[u * depth + k] : 0; \
  }
PACK_COLUMNS(uint8_t) PACK_COLUMNS(uint16_t) PACK_COLUMNS(uint32_t)

// The weights of one direction: [gates * hidden, depth] elements of `size` bytes, and a scale of each row or null.
typedef struct { const char *data; const float *scale; int64_t depth, size; } matrix;

// Pack 16 rows from `row` on as columns, from element `to` of `packed` on.
static void pack_columns(const matrix *m, int64_t row, int64_t units, void *packed, int64_t to, int64_t apart) {
  const char *rows = m->data + row * m->depth * m->size;
  char *at = (char *)packed + to * m->size;
  if (m->size == 1) pack_uint8_t((const void *)rows, units, m->depth, (void *)at, apart);
  else if (m->size == 2) pack_uint16_t((const void *)rows, units, m->depth, (void *)at, apart);
  else pack_uint32_t((const void *)rows, units, m->depth, (void *)at, apart);
}

static void pack_scale(const matrix *m, int64_t row, int64_t units, float *packed, int64_t to) {
  for (int64_t u = 0; m->scale && u < PANEL; u++) packed[to + u] = u < units ? m->scale[row + u] : 0;
}

static const float *values_of(const cell_words *c, const tensor *inputs, cell_input which, int64_t of_a_way, int way) {
  return c->input[which] < 0 ? 0 : (const float *)inputs[c->input[which]].data + of_a_way * way;
}

static matrix matrix_of(const cell_words *c, const tensor *inputs, cell_input which, cell_input scale, int way) {
  const tensor *x = inputs + c->input[which];
  const int64_t rows = cell_gates(c) * c->hidden, size = bytes_of_a_weight(format_of(x->type));
  return (matrix){(const char *)x->data + way * rows * x->dims[2] * size, values_of(c, inputs, scale, rows, way), x->dims[2], size};
}

// Return `bytes` rounded up so that the following array is aligned.
static int64_t aligned(int64_t bytes) { return (bytes + ALIGNED - 1) & ~(int64_t)(ALIGNED - 1); }

bool cell_pack(const cell_words *c, const tensor *inputs, int way, cell_weights *to, fault *why) {
  const matrix w = matrix_of(c, inputs, CELL_W, CELL_W_SCALE, way), r = matrix_of(c, inputs, CELL_R, CELL_R_SCALE, way);
  const int64_t h = c->hidden, gates = cell_gates(c), blocks = cell_blocks(c), columns = cell_columns(c);
  const bool linear = c->kind == GRU_CELL && c->linear_before_reset, apart = c->kind == GRU_CELL && !linear;
  const int64_t first = apart ? gates - 1 : gates; // the gates that share a recurrent product
  const int64_t shared = blocks * PANEL * first, w_bytes = aligned(columns * w.depth * w.size), r_bytes = aligned(shared * h * r.size);
  const int64_t hidden_bytes = aligned(blocks * PANEL * (gates - first) * h * r.size), floats = 3 * columns + 4 * blocks * PANEL;
  char *room = malloc((size_t)(w_bytes + r_bytes + hidden_bytes + floats * (int64_t)sizeof(float)) + ALIGNED);
  if (!(to->room = room)) return refuse(why, "there is no memory for %lld packed weights", (long long)(columns * (w.depth + h)));
  room = (char *)(((uintptr_t)room + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
  to->w_format = format_of(inputs[c->input[CELL_W]].type), to->r_format = format_of(inputs[c->input[CELL_R]].type);
  to->w = room, to->r = room += w_bytes, to->r_hidden = room += r_bytes;
  float *next = (float *)(void *)(room + hidden_bytes);
  to->bias = next, next += columns;
  to->w_scale = w.scale ? next : 0, next += columns;
  to->r_scale = r.scale ? next : 0, to->hidden_scale = r.scale ? next + shared : 0, next += columns;
  to->bias_hidden = next, next += blocks * PANEL;
  to->peepholes = c->input[CELL_P] < 0 ? 0 : next;
  const float *b = values_of(c, inputs, CELL_B, 2 * gates * h, way), *p = values_of(c, inputs, CELL_P, 3 * h, way);
  for (int64_t block = 0; block < blocks; block++)
    for (int64_t g = 0; g < gates; g++) {
      const int64_t at = g * h + block * PANEL, units = h - block * PANEL < PANEL ? h - block * PANEL : PANEL, panel = block * gates + g;
      pack_columns(&w, at, units, to->w, panel * PANEL * w.depth, PANEL);
      pack_scale(&w, at, units, to->w_scale, panel * PANEL);
      // an RNN packs four blocks together; the last one to three blocks are packed singly
      const int64_t side = c->kind != RNN_CELL ? first : block < blocks / 4 * 4 ? 4 : 1, beside = c->kind != RNN_CELL ? g : side == 4 ? block % 4 : 0;
      if (g < first) {
        pack_columns(&r, at, units, to->r, ((c->kind != RNN_CELL ? block * first : block - beside) * h + beside) * PANEL, side * PANEL);
        pack_scale(&r, at, units, to->r_scale, (block * first + g) * PANEL);
      } else {
        pack_columns(&r, at, units, to->r_hidden, block * h * PANEL, PANEL);
        pack_scale(&r, at, units, to->hidden_scale, block * PANEL);
      }
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
