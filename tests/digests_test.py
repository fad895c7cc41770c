"""Tests of gdp_grappler.digests."""

from __future__ import annotations

import json

import pytest

from gdp_grappler import digests

_FIELDS = {'b': [1, 2.5, None], 'ä': {'x': 1e-300}}


def test_a_sealed_object_is_whole_however_it_is_laid_out():
  text = json.dumps(digests.sealed(_FIELDS), indent=3)
  again = dict(reversed(json.loads(text).items()))
  assert not digests.differs(again)
  assert set(again) == {*_FIELDS, digests.FIELD}


def test_without_a_digest_there_is_nothing_to_differ():
  assert not digests.differs(_FIELDS)


@pytest.mark.parametrize('change', [{'b': [1, 2.5]}, {'c': 0}, {'digest': 3}])
def test_changes_show(change):
  assert digests.differs({**digests.sealed(_FIELDS), **change})
