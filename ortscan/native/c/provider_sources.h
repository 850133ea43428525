// The sources of a plan's inputs: inputs of the loop node, captured values, and larger constants of the body.
#pragma once
#include "provider_graph.h"

// `constant`: the value if it is constant, or null. `inside`: it belongs to the body and runs do not pass it in.
// `captured`: it is no input of the node. `label`: its label in the model of the loop.
typedef struct {
  const char *name;
  int32_t label;
  const OrtValueInfo *value;
  const OrtValue *constant;
  size_t size; // bytes of the constant
  bool inside, captured;
} source;

typedef struct {
  source *of;
  size_t count;
} sources;

// List the sources of the node, each name once. Return false if that fails. Call sources_free in any case.
bool sources_of(const OrtApi *api, const OrtNode *node, const OrtGraph *body, sources *all);
void sources_free(sources *all);

const source *source_named(const sources *all, const char *name);
