#include "provider_sources.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 2048, INLINE_BYTES = 1024 };

static bool add(const OrtApi *api, sources *all, const OrtValueInfo *value, bool inside, bool captured) {
  const char *name = name_of(api, value);
  if (!*name || source_named(all, name)) return true;
  source s = {.name = name, .value = value, .constant = constant_of(api, value), .inside = inside, .captured = captured};
  if (s.constant && !went_well(api, GetTensorSizeInBytes(s.constant, &s.size))) return false;
  if (inside && s.size <= INLINE_BYTES) return true; // stays in the body
  all->of[all->count++] = s;
  return true;
}

bool sources_of(const OrtApi *api, const OrtNode *node, const OrtGraph *body, sources *all) {
  size_t n_inputs, n_captures, n_inside, n_outputs;
  const OrtValueInfo **inputs = list_of(api, NODE_INPUTS, node, &n_inputs), **captures = list_of(api, NODE_CAPTURES, node, &n_captures);
  const OrtValueInfo **inside = list_of(api, GRAPH_INITIALIZERS, body, &n_inside), **outputs = list_of(api, NODE_OUTPUTS, node, &n_outputs);
  const size_t most = n_inputs + n_captures + n_inside;
  *all = (sources){0};
  bool good = inputs && captures && inside && outputs && most <= MOST_SOURCES && (all->of = calloc(most + 1, sizeof *all->of));
  for (size_t i = 0; i < n_inputs && good; i++) good = add(api, all, inputs[i], false, false);
  for (size_t i = 0; i < n_captures && good; i++) good = add(api, all, captures[i], false, true);
  for (size_t i = 0; i < n_inside && good; i++) {
    bool is_output = false; // outside the body its name would be ambiguous
    for (size_t k = 0; k < n_outputs; k++) is_output = is_output || !strcmp(name_of(api, outputs[k]), name_of(api, inside[i]));
    if (!is_output) good = add(api, all, inside[i], true, false);
  }
  free(inputs), free(captures), free(inside), free(outputs);
  return good;
}

void sources_free(sources *all) { free(all->of); }

const source *source_named(const sources *all, const char *name) {
  for (size_t i = 0; i < all->count; i++)
    if (!strcmp(all->of[i].name, name)) return all->of + i;
  return 0;
}
