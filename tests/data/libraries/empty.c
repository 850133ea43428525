// The source of the libraries beside this file, which zig 0.17 compiled and gzip packed:
//   zig cc -shared -Os -g0 -target aarch64-windows-gnu -nostdlib -s empty.c
//   zig cc -shared -Os -g0 -target aarch64-macos.11.0 -Wl,-install_name,@rpath/libortscan.dylib empty.c
#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
int DllMainCRTStartup(void *a, int b, void *c) { return 1; }
#else
#define EXPORTED __attribute__((visibility("default")))
#endif
EXPORTED int RegisterCustomOps(void) { return 0; }
EXPORTED int CreateEpFactories(void) { return 0; }
EXPORTED int ReleaseEpFactory(void) { return 0; }
EXPORTED int ortscan_set_planner(void) { return 0; }
EXPORTED int ortscan_answer(void) { return 0; }
