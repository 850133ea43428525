#include "provider_claimed.h"
#include "labels.h"
#include <stdlib.h>

void claim_release(claim *c) {
  if (atomic_fetch_sub(&c->users, 1) > 1) return;
  const OrtApi *api = c->host.api;
  inner_free(api, atomic_load(&c->inner));
  for (int32_t i = 0; i < c->n_sources; i++) {
    if (c->sources[i].value) ReleaseValue(c->sources[i].value);
    free(c->sources[i].name), free(c->sources[i].held.data);
  }
  for (int32_t i = 0; i < c->n_results; i++) free(c->results[i].name);
  loop_free(c->loop);
  free(c->title), free(c->model.data), free(c->sources), free(c->results), free(c->inputs), free(c->outputs), free(c->copies), free(c);
}

int32_t source_place(const claim *c, int32_t label) {
  for (int32_t i = 0; i < c->n_sources; i++)
    if (c->sources[i].label == label && label != NO_LABEL) return i;
  return -1;
}

int32_t result_place(const claim *c, int32_t label) {
  for (int32_t i = 0; i < c->n_results; i++)
    if (c->results[i].label == label && label != NO_LABEL) return i;
  return -1;
}
