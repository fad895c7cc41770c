"""Reads a user's graph of any form as a step on a cluster."""

from __future__ import annotations

import dataclasses
import functools
import numbers
import os
from typing import Any, Callable, Mapping, NoReturn, Sequence, TYPE_CHECKING

from absl import logging

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.api import arguments
from gdp_grappler.cluster import architectures
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import max_memory
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.graph import assumptions
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import reading
from gdp_grappler.problems import request as request_lib
from gdp_grappler.problems import tables
from gdp_grappler.sharding import choice

if TYPE_CHECKING:
  # The module needs TensorFlow, but a graph with its own costs does not.
  from gdp_grappler.graph import source_graph

Tell = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Reading:
  """How a graph is read.

  Attributes:
    batch_size: Size of the dimensions that the graph leaves open.
    trip_count: Iterations of while loops whose number the graph does not state.
    profile: File of `gdp profile`; '' for the roofline.
    signature: Arguments of a `tf.function`, the name of a SavedModel's
      signature, or one batch of a Keras model.
    tell: Function that gets one line for each assumption.
    may_round: Whether float arithmetic may go where it rounds differently.
    pins: 'keep' the devices that the graph requests by `tf.device`, or 'ignore'
      them.
    data: One batch of a Keras model; see `batch_specs.of`.
    split_tables: Tables in parts; see `placing.place`.
    limits: Limits on the memories of the cluster.
    shape: Shapes of a SavedModel's inputs of open shape, by name.
    layers: Map of layers that will place the graph; () for none.

  Raises:
    GdpError: a size or a count is not a whole number or is too small, or the
      value of `pins`, `shape` or `may_round` is unknown.
  """

  batch_size: int = assumptions.DEFAULT_BATCH_SIZE
  trip_count: int = assumptions.DEFAULT_TRIP_COUNT
  profile: str = ''
  signature: Sequence[Any] | str | None = None
  tell: Tell = logging.info
  may_round: bool = False
  pins: str = assumptions.PINS_KEPT
  data: Any = None
  split_tables: Any = choice.AUTO
  limits: max_memory.MaxMemory = ()
  shape: Mapping[str, Sequence[int]] | None = None
  layers: plan_lib.Layers = ()

  def __post_init__(self) -> None:
    for name in ('batch_size', 'trip_count'):
      value = getattr(self, name)
      if (isinstance(value, bool) or not isinstance(value, numbers.Integral) or
          value < 1):
        raise errors.GdpError(f'{name} is {errors.shown(value)}; give a whole '
                              'number of 1 or more.')
    if self.pins not in assumptions.PINS:
      raise errors.GdpError(f'pins is {errors.shown(self.pins)}; give one of '
                            f'{", ".join(assumptions.PINS)}.')
    arguments.check_switch('may_round', self.may_round)
    arguments.check_shape(self.shape)

  def request(self, graph: str) -> request_lib.Request:
    """Returns the request for a graph of a name."""
    return request_lib.Request(
        graph, self.batch_size, self.trip_count, self.profile, self.may_round,
        self.pins,
        self.signature or '' if isinstance(self.signature, str) else '',
        shapes=tuple(
            (name, tuple(sizes)) for name, sizes in (self.shape or {}).items()),
        split_tables=choice.checked(self.split_tables))


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
  """A step, and the graph that it is a part of.

  Attributes:
    step: The step.
    how: How the graph was read.
    is_made: Whether the user gave a model object, not a file or a function.
  """

  step: step_lib.Step
  how: Reading
  _whole: Callable[[], step_lib.Step]
  is_made: bool = False

  def __reduce__(self) -> NoReturn:
    # A step from `place` has functions and native objects, too.
    raise errors.PlanError(
        'A plan in memory cannot be pickled or deeply copied. Save it by '
        "save('plan.json'), and read it by gdp_grappler.load_plan.")

  def with_rounding_allowed(self) -> Subject:
    """Returns the subject read with `may_round`."""
    return dataclasses.replace(
        self, step=self.step.with_rounding_allowed(),
        how=dataclasses.replace(self.how, may_round=True))

  def without_asked(self) -> Subject:
    """Returns the subject without the graph's requests by `tf.device`."""
    if self.step.source is None or self.how.pins == assumptions.PINS_IGNORED:
      return self
    from gdp_grappler.graph.legality import asked
    if not any(asked.count(self.step.source)):
      return self
    how = dataclasses.replace(self.how, pins=assumptions.PINS_IGNORED)
    how.tell('The plan overrides these requests by tf.device.')

    def without(step: step_lib.Step) -> step_lib.Step:
      assert step.source is not None
      source = asked.kept(step.source, lambda _: '')
      read_again = step_lib.of_source(source, step.cluster,
                                      batch_size=how.batch_size,
                                      trip_count=how.trip_count,
                                      may_round=how.may_round)
      return dataclasses.replace(step, graph=read_again.graph, source=source)

    return dataclasses.replace(self, step=without(self.step), how=how,
                               _whole=lambda: without(self._whole()))

  def whole(self) -> step_lib.Step:
    """Returns the whole graph, with ops that no step runs (initializers).

    Raises:
      GdpError: the graph has no TensorFlow ops, or cannot be used.
    """
    self._source()
    return self._whole()

  def needed(self) -> step_lib.Step:
    """Returns the part of the step that its fetches need.

    Raises:
      GdpError: the step has no TensorFlow ops.
    """
    from gdp_grappler.graph.sources import pruning
    source = self._source()
    needed = pruning.needed(source.graph_def, source.fetches)
    runs = {node.name for node in needed.node}
    return step_lib.of_source(
        dataclasses.replace(
            source, graph_def=needed,
            feeds=tuple(feed for feed in source.feeds if feed in runs)),
        self.step.cluster, batch_size=self.how.batch_size,
        trip_count=self.how.trip_count, may_round=self.how.may_round)

  def _source(self) -> source_graph.SourceGraph:
    if self.step.source is None:
      raise errors.GdpError(
          f'{self.step.graph.name} has costs but no TensorFlow ops, so there '
          'is no GraphDef to place. End the name in .json for a plan.')
    return self.step.source


