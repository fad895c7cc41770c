"""Which cases are looked at, and that a run goes on where it was ended."""

from __future__ import annotations

import argparse
import collections
import json

import pytest

from helpers import benchmarks
from helpers import tight_memory


@pytest.fixture(name='program')
def _program():
  return benchmarks.module('tight_memory')


def test_a_share_has_every_room_once_and_several_fills_of_each_network(program):
  flags = argparse.Namespace(networks=list(tight_memory.NETWORKS),
                             gpus=program._NUM_GPUS, fills=program._FILLS,
                             share=8)
  chosen = program._chosen(flags)
  rooms = [(count, fill) for _, _, count, fill in chosen]
  assert len(set(rooms)) == len(rooms) == 24
  fills = collections.defaultdict(set)
  for network, training, _, fill in chosen:
    fills[network, training].add(fill)
  assert len(fills) == 8 and all(len(found) == 3 for found in fills.values())
  flags.share = 1
  assert len(program._chosen(flags)) == 192


def test_a_run_goes_on_and_its_page_is_brought_up_to_date(
    program, tmp_path, monkeypatch, capsys):
  page, journal = tmp_path / 'page.md', tmp_path / 'journal'
  page.write_text(''.join(f'<!-- {title}; made by `x`. -->\n'
                          f'<!-- End of {title}. -->\n'
                          for title in ('Targets', 'Steps')))

  def run(*fills):
    monkeypatch.setattr('sys.argv', [
        'tight_memory', '--networks', 'growing', '--gpus', '3', '--placers',
        'single_device', 'metis', '--fills', *fills, f'--journal={journal}',
        f'--page={page}'
    ])
    assert program.main() == 0

  run('.6')
  known = [json.loads(line) for line in journal.read_text().splitlines()]
  assert len(known) == 2
  monkeypatch.setattr(program, '_row',
                      lambda case, placers: {**known[0], 'case': case.name})
  run('.6', '.9')
  again = [json.loads(line) for line in journal.read_text().splitlines()]
  assert again[:2] == known and len(again) == 4
  text = page.read_text()
  assert text.count('| growing, ') == 4 and str(tmp_path) not in text.replace(
      f'--page={page}', '')
  assert '| metis | 0 | - | - | - | - |' in text
  assert 'Of 4' in capsys.readouterr().out


def test_cases_in_which_the_other_placer_is_out_of_memory_have_no_ratio(
    program):
  """Their ratio was 0, and with it the mean of all cases."""
  rows = [{
      'placers': {
          'heft': {'step_s': 2., 'placing_s': 0.},
          'metis': {'step_s': step_s, 'placing_s': 0.}
      }
  } for step_s in (1., None)]
  assert program._missed(rows, 'heft')[2:4] == ['1', '2.00x, 2.000x']


def test_a_page_without_places_is_refused_before_the_run(
    program, tmp_path, monkeypatch, capsys):
  """The page was read only after the whole run, whose results were lost."""
  page = tmp_path / 'page.md'
  page.write_text('nothing')
  monkeypatch.setattr('sys.argv', ['tight_memory', f'--page={page}'])
  monkeypatch.setattr(program, '_rows', None)
  assert program.main() == 2
  assert 'has no place for the table' in capsys.readouterr().err


def test_the_page_is_written_beside_json(program, tmp_path, monkeypatch,
                                         capsys):
  """With --json the page silently stayed as it was."""
  page = tmp_path / 'page.md'
  page.write_text(''.join(
      f'<!-- {title}; made by `x`. -->\n<!-- End of {title}. -->\n'
      for title in program._TITLES))
  monkeypatch.setattr(
      'sys.argv',
      ['tight_memory', f'--page={page}', '--json', '--placers', 'metis'])
  row = {
      'case': 'a case', 'placers': {'metis': {'step_s': 2., 'placing_s': 0.}}
  }
  monkeypatch.setattr(program, '_rows', lambda flags: iter([row]))
  assert program.main() == 0
  assert json.loads(capsys.readouterr().out) == [row]
  assert '| a case | 2000.0 |' in page.read_text()
