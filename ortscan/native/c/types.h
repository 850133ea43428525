// The types of elements, by ONNX's numbers, which plans have, and as the tables of kernels count them.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7, BOOL = 9, DOUBLE = 11 };
typedef enum { F32, I32, I64, F64, B8, ELEMENTS, NO_ELEMENT = ELEMENTS } element;

static inline element element_of(int32_t type) {
  return type == FLOAT ? F32 : type == INT32 ? I32 : type == INT64 ? I64 : type == DOUBLE ? F64 : type == BOOL ? B8 : NO_ELEMENT;
}

// The bytes of one element; 0 where there is no such type.
static inline int64_t bytes_of(int32_t type) {
  return type == FLOAT || type == INT32 ? 4 : type == INT64 || type == DOUBLE ? 8 : type == BOOL || type == INT8 || type == UINT8 ? 1 : 0;
}

// Types that a captured input may have beside those of elements, to be packed as floats and for nothing else.
static inline int is_narrow(int32_t type) { return type == INT8 || type == UINT8; }
