import pathlib

import numpy as np
import pytest

from gdp_grappler.placers import placer_table
from gdp_grappler.placers.policy import named_policy
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.plugin import option
from gdp_grappler.plugin import settings


def test_switches():
  assert settings.from_option(None) is None
  assert settings.from_option(False) is None
  assert settings.from_option(True) == settings.Settings()
  assert settings.from_option({}) == settings.Settings()


def test_every_field_is_taken():
  values = {
      'policy': str(shipped_policy.shipped_policy()), 'placer': 'gdp_policy',
      'keep_best': False, 'mode': 'report', 'cluster': '2xP100', 'seed': 3,
      'time_budget_s': 2, 'min_ops': 0, 'order': 'critical_path',
      'plan': 'p.json', 'profile': 'q.json'
  }
  result = settings.from_option(values)
  assert {key: getattr(result, key) for key in values} == values
  assert isinstance(result.time_budget_s, float)


def test_every_field_is_checked():
  assert tuple(settings._CHECKS) == settings._FIELDS


def test_path_is_as_good_as_text():
  assert settings.from_option({'profile': pathlib.Path('/p')}).profile == '/p'


def test_a_folder_without_a_policy_is_told_when_the_option_is_set(tmp_path):
  """Once the error came only when a large graph needed the policy."""
  for folder in (tmp_path / 'none', str(tmp_path)):
    for set_option in (settings.from_option,
                       lambda value: option.checked({'gdp_placement': value})):
      with pytest.raises(ValueError,
                         match="'gdp_placement' has a wrong policy") as caught:
        set_option({'policy': folder})
      assert f'{tmp_path}' in str(caught.value)


def test_a_policy_is_read_once(monkeypatch):
  folder = str(shipped_policy.shipped_policy())
  settings.from_option({'policy': folder})
  monkeypatch.setattr(named_policy, 'read', pytest.fail)
  assert settings.from_option({'policy': folder}).policy == folder


def test_a_policy_for_a_placer_without_a_network_is_told():
  """Once the placer silently ignored the policy."""
  folder = str(shipped_policy.shipped_policy())
  with pytest.raises(ValueError, match='"metis" uses no network'):
    settings.from_option({'placer': 'metis', 'policy': folder})


@pytest.mark.parametrize('entry',
                         placer_table.table().values(),
                         ids=placer_table.table())
def test_every_placer_is_valid_or_says_why_not(entry):
  needs = {placer_table.Need.EXPERT, placer_table.Need.KERAS_2} & entry.needs
  if needs:
    with pytest.raises(ValueError, match='gdp place|gdp_grappler.pin'):
      settings.from_option({'placer': entry.name})
  else:
    assert settings.from_option({'placer': entry.name}).placer == entry.name


def test_numbers_of_numpy_are_numbers():
  assert settings.from_option({'seed': np.int64(3)}).seed == 3


def test_none_is_valid_where_it_is_the_default():
  """Once `order` had the default None, and refused it."""
  for key in ('order', 'guard', 'plan', 'batch_size'):
    assert settings.from_option({key: None}) == settings.from_option({})


def test_json_round_trip():
  value = settings.Settings(placer='random', seed=5, policy='ä"\n')
  assert settings.from_json(value.to_json()) == value


def test_equal_settings_give_equal_json():
  one = settings.from_option({'seed': 1, 'min_ops': 2})
  other = settings.from_option({'min_ops': 2, 'seed': 1})
  assert one.to_json() == other.to_json()


