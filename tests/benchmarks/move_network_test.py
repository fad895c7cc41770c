"""What the network brings: the program that says so."""

import json

import pytest

from helpers import benchmarks

move_network = benchmarks.module('move_network')


def test_both_ways_of_searching_are_compared(capsys):
  assert move_network.main([
      '--json', '--seconds=.2', '--seeds=2', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  rows = json.loads(capsys.readouterr().out)
  assert [row['seed'] for row in rows] == [0, 1]
  for row in rows:
    assert row['task'] == 'wavenet-2x18@tiny@2xP100'
    for way in ('loose', 'plain', 'chosen'):
      assert row[f'{way}_priced'] and 0 < row[f'{way}_s'] < 1


@pytest.mark.parametrize('task', ['rnnlm-2', '@2xP100'])
def test_a_task_needs_a_graph_and_a_cluster(task, capsys):
  assert move_network.main([task, '--quiet']) == 2
  assert 'names no cluster' in capsys.readouterr().err
