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
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.policy import policy_decoding
from gdp_grappler.placers.policy import policy_ops
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.placers.search import memory_fit
from gdp_grappler.placers.search import priced_placements


class LearnedPlacer:
  """The best placement by price of those that a trained policy proposes.

  One forward pass gives the odds of the devices of every unit (GDP, section 3).
  The placer prices the most likely placement and a few others
  (`policy_decoding`). A policy may propose slow placements for a graph unlike
  the graphs it was trained on. So the placer also prices all ops on each kind
  of device. Placements that are faster but overflow a memory are repaired
  (`memory_fit`).
  """

  def __init__(self, policy: str | None = None) -> None:
    """Loads a policy; each folder is loaded once per process.

    Args:
      policy: A folder that `gdp_train` or `gdp_pretrain` wrote. None means the
        folder in the environment variable GDP_POLICY. Without this variable,
        None means the folder of the shipped policy.

    Raises:
      PolicyMismatchError: there is no such folder, or the policy was trained on
        other features.
    """
    loading = _cache.get(folder(policy))
    with deadlines.LOADING.running():
      self._policy = loading.result()

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    if not problem.graph.num_ops:
      return placement_lib.of_nothing(problem.cluster)
    deadline = problem.deadline()
    priced = priced_placements.PricedPlacements(problem.graph,
                                                problem.evaluator)
    priced.add(self.candidates(problem)[:, problem.graph.first_ops])
    return memory_fit.best_fitting(problem, priced, deadline)

  def candidates(self, problem: placer_lib.Problem) -> np.ndarray:
    """int [K, N], the policy's placements, the most likely one first."""
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
    """float [M, D], logits of the devices of units; -inf if not allowed."""
    with eager_thread.as_placer_code():
      result = self._model.place(
          np.array(features.op_types,
                   object).astype(bytes), features.units, features.edges,
          features.edge_bytes, features.allowed, features.devices).numpy()
    return np.where(features.allowed, result, -np.inf)


class _PolicyCache:
  """Policies by folder, each loaded once per process, in the background."""

  def __init__(self) -> None:
    self._loading: dict[str, futures.Future[_Policy]] = {}
    self._after_fork()
    os.register_at_fork(after_in_child=self._after_fork)

  def _after_fork(self) -> None:
    """Forgets unfinished loads: the parent's threads do not run in a child."""
    self._lock = threading.Lock()
    self._loading = {f: p for f, p in self._loading.items() if p.done()}

  def has_loaded(self, folder: str) -> bool:
    """Whether the policy is loaded."""
    with self._lock:
      known = self._loading.get(folder)
      return known is not None and known.done() and not known.exception()

  def get(self, folder: str) -> futures.Future[_Policy]:
    """The policy, as a future; a load that failed is tried again."""
    with self._lock:
      known = self._loading.get(folder)
      if known is None or known.done() and known.exception():
        known = eager_thread.start(functools.partial(_load, folder))
        self._loading[folder] = known
      return known


_cache = _PolicyCache()


def load_ahead(policy: str | None = None) -> None:
  """Starts to load a policy in the background, unless it is loaded.

  Args:
    policy: See `LearnedPlacer`.

  Raises:
    PolicyMismatchError: there is no policy.
  """
  _cache.get(folder(policy))


def is_loaded(policy: str | None = None) -> bool:
  """Whether a policy is loaded.

  Args:
    policy: See `LearnedPlacer`.
  """
  return _cache.has_loaded(folder(policy))


def is_named(policy: str | None = None) -> bool:
  """Whether the user chose the policy, by argument or environment variable.

  Args:
    policy: See `LearnedPlacer`.
  """
  return bool(policy or environment.policy_folder())


def is_available() -> bool:
  """Whether a policy can be found if no argument names one."""
  return bool(environment.policy_folder()) or shipped_policy.has_policy()


def folder(policy: str | None = None) -> str:
  """The folder of a policy.

  Args:
    policy: See `LearnedPlacer`.
  """
  path = policy or environment.policy_folder() or shipped_policy.shipped_policy(
  )
  return str(pathlib.Path(path).resolve())


def metadata(path: pathlib.Path) -> Mapping[str, Any]:
  """The content of a policy's policy.json, after a check of its schema.

  Args:
    path: The policy's folder.

  Raises:
    PolicyMismatchError: the folder has no policy, or the policy was trained on
      other features.
  """
  if move_folder.is_here(path):
    raise errors.PolicyMismatchError(
        f'{path} holds a move network, and this placer needs a policy. Use the '
        'folder with the placers gdp and gdp_policy, or train a policy by '
        'gdp_train --network=one_shot.')
  try:
    result: Mapping[str,
                    Any] = files.parse_json(files.read(path / 'policy.json'))
    fingerprint = result['schema']
  except (OSError, ValueError, KeyError, TypeError) as error:
    why = 'has no "schema"'
    if isinstance(error, OSError):
      why = f'cannot be read ({error.strerror})'
    elif isinstance(error, ValueError):
      why = f'is damaged ({error})'
    raise errors.PolicyMismatchError(
        f'{path} is not a policy: its policy.json {why}. Give the folder '
        '"policy" that gdp_train or gdp_pretrain wrote.') from error
  if fingerprint != schema.fingerprint():
    raise errors.PolicyMismatchError(
        f'The policy in {path} was trained for other features (schema '
        f'{fingerprint}; this version has {schema.fingerprint()}). Train it '
        'again with gdp_train or gdp_pretrain of this version.')
  return result


def _load(folder: str) -> _Policy:
  """A loaded policy after its first run, which takes as long as loading."""
  import tensorflow as tf
  path = pathlib.Path(folder)
  description = metadata(path)
  try:
    policy_ops.check(path)
    policy_ops.check_whole(path, description)
    policy = _Policy(tf.saved_model.load(folder), description)
    policy.logits(_example_features())
    return policy
  except errors.PolicyMismatchError:
    raise
  except Exception as error:
    # TensorFlow raises a dozen types for a damaged SavedModel.
    raise errors.PolicyMismatchError(
        f'The policy in {folder} is damaged ({type(error).__name__}). Export '
        'it again with gdp_train or gdp_pretrain.') from error


def _example_features() -> schema.GraphFeatures:
  """Features of a synthetic graph of two units."""
  return schema.GraphFeatures(
      op_types=('NoOp', 'NoOp'), units=np.zeros((2, len(schema.UNIT_FEATURES)),
                                                np.float32),
      edges=np.array([[0, 1]], np.int32), edge_bytes=np.zeros(1, np.float32),
      allowed=np.ones((2, 2), bool), devices=np.zeros(
          (2, len(schema.DEVICE_FEATURES)), np.float32))
