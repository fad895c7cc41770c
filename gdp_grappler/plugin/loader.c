/* The only file of this package that TensorFlow itself loads.
 *
 * It has no TensorFlow symbols, so that it cannot break the import: it looks
 * up the running version, and either installs the Python hook or says in one
 * line why not. In a process without Python (a C++ server) it does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef GDP_TENSORFLOW_MINOR
#error "Define GDP_TENSORFLOW_MINOR, for example as \"2.21\"."
#endif

typedef const char* (*VersionFunction)(void);
typedef int (*EnsureFunction)(void);
typedef void (*ReleaseFunction)(int);
typedef int (*RunFunction)(const char*);

static const char kInstall[] =
    "def _gdp_install():\n"
    "  try:\n"
    "    from gdp_grappler.plugin import hook\n"
    "    hook.install()\n"
    "  except Exception as error:\n"
    "    import sys\n"
    "    print('[gdp] Placement is off: the hook cannot be installed ('\n"
    "          f'{type(error).__name__}: {error}). Reinstall gdp-grappler, '\n"
    "          'or remove its file from tensorflow-plugins/.',\n"
    "          file=sys.stderr)\n"
    "_gdp_install()\n"
    "del _gdp_install\n";

static int IsDisabled(void) {
  const char* value = getenv("GDP_DISABLE");
  return value && *value && strcmp(value, "0") != 0;
}

/* Returns NULL if TensorFlow is not in the process. */
static const char* RunningVersion(void) {
  static const char* const kLibraries[] = {"libtensorflow_cc.so.2",
                                           "libtensorflow_framework.so.2"};
  for (size_t i = 0; i < sizeof(kLibraries) / sizeof(*kLibraries); ++i) {
    void* library = dlopen(kLibraries[i], RTLD_NOLOAD | RTLD_LAZY);
    if (!library) continue;
    VersionFunction version = (VersionFunction)dlsym(library, "TF_Version");
    if (version) return version();
  }
  return NULL;
}

/* "2.21" fits "2.21.0" and "2.21-rc1" but neither "2.2.1" nor "2.210.0". */
static int Fits(const char* version) {
  size_t length = strlen(GDP_TENSORFLOW_MINOR);
  return version && strncmp(version, GDP_TENSORFLOW_MINOR, length) == 0 &&
         (version[length] < '0' || version[length] > '9');
}

__attribute__((constructor)) static void InstallHook(void) {
  if (IsDisabled()) return;
  EnsureFunction ensure =
      (EnsureFunction)dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
  ReleaseFunction release =
      (ReleaseFunction)dlsym(RTLD_DEFAULT, "PyGILState_Release");
  RunFunction run = (RunFunction)dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
  if (!ensure || !release || !run) return;
  const char* version = RunningVersion();
  if (!Fits(version)) {
    fprintf(stderr,
            "[gdp] Placement is off: gdp-grappler was built for "
            "TensorFlow " GDP_TENSORFLOW_MINOR
            " but %s is running. Reinstall it next to "
            "this TensorFlow (pip install --force-reinstall --no-deps "
            "gdp-grappler), or pip install 'tensorflow==" GDP_TENSORFLOW_MINOR
            ".*'\n",
            version ? version : "an unknown version");
    return;
  }
  int state = ensure();
  run(kInstall);
  release(state);
}
