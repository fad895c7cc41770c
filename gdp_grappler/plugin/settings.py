"""The keys of the `gdp_placement` option."""

from __future__ import annotations

import dataclasses
import json
import operator
from typing import Any, Callable, Mapping

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import suggestions
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.graph import assumptions

MODES = ('apply', 'report')
# What happens to XLA if Keras chooses it by itself.
XLA_COMPARED, XLA_KEPT, XLA_OFF = 'auto', 'keep', 'off'
_LARGEST_COUNT = 2**31 - 1
_LONGEST_S = 86400.


@dataclasses.dataclass(frozen=True)
class Settings:
  """How graphs are placed.

  Attributes:
    policy: Directory of an exported policy; None for the one that ships with
      the package.
    placer: Name of a registered placer that can run within a program; 'gdp'
      takes the best of cheap placers and the policy and refines it.
    keep_best: Leave a graph as it was unless the new placement is predicted
      to be faster.
    mode: 'apply' places, 'report' only prints what it would have done.
    cluster: Cluster preset or file that describes the devices; None for the
      devices of this machine.
    seed: Two runs with the same seed place alike.
    time_budget_s: A graph that takes longer is left as it was; what is done
      once in a program, as loading the policy, does not count. A third of it
      at most is for refinement, which takes half of that where the machine is
      not busy, and less where there is little to gain.
    min_ops: Graphs with fewer ops are left alone.
    order: 'critical_path' adds control edges that keep ops from waiting, where
      a gain is predicted; 'fifo' leaves the order of ready ops to TensorFlow.
      None adds them on asynchronous devices, where much is predicted.
    plan: Says where ops go, in place of the placer and whatever is predicted:
      a file that `gdp place`, `gdp_train` or an editor wrote, or devices by
      layer or name scope, as {'encoder': 'GPU:0', 'decoder/*': 'GPU:1'};
      `cluster.layer_map` and `placers.planned` have the rules. Gradients are
      in the scope of their layer; updates and optimizer slots follow the
      variable, which goes along where variables may move. Graphs that a plan
      is not for are left alone. A file is read when a graph arrives; one that
      was edited since acts under another name. None for no plan.
    batch_size: Stands for dimensions that a graph leaves open. None takes the
      batches of the running `fit` where they are known, else 32.
    trip_count: Iterations of while loops whose number a graph does not tell; of
      such loops within one another, of all together. None for 32.
    pins: 'keep': what a program asked for by `tf.device` stays there; 'ignore':
      it may be placed elsewhere. `gdp_grappler.pin` holds in any case. A plan
      takes the place of what was asked for.
    guard: Of Keras' `fit`, time the first steps as they were and then placed,
      and keep the faster way. None does where the choice is ours to make: with
      `keep_best` and without a plan.
    move_variables: Whether a `fit` may move its variables.
    profile: File of `gdp profile` that prices ops by what they were measured
      to take, on the devices that it knows; read when a graph arrives. None
      for the roofline.
    xla: What becomes of a model that Keras has compiled by XLA because nobody
      said anything (`jit_compile="auto"` beside a GPU). 'auto': `fit` times it
      so, and then placed, and keeps what is faster; 'keep': it is compiled, and
      not placed; 'off': it is placed, and not compiled.
    xla_compile_s: Seconds that XLA may have taken to compile the whole step if
      XLA inside each device is to be tried.
    may_round: Whether float arithmetic may go from GPUs to CPUs and back, which
      round it otherwise, so that the numbers of a program change in their last
      digits or, where a GPU multiplies in TF32, in the third.
    split: Into how many logical GPUs each card is cut before the runtime
      starts, 2 to 4, or 'auto'; 1 or None for none. See `splitting`.
    max_memory: What placements may use of memories at most, as
      {'GPU:0': '12GB', 'CPU': '64GB'}; None for what TensorFlow can allocate.
    repeatable: No clock ends a search: `time_budget_s` says how many placements
      are priced, and the same seed gives the same plan on every run. A `fit`
      may still drop the plan after it has timed steps (`guard`).
    split_tables: Which tables of layers are made as several variables, so that
      each may be elsewhere: 'auto', those that no card has room for; 'off';
      or names of layers with numbers of parts, as {'words': 4}. Looked at when
      a layer is built.
    cache: Keep decisions for the next run of the program, and use those of
      earlier ones.
  """

  policy: str | None = None
  placer: str = 'gdp'
  keep_best: bool = True
  mode: str = 'apply'
  cluster: str | None = None
  seed: int = 0
  time_budget_s: float = 30.
  min_ops: int = 16
  order: str | None = None
  plan: str | tuple[tuple[str, str], ...] | None = None
  batch_size: int | None = None
  trip_count: int | None = None
  pins: str = assumptions.PINS_KEPT
  guard: bool | None = None
  move_variables: bool = True
  profile: str | None = None
  xla: str = XLA_COMPARED
  xla_compile_s: float = 30.
  may_round: bool = False
  split: int | str | None = None
  max_memory: tuple[tuple[str, int], ...] | None = None
  repeatable: bool = False
  split_tables: str | tuple[tuple[str, int], ...] = 'auto'
  cache: bool = True

  @property
  def times_steps(self) -> bool:
    """Whether a `fit` keeps what is measured to be faster.

    By default where the choice is ours to make.
    """
    return not self.has_decided if self.guard is None else self.guard

  @property
  def has_decided(self) -> bool:
    """Whether the user wants the plan or the placer's choice in any case."""
    return not self.keep_best or self.plan is not None

  @property
  def keeps_asked(self) -> bool:
    """Whether what was asked for by `tf.device` stays there."""
    return self.pins == assumptions.PINS_KEPT and self.plan is None

  def to_json(self) -> str:
    """Text that `from_json` reads back; equal settings give equal text."""
    return json.dumps(dataclasses.asdict(self), sort_keys=True)


