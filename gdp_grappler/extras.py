"""Optional packages, and the error if one of them is not installed."""

from __future__ import annotations

import importlib.util

from gdp_grappler import errors

# Module -> its package, and the extra of gdp-grappler that installs it.
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
# Modules that the training of networks needs.
TRAIN = tuple(m for m, (_, extra) in _PACKAGES.items() if extra == 'train')
_OF_PLACERS = tuple(
    m for m, (_, extra) in _PACKAGES.items() if extra in ('metis', 'baselines'))
BENCH = tuple(m for m, (_, extra) in _PACKAGES.items() if extra == 'bench')


def require(who: str, *modules: str) -> None:
  """Raises an error unless all modules are installed. Imports none of them.

  Args:
    who: What needs the modules; the first words of the message.
    *modules: Modules of extras.

  Raises:
    GdpError: a module is not installed. The message says how to install it.
  """
  for module in modules:
    package, extra = _PACKAGES[module]
    if not _is_installed(module):
      raise errors.GdpError(
          f'{who} needs the package {package}, which is not installed. Run: '
          f"pip install 'gdp-grappler[{extra}]'")


def package(module: str) -> str:
  """Returns the name of the package of a module."""
  return _PACKAGES[module][0]


def of_placers() -> tuple[str, ...]:
  """Returns the installed modules among those that some placers need."""
  return tuple(filter(_is_installed, _OF_PLACERS))


def _is_installed(module: str) -> bool:
  try:
    return importlib.util.find_spec(module) is not None
  except ValueError:  # The program hides the module: its entry is None.
    return False
