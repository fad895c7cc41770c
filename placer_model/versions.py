"""Versions of the software that made a result."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Iterable

import gdp_grappler


def of(packages: Iterable[str]) -> dict[str, str]:
  """Returns the versions of Python, of this project and of other packages."""
  found = {
      'python': platform.python_version(),
      'gdp-grappler': gdp_grappler.__version__
  }
  for package in packages:
    try:
      found[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      found[package] = 'not installed'
  return found
