// Element types: ONNX's numbers, which plans use, and the indices in tables of kernels.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7, BOOL = 9, FLOAT16 = 10, DOUBLE = 11, BFLOAT16 = 16 };
typedef enum { F32, I32, I64, F64, B8, ELEMENTS, NO_ELEMENT = ELEMENTS } element;

static inline element element_of(int32_t type) {
  return type == FLOAT ? F32 : type == INT32 ? I32 : type == INT64 ? I64 : type == DOUBLE ? F64 : type == BOOL ? B8 : NO_ELEMENT;
}

// Return the bytes of an element; 0 for an unknown type.
static inline int64_t bytes_of(int32_t type) {
  return type == FLOAT || type == INT32 ? 4 : type == INT64 || type == DOUBLE ? 8 : type == BOOL || type == INT8 || type == UINT8 ? 1 : 0;
}

// Additional types of captured inputs, which are only packed as floats.
static inline int is_narrow(int32_t type) { return type == INT8 || type == UINT8; }
