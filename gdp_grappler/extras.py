"""Packages that come with an extra, and what to say where one is missing."""

from __future__ import annotations

import importlib.util

from gdp_grappler import errors

# Module -> the package that holds it, and the extra that brings it.
_PACKAGES = {
    'pymetis': ('pymetis', 'metis'),
    'scotchpy': ('scotchpy64', 'baselines'),
    'mtkahypar': ('mtkahypar', 'baselines'),
    'highspy': ('highspy', 'baselines'),
    'matplotlib': ('matplotlib', 'bench'),
    'scipy': ('scipy', 'bench'),
    'plotly': ('plotly', 'report'),
    'PIL': ('pillow', 'report'),
    'shtab': ('shtab', 'completion'),
    'tf_keras': ('tf-keras', 'train'),
    'tf_agents': ('tf-agents', 'train'),
    'tensorflow_gnn': ('tensorflow-gnn', 'train'),
    'tensorflow_probability': ('tensorflow-probability', 'train'),
    'tensorboard': ('tensorboard', 'train'),
    'ray': ('ray', 'ray'),
}
# What learning needs.
TRAIN = tuple(m for m, (_, extra) in _PACKAGES.items() if extra == 'train')
_OF_PLACERS = tuple(
    m for m, (_, extra) in _PACKAGES.items() if extra in ('metis', 'baselines'))
BENCH = tuple(m for m, (_, extra) in _PACKAGES.items() if extra == 'bench')


def require(who: str, *modules: str) -> None:
  """Does nothing if all modules can be imported; imports none.

  Args:
    who: What needs them, as the beginning of a sentence.
    *modules: Of an extra.

  Raises:
    GdpError: one is not installed; says how to install it.
  """
  for module in modules:
    package, extra = _PACKAGES[module]
    if not _is_installed(module):
      raise errors.GdpError(
          f'{who} needs the package {package}, which is not installed. Run: '
          f"pip install 'gdp-grappler[{extra}]'")


def package(module: str) -> str:
  """What to install for a module of an extra."""
  return _PACKAGES[module][0]


def of_placers() -> tuple[str, ...]:
  """Modules that some placers need and that are installed."""
  return tuple(filter(_is_installed, _OF_PLACERS))


def _is_installed(module: str) -> bool:
  try:
    return importlib.util.find_spec(module) is not None
  except ValueError:  # Somebody put None in its place, to hide it.
    return False