def read(
    graph: Any, cluster: str | cluster_lib.Cluster,
    how: Reading = Reading()) -> Subject:
  """Reads a graph.

  Args:
    graph: A path or a name as for `gdp place`, a `Request`, or an object for
      `models.read`.
    cluster: A cluster, or a text for `resolve.resolve`.
    how: How to read the graph.

  Raises:
    GdpError: a file, a name or an object cannot be used.
  """
  where = _where(cluster, how.limits)
  if (how.signature is not None and not isinstance(how.signature, str) and
      isinstance(graph, (str, os.PathLike, request_lib.Request))):
    raise errors.GdpError(
        'A signature of tensors is for a tf.function. With the path of a '
        'SavedModel, give the name of its signature. Other paths take none.')
  if how.data is not None and isinstance(
      graph, (str, os.PathLike, request_lib.Request)):
    raise errors.GdpError(
        'Data is for a Keras model; a path or a name takes none. Leave it out, '
        'or give the model itself.')
  if isinstance(graph, (str, os.PathLike)):
    graph = how.request(os.fspath(graph))
  _check_profile(graph, how)
  if isinstance(graph, request_lib.Request):
    how = dataclasses.replace(how, may_round=graph.may_round, pins=graph.pins,
                              split_tables=graph.split_tables)
    step = reading.read(graph, where, how.tell, how.layers)
    return Subject(step, how, functools.partial(reading.whole, graph, step))
  return _of_object(graph, where, how)


def _check_profile(graph: Any, how: Reading) -> None:
  """Raises an error for a wrong profile, because reading may take minutes."""
  profile = how.profile
  if isinstance(graph, request_lib.Request):
    # A graph with costs of its own takes no profile, which `reading` says.
    profile = graph.profile if graph.given is None else ''
  if profile:
    profile_lib.load(profile)


def _of_object(graph: Any, where: reading.Where, how: Reading) -> Subject:
  from gdp_grappler.api import models
  if not models.makes_model(graph):
    _refuse_to_split(how)
  if isinstance(how.signature, str):
    raise errors.GdpError(
        f'signature={how.signature!r} is a name, which is for the path of a '
        'SavedModel. Give the tensors that the function is called with.')
  if how.shape:
    raise errors.GdpError(
        'shape is for the inputs of a SavedModel. Give data, or the signature '
        'of a function.')
  found = where(())

  def read_it(
      tell: Tell, counts: Mapping[str, int] | None = None
  ) -> tuple[source_graph.SourceGraph, ...]:
    return models.read(graph, how.batch_size, how.signature, tell,
                       architectures.of(found), how.data, counts)

  source, *rest = read_it(how.tell)
  request = how.request(source.name)
  step = reading.of_source(source, request, found, where, how.tell)
  if models.makes_model(graph):
    split = tables.split(step, request.split_tables,
                         lambda counts: read_it(progress.silent, counts)[0],
                         how.tell, how.layers)
    if split is not None:
      step = reading.of_source(split, request, found, where, progress.silent)
  reading.tell_pins_and_profile(step, request, how.tell)
  is_made = not models.makes_model(graph)
  if not rest:
    return Subject(step, how, lambda: step, is_made)
  return Subject(
      step, how,
      functools.partial(step_lib.of_source,
                        reading.prepared(rest[0], request, step.cluster),
                        step.cluster, batch_size=how.batch_size,
                        trip_count=how.trip_count, may_round=how.may_round),
      is_made)


def _refuse_to_split(how: Reading) -> None:
  """Raises an error if the user wants to split tables of a model object."""
  if not isinstance(choice.checked(how.split_tables), str):
    raise errors.GdpError(
        'split_tables names tables of a model that is made already. Make it '
        'under gdp_grappler.split_tables(...), or give a function that makes '
        'it, a file or module:function.')


def _where(cluster: str | cluster_lib.Cluster,
           limits: max_memory.MaxMemory) -> reading.Where:
  if isinstance(cluster, cluster_lib.Cluster):
    found = max_memory.applied(cluster, limits)
    return lambda devices: found
  if not isinstance(cluster, (str, os.PathLike)):
    raise errors.ClusterError(
        f'{errors.shown(cluster)} is no cluster. Give a preset such as '
        "'2xP100', 'local', the path of a cluster file, or a Cluster.")
  return functools.partial(resolve.resolve, os.fspath(cluster), limits=limits)
