"""Ways to run a model on one card, for `benchmarks.one_card`."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

_CLUSTERED: Mapping[str, str] = {'TF_XLA_FLAGS': '--tf_xla_auto_jit=2'}


@dataclasses.dataclass(frozen=True)
class Way:
  """A way in which a model runs.

  Attributes:
    what: Description of the way for the table.
    option: Value of the option; False for off.
    variables: Variables of the environment.
    lets_keras_choose: Whether Keras may choose XLA.
    warm: Steps before the steps that are timed. They last until the guard has
      chosen.
  """

  what: str
  option: Any = False
  variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
  lets_keras_choose: bool = False
  warm: int = 4

  @property
  def needs_card(self) -> bool:
    """Whether the way cuts a card into several logical GPUs."""
    return isinstance(self.option, dict) and 'split' in self.option


def _split(into: int) -> dict[str, Any]:
  """Returns an option that places on parts of a card, without a guard."""
  return {'split': into, 'guard': False}


# Steps until the guard has chosen. It times four ways, at most eight steps
# each.
_UNTIL_CHOSEN = 36
WAYS = {
    'xla':
        Way("Keras' default, XLA on a GPU", lets_keras_choose=True),
    'plain':
        Way('without XLA'),
    'clusters':
        Way('XLA clusters in the device', variables=_CLUSTERED),
    'split2':
        Way('placed on 2 streams', _split(2)),
    'split2_clusters':
        Way('placed on 2 streams, with clusters', _split(2), _CLUSTERED),
    'split4':
        Way('placed on 4 streams', _split(4)),
    'split4_clusters':
        Way('placed on 4 streams, with clusters', _split(4), _CLUSTERED),
    'true':
        Way('what True chooses', True, lets_keras_choose=True,
            warm=_UNTIL_CHOSEN),
    'split_auto':
        Way("what {'split': 'auto'} chooses", {'split': 'auto'},
            lets_keras_choose=True, warm=_UNTIL_CHOSEN),
}
