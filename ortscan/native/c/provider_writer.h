// Parts of a loop written as parts of a model. What things are called is left out: values and sizes are numbered as they are met, and
// what onnxruntime lists in no order is put in one, so that loops which do the same are the same bytes.
#pragma once
#include "labels.h"
#include "protobuf.h"
#include "provider_sources.h"

typedef struct {
  const OrtApi *api;
  const sources *all;
  bytes *out;
  int depth;
  labels *values, sizes, domains;
} writer;

void give_up(writer *w);

// Write the label of a value, "" where it has no name.
void put_name(writer *w, uint32_t field, const char *name);
void write_value(writer *w, uint32_t field, const OrtValueInfo *value);
void write_tensor(writer *w, uint32_t field, const char *name, const OrtValue *value);

// Write an attribute that is no graph.
void write_attribute(writer *w, uint32_t field, const OrtAttribute *attribute);
