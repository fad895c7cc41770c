"""The arguments of a user, without any import of TensorFlow."""

from __future__ import annotations

import dataclasses
import functools
import shlex

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.evaluation.costs import given_costs
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.sources import origin as origin_lib
from gdp_grappler.sharding import choice


def refuse_profile(profile: str) -> None:
  """Raises an error if a profile is given although steps are measured.

  Raises:
    GdpError: `profile` is not empty.
  """
  if profile:
    raise errors.GdpError(
        f'{spelling.argument("profile", profile)} prices simulated steps, but '
        f'steps are to be measured. Leave out {spelling.argument("profile")}, '
        'or use simulated steps.')


@dataclasses.dataclass(frozen=True)
class Request:
  """A graph, and values for what the graph leaves open.

  Attributes:
    graph: A file or folder, the name of a workload, module:function or
      keras_applications:NAME; see `help_texts.GRAPH`.
    batch_size: Size of dimensions that the graph leaves open.
    trip_count: Iterations of while loops whose number the graph does not tell.
    profile: File written by `gdp profile`; '' for the roofline.
    may_round: Whether float ops may go to a type of device that rounds
      differently.
    pins: One of `assumptions.PINS`: whether requests by `tf.device` count.
    signature: Signature of a SavedModel; '' for 'serving_default' or the only
      one.
    shapes: Names and shapes of a SavedModel's inputs whose shapes are open.
    split_tables: Tables to split: 'auto' for those that no device of the
      cluster can hold, 'off', or names with numbers of parts.
  """

  graph: str
  batch_size: int = assumptions.DEFAULT_BATCH_SIZE
  trip_count: int = assumptions.DEFAULT_TRIP_COUNT
  profile: str = ''
  may_round: bool = False
  pins: str = assumptions.PINS_KEPT
  signature: str = ''
  shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
  split_tables: choice.Choice = choice.AUTO

  def typed(self) -> str:
    """Returns the arguments that, after `gdp COMMAND`, give this request."""
    given = [self.graph]
    if self.batch_size != assumptions.DEFAULT_BATCH_SIZE:
      given.append(f'--batch_size={self.batch_size}')
    if self.trip_count != assumptions.DEFAULT_TRIP_COUNT:
      given.append(f'--trip_count={self.trip_count}')
    if self.profile:
      given.append(f'--profile={self.profile}')
    if self.may_round:
      given.append('--may_round')
    if self.pins != assumptions.PINS_KEPT:
      given.append(f'--pins={self.pins}')
    if self.signature:
      given.append(f'--signature={self.signature}')
    for name, sizes in self.shapes:
      given.append(f'--shape={name}={",".join(map(str, sizes))}')
    if self.split_tables != choice.AUTO:
      given.append(f'--split_tables={choice.text(self.split_tables)}')
    return shlex.join(given)

  @functools.cached_property
  def origin(self) -> origin_lib.Origin:
    """The graph's file, which is read only once."""
    return origin_lib.Origin(self.graph)

  @functools.cached_property
  def given(self) -> tuple[op_graph.OpGraph, given_costs.GivenCostModel] | None:
    """The graph and its costs; None if the graph has no costs of its own.

    A graph without costs needs TensorFlow.

    Raises:
      InvalidGraphError: the file is missing, or has costs that are wrong.
    """
    self.origin.check_path()
    return given_costs.load(self.origin)
