"""A py_test for a folder of tests."""

def pytest_suite(path):
    """Runs tests/PATH with pytest, without the tests marked e2e.

    Args:
      path: A folder or a file below tests/.
    """
    sources = path if path.endswith(".py") else path + "/**/*.py"
    native.py_test(
        name = path.replace("/", "_").replace("_test.py", "") + "_test",
        size = "large",
        srcs = ["//bazel:run_pytest.py"] + native.glob(["tests/" + sources]),
        main = "//bazel:run_pytest.py",
        args = ["tests/" + path],
        deps = [":test_support"],
    )
