import platform

import numpy as np

import gdp_grappler
from placer_model import versions


def test_python_this_project_and_what_is_asked_for():
  assert versions.of(['numpy', 'no-such-package']) == {
      'python': platform.python_version(),
      'gdp-grappler': gdp_grappler.__version__, 'numpy': np.__version__,
      'no-such-package': 'not installed'
  }
