#include "provider_claim.h"
#include "exported.h"
#include "provider_accept.h"
#include "provider_model.h"
#include "provider_stored.h"
#include "tensor.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
  char *data;
  size_t count;
} reply;

static _Atomic(planner) known_planner;

EXPORTED void ortscan_set_planner(planner p) { atomic_store(&known_planner, p); }

// Copy the bytes of an answer. Only the first answer counts.
EXPORTED void ortscan_answer(void *question, const void *data, size_t count) {
  reply *r = question;
  if (r->data || count > PTRDIFF_MAX / 2 || !(r->data = malloc(count + 1))) return;
  memcpy(r->data, data, count);
  r->count = count;
}

static char *title_of(const OrtApi *api, const OrtNode *node) {
  const char *name = 0, *operator = 0;
  fault text;
  if (!went_well(api, Node_GetName(node, &name)) || !went_well(api, Node_GetOperatorType(node, &operator)) || !name || !operator) return 0;
  refuse(&text, *name ? "%.20s '%.200s'" : "a %.20s", operator, name);
  return copy_of(text.text);
}

static int type_of(const OrtApi *api, const OrtValueInfo *value) {
  const OrtShape *shape = shape_of(api, value);
  int type = 0;
  return shape && went_well(api, GetTensorElementType(shape, &type)) ? type : 0;
}

// Copy a constant that runs do not pass in.
static bool hold(const OrtApi *api, given *g, const source *s) {
  OrtMemoryInfo *memory = 0;
  if (!went_well(api, read_tensor(api, s->constant, &g->held))) return false;
  const void *data = g->held.data;
  if (!(g->held.data = malloc(s->size + 1))) return false;
  if (s->size) memcpy(g->held.data, data, s->size);
  const bool good = g->held.axes <= MOST_RANK + 1 && went_well(api, CreateCpuMemoryInfo(ARENA_ALLOCATOR, DEFAULT_MEMORY, &memory)) &&
                    went_well(api, CreateTensorWithDataAsOrtValue(memory, g->held.data, s->size, g->held.dims, g->held.axes, g->held.type, &g->value));
  if (memory) ReleaseMemoryInfo(memory);
  return good;
}

static bool list_sources(claim *c, const sources *all) {
  const OrtApi *api = c->host.api;
  if (!(c->sources = calloc(all->count + 1, sizeof *c->sources))) return false;
  for (size_t i = 0; i < all->count; i++) {
    const source *s = all->of + i;
    given *g = c->sources + c->n_sources;
    if (s->label == NO_LABEL) continue;
    c->n_sources++;
    *g = (given){.name = copy_of(s->name), .label = s->label, .type = type_of(api, s->value)};
    const bool is_held = s->inside || (s->captured && !c->host.hands_captures_over);
    if (!g->name || !g->type || (is_held && (!s->constant || !hold(api, g, s)))) return false;
  }
  return true;
}

static bool list_results(claim *c, const OrtNode *node, const labels *values) {
  const OrtApi *api = c->host.api;
  size_t count;
  const OrtValueInfo **outputs = list_of(api, NODE_OUTPUTS, node, &count);
  bool good = outputs && (c->results = calloc(count + 1, sizeof *c->results));
  for (size_t i = 0; i < count && good; i++) {
    const char *name = name_of(api, outputs[i]);
    if (!*name) continue;
    result *r = c->results + c->n_results++;
    *r = (result){copy_of(name), label_of(values, name), type_of(api, outputs[i])};
    good = r->name && r->type && r->type != STRING_ELEMENT;
  }
  free(outputs);
  return good;
}

static bool take(claim *c, const void *data, size_t count, const sources *all, const char *where) {
  answer a;
  fault why;
  const bool good = answer_read(data, count, &a, &why) && claim_accept(c, &a, all, &why);
  answer_free(&a);
  if (!good) log_line(&c->host, LOG_WARNING, "what %s says of %s is not taken: %s", where, c->title, why.text);
  return good;
}

static bool find(claim *c, const sources *all, const OrtModelMetadata *stored) {
  const planner ask = atomic_load(&known_planner);
  size_t count = 0;
  char *data = stored_answer(c->host.api, stored, &c->model, &count);
  bool good = data && take(c, data, count, all, "the model's metadata");
  free(data);
  if (good || !ask) return good;
  reply r = {0};
  ask(c->model.data, c->model.count, c->title, &r);
  good = r.data && take(c, r.data, r.count, all, "the planner");
  free(r.data);
  return good;
}

// Return whether any result of the node is used. Only used results become outputs of the fused node, which is recognised by its outputs.
static bool is_read(const OrtApi *api, const OrtNode *node) {
  size_t count, readers = 0;
  const OrtValueInfo **outputs = list_of(api, NODE_OUTPUTS, node, &count);
  bool found = false, is_output = false;
  for (size_t i = 0; i < count && !found; i++)
    found = *name_of(api, outputs[i]) && ((went_well(api, ValueInfo_GetValueNumConsumers(outputs[i], &readers)) && readers) ||
                                          (went_well(api, ValueInfo_IsGraphOutput(outputs[i], &is_output)) && is_output));
  free(outputs);
  return found;
}

claim *claim_node(const host *h, const OrtGraph *graph, const OrtNode *node, const OrtModelMetadata *stored) {
  const OrtApi *api = h->api;
  const OrtGraph *body = body_of(api, node);
  claim *c = body && is_read(api, node) && (stored || atomic_load(&known_planner)) ? calloc(1, sizeof *c) : 0;
  if (!c) return 0;
  sources all = {0};
  labels values = {0};
  c->host = *h;
  atomic_init(&c->users, 1), atomic_init(&c->inner, 0);
  bool good = (c->title = title_of(api, node)) && sources_of(api, node, body, &all) && write_model(api, graph, node, &all, &values, &c->model);
  good = good && list_sources(c, &all) && list_results(c, node, &values) && find(c, &all, stored);
  labels_free(&values);
  sources_free(&all);
  if (good) return c;
  if (c->title) log_line(h, LOG_INFO, "%s is left as it is", c->title);
  claim_release(c);
  return 0;
}
