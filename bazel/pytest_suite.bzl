"""A py_test for many files and folders of tests."""

def pytest_suite(name, paths):
    """Runs tests with pytest, without those marked e2e, in one process.

    Args:
      name: Name of the target.
      paths: Folders and files below tests/.
    """
    sources = [
        "tests/" + (path if path.endswith(".py") else path + "/**/*.py")
        for path in paths
    ]
    native.py_test(
        name = name,
        size = "large",
        srcs = ["//bazel:run_pytest.py"] + native.glob(sources),
        main = "//bazel:run_pytest.py",
        args = ["tests/" + path for path in paths],
        deps = [":test_support"],
    )
