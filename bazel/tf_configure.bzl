"""Makes the repository @local_config_tf from the TensorFlow that pip installed.

It looks into .venv of this tree, or asks the Python that the environment
variable GDP_PYTHON names.
"""

load("//bazel:native_sources.bzl", "TENSORFLOW_MINOR")

# Finds TensorFlow without importing it.
_QUESTION = """
import importlib.metadata, importlib.util, pathlib
spec = importlib.util.find_spec('tensorflow')
print(pathlib.Path(spec.origin).parent if spec else '')
print(importlib.metadata.version('tensorflow') if spec else '')
"""

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "tensorflow",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = [
        "-L{tensorflow}",
        "-l:libtensorflow_cc.so.2",
        "-l:libtensorflow_framework.so.2",
    ],
)

py_runtime(
    name = "python",
    interpreter_path = "{python}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "python_pair",
    py3_runtime = ":python",
)

toolchain(
    name = "python_toolchain",
    toolchain = ":python_pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _tf_configure_impl(ctx):
    python = ctx.os.environ.get("GDP_PYTHON")
    if not python:
        root = ctx.path(Label("//:WORKSPACE")).dirname
        python = "%s/.venv/bin/python" % root
    if not ctx.path(python).exists:
        fail("%s is missing. Run: make install" % python)
    result = ctx.execute([python, "-P", "-c", _QUESTION])
    if result.return_code:
        fail("%s cannot be asked for TensorFlow: %s" % (python, result.stderr))
    tensorflow, version = result.stdout.split("\n")[:2]
    if not version.startswith(TENSORFLOW_MINOR + "."):
        fail("%s has TensorFlow %s, but %s is needed. Run: make install" %
             (python, version or "not at all", TENSORFLOW_MINOR))
    ctx.symlink(tensorflow + "/include", "include")
    ctx.file("version.bzl", 'TENSORFLOW_VERSION = "%s"\n' % version)
    ctx.file("BUILD", _BUILD.format(python = python, tensorflow = tensorflow))

tf_configure = repository_rule(
    implementation = _tf_configure_impl,
    configure = True,
    environ = ["GDP_PYTHON"],
    local = True,
)
