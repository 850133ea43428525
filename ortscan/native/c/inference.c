// Infers the types and shapes of a call's outputs from its plan while onnxruntime loads a model.
#include "inference.h"
#include "base64.h"
#include "cell.h"
#include <stdatomic.h>
#include <stdlib.h>

enum { NAME = 32 };

static bool done(const OrtApi *api, OrtStatus *status) {
  if (status) ReleaseStatus(status);
  return !status;
}

// Return the malloced bytes of the attribute, or null.
static char *bytes_of_plan(const OrtApi *api, OrtShapeInferContext *context, size_t *bytes) {
  const OrtAttribute *attribute = 0;
  size_t count = 0;
  if (!done(api, ShapeInferContext_GetAttribute(context, "plan", &attribute))) return 0;
  done(api, ReadOpAttr(attribute, ATTRIBUTE_STRING, 0, 0, &count)); // returns the size, in some versions with the final zero
  char *text = malloc(count + 1);
  bool good = text && count && done(api, ReadOpAttr(attribute, ATTRIBUTE_STRING, text, count, &count));
  if (good && count && !text[count - 1]) count--;
  if (good && base64_decode(text, count, bytes)) return text;
  free(text);
  return 0;
}

// Give a unique name to a size that only a run knows, because equal names mean equal sizes.
static void name_it(char *name) {
  static _Atomic(unsigned long long) count;
  snprintf(name, NAME, "ai.ortscan.%llu", atomic_fetch_add(&count, 1));
}

static bool is_known(const plan *p, int32_t size) {
  for (int32_t s = 1; s <= p->n_symbols; s++)
    if (p->sizes[(int64_t)size * (1 + p->n_symbols) + s]) return false;
  return p->sizes[(int64_t)size * (1 + p->n_symbols)] >= 0;
}

static bool set(const OrtApi *api, OrtShapeInferContext *context, const plan *p, int32_t output, OrtShape *shape) { // of a state or a stack
  const size_t stacked = output >= p->n_states;
  const port *o = stacked ? p->outputs + (output - p->n_states) : p->inputs + output;
  const size_t axes = (size_t)o->rank + stacked;
  int64_t dims[MOST_RANK + 1];
  char names[MOST_RANK + 1][NAME] = {{0}};
  const char *named[MOST_RANK + 1];
  for (size_t d = 0; d < axes; d++) {
    const bool known = d >= stacked && is_known(p, o->dims[d - stacked]);
    dims[d] = known ? p->sizes[(int64_t)o->dims[d - stacked] * (1 + p->n_symbols)] : -1;
    named[d] = names[d];
    if (!known) name_it(names[d]);
  }
  return done(api, SetTensorElementType(shape, o->type)) && done(api, SetDimensions(shape, dims, axes)) &&
         done(api, SetSymbolicDimensions(shape, named, axes)) && done(api, ShapeInferContext_SetOutputTypeShape(context, (size_t)(output - first_output(p)), shape));
}

void infer_outputs(const OrtApi *api, OrtShapeInferContext *context) {
  size_t count;
  fault why;
  char *bytes = bytes_of_plan(api, context, &count);
  plan *p = bytes ? plan_read(bytes, count, &why) : 0;
  bool good = p != 0;
  for (int32_t i = p ? first_output(p) : 0; good && i < p->n_states + p->n_outputs; i++) { // each needs its own shape, because a name cannot be removed again
    OrtShape *shape = 0;
    good = done(api, CreateTensorTypeAndShapeInfo(&shape)) && set(api, context, p, i, shape);
    if (shape) ReleaseTensorTypeAndShapeInfo(shape);
  }
  plan_free(p);
  free(bytes);
}

void infer_cell_outputs(const OrtApi *api, OrtShapeInferContext *context) {
  size_t count;
  fault why;
  cell_words c;
  char *bytes = bytes_of_plan(api, context, &count);
  bool good = bytes && cell_read(bytes, count, &c, &why);
  for (int i = 0; i < CELL_OUTPUTS && good; i++) { // [steps, directions, rows, hidden], and states without steps
    const size_t first = i != CELL_Y;
    const int64_t dims[] = {-1, directions_of(&c), -1, c.hidden};
    char names[2][NAME];
    name_it(names[0]), name_it(names[1]);
    const char *named[] = {names[0], "", names[1], ""};
    OrtShape *shape = 0;
    if (c.output[i] < 0) continue;
    good = done(api, CreateTensorTypeAndShapeInfo(&shape)) && done(api, SetTensorElementType(shape, FLOAT)) && done(api, SetDimensions(shape, dims + first, 4 - first)) &&
           done(api, SetSymbolicDimensions(shape, named + first, 4 - first)) && done(api, ShapeInferContext_SetOutputTypeShape(context, (size_t)c.output[i], shape));
    if (shape) ReleaseTensorTypeAndShapeInfo(shape);
  }
  free(bytes);
}
