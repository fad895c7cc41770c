"""Fixtures: a finished program, which runs once for each module of tests."""

from __future__ import annotations

from typing import Any

import pytest

from helpers import fresh


def results(program: str, **variables: str) -> Any:
  """Returns a fixture `results`, what a program printed; see `fresh.run`."""
  return pytest.fixture(lambda: fresh.run(program, **variables).results,
                        scope='module', name='results')


def of_both_keras(program: str) -> tuple[Any, ...]:
  """Returns fixtures `keras_3`, `tf_keras`, and `program` for each in turn."""
  return (pytest.fixture(lambda: fresh.run(program), scope='module',
                         name='keras_3'),
          pytest.fixture(lambda: fresh.run(program, TF_USE_LEGACY_KERAS='1'),
                         scope='module', name='tf_keras'),
          pytest.fixture(lambda request: request.getfixturevalue(request.param),
                         scope='module', params=['keras_3',
                                                 'tf_keras'], name='program'))
