// Chooses the kernels for this machine.
#include "task.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SETS = 3 };

#if (defined(__x86_64__) || defined(_M_X64)) && !defined(ONE_ISA) // ONE_ISA: a build for one machine
#include <cpuid.h>
extern const isa isa_x86_64, isa_x86_64_v3, isa_x86_64_v4;

// Return which vector registers the operating system saves.
static uint64_t saved(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static int find(const isa **all) {
  unsigned a, b, c, d;
  int count = 0;
  all[count++] = &isa_x86_64;
  const unsigned fma_avx_f16c = 1u << 12 | 1u << 28 | 1u << 29 | 1u << 27 | 1u << 22; // and xsave, movbe
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & fma_avx_f16c) != fma_avx_f16c || (saved() & 0x6) != 0x6) return count;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return count;
  const unsigned avx2 = 1u << 3 | 1u << 5 | 1u << 8, avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; // with bmi; f, dq, cd, bw, vl
  const unsigned features = b;
  if ((features & avx2) != avx2 || !__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & 1u << 5)) return count; // lzcnt
  all[count++] = &isa_x86_64_v3;
  if ((features & avx512) == avx512 && (saved() & 0xe6) == 0xe6) all[count++] = &isa_x86_64_v4;
  return count;
}
#else
extern const isa isa_generic;
static int find(const isa **all) {
  all[0] = &isa_generic;
  return 1;
}
#endif

// Cached, because on a virtual machine each CPUID instruction takes microseconds.
static int available(const isa **all) {
  static _Atomic(const isa *) known[MOST_SETS];
  static atomic_int known_count;
  int count = atomic_load(&known_count);
  if (!count) {
    count = find(all);
    for (int i = 0; i < count; i++) atomic_store(known + i, all[i]);
    atomic_store(&known_count, count);
  }
  for (int i = 0; i < count; i++) all[i] = atomic_load(known + i);
  return count;
}

const isa *choose_isa(void) {
  const isa *all[MOST_SETS];
  const int count = available(all);
  const char *name = getenv("ORTSCAN_ISA");
  if (!name || !*name) return all[count - 1];
  for (int i = 0; i < count; i++)
    if (!strcmp(all[i]->name, name)) return all[i];
  return 0;
}
