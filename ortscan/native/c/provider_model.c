#include "provider_model.h"
#include "provider_writer.h"
#include <stdlib.h>
#include <string.h>

// Field numbers of ONNX's messages.
enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OPERATOR = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_G = 6, ATTRIBUTE_TYPE = 20, IS_GRAPH = 5 };
enum { VERSION = 10, MOST_DEPTH = 16, SMALL = 64 << 10 };

static void write_graph(writer *w, const OrtGraph *graph);

static void write_bodies(writer *w, const OrtNode *node) {
  const OrtApi *api = w->api;
  size_t count = 0;
  if (!went_well(api, Node_GetNumSubgraphs(node, &count)) || count > 2 || (count && ++w->depth > MOST_DEPTH)) {
    give_up(w);
    return;
  }
  const OrtGraph *bodies[2] = {0};
  const char *names[2] = {0};
  if (count && !went_well(api, Node_GetSubgraphs(node, bodies, count, names))) give_up(w);
  const size_t first = count > 1 && names[0] && names[1] && strcmp(names[0], names[1]) > 0;
  for (size_t i = 0; i < count && !w->out->bad; i++) {
    const size_t all = put_begin(w->out, NODE_ATTRIBUTE);
    put_text(w->out, ATTRIBUTE_NAME, names[i ^ first]);
    put_number(w->out, ATTRIBUTE_TYPE, IS_GRAPH);
    const size_t body = put_begin(w->out, ATTRIBUTE_G);
    write_graph(w, bodies[i ^ first]);
    put_end(w->out, body), put_end(w->out, all);
  }
  if (count) w->depth--;
}

// Attributes are sorted by name, because onnxruntime lists them in no fixed order.
static void write_attributes(writer *w, const OrtAttribute **attributes, size_t count) {
  const OrtApi *api = w->api;
  const char **names = calloc(count + 1, sizeof *names);
  bool good = names;
  for (size_t i = 0; i < count && good; i++) good = went_well(api, OpAttr_GetName(attributes[i], names + i)) && names[i];
  for (size_t k = 0; k < count && good; k++) {
    size_t least = count;
    for (size_t i = 0; i < count; i++)
      if (names[i] && (least == count || strcmp(names[i], names[least]) < 0)) least = i;
    write_attribute(w, NODE_ATTRIBUTE, attributes[least]);
    names[least] = 0;
  }
  if (!good) give_up(w);
  free(names);
}

static void write_node(writer *w, const OrtNode *node) {
  const OrtApi *api = w->api;
  const char *operator = 0, *domain = 0;
  size_t n_inputs, n_outputs, n_attributes;
  const OrtValueInfo **inputs = list_of(api, NODE_INPUTS, node, &n_inputs), **outputs = list_of(api, NODE_OUTPUTS, node, &n_outputs);
  const OrtAttribute **attributes = list_of(api, NODE_ATTRIBUTES, node, &n_attributes);
  const bool good = inputs && outputs && attributes && went_well(api, Node_GetOperatorType(node, &operator)) && operator;
  if (!good || !went_well(api, Node_GetDomain(node, &domain)) || !domain) give_up(w);
  else {
    const size_t all = put_begin(w->out, GRAPH_NODE);
    for (size_t i = 0; i < n_inputs; i++) put_name(w, NODE_INPUT, name_of(api, inputs[i]));
    for (size_t i = 0; i < n_outputs; i++) put_name(w, NODE_OUTPUT, name_of(api, outputs[i]));
    put_text(w->out, NODE_OPERATOR, operator);
    put_text(w->out, NODE_DOMAIN, domain);
    if (label_for(&w->domains, strcmp(domain, "ai.onnx") ? domain : "") == NO_LABEL) give_up(w);
    write_attributes(w, attributes, n_attributes);
    if (!w->out->bad) write_bodies(w, node);
    put_end(w->out, all);
  }
  free(inputs), free(outputs), free(attributes);
}

typedef struct {
  int32_t label;
  const OrtValueInfo *value;
} labelled;

static int by_label(const void *one, const void *other) {
  const int32_t a = ((const labelled *)one)->label, b = ((const labelled *)other)->label;
  return (a > b) - (a < b);
}

