#include "tensor.h"
#include "version.h"
#include <stdatomic.h>

enum { MOST_TABLES = 8, SHOWS_SHAPES = 24 };

static _Atomic(const OrtApi *) showing[MOST_TABLES];

void know_table(const OrtApi *api, const char *version) {
  for (int i = 0; i < MOST_TABLES && is_as_of(version, SHOWS_SHAPES); i++) {
    const OrtApi *there = 0;
    if (atomic_compare_exchange_strong(showing + i, &there, api) || there == api) return;
  }
}

static bool shows_shapes(const OrtApi *api) {
  const OrtApi *one = api;
  for (int i = 0; i < MOST_TABLES && one; i++)
    if ((one = atomic_load_explicit(showing + i, memory_order_acquire)) == api) return true;
  return false;
}

OrtStatus *read_tensor(const OrtApi *api, const OrtValue *value, tensor *x) {
  OrtShape *shape = 0;
  OrtStatus *failed = GetTensorMutableData(value, &x->data);
  if (!failed && shows_shapes(api)) {
    const int64_t *dims = 0;
    failed = GetTensorElementTypeAndShapeDataReference(value, &x->type, &dims, &x->axes);
    if (!failed && dims && x->axes && x->axes <= MOST_RANK + 1) memcpy(x->dims, dims, sizeof *dims * x->axes);
    return failed;
  }
  if (failed || (failed = GetTensorTypeAndShape(value, &shape))) return failed;
  failed = GetTensorElementType(shape, &x->type);
  if (!failed) failed = GetDimensionsCount(shape, &x->axes);
  if (!failed && x->axes <= MOST_RANK + 1) failed = GetDimensions(shape, x->dims, x->axes);
  ReleaseTensorTypeAndShapeInfo(shape);
  return failed;
}
