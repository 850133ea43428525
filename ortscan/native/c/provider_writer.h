// Writes parts of a loop as parts of a model. Equal loops give equal bytes: values and sizes are numbered in the order of their first use,
// and lists without a fixed order are sorted.
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

// Write the label of a value, or "" if it has no name.
void put_name(writer *w, uint32_t field, const char *name);
void write_value(writer *w, uint32_t field, const OrtValueInfo *value);
void write_tensor(writer *w, uint32_t field, const char *name, const OrtValue *value);

// Write an attribute that is no graph.
void write_attribute(writer *w, uint32_t field, const OrtAttribute *attribute);
