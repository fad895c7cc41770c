import json

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import calibration
from helpers import calibrations


def test_a_file_brings_back_what_was_measured(tmp_path):
  made = calibrations.make()
  made.save(tmp_path / 'c.json')
  assert calibration.load(tmp_path / 'c.json') == made
  assert made.figure('launching_op_s') == 5e-6
  assert made.figure('card_hop_s') is None


def test_columns_of_an_op_type():
  made = calibrations.make(kernels=(('MatMul', 1., 2., 3.), ('Sum', 4., 5., 6.),
                                    ('MatMul', 7., 8., 9.)))
  assert made.columns['MatMul'].tolist() == [[1, 2, 3], [7, 8, 9]]


def test_what_another_run_would_go_on_with():
  assert calibrations.make().left_out_for_time == (
      'MatMul, finer: no time left',)


def test_kept_for_one_card_driver_and_version(tmp_path):
  made, said = calibrations.make(), []
  path = calibration.keep(made, said.append, tmp_path)
  assert path.stat().st_mode & 0o77 == 0

  def known(*key):
    return calibration.cached(*key, said.append, tmp_path)

  assert known(made.card, '580.1', '2.21.0') == made
  assert known('Tesla P100', '580.1', '2.21.0') is None
  assert known(made.card, '581', '2.21.0') is None
  assert known(made.card, '580.1', '2.21.1') is None
  assert not said


def test_a_damaged_one_that_is_kept_is_told_and_not_used(tmp_path):
  made, said = calibrations.make(), []
  path = calibration.keep(made, said.append, tmp_path)
  path.write_text('{')
  assert calibration.cached(made.card, '580.1', '2.21.0', said.append,
                            tmp_path) is None
  assert len(said) == 1 and 'not a usable calibration' in said[0]


@pytest.mark.parametrize('changed,why', [
    ({'format': 'x'}, 'format'),
    ({'version': 2}, 'version'),
    ({'card': 3}, 'card is no text'),
    ({'device_type': 'TPU'}, 'device_type'),
    ({'figures': {'speed': 1.}}, 'unknown "speed"'),
    ({'figures': {'hop_s': -1.}}, 'out of range'),
    ({'figures': {'hop_s': float('nan')}}, 'NaN|out of range'),
    ({'kernels': [{'op_type': 'a', 'flops': 1, 'io_bytes': 1, 'seconds': 0}]
     }, 'seconds of a kernel is 0'),
    ({'kernels': 7}, 'no list'),
    ({'done': [1]}, 'no list of texts'),
    ({'driver': None}, 'driver is no text'),
])
def test_damage_is_said_in_one_line(tmp_path, changed, why):
  fields = {**calibrations.make().fields(), **changed}
  path = tmp_path / 'c.json'
  path.write_text(json.dumps(fields))
  with pytest.raises(errors.GdpError, match=why) as caught:
    calibration.load(path)
  assert 'gdp calibrate' in str(caught.value)


def test_a_changed_figure_and_a_missing_one(tmp_path):
  path = tmp_path / 'c.json'
  path.write_text(calibrations.make().to_text().replace('5e-06', '6e-06'))
  with pytest.raises(errors.GdpError, match='was changed'):
    calibration.load(path)
  fields = calibrations.make().fields()
  del fields['kernels']
  path.write_text(json.dumps(fields))
  with pytest.raises(errors.GdpError, match="'kernels' is missing"):
    calibration.load(path)
  with pytest.raises(errors.GdpError, match='Cannot read calibration'):
    calibration.load(tmp_path / 'absent.json')
