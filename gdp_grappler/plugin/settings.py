"""The keys of the `gdp_placement` option."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import os
from typing import Any, Callable, Mapping

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import suggestions
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.graph import assumptions

MODES = ('apply', 'report')
# Values of `Settings.xla`.
XLA_COMPARED, XLA_KEPT, XLA_OFF = 'auto', 'keep', 'off'
# Largest value of a key that is a count: C++ reads it as int32.
_LARGEST_COUNT = 2**31 - 1
_LONGEST_S = 86400.  # Largest value of a key in seconds: a day.


@dataclasses.dataclass(frozen=True)
class Settings:
  """How graphs are placed.

  Attributes:
    policy: Folder of a network that `gdp_train` or `gdp_pretrain` wrote. None
      means the folder in GDP_POLICY or, without that, the shipped networks.
    placer: Name of a registered placer that can run within a program. 'gdp' is
      a search by simulated annealing, which starts from other placers' results.
    keep_best: Whether a graph stays as it was unless the new placement has a
      shorter predicted step.
    mode: 'apply' places graphs. 'report' only prints what 'apply' would do.
    cluster: Cluster preset or file that describes the devices. None means the
      devices of this machine.
    seed: Seed of the random numbers of placers.
    time_budget_s: Time limit for placing a graph, in seconds. A graph that
      takes longer stays as it was. Work that is done once per program, such as
      loading the policy, does not count. The search has a part of the budget.
      A number of placements ends it sooner if the machine is not busy, and a
      smaller number if little can be gained.
    min_ops: Least number of ops of a graph that is placed, if it has no pin.
    order: 'critical_path' adds control edges if they shorten the predicted
      step. 'fifo' leaves the order of ready ops to TensorFlow. None adds edges
      if the search or the plan has priorities, and on two or more asynchronous
      devices for a large predicted gain.
    plan: Devices that replace the placer's choice, even for a longer step.
      Either a file that `gdp place`, `gdp_train` or an editor wrote, or devices
      by layer or name scope, as {'encoder': 'GPU:0', 'decoder/*': 'GPU:1'};
      `cluster.layer_map` and `placers.plans.planned` state the rules. Gradients
      are in the scope of their layer. Updates and optimizer slots follow their
      variable, which moves with its layer if variables may move. Graphs that
      the plan is not for stay as they were. A file is read when a layer makes
      a table and when a graph arrives. None means no plan.
    batch_size: Size of the dimensions that a graph leaves open. None means the
      batch size of the running `fit` if it is known, else a default.
    trip_count: Iterations of while loops whose number the graph does not state.
      For nested loops of this kind, the product of their iterations. None means
      a default.
    pins: 'keep': ops stay on the device that the program requested by
      `tf.device`. 'ignore': they may go elsewhere. `gdp_grappler.pin` holds in
      both cases. A plan overrides the requests by `tf.device`.
    guard: Whether Keras' `fit` times its first steps as they were and then
      placed, and keeps the faster way. None means yes with `keep_best` and
      without a plan, and no otherwise.
    move_variables: Whether a `fit` may move its variables.
    profile: File of `gdp profile` with measured times of ops on some devices.
      It is read when a graph arrives. None means the roofline.
    xla: What happens to a model that Keras compiles by XLA by default
      (`jit_compile="auto"` and a GPU). 'auto': if `fit` times steps, it keeps
      the faster of the compiled and the placed step; if not, `xla.handling` has
      the rules. 'keep': the model is compiled and not placed. 'off': it is
      placed and not compiled.
    xla_compile_s: Limit, in seconds, on the time that XLA took to compile the
      whole step. After a longer compilation `fit` does not try XLA inside each
      device.
    may_round: Whether float arithmetic may go from GPUs to CPUs and back. They
      round differently: numbers of the program change in their last digits or,
      if a GPU multiplies in TF32, in the third digit.
    split: Number of logical GPUs, 2 to 4, into which each card is split before
      the runtime starts, or 'auto'. 1 means no split. None leaves the choice to
      `gdp_grappler.split` and GDP_SPLIT. See `splitting`.
    max_memory: Limits on the memory that placements use, as
      {'GPU:0': '12GB', 'CPU': '64GB'}. None means what TensorFlow can allocate.
    repeatable: Whether no clock ends a search. `time_budget_s` then sets the
      number of priced placements, and the same seed gives the same plan on
      every run. A `fit` may still drop the plan after timing steps (`guard`).
    split_tables: Tables of layers that are made as several variables, which may
      be on different devices. 'auto': as in the file of `plan` if the file has
      the table, else the tables that no card has room for. 'off': none. Or
      names of layers with numbers of parts, as {'words': 4}. The value counts
      when a layer is built.
    cache: Whether decisions are kept for later runs of the program, and
      decisions of earlier runs are used.
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
    """Whether a `fit` times steps and keeps the faster way (see `guard`)."""
    return not self.has_decided if self.guard is None else self.guard

  @property
  def has_decided(self) -> bool:
    """Whether the plan or the placer's choice holds even if it is slower."""
    return not self.keep_best or self.plan is not None

  @property
  def keeps_asked(self) -> bool:
    """Whether ops stay on the devices that `tf.device` requested."""
    return self.pins == assumptions.PINS_KEPT and self.plan is None

  def to_json(self) -> str:
    """Returns text for `from_json`; equal settings give equal text."""
    return json.dumps(dataclasses.asdict(self), sort_keys=True)


