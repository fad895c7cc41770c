"""The learned policy, as a placer."""

from __future__ import annotations

from concurrent import futures
import functools
import os
import pathlib
import threading
from typing import Any, Mapping

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.features import featurizer
from gdp_grappler.features import schema
from gdp_grappler.graph import coarsening
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import eager_thread
from gdp_grappler.placers.policy import policy_decoding
from gdp_grappler.placers.policy import policy_ops
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.placers.search import priced_placements


class LearnedPlacer:
  """The best, by price, of what a trained policy proposes.

  One forward pass gives the odds of every unit's devices (GDP section 3); the
  most likely placement and a few others are priced (`policy_decoding`), which
  costs milliseconds. Beside them, each device alone is, and where what would be
  faster does not fit into memory, it is made to (`priced_placements`): what
  a policy says of a graph unlike those that it learned from is slower at times.
  """

  def __init__(self, policy: str | None = None) -> None:
    """Loads a policy; each folder is loaded once per process.

    Args:
      policy: A folder that `gdp_train` exported; by default the one named by
        the environment variable GDP_POLICY, else the one that is shipped.

    Raises:
      PolicyMismatchError: no such folder, or a policy for other features.
    """
    loading = _shelf.get(folder(policy))
    with deadlines.LOADING.running():
      self._policy = loading.result()

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    if not problem.graph.num_ops:
      return placement_lib.Placement(np.zeros(0, np.int32), problem.cluster)
    found = priced_placements.PricedPlacements(problem)
    found.see(self.candidates(problem)[:, problem.graph.first_ops])
    return found.settled()

  def candidates(self, problem: placer_lib.Problem) -> np.ndarray:
    """int [K, N], what the policy proposes, the most likely first."""
    seconds = problem.op_seconds
    sizes = policy_decoding.sizes(
        self._policy.metadata.get('units', coarsening.COARSE), problem.graph,
        problem.allowed, seconds)
    units = sizes[-1]
    logits = self._policy.logits(
        featurizer.featurize(problem.graph, problem.cluster, units, seconds))
    return policy_decoding.decisions(logits, sizes, seconds,
                                     problem.seed)[:, units]


class _Policy:
  """A loaded SavedModel and its policy.json."""

  def __init__(self, model: Any, metadata: Mapping[str, str]) -> None:
    self._model = model
    self.metadata = metadata

  def logits(self, features: schema.GraphFeatures) -> np.ndarray:
    """float [M, D]; disallowed devices are very unlikely."""
    result = self._model.place(
        np.array(features.op_types,
                 object).astype(bytes), features.units, features.edges,
        features.edge_bytes, features.allowed, features.devices).numpy()
    return np.where(features.allowed, result, -np.inf)


class _Shelf:
  """Policies by folder, each loaded once per process, in the background."""

  def __init__(self) -> None:
    self._loading: dict[str, futures.Future[_Policy]] = {}
    self._after_fork()
    os.register_at_fork(after_in_child=self._after_fork)

  def _after_fork(self) -> None:
    """Nobody in the child will finish what the parent's threads began."""
    self._lock = threading.Lock()
    self._loading = {f: p for f, p in self._loading.items() if p.done()}

  def holds(self, folder: str) -> bool:
    """Whether the policy can be used at once."""
    with self._lock:
      known = self._loading.get(folder)
      return known is not None and known.done() and not known.exception()

  def get(self, folder: str) -> futures.Future[_Policy]:
    """The policy, as soon as it can be used; what failed is tried again."""
    with self._lock:
      known = self._loading.get(folder)
      if known is None or known.done() and known.exception():
        known = eager_thread.start(functools.partial(_load, folder))
        self._loading[folder] = known
      return known


_shelf = _Shelf()


def load_ahead(policy: str | None = None) -> None:
  """Begins to load a policy, unless that has been done; nobody waits for it.

  Args:
    policy: As of `LearnedPlacer`.

  Raises:
    PolicyMismatchError: there is none.
  """
  _shelf.get(folder(policy))


def is_loaded(policy: str | None = None) -> bool:
  """Whether a policy can be used at once; as of `LearnedPlacer`."""
  return _shelf.holds(folder(policy))


def is_named(policy: str | None = None) -> bool:
  """Whether somebody chose it, and not who made the package."""
  return bool(policy or environment.policy_folder())


def is_there() -> bool:
  """Whether there is a policy if nobody names one."""
  return bool(environment.policy_folder()) or shipped_policy.has_policy()


def folder(policy: str | None = None) -> str:
  """Of the policy that is meant; as of `LearnedPlacer`."""
  found = policy or environment.policy_folder(
  ) or shipped_policy.shipped_policy()
  return str(pathlib.Path(found).resolve())


def check(policy: str) -> None:
  """Whether a folder holds a policy for the features of this version.

  Reads next to nothing.

  Raises:
    PolicyMismatchError: it does not.
  """
  metadata(pathlib.Path(policy).resolve())


def metadata(path: pathlib.Path) -> Mapping[str, Any]:
  """What policy.json says of a policy for the features of this version.

  Args:
    path: Of the policy's folder.

  Raises:
    PolicyMismatchError: it is no such policy.
  """
  try:
    result: Mapping[str,
                    Any] = files.parse_json(files.read(path / 'policy.json'))
    found = result['schema']
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise errors.PolicyMismatchError(
        f'{path} is not a policy: {type(error).__name__}: {error}. Give the '
        'folder "policy" that gdp_train wrote.') from error
  if found != schema.fingerprint():
    raise errors.PolicyMismatchError(
        f'The policy in {path} was trained for other features (schema '
        f'{found}; this version has {schema.fingerprint()}). Train it again '
        'with this version of gdp_train.')
  return result


def _load(folder: str) -> _Policy:
  """A policy that has run: the first time takes as long as loading."""
  import tensorflow as tf
  path = pathlib.Path(folder)
  description = metadata(path)
  try:
    policy_ops.check(path)
    policy_ops.check_whole(path, description)
    policy = _Policy(tf.saved_model.load(folder), description)
    policy.logits(_anything())
    return policy
  except errors.PolicyMismatchError:
    raise
  except Exception as error:
    # TensorFlow raises a dozen types for a damaged SavedModel.
    raise errors.PolicyMismatchError(
        f'The policy in {folder} is damaged ({type(error).__name__}). Export '
        'it again with gdp_train.') from error


def _anything() -> schema.GraphFeatures:
  """Features of two units that nobody has to place."""
  return schema.GraphFeatures(
      op_types=('NoOp', 'NoOp'), units=np.zeros((2, len(schema.UNIT_FEATURES)),
                                                np.float32),
      edges=np.array([[0, 1]], np.int32), edge_bytes=np.zeros(1, np.float32),
      allowed=np.ones((2, 2), bool), devices=np.zeros(
          (2, len(schema.DEVICE_FEATURES)), np.float32))
