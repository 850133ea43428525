#include "provider_profile.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_RUNS = 1 << 15, KERNEL_EVENT = 2, NOT_SAID = -1, MICROSECOND = 1000 };

struct profiled {
  profiled *next;
  char *title, *fused;
};

// `turn`: the number of the run, counted from 1; 0 while the entry is written.
typedef struct {
  atomic_ullong turn;
  const profiled *what;
  int64_t begun, ended;
} one_run;

// `runs`: a ring of the latest runs.
struct profile {
  host host;
  atomic_int users, profilers;
  atomic_ullong count;
  _Atomic(one_run *) runs;
  profiled *names;
};

// `since`: the number of runs when the profile begins. `start`: the time at which onnxruntime's own clock was zero.
typedef struct {
  OrtProfiler base;
  profile *profile;
  unsigned long long since;
  int64_t start;
  bool started;
} profiler;

static int64_t now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

profile *profile_new(const host *h) {
  profile *made = calloc(1, sizeof *made);
  if (made) made->host = *h, atomic_store(&made->users, 1);
  return made;
}

void profile_release(profile *p) {
  if (!p || atomic_fetch_sub(&p->users, 1) > 1) return;
  while (p->names) {
    profiled *next = p->names->next;
    free(p->names->title), free(p->names->fused), free(p->names);
    p->names = next;
  }
  free(atomic_load(&p->runs)), free(p);
}

const profiled *profile_name(profile *p, const char *title, const char *fused) {
  profiled *made = calloc(1, sizeof *made);
  if (!made) return 0;
  made->title = copy_of(title), made->fused = copy_of(fused);
  for (char *c = made->title; c && *c; c++) // onnxruntime writes it unescaped between quotes
    if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '_';
  made->next = p->names, p->names = made;
  return made;
}

int64_t profile_begin(const profile *p) { return atomic_load_explicit(&p->profilers, memory_order_relaxed) ? now() : 0; }

void profile_end(profile *p, const profiled *what, int64_t begun) {
  one_run *runs = atomic_load(&p->runs);
  if (!runs) return;
  const unsigned long long place = atomic_fetch_add(&p->count, 1);
  one_run *run = runs + place % MOST_RUNS;
  atomic_store(&run->turn, 0);
  run->what = what, run->begun = begun, run->ended = now();
  atomic_store(&run->turn, place + 1);
}

static OrtStatus *CALL start(OrtProfiler *base, int64_t since_start) {
  profiler *p = (void *)base;
  profile *all = p->profile;
  const OrtApi *api = all->host.api;
  p->start = now() - since_start;
  one_run *made = atomic_load(&all->runs) ? 0 : calloc(MOST_RUNS, sizeof *made), *there = 0;
  if (made && !atomic_compare_exchange_strong(&all->runs, &there, made)) free(made);
  if (!atomic_load(&all->runs)) return CreateStatus(STATUS_FAIL, "OrtscanExecutionProvider: out of memory");
  p->since = atomic_load(&all->count);
  if (!p->started) atomic_fetch_add(&all->profilers, 1);
  p->started = true;
  return 0;
}

static void stop(profiler *p) {
  if (p->started) atomic_fetch_sub(&p->profile->profilers, 1);
  p->started = false;
}

static OrtStatus *say(const profiler *p, const one_run *run, OrtEvents *events) {
  const OrtApi *api = p->profile->host.api;
  const OrtEpApi *provider_api = GetEpApi();
  const char *keys[] = {"provider", "node"}, *values[] = {"OrtscanExecutionProvider", run->what->fused};
  OrtEvent *event = 0;
  OrtStatus *failed = CreateProfilingEvent(KERNEL_EVENT, NOT_SAID, NOT_SAID, run->what->title, (run->begun - p->start) / MICROSECOND, (run->ended - run->begun) / MICROSECOND, keys, values, 2, &event);
  if (failed) return failed;
  const OrtEvent *only[] = {event};
  failed = ProfilingEventsContainer_AddEvents(events, only, 1);
  ReleaseProfilingEvent(event);
  return failed;
}

static OrtStatus *CALL end(OrtProfiler *base, OrtEvents *events) {
  profiler *p = (void *)base;
  profile *all = p->profile;
  const one_run *runs = atomic_load(&all->runs);
  stop(p);
  const unsigned long long count = atomic_load(&all->count);
  unsigned long long place = count > MOST_RUNS && count - MOST_RUNS > p->since ? count - MOST_RUNS : p->since;
  OrtStatus *failed = 0;
  for (; place < count && runs && !failed; place++) {
    const one_run *run = runs + place % MOST_RUNS;
    if (atomic_load(&run->turn) == place + 1 && run->what && run->what->title && run->what->fused) failed = say(p, run, events);
  }
  return failed;
}

static void CALL release(OrtProfiler *base) {
  profiler *p = (void *)base;
  stop(p);
  profile_release(p->profile);
  free(p);
}

OrtStatus *profiler_new(profile *all, OrtProfiler **made) {
  const OrtApi *api = all->host.api;
  profiler *p = calloc(1, sizeof *p);
  if (!p) return CreateStatus(STATUS_FAIL, "OrtscanExecutionProvider: out of memory");
  atomic_fetch_add(&all->users, 1);
  p->base = (OrtProfiler){.version = PROFILER_VERSION, .Release = release, .StartProfiling = start, .EndProfiling = end};
  p->profile = all;
  return *made = &p->base, (OrtStatus *)0;
}
