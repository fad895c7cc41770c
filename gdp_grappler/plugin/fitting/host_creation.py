"""Creates variables on the host if a card cannot hold them all.

The first call of `fit` makes a plan, and only then do variables move. Variables
that are created on GPU:0 before that call must fit there. So if the memory of
GPU:0 is short, variables are created on the host. Optimizers of Keras 3 create
each slot on the device of its weight.
"""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any, Sequence, TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler import method_wrapping
from gdp_grappler import variable_scopes
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import switch
from gdp_grappler.plugin import xla

if TYPE_CHECKING:
  from gdp_grappler.plugin import settings as settings_lib

_HOST = cluster_lib.local_name('CPU', 0)
_CARD_LABEL = 'GPU:0'
_CARD = cluster_lib.local_name('GPU', 0)
# Attribute of variables that wait on the host until `fit` moves them.
_WAITS = '_gdp_waits'
_VARIABLES = 'keras.src.backend.tensorflow.core'
_OPTIMIZERS = 'keras.src.optimizers.base_optimizer'
# Tensors that training adds per weight: slots as Adam has them, and a gradient.
# The number of slots of another optimizer is not known beforehand.
_PER_WEIGHT = 3
# Copies that exist while a variable is created: the variable, its initial
# value, and the source of this value.
_WHILE_MADE = 3


class made_on_host(contextlib.AbstractContextManager[Any]):
  """In this scope, variables are created on the host while the option is on.

  Use it for models that one card cannot hold. `fit` plans its first step, and
  moves each variable and its slots to the devices of the plan. Other calls move
  nothing: `predict` of a model that was never fitted reads variables from the
  host, unless `gdp_grappler.relocate` has moved them. While the option is off
  or has `'mode': 'report'`, the scope does nothing.

    with gdp_grappler.made_on_host():
      model = keras.Sequential([...])
    model.compile('adam', 'mse')
    model.fit(x, y)

  This is a class, because AutoGraph would convert a generator.
  """

  def __init__(self) -> None:
    self._exits: list[contextlib.ExitStack] = []

  def __enter__(self) -> None:
    stack = contextlib.ExitStack()
    settings = switch.settings()
    if settings is not None and settings.mode == 'apply':
      import tensorflow as tf
      stack.enter_context(tf.variable_creator_scope(_on_host))
    self._exits.append(stack)

  def __exit__(self, *exception: Any) -> None:
    self._exits.pop().close()


def _on_host(next_creator: Any, **kwargs: Any) -> Any:
  import tensorflow as tf
  with tf.device(_HOST), variable_scopes.unnoted():
    variable = next_creator(**kwargs)
  setattr(variable, _WAITS, True)
  return variable


def waits_on_host(variable: Any) -> bool:
  """Whether a variable is on the host only until `fit` moves it.

  A variable that `fit` has moved to a GPU no longer waits, because its updates
  would round differently on the CPU.

  Args:
    variable: A `tf.Variable`.
  """
  return getattr(variable, _WAITS, False) and variable.device == _HOST


@functools.cache
def install() -> None:
  """Makes Keras 3, once it is imported, look at the room on the card."""
  import wrapt
  wrapt.register_post_import_hook(_wrap_variables, _VARIABLES)
  wrapt.register_post_import_hook(_wrap_optimizers, _OPTIMIZERS)


def _wrap_variables(module: Any) -> None:
  method_wrapping.wrap(module.Variable, '_initialize_with_initializer',
                       _initialize)


def _initialize(stock: Any, self: Any, initializer: Any) -> None:
  """Makes a variable, on the host if the card has no room for it."""
  needs = _WHILE_MADE * _bytes(self)
  if switch.settings() is None or _goes_elsewhere() or not _is_short_of(needs):
    stock(self, initializer)
    return
  notices.say_once('GPU:0 has no room for all weights: some are made on the '
                   'host, and fit moves them to their devices')
  with made_on_host():
    stock(self, initializer)


def _goes_elsewhere() -> bool:
  """Whether a scope of `tf.device` puts new variables on other devices."""
  from tensorflow.python.eager import context
  return context.context().device_name not in (None, '', _CARD)


