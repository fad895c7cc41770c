"""The tables of all placers. Reading them imports no placer.

The tables are data files. So a program can read the trainer's table although it
must not import the trainer's package.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import pathlib
import tomllib
from typing import Any, Mapping

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.placers.policy import shipped_policy

# Table of the placers of this package.
_OWN = pathlib.Path(__file__).parent / 'placers.toml'
# Folders of the trainer's package with tables of placers.
_TRAINERS = 'hdp', 'training'


class Kind(enum.StrEnum):
  """How a placer finds its placement."""

  CONSTRUCTS = 'constructs'  # Applies one rule.
  PORTFOLIO = 'portfolio'  # Makes many proposals, keeps the best by price.
  SEARCHES = 'searches'  # Improves placements until its time is over.
  LEARNS = 'learns'  # Its weights ship, or it learns them.


class Need(enum.StrEnum):
  """A condition without which a placer cannot work."""

  EXPERT = 'expert'  # `Problem.expert_devices` is given.
  GPU = 'GPU'
  HOSTS = 'several hosts'  # With one host, other placers propose the same.
  POLICY = 'network'  # The placer takes a folder of a trained network.
  KERAS_2 = 'Keras 2'  # The placer is in the trainer's package.


@dataclasses.dataclass(frozen=True)
class Entry:
  """A placer of the tables `placers.toml`.

  Attributes:
    name: Name of the placer.
    factory: 'module:class'; the module is imported when it is needed.
    kind: How the placer finds its placement.
    how: Description of the placer, for tables.
    color: '#rrggbb', the color of the placer in all pictures.
    arguments: Arguments of the factory, by name.
    needs: Conditions without which the placer cannot work.
    extra: Extra of setup.py with the library that the placer needs; '' for
      none.
    paper: Paper of the method, for tables; '' for none.
    same_as: If the name is an alias, the name of the same placer; '' otherwise.
      Sets of placers leave out aliases.
  """

  name: str
  factory: str
  kind: Kind
  how: str
  color: str
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  needs: frozenset[Need] = frozenset()
  extra: str = ''
  paper: str = ''
  same_as: str = ''

  @property
  def learns(self) -> bool:
    """Whether trained weights influence the placement."""
    return self.kind == Kind.LEARNS or Need.POLICY in self.needs

  @property
  def module(self) -> str:
    """Module of the factory."""
    return self.factory.partition(':')[0]


@functools.cache
def table() -> Mapping[str, Entry]:
  """All entries by name, in the order of tables."""
  folder = shipped_policy.folder()
  paths = [_OWN, *(folder / name / _OWN.name for name in _TRAINERS if folder)]
  return {entry.name: entry for path in paths for entry in _read(path).values()}


def check_uses_policy(name: str) -> None:
  """Checks that a placer of the table takes a network.

  Raises:
    GdpError: it takes none.
  """
  if Need.POLICY not in table()[name].needs:
    raise errors.GdpError(
        f'The placer "{name}" uses no network. Leave '
        f'{spelling.argument("policy")} out, or choose a placer with a '
        'network, such as gdp, gdp_policy or gdp_one_shot.')


def _read(path: pathlib.Path) -> dict[str, Entry]:
  result: dict[str, Entry] = {}
  for name, own in tomllib.loads(path.read_text(encoding='utf-8')).items():
    if 'same_as' in own:
      result[name] = dataclasses.replace(result[own['same_as']], name=name,
                                         **own)
      continue
    result[name] = Entry(
        name=name,
        **(own | {
            'kind': Kind(own['kind']), 'needs': frozenset(
                map(Need, own.get('needs', ())))
        }))
  return result
