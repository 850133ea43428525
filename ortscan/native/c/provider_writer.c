#include "provider_writer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Field numbers of ONNX's messages.
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_S = 4, ATTRIBUTE_T = 5, ATTRIBUTE_FLOATS = 7, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { IS_FLOAT = 1, IS_INT = 2, IS_STRING = 3, IS_TENSOR = 4, IS_FLOATS = 6, IS_INTS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_DATA = 9, TYPE_STRING = 8 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2, SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };
enum { MOST_AXES = 64 };

void give_up(writer *w) { w->out->bad = true; }

static void put_labelled(writer *w, uint32_t field, char letter, int32_t label) {
  char text[16];
  snprintf(text, sizeof text, "%c%d", letter, (int)label);
  if (label == NO_LABEL) give_up(w);
  else put_text(w->out, field, text);
}

void put_name(writer *w, uint32_t field, const char *name) {
  if (*name) put_labelled(w, field, 'v', label_for(w->values, name));
  else put_text(w->out, field, name);
}

static bool dims_of(const writer *w, const OrtShape *shape, int *type, size_t *axes, int64_t *dims) {
  const OrtApi *api = w->api;
  if (!shape || !went_well(api, GetTensorElementType(shape, type)) || !went_well(api, GetDimensionsCount(shape, axes)) || *axes > MOST_AXES) return false;
  return !*axes || went_well(api, GetDimensions(shape, dims, *axes));
}

void write_value(writer *w, uint32_t field, const OrtValueInfo *value) {
  const OrtApi *api = w->api;
  const OrtShape *shape = shape_of(api, value);
  int type = 0;
  size_t axes = 0;
  int64_t dims[MOST_AXES];
  const char *symbols[MOST_AXES] = {0};
  if (!dims_of(w, shape, &type, &axes, dims) || (axes && !went_well(api, GetSymbolicDimensions(shape, symbols, axes)))) {
    give_up(w);
    return;
  }
  const size_t all = put_begin(w->out, field);
  put_name(w, VALUE_NAME, name_of(api, value));
  const size_t typed = put_begin(w->out, VALUE_TYPE), tensor = put_begin(w->out, TYPE_TENSOR);
  put_number(w->out, TENSOR_ELEMENT, type);
  if (TensorTypeAndShape_HasShape(shape)) {
    const size_t sized = put_begin(w->out, TENSOR_SHAPE);
    for (size_t d = 0; d < axes; d++) {
      const size_t dim = put_begin(w->out, SHAPE_DIM);
      if (dims[d] >= 0) put_number(w->out, DIM_VALUE, dims[d]);
      else if (symbols[d] && *symbols[d]) put_labelled(w, DIM_NAME, 'd', label_for(&w->sizes, symbols[d]));
      put_end(w->out, dim);
    }
    put_end(w->out, sized);
  }
  put_end(w->out, tensor), put_end(w->out, typed), put_end(w->out, all);
}

void write_tensor(writer *w, uint32_t field, const char *name, const OrtValue *value) {
  const OrtApi *api = w->api;
  OrtShape *shape = 0;
  void *data = 0;
  int type = 0;
  size_t axes = 0, size = 0;
  int64_t dims[MOST_AXES];
  bool good = value && went_well(api, GetTensorTypeAndShape(value, &shape)) && dims_of(w, shape, &type, &axes, dims);
  if (shape) ReleaseTensorTypeAndShapeInfo(shape);
  good = good && type != TYPE_STRING && went_well(api, GetTensorSizeInBytes(value, &size)) && went_well(api, GetTensorMutableData(value, &data));
  if (!good || (size && !data)) {
    give_up(w);
    return;
  }
  const size_t all = put_begin(w->out, field);
  for (size_t d = 0; d < axes; d++) put_number(w->out, TENSOR_DIMS, dims[d]);
  put_number(w->out, TENSOR_TYPE, type);
  put_name(w, TENSOR_NAME, name);
  put_bytes(w->out, TENSOR_DATA, data, size);
  put_end(w->out, all);
}

// Return the content of an attribute, which the caller frees, and its bytes.
static void *content_of(const OrtApi *api, const OrtAttribute *attribute, int type, size_t *size) {
  *size = 0;
  const bool is_word = type == INT_ATTRIBUTE || type == FLOAT_ATTRIBUTE;
  int64_t word = 0;
  if (is_word && went_well(api, ReadOpAttr(attribute, type, &word, type == INT_ATTRIBUTE ? sizeof word : sizeof(float), size))) {
    void *content = calloc(1, sizeof word);
    return content ? memcpy(content, &word, sizeof word) : 0;
  }
  const bool read = went_well(api, ReadOpAttr(attribute, type, 0, 0, size)); // returns the size and an error, which is slow
  void *content = calloc(*size + 1, 1);
  if (!content || (read && !*size) || went_well(api, ReadOpAttr(attribute, type, content, *size, size))) return content;
  free(content);
  return 0;
}

void write_attribute(writer *w, uint32_t field, const OrtAttribute *attribute) {
  const OrtApi *api = w->api;
  const char *name = 0;
  int type = NO_ATTRIBUTE;
  if (!went_well(api, OpAttr_GetType(attribute, &type)) || !went_well(api, OpAttr_GetName(attribute, &name)) || !name) give_up(w);
  if (w->out->bad || type == GRAPH_ATTRIBUTE) return;
  const size_t all = put_begin(w->out, field);
  put_text(w->out, ATTRIBUTE_NAME, name);
  if (type == TENSOR_ATTRIBUTE) {
    OrtValue *value = 0;
    put_number(w->out, ATTRIBUTE_TYPE, IS_TENSOR);
    if (went_well(api, OpAttr_GetTensorAttributeAsOrtValue(attribute, &value))) write_tensor(w, ATTRIBUTE_T, "", value);
    else give_up(w);
    if (value) ReleaseValue(value);
    put_end(w->out, all);
    return;
  }
  size_t size = 0;
  void *content = content_of(api, attribute, type, &size);
  const int64_t *ints = content;
  const float *floats = content;
  if (!content) give_up(w);
  else if (type == INT_ATTRIBUTE && size == sizeof *ints) put_number(w->out, ATTRIBUTE_TYPE, IS_INT), put_number(w->out, ATTRIBUTE_I, *ints);
  else if (type == FLOAT_ATTRIBUTE && size == sizeof *floats) put_number(w->out, ATTRIBUTE_TYPE, IS_FLOAT), put_float(w->out, ATTRIBUTE_F, *floats);
  else if (type == STRING_ATTRIBUTE) put_number(w->out, ATTRIBUTE_TYPE, IS_STRING), put_text(w->out, ATTRIBUTE_S, content);
  else if (type == INTS_ATTRIBUTE) {
    put_number(w->out, ATTRIBUTE_TYPE, IS_INTS);
    for (size_t i = 0; i < size / sizeof *ints; i++) put_number(w->out, ATTRIBUTE_INTS, ints[i]);
  } else if (type == FLOATS_ATTRIBUTE) {
    put_number(w->out, ATTRIBUTE_TYPE, IS_FLOATS);
    for (size_t i = 0; i < size / sizeof *floats; i++) put_float(w->out, ATTRIBUTE_FLOATS, floats[i]);
  } else give_up(w);
  free(content);
  put_end(w->out, all);
}
