"""Writes and reads a trained network as a policy.

A policy is a directory with a SavedModel and a `policy.json`. The SavedModel
consists of plain TensorFlow ops and variables, and holds no Keras object. So
any TensorFlow process can load it, under Keras 3 and without the training
libraries.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any, Iterator, Mapping

from google.protobuf import message
import numpy as np
import tensorflow as tf

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.features import schema
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import policy_ops
from gdp_grappler.processes import calls
from placer_model import config as config_lib
from placer_model import network as network_lib

# Largest difference of equal logits, as a share of the largest logit or of 1.
TOLERANCE = 1e-5
_LIBRARIES = ('tensorflow', 'tensorflow-gnn', 'tf-keras')
_LOADER = 'gdp_grappler.placers.policy.policy_check:logits'
# Seconds for loading the exported network in a process of its own.
_TIMEOUT_S = 1200.


class ExportError(errors.GdpError):
  """A policy could not be written, or a fresh process could not load it."""


class Policy(tf.Module):
  """The root object of the SavedModel: the variables and one function."""

  def __init__(self, network: network_lib.PlacerNetwork) -> None:
    """Refers to the network's variables, without a copy."""
    super().__init__(name='policy')
    self.weights = list(network.variables)
    specs = network_lib.feature_specs()

    # A network in an attribute would be saved as a Keras model. Of a closure,
    # only the ops are saved.
    @tf.function(input_signature=list(specs.values()), autograph=False)
    def place(op_types: tf.Tensor, units: tf.Tensor, edges: tf.Tensor,
              edge_bytes: tf.Tensor, allowed: tf.Tensor,
              devices: tf.Tensor) -> tf.Tensor:
      return network(
          dict(
              zip(specs,
                  (op_types, units, edges, edge_bytes, allowed, devices))))

    self.place = place


def export_policy(network: network_lib.PlacerNetwork,
                  directory: str | os.PathLike[str],
                  metadata: Mapping[str, Any]) -> None:
  """Writes a policy and checks it.

  The directory appears, or is replaced, only after a fresh process without the
  training libraries has loaded the policy and computed the same logits.

  Args:
    network: Network to export.
    directory: Directory of the policy. An existing policy there is replaced.
    metadata: Further content of policy.json, beside "schema", "config",
      "versions" and the digests of the files.

  Raises:
    ExportError: the policy cannot be written; a name in `metadata` is taken or
      its value is not JSON; `directory` holds something else than a policy; or
      the fresh process failed or computed other logits.
  """
  progress.doing('exporting the policy and checking it in a fresh process')
  target = pathlib.Path(directory).absolute()
  description = _describe(network, metadata)
  if target.exists() and not (target / 'policy.json').is_file():
    raise ExportError(f'{target} exists and is not a policy; remove it or '
                      'export to another directory.')
  with _temporary_sibling(target) as temporary:
    # Writing and checking share one traced function, because tracing takes
    # longer than both.
    policy = Policy(network)
    _write(policy, temporary / 'policy', description)
    _verify(policy, network.config, temporary / 'policy')
    _replace(target, temporary / 'policy', temporary / 'old')


def load_network(directory: pathlib.Path) -> network_lib.PlacerNetwork:
  """Returns the network of a policy, for further training.

  Only numbers are read from the SavedModel. Its functions are neither loaded
  nor run.

  Args:
    directory: Directory that `export_policy` wrote.

  Raises:
    PolicyMismatchError: the directory is no policy, is damaged, was made for
      other features, or its weights do not fit its configuration.
  """
  metadata = learned.metadata(directory)
  try:
    policy_ops.check(directory)
    policy_ops.check_whole(directory, metadata)
    network = network_lib.PlacerNetwork(
        config_lib.PlacerConfig.of_fields(metadata['config']))
    reader = tf.train.load_checkpoint(str(directory / 'variables/variables'))
    network.set_weights([
        reader.get_tensor(f'weights/{index}/.ATTRIBUTES/VARIABLE_VALUE')
        for index in range(len(network.variables))
    ])
  except (OSError, LookupError, MemoryError, TypeError, ValueError,
          message.DecodeError, config_lib.ConfigError,
          tf.errors.OpError) as error:
    raise errors.PolicyMismatchError(
        f'The network of the policy in {directory} cannot be read: '
        f'{errors.first_line(error)}. Export it again with gdp_train '
        'or gdp_pretrain.') from error
  return network


def close(found: np.ndarray, expected: np.ndarray, allowed: np.ndarray) -> bool:
  """Returns whether logits [M, D] agree to `TOLERANCE`; NaN never does."""
  scale = max(1.0, np.max(np.abs(expected[allowed]), initial=0.0))
  return bool(np.all(np.abs(found - expected) <= TOLERANCE * scale))