def from_json(text: str) -> Settings:
  """Reads what `Settings.to_json` wrote."""
  fields = json.loads(text)
  for key in ('plan', 'max_memory', 'split_tables'):
    if isinstance(fields[key], list):
      fields[key] = tuple(map(tuple, fields[key]))
  return Settings(**fields)


def from_option(value: Any) -> Settings | None:
  """Returns the settings of an option's value; None if the option is off.

  Args:
    value: True, False, None or a dict of fields of `Settings`.

  Raises:
    ValueError: the value has another type, an unknown key or a bad item.
  """
  if value is None or value is False:
    return None
  if value is True:
    return Settings()
  if not isinstance(value, dict):
    raise ValueError(
        f"'gdp_placement' is {errors.shown(value)}; valid are True, False "
        f'and a dict with any of {_quoted(_FIELDS)}.')
  settings = Settings(
      **{key: _checked(key, item) for key, item in value.items()})
  if settings.policy is not None:
    _check_policy(settings.placer, os.path.abspath(settings.policy))
  return settings


def from_text(text: str) -> Any:
  """Returns the checked value of the option from an environment variable.

  Args:
    text: '' or '0' for off, '1' for on, or a dict as JSON.

  Returns:
    A value for `from_option`.

  Raises:
    ValueError: the text is none of these, or has an unknown key or a bad item.
  """
  switches = {'': None, '0': False, 'false': False, '1': True, 'true': True}
  lowered = text.strip().lower()
  if lowered in switches:
    return switches[lowered]
  try:
    value = files.parse_json(text)
  except ValueError as error:
    raise ValueError(f'{errors.shown(text)} is neither 0, 1 nor a dict '
                     'as JSON, such as {"placer": "metis"}.') from error
  from_option(value)
  return value


def nearest(name: Any, valid: tuple[str, ...]) -> str:
  """Returns sentences with the likely names and all valid ones."""
  return f'{_hint(name, valid, .5)} Valid: {_quoted(valid)}.'.lstrip()


def _hint(name: Any, valid: tuple[str, ...], similarity: float = .6) -> str:
  return suggestions.did_you_mean(name, valid, similarity) if isinstance(
      name, str) else ''


_FIELDS = tuple(field.name for field in dataclasses.fields(Settings))


def _checked(key: str, value: Any) -> Any:
  """Returns the value in the field's type.

  Raises:
    ValueError: the key is unknown or the value is bad.
  """
  if key not in _FIELDS:
    raise ValueError(f"'gdp_placement' has no key {errors.shown(key)}. "
                     f'{nearest(key, _FIELDS)}')
  return _CHECKS[key](key, value)


def _text_or_none(key: str, value: Any, more: str = '') -> str | None:
  if value is None:
    return None
  # A pathlib.Path is valid, too.
  text = value.__fspath__() if hasattr(value, '__fspath__') else value
  if not isinstance(text, str) or not text or '\0' in text:
    raise _bad(key, value, f'a non-empty text without "\\0"{more}, or None')
  return text


@functools.cache  # The value is read whenever TensorFlow makes a function.
def _check_policy(placer: str, folder: str) -> None:
  # Imported when needed: most programs never name a policy.
  from gdp_grappler.placers import placer_table
  from gdp_grappler.placers.policy import named_policy
  try:
    placer_table.check_uses_policy(placer)
    named_policy.read(folder)
  except errors.GdpError as error:
    raise ValueError(f"'gdp_placement' has a wrong policy: {error}") from error


def _plan(key: str, value: Any) -> Any:
  if not isinstance(value, Mapping):
    return _text_or_none(key, value, ", a dict such as {'encoder': 'GPU:0'}")
  # Imported when needed, as placers are.
  from gdp_grappler.cluster import layer_map
  try:
    return layer_map.checked(value)
  except errors.GdpError as error:
    raise ValueError(f"'gdp_placement' has a wrong {key}: {error}") from error


def _max_memory(key: str, value: Any) -> Any:
  if value is None:
    return None
  # Imported when needed: the module imports the package of clusters.
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
        f"'gdp_placement' has {key} = {errors.shown(value)}, which is no "
        f'registered placer.{_hint(value, names)} All {len(names)}: gdp place '
        '--help.')
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


def _one_of(names: tuple[str, ...],
            or_none: bool = False) -> Callable[[str, Any], str | None]:

  def check(key: str, value: Any) -> str | None:
    if value not in names and not (or_none and value is None):
      raise ValueError(f"'gdp_placement' has {key} = {errors.shown(value)}. "
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


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    'policy': _text_or_none,
    'placer': _placer,
    'keep_best': _switch,
    'mode': _one_of(MODES),
    'cluster': _text_or_none,
    'seed': _count,
    'time_budget_s': _seconds,
    'min_ops': _count,
    'order': _one_of(order_names.ORDERS, or_none=True),
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
  return ValueError(
      f"'gdp_placement' has {key} = {errors.shown(value)}; valid is {valid}.")


def _quoted(names: tuple[str, ...]) -> str:
  return ', '.join(f"'{name}'" for name in names)
