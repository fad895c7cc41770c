"""Defines the rule for a native library of native_sources.bzl."""

load("//bazel:native_sources.bzl", "TENSORFLOW_DEFINES", "WARNINGS")

def native_library(name, spec):
    """Builds gdp_grappler/lib/NAME, where the Python code looks for it.

    Args:
      name: File name of the library.
      spec: Its entry in NATIVE_LIBRARIES.
    """
    tensorflow = spec["tensorflow"]
    defines = spec["defines"] + (TENSORFLOW_DEFINES if tensorflow else [])
    native.cc_binary(
        name = "gdp_grappler/lib/" + name,
        srcs = spec["srcs"] + spec["hdrs"],
        copts = spec["copts"] + WARNINGS,
        # Bazel passes these through a shell.
        local_defines = [d.replace('"', '\\"') for d in defines],
        linkopts = spec["linkopts"] + ["-Wl,-z,defs"],
        linkshared = True,
        deps = ["@local_config_tf//:tensorflow"] if tensorflow else [],
    )
