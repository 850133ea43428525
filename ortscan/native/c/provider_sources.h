// Where the inputs of a plan may come from: what the node of a loop is given, what its body captures, and larger constants of the body.
#pragma once
#include "provider_graph.h"

// `constant`: what the value always is, else null. `inside`: it is of the body, and nobody hands it over in a run.
// `captured`: it is no input of the node. `label`: what it is called in the model of the loop.
typedef struct {
  const char *name;
  int32_t label;
  const OrtValueInfo *value;
  const OrtValue *constant;
  size_t size; // of the constant, in bytes
  bool inside, captured;
} source;

typedef struct {
  source *of;
  size_t count;
} sources;

// Return whether all sources of the node could be listed, each name once. To be freed by sources_free either way.
bool sources_of(const OrtApi *api, const OrtNode *node, const OrtGraph *body, sources *all);
void sources_free(sources *all);

const source *source_named(const sources *all, const char *name);