def from_json(text: str) -> Settings:
  """Reads what `Settings.to_json` wrote."""
  fields = json.loads(text)
  for key in ('plan', 'max_memory', 'split_tables'):
    if isinstance(fields[key], list):
      fields[key] = tuple(map(tuple, fields[key]))
  return Settings(**fields)


def from_option(value: Any) -> Settings | None:
  """Settings from the value of the option; None where it is off.

  Args:
    value: True, False, None or a dict of fields of `Settings`.

  Raises:
    ValueError: another type, an unknown key or a bad value.
  """
  if value is None or value is False:
    return None
  if value is True:
    return Settings()
  if not isinstance(value, dict):
    raise ValueError(
        f"'gdp_placement' is {value!r}; valid are True, False and a dict with "
        f'any of {_quoted(_FIELDS)}.')
  return Settings(**{key: _checked(key, item) for key, item in value.items()})


def from_text(text: str) -> Any:
  """The option's value, checked, from an environment variable.

  Args:
    text: '' or '0' for off, '1' for on, or a dict as JSON.

  Returns:
    What `from_option` takes.

  Raises:
    ValueError: other text, an unknown key or a bad value.
  """
  switches = {'': None, '0': False, 'false': False, '1': True, 'true': True}
  lowered = text.strip().lower()
  if lowered in switches:
    return switches[lowered]
  try:
    value = files.parse_json(text)
  except ValueError as error:
    raise ValueError(f'{text!r} is neither 0, 1 nor a dict as JSON, such as '
                     '{"placer": "metis"}.') from error
  from_option(value)
  return value


def nearest(name: Any, valid: tuple[str, ...]) -> str:
  """A sentence that helps with a misspelt name."""
  hint = suggestions.did_you_mean(str(name), valid, similarity=.5)
  return f'{hint} Valid: {_quoted(valid)}.'.lstrip()


_FIELDS = tuple(field.name for field in dataclasses.fields(Settings))


def _checked(key: str, value: Any) -> Any:
  """The value in the field's type.

  Raises:
    ValueError: an unknown key or a bad value.
  """
  if key not in _FIELDS:
    raise ValueError(
        f"'gdp_placement' has no key {key!r}. {nearest(key, _FIELDS)}")
  return _CHECKS[key](key, value)


def _text_or_none(key: str, value: Any) -> str | None:
  if value is None:
    return None
  # A pathlib.Path is as good as text.
  text = value.__fspath__() if hasattr(value, '__fspath__') else value
  if not isinstance(text, str) or not text:
    raise _bad(key, value, 'a non-empty text or None')
  return text


def _plan(key: str, value: Any) -> Any:
  if not isinstance(value, Mapping):
    return _text_or_none(key, value)
  # Imported when needed, as placers are.
  from gdp_grappler.cluster import layer_map
  try:
    return layer_map.checked(value)
  except errors.GdpError as error:
    raise ValueError(f"'gdp_placement' has a wrong {key}: {error}") from error