@pytest.mark.parametrize(
    'value, message',
    [
        ('on', 'valid are True, False and a dict'),
        (1, 'valid are True, False and a dict'),
        ({'polcy': 'x'}, 'Did you mean "policy"?'),
        ({7: 'x'}, 'no key 7'),
        ({'placer': 'metsi'}, 'Did you mean "metis"?'),
        ({'placer': None}, 'no registered placer'),
        ({'placer': ['random']}, 'no registered placer'),
        ({'mode': 'reprot'}, 'Did you mean "report"?'),
        ({'mode': 3}, "Valid: 'apply', 'report'"),
        ({'order': 'critical'}, 'Did you mean "critical_path"?'),
        ({'keep_best': 1}, 'valid is True or False'),
        # Once the first message said "from 0", and the second "from 1".
        ({'batch_size': 'big'}, 'a whole number from 1 to 2147483647 or None'),
        ({'batch_size': 0}, 'a whole number from 1 to 2147483647 or None'),
        ({'seed': 'x'}, 'a whole number from 0 to'),
        ({'seed': True}, 'whole number'),
        ({'seed': 1.5}, 'whole number'),
        ({'min_ops': -1}, 'whole number'),
        ({'min_ops': 2**63}, 'whole number'),
        ({'time_budget_s': 1e308}, 'positive number of seconds'),
        ({'time_budget_s': 0}, 'positive number of seconds'),
        ({'time_budget_s': float('nan')}, 'positive number of seconds'),
        ({'time_budget_s': '3'}, 'positive number of seconds'),
        ({'policy': ''}, 'non-empty text without'),
        ({'cluster': 3}, 'non-empty text without'),
        ({'plan': 3}, 'non-empty text without'),
        ({'plan': ['d1', 'CPU:1']}, "a dict such as {'encoder': 'GPU:0'}, or"),
        ({'plan': 'a\0b'}, 'non-empty text without'),
        ({'plan': {}}, '0 entries'),
        ({'plan': {'a': 'GPU'}}, 'wrong plan: "GPU" is not a device name'),
    ])
def test_bad_values_say_what_is_valid(value, message):
  with pytest.raises(ValueError, match='gdp_placement') as caught:
    settings.from_option(value)
  assert message in str(caught.value)


class _Mute:

  def __repr__(self):
    raise RuntimeError


def _deep():
  result = {}
  for _ in range(3000):
    result = {'a': result}
  return result


@pytest.mark.parametrize('value', [
    _Mute(), {_Mute(): 1}, {'placer': _Mute()}, {'mode': _Mute()},
    {'split': _Mute()}, {'split_tables': _Mute()}, {'max_memory':
        _Mute()}, {'plan': {'a': _Mute()}}, {'plan': {_Mute(): 'GPU:0'}},
    {'plan': _deep()}, {'seed': 10**5000}, {'cluster': ['x' * 10**5]}
], ids=lambda value: type(value).__name__)
def test_any_value_is_refused_in_a_short_line(value):
  """Once the error was that of a value's `__repr__`, or a screen long."""
  with pytest.raises(ValueError, match='gdp_placement') as caught:
    settings.from_option(value)
  assert len(str(caught.value)) < 600


def test_a_long_text_is_refused_in_a_short_line():
  with pytest.raises(ValueError, match='is neither 0, 1 nor a dict') as caught:
    settings.from_text('[' * 60_000)
  assert len(str(caught.value)) < 600


@pytest.mark.parametrize('text, expected', [('', None), ('0', False),
                                            ('false', False), ('1', True),
                                            (' TRUE ', True),
                                            ('{"seed": 2}', {'seed': 2})])
def test_from_text(text, expected):
  assert settings.from_text(text) == expected


@pytest.mark.parametrize('text', ['on', '2', '{"seed": }', '{"seed": -1}'])
def test_bad_text(text):
  with pytest.raises(ValueError):
    settings.from_text(text)


def test_nearest_offers_nothing_if_nothing_is_near():
  assert settings.nearest('xyz', ('apply',)) == "Valid: 'apply'."


@pytest.mark.parametrize('plan, field', [
    ('p.json', 'p.json'),
    (pathlib.Path('/p.json'), '/p.json'),
    ({'b/*': 'GPU:1', 'a': 'CPU:0'}, (('a', 'CPU:0'), ('b/*', 'GPU:1'))),
    (None, None),
])
def test_plans(plan, field):
  result = settings.from_option({'plan': plan})
  assert result.plan == field
  assert settings.from_json(result.to_json()) == result
