import json

import pytest

from gdp_grappler import errors
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.search.moves import shipped_moves
from placer_model.training import network_kinds


def test_policies_and_runs_say_which_they_are(tmp_path):
  assert network_kinds.of_folder(tmp_path / 'nowhere') is None
  assert network_kinds.of_folder(tmp_path) is None
  move_folder.save(tmp_path / 'moves', shipped_moves.network(), {})
  assert network_kinds.of_folder(tmp_path / 'moves') == network_kinds.MOVES
  for name, content, kind in (('policy.json', {'schema': 'x'},
                               network_kinds.ONE_SHOT),
                              ('config.json', {'train': {}},
                               network_kinds.ONE_SHOT), ('config.json',
                                                         {'network': 'moves'},
                                                         network_kinds.MOVES)):
    folder = tmp_path / f'{kind} {name}'
    folder.mkdir()
    (folder / name).write_text(json.dumps(content))
    assert network_kinds.of_folder(folder) == kind


def test_a_damaged_run_is_an_error(tmp_path):
  (tmp_path / 'config.json').write_text('{')
  with pytest.raises(errors.GdpError, match='config.json'):
    network_kinds.of_folder(tmp_path)
