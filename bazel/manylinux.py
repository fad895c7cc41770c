"""Finds the platform tag of libraries by the symbols they need (PEP 600)."""

from __future__ import annotations

import pathlib
import re
import subprocess
from typing import Iterable

# Release of glibc -> the newest symbols of libstdc++ in distributions with this
# glibc, according to auditwheel's policies.
_POLICIES = {
    (2, 28): {'GLIBCXX': (3, 4, 24), 'CXXABI': (1, 3, 11)},
    (2, 31): {'GLIBCXX': (3, 4, 28), 'CXXABI': (1, 3, 12)},
    (2, 34): {'GLIBCXX': (3, 4, 29), 'CXXABI': (1, 3, 13)},
    (2, 35): {'GLIBCXX': (3, 4, 30), 'CXXABI': (1, 3, 13)},
    (2, 39): {'GLIBCXX': (3, 4, 33), 'CXXABI': (1, 3, 15)},
}
_SYMBOL = re.compile(r'\b(GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\b')

Version = tuple[int, ...]


def platform(libraries: Iterable[pathlib.Path], machine: str) -> str | None:
  """Returns a tag such as 'manylinux_2_35_x86_64' for libraries.

  None means that the libraries are too new for any tag.

  Args:
    libraries: Shared objects.
    machine: Architecture, such as 'x86_64'.
  """
  needed = newest(
      subprocess.run(['objdump', '-T', *map(str, libraries)], check=True,
                     capture_output=True, text=True).stdout)
  for glibc, policy in _POLICIES.items():
    if all(version <= {'GLIBC': glibc, **policy}[name]
           for name, version in needed.items()):
      return f'manylinux_{glibc[0]}_{glibc[1]}_{machine}'
  return None


def newest(symbols: str) -> dict[str, Version]:
  """Returns the newest version of each library in a table of symbols."""
  result: dict[str, Version] = {}
  for name, text in _SYMBOL.findall(symbols):
    version = tuple(map(int, text.split('.')))
    result[name] = max(version, result.get(name, version))
  return result