// Write the sources that are used, in the order of their use.
static void write_constants(writer *w, const OrtGraph *graph) {
  const OrtApi *api = w->api;
  size_t count;
  const OrtValueInfo **constants = list_of(api, GRAPH_INITIALIZERS, graph, &count);
  labelled *all = calloc(count + 1, sizeof *all);
  if (!constants || !all) give_up(w);
  else {
    for (size_t i = 0; i < count; i++) all[i] = (labelled){label_of(w->values, name_of(api, constants[i])), constants[i]};
    qsort(all, count, sizeof *all, by_label);
    for (size_t i = 0; i < count && !w->out->bad; i++) {
      const char *name = name_of(api, all[i].value);
      const source *s = w->depth == 1 ? source_named(w->all, name) : 0;
      if (all[i].label != NO_LABEL && (!s || !s->inside)) write_tensor(w, GRAPH_INITIALIZER, name, constant_of(api, all[i].value));
    }
  }
  free(constants), free(all);
}

static void write_graph(writer *w, const OrtGraph *graph) {
  const OrtApi *api = w->api;
  size_t n_inputs, n_outputs, n_nodes;
  const OrtValueInfo **inputs = list_of(api, GRAPH_INPUTS, graph, &n_inputs), **outputs = list_of(api, GRAPH_OUTPUTS, graph, &n_outputs);
  const OrtNode **nodes = list_of(api, GRAPH_NODES, graph, &n_nodes);
  if (!inputs || !outputs || !nodes) give_up(w);
  put_text(w->out, GRAPH_NAME, "body");
  for (size_t i = 0; i < n_nodes && !w->out->bad; i++) write_node(w, nodes[i]);
  for (size_t i = 0; i < n_inputs && !w->out->bad; i++) write_value(w, GRAPH_INPUT, inputs[i]);
  for (size_t i = 0; i < n_outputs && !w->out->bad; i++) write_value(w, GRAPH_OUTPUT, outputs[i]);
  if (!w->out->bad) write_constants(w, graph);
  free(inputs), free(outputs), free(nodes);
}

// Write the versions of the operator sets in use.
static void write_opsets(writer *w, const OrtGraph *graph) {
  const OrtApi *api = w->api;
  size_t count = 0;
  if (!went_well(api, Graph_GetNumOperatorSets(graph, &count))) give_up(w);
  const char **domains = calloc(count + 1, sizeof *domains);
  int64_t *versions = calloc(count + 1, sizeof *versions);
  if (!domains || !versions || !went_well(api, Graph_GetOperatorSets(graph, domains, versions, count))) give_up(w);
  for (int32_t met = 0; met < w->domains.count; met++)
    for (size_t i = 0; i < count && !w->out->bad; i++) {
      if (strcmp(strcmp(domains[i], "ai.onnx") ? domains[i] : "", w->domains.names[met])) continue;
      const size_t all = put_begin(w->out, MODEL_OPSET);
      put_text(w->out, OPSET_DOMAIN, w->domains.names[met]);
      put_number(w->out, OPSET_VERSION, versions[i]);
      put_end(w->out, all);
    }
  free(domains), free(versions);
}

static int by_label_of_source(const void *one, const void *other) {
  const int32_t a = ((const source *)one)->label, b = ((const source *)other)->label;
  return (a > b) - (a < b);
}

static void write_sources(writer *w, sources *all) {
  for (size_t i = 0; i < all->count; i++) all->of[i].label = label_of(w->values, all->of[i].name);
  qsort(all->of, all->count, sizeof *all->of, by_label_of_source);
  for (size_t i = 0; i < all->count && !w->out->bad; i++) {
    const source *s = all->of + i;
    if (s->label == NO_LABEL) continue; // unused
    if (s->constant && s->size <= SMALL) write_tensor(w, GRAPH_INITIALIZER, s->name, s->constant);
    else write_value(w, GRAPH_INPUT, s->value);
  }
}

bool write_model(const OrtApi *api, const OrtGraph *graph, const OrtNode *node, sources *all, labels *values, bytes *out) {
  writer w = {.api = api, .all = all, .out = out, .values = values};
  size_t n_outputs;
  const OrtValueInfo **outputs = list_of(api, NODE_OUTPUTS, node, &n_outputs);
  if (!outputs) give_up(&w);
  put_number(out, MODEL_IR_VERSION, VERSION);
  const size_t main = put_begin(out, MODEL_GRAPH);
  put_text(out, GRAPH_NAME, "loop");
  if (!out->bad) write_node(&w, node);
  if (!out->bad) write_sources(&w, all);
  for (size_t i = 0; i < n_outputs && !out->bad; i++)
    if (*name_of(api, outputs[i])) write_value(&w, GRAPH_OUTPUT, outputs[i]);
  put_end(out, main);
  if (!out->bad) write_opsets(&w, graph);
  labels_free(&w.sizes), labels_free(&w.domains);
  free(outputs);
  return !out->bad;
}
