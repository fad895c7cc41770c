"""HDP beside GDP-one: the program that compares them."""

import json

import pytest

from helpers import benchmarks
from placer_model import config as network_config
from placer_model.hdp import config as hdp_config


@pytest.fixture(name='program')
def _program():
  return benchmarks.module('learned_planners')


@pytest.fixture(autouse=True)
def _small_networks(monkeypatch):
  """Quick to trace."""
  network = network_config.preset('paper').replace(hidden_units=16,
                                                   graph_layers=0,
                                                   transformer_layers=0,
                                                   superposition=False)
  hdp = hdp_config.preset('tuned').replace(hidden_units=16, attention_units=8,
                                           max_groups=8)
  monkeypatch.setattr(network_config, 'preset', lambda name: network)
  monkeypatch.setattr(hdp_config, 'preset', lambda name: hdp)


def test_both_planners_learn_each_task(program, capsys):
  assert program.main([
      '--json', '--seconds=.1', '--seeds=1', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  row, = json.loads(capsys.readouterr().out)
  assert (row['task'], row['seed']) == ('wavenet-2x18@tiny@2xP100', 0)
  assert row['hdp_priced'] >= 4 and row['gdp_paper_priced'] >= 48
  assert 0 < row['hdp_s'] < 1 and 0 < row['gdp_paper_s'] < 1