def _wrap_optimizers(module: Any) -> None:
  method_wrapping.wrap(module.BaseOptimizer, 'build', _build)


def _build(stock: Any, self: Any, variables: Sequence[Any]) -> Any:
  """Makes the slots of an optimizer. First moves weights if memory is short."""
  settings = switch.settings()
  if not self.built and settings is not None:
    _make_room(variables, settings.keeps_asked)
  return stock(self, variables)


def _make_room(variables: Sequence[Any], keeps_asked: bool) -> None:
  """Moves weights to the host if GPU:0 has no room for slots and gradients.

  Args:
    variables: The weights of an optimizer.
    keeps_asked: Whether weights stay that the program put there by `tf.device`.
  """
  on_card = [v for v in variables if _device(v) == _CARD]
  here = [
      v for v in on_card
      if not (keeps_asked and variable_scopes.device(v.value))
  ]
  if not here or not _is_short_of(_PER_WEIGHT * sum(map(_bytes, on_card))):
    return
  from gdp_grappler.plugin.fitting import variable_moves
  free = variable_moves.movable(v.value for v in here)
  if len(free) < len(here):
    return  # Some weights belong to a strategy, or a dataset reads them.
  notices.say_once('GPU:0 has no room for the slots of the optimizer: weights '
                   'and slots wait on the host, and fit moves them to their '
                   'devices')
  variable_moves.move((v, _HOST) for v in free)
  for variable in free:
    setattr(variable, _WAITS, True)


def _device(variable: Any) -> str:
  return str(getattr(getattr(variable, 'value', None), 'device', ''))


def _bytes(variable: Any) -> int:
  import tensorflow as tf
  return int(math.prod(variable.shape) * tf.as_dtype(variable.dtype).size)


def _is_short_of(needs_bytes: int) -> bool:
  """Whether variables go to the host, as GPU:0 has too few bytes for them.

  If the option keeps XLA (`Handling.KEPT`), variables stay: Keras compiles by
  XLA on a GPU by default, and `fit` moves no variables of a compiled model. A
  user who compiles the model without XLA has to ask for the host.
  """
  left = left_bytes()
  if left is None or needs_bytes <= left:
    return False
  settings = switch.settings()
  if settings is None or xla.handling(settings) is not xla.Handling.KEPT:
    return True
  notices.say_once('GPU:0 may have no room for all weights and slots: they '
                   'stay there, because the option leaves the model to XLA. If '
                   'you compile it with jit_compile=False, make it in '
                   'gdp_grappler.made_on_host()')
  return False


def left_bytes() -> int | None:
  """Returns the bytes that GPU:0 has left for variables.

  They are the bytes that a plan may use, minus those that TensorFlow has
  allocated. None means that `fit` would not bring variables back from the host
  even without XLA, that there is no GPU:0, or that its memory is unknown.
  """
  import tensorflow as tf

  from gdp_grappler.plugin import devices
  settings = switch.settings()
  names = tuple(devices.names())
  if (settings is None or not _brings_back(settings, names) or
      not any(name.endswith(_CARD_LABEL) for name in names)):
    return None
  room = _room_bytes(settings, names)
  if room is None:
    return None
  taken = tf.config.experimental.get_memory_info(_CARD_LABEL)['current']
  return room - int(taken)


def _brings_back(settings: settings_lib.Settings, names: tuple[str,
                                                               ...]) -> bool:
  """Whether `fit`, without XLA, would move variables from the host."""
  from gdp_grappler.plugin import devices
  return (settings.mode == 'apply' and settings.move_variables and
          not devices.why_no_choice(names, settings))


@functools.lru_cache(maxsize=8)
def _room_bytes(settings: settings_lib.Settings,
                names: tuple[str, ...]) -> int | None:
  """Returns the bytes of GPU:0 that plans may use; None if unknown."""
  from gdp_grappler.plugin import task_links
  try:
    cluster = task_links.of(settings, names)
    card = cluster.device_index(_CARD_LABEL)
  except errors.GdpError:
    return None  # The placement of a step reports this error.
  return int(cluster.pool_bytes[cluster.memory_pools[card]])