def random_features(num_units: int, num_edges: int, num_devices: int,
                    seed: int) -> dict[str, np.ndarray]:
  """Returns random features as `Policy.place` takes them."""
  rng = np.random.default_rng(seed)
  units = rng.lognormal(5, 4, (num_units, len(schema.UNIT_FEATURES))).astype(
      np.float32)
  # Units are in topological order: an edge goes from a lower to a higher one.
  first = rng.integers(0, max(num_units - 1, 1), num_edges)
  second = rng.integers(first + 1, num_units)
  allowed = rng.random((num_units, num_devices)) < 0.7
  allowed[:, 0] = True
  types = np.array([b'MatMul', b'Conv2D', b'AddV2', b'Identity', b'Mul'])
  return {
      'op_types':
          types[rng.integers(0, len(types), num_units)],
      'units':
          units,
      'edges':
          np.stack([first, second], axis=1).astype(np.int32),
      'edge_bytes':
          rng.lognormal(9, 3, num_edges).astype(np.float32),
      'allowed':
          allowed,
      'devices':
          rng.lognormal(0, 2,
                        (num_devices, len(schema.DEVICE_FEATURES))).astype(
                            np.float32),
  }


def _describe(network: network_lib.PlacerNetwork,
              metadata: Mapping[str, Any]) -> dict[str, Any]:
  own = {
      'schema': schema.fingerprint(),
      'config': dataclasses.asdict(network.config),
      'versions': {
          name: importlib.metadata.version(name) for name in _LIBRARIES
      },
  }
  taken = sorted({*own, *policy_ops.SEALS} & set(metadata))
  if taken:
    raise ExportError('The metadata of a policy may not contain '
                      f'{", ".join(taken)}: the export writes that itself.')
  description = {**own, **metadata}
  try:
    json.dumps(description)
    return description
  except (TypeError, ValueError) as error:
    raise ExportError(
        f'The metadata of a policy must be JSON: {error}.') from error


@contextlib.contextmanager
def _temporary_sibling(target: pathlib.Path) -> Iterator[pathlib.Path]:
  """Makes a directory beside `target`, and removes it afterwards."""
  try:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix=f'.{target.name}.', dir=target.parent)
  except OSError as error:
    raise _unwritable(target, error) from error
  try:
    yield pathlib.Path(temporary)
  except (OSError, tf.errors.OpError) as error:
    raise _unwritable(target, error) from error
  finally:
    shutil.rmtree(temporary, ignore_errors=True)


def _unwritable(target: pathlib.Path, error: Any) -> ExportError:
  reason = getattr(error, 'strerror', None) or errors.first_line(error)
  return ExportError(
      f'Cannot write policy {target}: {reason}. Free space or choose another '
      'directory.')


def _write(policy: Policy, directory: pathlib.Path,
           description: Mapping[str, Any]) -> None:
  options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
  tf.saved_model.save(policy, str(directory), options=options)
  (directory / 'policy.json').write_text(
      json.dumps(policy_ops.sealed(directory, description), indent=2))


@contextlib.contextmanager
def _optimizing() -> Iterator[None]:
  """Lets this process optimize graphs, as a fresh process does."""
  option = 'disable_meta_optimizer'
  before = tf.config.optimizer.get_experimental_options().get(option, False)
  tf.config.optimizer.set_experimental_options({option: False})
  try:
    yield
  finally:
    tf.config.optimizer.set_experimental_options({option: before})


def _verify(policy: Policy, config: config_lib.PlacerConfig,
            directory: pathlib.Path) -> None:
  # More units than a segment has, so that the check covers the memory and the
  # padding.
  size = config.segment_length + 37
  features = random_features(size, 3 * size, 3, seed=config.seed)
  try:
    # The policy needs no Keras. With TF_USE_LEGACY_KERAS, TensorFlow would
    # import Keras 2.
    found = calls.call(_LOADER, str(directory), features, timeout_s=_TIMEOUT_S,
                       environment={environment.LEGACY_KERAS: ''})
  except calls.CallError as error:
    raise ExportError('The exported policy does not load in a fresh process: '
                      f'{error}. Nothing was written.') from error
  # This is the exported function, so both processes optimize the same graph.
  with _optimizing():
    expected = policy.place(**features).numpy()
  if not close(found, expected, features['allowed']):
    difference = np.max(np.abs(found - expected))
    raise ExportError(
        'The exported policy gives other logits in a fresh process: they '
        f'differ by {difference:.2g}. Nothing was written.')


def _replace(target: pathlib.Path, new: pathlib.Path,
             old: pathlib.Path) -> None:
  """Replaces by renaming, so that a reader never sees half a policy."""
  if target.exists():
    target.rename(old)
  try:
    new.rename(target)
  except OSError:
    if old.exists():
      old.rename(target)
    raise
