"""Which cases are looked at, and that a run goes on where it was ended."""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import pathlib
import types

import pytest

from helpers import tight_memory


@pytest.fixture(name='program')
def _program(monkeypatch) -> types.ModuleType:
  """Programs of `benchmarks` are installed nowhere."""
  monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
  return importlib.import_module('benchmarks.tight_memory')


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
    program.main()

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
