#include "answer.h"
#include "labels.h"
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAGIC = 0x31414C50, MOST_LISTED = 3 * MOST_PORTS };

typedef struct {
  const char *at;
  size_t left;
  bool bad;
} words;

static int32_t next(words *w) {
  int32_t word = 0;
  if (w->left < sizeof word) return w->bad = true, 0;
  memcpy(&word, w->at, sizeof word);
  w->at += sizeof word, w->left -= sizeof word;
  return word;
}

static int32_t next_label(words *w) {
  const int32_t label = next(w);
  if (label < NO_LABEL) w->bad = true;
  return label;
}

// A constant: its type, rank, dims and bytes, padded to a whole word.
static tensor next_constant(words *w) {
  tensor x = {.type = next(w), .axes = (size_t)next(w)};
  int64_t size = bytes_of(x.type);
  if (!size || x.axes > MOST_RANK + 1) return w->bad = true, x;
  for (size_t d = 0; d < x.axes && !w->bad; d++) {
    x.dims[d] = next(w);
    if (x.dims[d] < 0 || (x.dims[d] && size > MOST_ELEMENTS / x.dims[d])) w->bad = true;
    else size *= x.dims[d];
  }
  const size_t whole = ((size_t)size + WORD - 1) / WORD * WORD;
  if (w->bad || w->left < whole) return w->bad = true, x;
  x.data = (void *)w->at;
  w->at += whole, w->left -= whole;
  return x;
}

bool answer_read(const void *bytes, size_t count, answer *a, fault *why) {
  words w = {bytes, count, false};
  *a = (answer){0};
  if (next(&w) != ANSWER_MAGIC) return refuse(why, "it does not begin as one of this version");
  a->kind = next(&w), a->n_inputs = next(&w), a->n_outputs = next(&w), a->n_copies = next(&w);
  const int32_t content = next(&w);
  if (w.bad || a->kind < A_PLAN || a->kind > A_MODEL || content < 0) return refuse(why, "its first words make no sense");
  if (a->n_inputs < 0 || a->n_outputs < 0 || a->n_copies < 0 || a->n_inputs > MOST_LISTED || a->n_outputs > MOST_LISTED || a->n_copies > MOST_LISTED)
    return refuse(why, "it lists too much");
  a->inputs = calloc((size_t)a->n_inputs + 1, sizeof *a->inputs), a->outputs = calloc((size_t)a->n_outputs + 1, sizeof *a->outputs);
  a->copies = calloc((size_t)a->n_copies + 1, sizeof *a->copies);
  if (!a->inputs || !a->outputs || !a->copies) return refuse(why, "out of memory");
  for (int32_t i = 0; i < a->n_inputs && !w.bad; i++) {
    a->inputs[i].label = next_label(&w);
    if (a->inputs[i].label == NO_LABEL) a->inputs[i].constant = next_constant(&w);
  }
  for (int32_t i = 0; i < a->n_outputs; i++) a->outputs[i] = next_label(&w);
  for (int32_t i = 0; i < a->n_copies; i++) a->copies[i].output = next_label(&w), a->copies[i].source = next_label(&w);
  if (w.bad || w.left != (size_t)content) return refuse(why, "it is cut off or damaged");
  a->content = w.at, a->content_count = w.left;
  return true;
}

void answer_free(answer *a) {
  free(a->inputs), free(a->outputs), free(a->copies);
  *a = (answer){0};
}
