// Runs recurrent nodes of random words and sizes, some of them damaged. Every tensor is in a block of its own size, so that one
// number too far is seen.
#include "cell.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;
static uint32_t any(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % below;
}

static tensor of(int type, size_t axes, const int64_t *dims, int32_t most) {
  tensor x = {.type = type, .axes = axes};
  size_t count = 1;
  for (size_t d = 0; d < axes; d++) x.dims[d] = dims[d], count *= (size_t)dims[d];
  const bool narrow = type != FLOAT && type != INT32;
  int32_t *data = x.data = malloc(count * (size_t)(narrow ? bytes_of_a_weight(format_of(type)) : 4));
  if (narrow)
    for (size_t i = 0; i < count * (size_t)bytes_of_a_weight(format_of(type)); i++) ((char *)x.data)[i] = (char)any(256);
  else for (size_t i = 0; i < count; i++) {
    const float number = (float)any(2000) / 1000 - 1;
    if (type == FLOAT) memcpy(data + i, &number, 4);
    else data[i] = (int32_t)any((uint32_t)most + 1);
  }
  return x;
}

// Serial, but in another order than one after the other.
static bool backwards(void *context, void (*task)(void *, size_t), size_t count, void *with) {
  (void)context;
  while (count--) task(with, count);
  return true;
}

// Return 0 where the words or the inputs are refused, else 1.
static int attempt(void) {
  int32_t w[CELL_WORDS] = {CELL_MAGIC, (int32_t)any(3), 1 + (int32_t)any(40), (int32_t)any(3), (int32_t)any(4), 7, 1 + (int32_t)any(3)};
  const float clip = any(2) ? INFINITY : 0.5f;
  const bool lstm = w[1] == LSTM_CELL;
  w[5] |= (int32_t)any(8) << 3, w[6] |= lstm ? (int32_t)any(2) << 2 : 0;
  if (lstm) w[5] |= (int32_t)any(4) << 6;
  const int types[] = {FLOAT, INT8, FLOAT16, BFLOAT16};
  const int type_of_w = types[w[1] != RNN_CELL || !any(8) ? any(4) : 0], type_of_r = types[w[1] != RNN_CELL || !any(8) ? any(4) : 0];
  w[5] |= ((type_of_w == INT8) ^ !any(30)) << CELL_W_SCALE | ((type_of_r == INT8) ^ !any(30)) << CELL_R_SCALE;
  memcpy(w + 7, &clip, 4);
  for (int i = 0; i < 6; i++) w[8 + 3 * i] = (int32_t)any(CELL_FUNCTIONS);
  const int64_t ways = w[3] == BOTH ? 2 : 1, h = w[2], gates = w[1] == RNN_CELL ? 1 : lstm ? 4 : 3;
  const int64_t steps = any(40), rows = any(4) ? any(9) : any(40), width = any(20);
  const int64_t dims[CELL_INPUTS][3] = {{steps, rows, width}, {ways, gates * h, width}, {ways, gates * h, h}, {ways, 2 * gates * h}, {rows}, {ways, rows, h}, {ways, rows, h}, {ways, 3 * h}, {ways, gates * h, 1}, {ways, gates * h, 1}};
  const size_t axes[CELL_INPUTS] = {3, 3, 3, 2, 1, 3, 3, 2, 3, 3};
  tensor inputs[CELL_INPUTS] = {{0}}, constants[CELL_INPUTS] = {{0}};
  int32_t n = 0;
  const bool constant = any(3);
  for (int i = 0; i < CELL_INPUTS; i++) {
    if (!(w[5] >> i & 1)) continue;
    int64_t given[3];
    memcpy(given, dims[i], sizeof given);
    if (!any(60)) given[any((uint32_t)axes[i])] += 1;
    inputs[n] = of(i == CELL_LENGTHS ? INT32 : i == CELL_W ? type_of_w : i == CELL_R ? type_of_r : FLOAT, axes[i], given, (int32_t)steps + !any(8));
    if (constant) constants[n] = inputs[n];
    n++;
  }
  if (!any(8)) w[any(CELL_WORDS)] ^= (int32_t)(any(2) ? 1u << any(32) : any(UINT32_MAX));
  fault why;
  int result = 0;
  cell *c = cell_new(w, any(200) ? sizeof w : any(sizeof w), constants, n, &why);
  const cell_words *words = c ? cell_words_of(c) : 0;
  if (c && cell_shapes(words, inputs, false, &why)) {
    const int64_t *x = inputs[words->input[CELL_X]].dims;
    cell_run_data d = {.inputs = inputs, .steps = x[0], .rows = x[1], .width = x[2]};
    const int64_t state_numbers = directions_of(words) * x[1] * words->hidden;
    for (int i = 0; i < CELL_OUTPUTS; i++)
      if (words->output[i] >= 0) d.outputs[i] = malloc((size_t)(state_numbers * (i == CELL_Y ? x[0] : 1)) * sizeof(float));
    for (int again = 0; again < 2; again++) result |= cell_run(c, &d, any(2) ? backwards : 0, 0, &why);
    for (int i = 0; i < CELL_OUTPUTS; i++) free(d.outputs[i]);
  }
  cell_free(c);
  for (int i = 0; i < CELL_INPUTS; i++) free(inputs[i].data);
  return result;
}

int fuzz_cells(const char *seed, const char *rounds) {
  long results[2] = {0};
  state = strtoull(seed, 0, 10);
  for (long round = strtol(rounds, 0, 10); round--;) results[attempt()]++;
  printf("%ld %ld\n", results[0], results[1]);
  return 0;
}