def _max_memory(key: str, value: Any) -> Any:
  if value is None:
    return None
  # Imported when needed: it brings clusters along.
  from gdp_grappler.cluster import max_memory
  try:
    if isinstance(value, str):
      return max_memory.parse(value)
    if isinstance(value, Mapping):
      return max_memory.checked(value)
  except errors.GdpError as error:
    raise ValueError(f"'gdp_placement' has a wrong {key}: {error}") from error
  raise _bad(key, value, "a dict such as {'GPU:0': '12GB'} or None")


def _placer(key: str, value: Any) -> str:
  # Imported when needed: most programs never set a placer.
  from gdp_grappler.placers import placer_table
  names = tuple(placer_table.table())
  if value not in names:
    raise ValueError(
        f"'gdp_placement' has {key} = {value!r}, which is no registered placer."
        f'{suggestions.did_you_mean(str(value), names)} All {len(names)}: gdp '
        'place --help.')
  needs = placer_table.table()[value].needs
  if placer_table.Need.KERAS_2 in needs:
    raise ValueError(
        f"'gdp_placement' has {key} = {value!r}, which searches for longer "
        'than a program should wait, and would load Keras 2 into it. Run: gdp '
        f'place --placer={value}.')
  if placer_table.Need.EXPERT in needs:
    raise ValueError(
        f"'gdp_placement' has {key} = {value!r}, but a program cannot say how "
        'an expert would place its graphs. Use gdp_grappler.pin.')
  return value


def _one_of(names: tuple[str, ...]) -> Callable[[str, Any], str]:

  def check(key: str, value: Any) -> str:
    if value not in names:
      raise ValueError(f"'gdp_placement' has {key} = {value!r}. "
                       f'{nearest(value, names)}')
    return value

  return check


def _switch(key: str, value: Any) -> bool:
  if not isinstance(value, bool):
    raise _bad(key, value, 'True or False')
  return value


def _switch_or_none(key: str, value: Any) -> bool | None:
  return None if value is None else _switch(key, value)


def _count(key: str, value: Any) -> int:
  return _whole(key, value, 0)


def _size_or_none(key: str, value: Any) -> int | None:
  return None if value is None else _whole(key, value, 1, ' or None')


def _whole(key: str, value: Any, least: int, otherwise: str = '') -> int:
  try:
    number = -1 if isinstance(value, bool) else operator.index(value)
  except TypeError:
    number = -1
  if not least <= number <= _LARGEST_COUNT:
    raise _bad(key, value,
               f'a whole number from {least} to {_LARGEST_COUNT}{otherwise}')
  return number


def _split(key: str, value: Any) -> int | str | None:
  # Imported when needed, as placers are.
  from gdp_grappler.plugin import splitting
  try:
    return splitting.checked(value)
  except ValueError as error:
    raise ValueError(f"'gdp_placement' has a wrong {key}: {error}") from error


def _split_tables(key: str, value: Any) -> str | tuple[tuple[str, int], ...]:
  # Imported when needed, as placers are.
  from gdp_grappler.sharding import choice
  try:
    return choice.checked(value)
  except errors.GdpError as error:
    raise ValueError(f"'gdp_placement' has a wrong {key}: {error}") from error


def _seconds(key: str, value: Any) -> float:
  if (isinstance(value, bool) or not isinstance(value, (int, float)) or
      not 0 < value <= _LONGEST_S):
    raise _bad(key, value,
               f'a positive number of seconds up to {_LONGEST_S:.0f}')
  return float(value)


_CHECKS = {
    'policy': _text_or_none,
    'placer': _placer,
    'keep_best': _switch,
    'mode': _one_of(MODES),
    'cluster': _text_or_none,
    'seed': _count,
    'time_budget_s': _seconds,
    'min_ops': _count,
    'order': _one_of(order_names.ORDERS),
    'plan': _plan,
    'batch_size': _size_or_none,
    'trip_count': _size_or_none,
    'pins': _one_of(assumptions.PINS),
    'guard': _switch_or_none,
    'move_variables': _switch,
    'profile': _text_or_none,
    'xla': _one_of((XLA_COMPARED, XLA_KEPT, XLA_OFF)),
    'xla_compile_s': _seconds,
    'may_round': _switch,
    'split': _split,
    'max_memory': _max_memory,
    'repeatable': _switch,
    'split_tables': _split_tables,
    'cache': _switch,
}


def _bad(key: str, value: Any, valid: str) -> ValueError:
  return ValueError(f"'gdp_placement' has {key} = {value!r}; valid is {valid}.")


def _quoted(names: tuple[str, ...]) -> str:
  return ', '.join(f"'{name}'" for name in names)
