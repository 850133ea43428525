// What a run works through: instructions with addresses that move, in lists that an END ends. See kernels/steps.inc.
#pragma once
#include "task.h"

// What a micro does: an elementwise operation on one row, by its number, or one of these: a task's kernel, a number written 16
// times for the micro after it, nothing more.
// In lists of short rows one of these and an operation: on one number, or with an operand that is what the row before has made.
enum { TASK = OPERATIONS, SPREAD, END, SINGLE, HANDED_1 = SINGLE + OPERATIONS, HANDED_2 = HANDED_1 + OPERATIONS, HANDED_3 = HANDED_2 + OPERATIONS,
       HANDED_4 = HANDED_3 + OPERATIONS, CODES = HANDED_4 + OPERATIONS };

struct micro {
  const task *task;
  int32_t code, n;           // n: numbers in the row
  int32_t on[MOST_OPERANDS]; // -1: the operand is a row; 0: 16 times one number
  int8_t operand;            // SPREAD: which of the task's
  uint8_t moves, turns;      // addresses move with each step; bit k: to and fro
  uint8_t handed;            // the operand that is what the row before has made, or 0
  _Alignas(64) void *p[8]; // eight, so that they move at once; null where there is no operand
  ptrdiff_t step[8];         // in bytes
};

_Static_assert(sizeof(void *) == sizeof(int64_t), "addresses move as 64-bit numbers");
