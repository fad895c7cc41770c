"""Training of the networks that place graphs.

Belongs here: the policy network, its training, its export to a SavedModel, and
learned baselines. Does not belong here: code that a program needs in order to
place a graph with a trained network (`gdp_grappler`).

tf-agents and tensorflow-gnn work with Keras 2 only, and TensorFlow chooses its
version of Keras while it is imported. So import this package before TensorFlow,
or set TF_USE_LEGACY_KERAS=1.
"""

import os as _os
import sys as _sys

from gdp_grappler import environment as _environment

_os.environ[_environment.LEGACY_KERAS] = '1'
_tensorflow = _sys.modules.get('tensorflow')
if _tensorflow is not None and not getattr(_tensorflow, '_tf_uses_legacy_keras',
                                           True):
  raise ImportError(
      'placer_model needs Keras 2, but TensorFlow is already loaded with '
      'Keras 3. Import placer_model before tensorflow, or set '
      'TF_USE_LEGACY_KERAS=1.')
