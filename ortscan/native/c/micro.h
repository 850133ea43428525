// Micros: instructions with moving addresses, in lists that end with END. See kernels/steps.inc.
#pragma once
#include "task.h"

// The code of a micro: the number of an elementwise operation on one row, or one of these: a task's kernel, a scalar repeated 16 times
// for the next micro, or the end. In lists of short rows, one of these plus an operation: on one number, or with the previous row's
// result as an operand.
enum { TASK = OPERATIONS, SPREAD, END, SINGLE, HANDED_1 = SINGLE + OPERATIONS, HANDED_2 = HANDED_1 + OPERATIONS, HANDED_3 = HANDED_2 + OPERATIONS,
       HANDED_4 = HANDED_3 + OPERATIONS, CODES = HANDED_4 + OPERATIONS };

struct micro {
  const task *task;
  int32_t code, n;           // n: numbers in the row
  int32_t on[MOST_OPERANDS]; // -1: the operand is a row; 0: a scalar repeated 16 times
  int8_t operand;            // SPREAD: the operand of the task
  uint8_t moves, turns;      // moves: addresses change each step; turns, bit k: operand k alternates
  uint8_t handed;            // the operand that is the previous row's result, or 0
  _Alignas(64) void *p[8]; // eight, to move all at once; null without an operand
  ptrdiff_t step[8];         // in bytes
};

_Static_assert(sizeof(void *) == sizeof(int64_t), "addresses move as 64-bit numbers");
