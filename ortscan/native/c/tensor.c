#include "tensor.h"

OrtStatus *read_tensor(const OrtApi *api, const OrtValue *value, tensor *x) {
  OrtShape *shape = 0;
  OrtStatus *failed = GetTensorMutableData(value, &x->data);
  if (failed || (failed = GetTensorTypeAndShape(value, &shape))) return failed;
  failed = GetTensorElementType(shape, &x->type);
  if (!failed) failed = GetDimensionsCount(shape, &x->axes);
  if (!failed && x->axes <= MOST_RANK + 1) failed = GetDimensions(shape, x->dims, x->axes);
  ReleaseTensorTypeAndShapeInfo(shape);
  return failed;
}
