"""What is known of every placer, without importing any.

Tables are data, not code: those of the trainer can be read where its package
must not be imported.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import pathlib
import tomllib
from typing import Any, Mapping

from gdp_grappler.placers.policy import shipped_policy

_OWN = pathlib.Path(__file__).parent / 'placers.toml'
# Packages of the trainer that hold placers.
_TRAINERS = 'hdp', 'training'


class Kind(enum.StrEnum):
  """How a placer comes to its placement."""

  CONSTRUCTS = 'constructs'  # By one rule.
  PORTFOLIO = 'portfolio'  # Many proposals, the best by price.
  SEARCHES = 'searches'  # By trying, as long as it may.
  LEARNS = 'learns'


class Need(enum.StrEnum):
  """What a placer cannot do without."""

  EXPERT = 'expert'  # `Problem.expert_devices`.
  GPU = 'GPU'
  HOSTS = 'several hosts'  # Without them, others say as much.
  POLICY = 'policy'
  KERAS_2 = 'Keras 2'  # Its package is that of the trainer.


@dataclasses.dataclass(frozen=True)
class Entry:
  """A placer of the tables `placers.toml`.

  Attributes:
    name: Of the placer, everywhere.
    factory: 'module:class', imported when it is asked for.
    kind: How it works.
    how: What it does, for tables.
    color: '#rrggbb', its own in every picture.
    arguments: For the factory, by name.
    needs: What it cannot do without.
    extra: Of setup.py, with the library it needs; '' for none.
    paper: That it is from, for tables; '' for none.
    same_as: Whose other name this is; '' for a placer of its own. Sets of
      placers leave other names out.
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
    """Whether weights have a part in what it proposes."""
    return self.kind == Kind.LEARNS or Need.POLICY in self.needs

  @property
  def module(self) -> str:
    """Of the factory."""
    return self.factory.partition(':')[0]


@functools.cache
def table() -> Mapping[str, Entry]:
  """All entries by name, in the order of tables."""
  folder = shipped_policy.folder()
  paths = [_OWN, *(folder / name / _OWN.name for name in _TRAINERS if folder)]
  return {entry.name: entry for path in paths for entry in _read(path).values()}


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
