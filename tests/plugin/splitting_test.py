"""Splits of cards, in stand-ins for runtimes with and without GPUs."""

import dataclasses
import os

import pytest

from gdp_grappler.plugin import notices
from gdp_grappler.plugin import splitting
from helpers import alarms

_GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class _Card:
  name: str


def _runtime(cards=2, started=False, growth=False, configured=None):
  """An eager context with the methods that `splitting` calls."""

  class Context:
    """A new class for each test, because `arm_of` changes the class."""

    def __init__(self):
      self._initialized = started
      self.starts = 0
      self.cut = {}

    def ensure_initialized(self):
      if not self._initialized:
        self.starts += 1
      self._initialized = True

    def get_visible_devices(self, kind):
      assert kind == 'GPU'
      return [_Card(f'/physical_device:GPU:{i}') for i in range(cards)]

    def get_logical_device_configuration(self, card):
      del card
      return configured

    def get_memory_growth(self, card):
      del card
      return growth

    def set_logical_device_configuration(self, card, parts):
      assert not self._initialized
      self.cut[card.name[-1]] = [part.memory_limit for part in parts]

  return Context()


@pytest.fixture(autouse=True)
def said(monkeypatch):
  """Lines that the user reads."""
  lines = []
  monkeypatch.setattr(notices, 'say_once', lines.append)
  monkeypatch.setattr(notices, 'warn_once', lines.append)
  monkeypatch.setattr(splitting, '_stock', None)
  monkeypatch.setattr(splitting, '_wanted', None)
  monkeypatch.setattr(splitting, '_by_option', None)
  return lines


@pytest.fixture(autouse=True)
def memory(monkeypatch):
  """Free bytes of cards by number."""
  sizes = {'0': 20 * _GIB, '1': 16 * _GIB}
  monkeypatch.setattr(splitting, '_free_bytes',
                      lambda names: {n: sizes.get(n[-1]) for n in names})
  return sizes


def _start(context, value):
  """Sets the option, runs an op, and returns how cards were cut."""
  context_class = type(context)
  stock = context_class.ensure_initialized
  splitting.arm_of(context, value)
  context.ensure_initialized()
  context.ensure_initialized()
  assert context._initialized
  # Later ops call TensorFlow's own method.
  assert context_class.ensure_initialized is stock
  return context.cut


def test_cards_are_cut_when_the_runtime_starts(said):
  context = _runtime()
  assert _start(context,
                2) == {'0': [10 << 10, 10 << 10], '1': [8 << 10, 8 << 10]}
  assert context.starts == 1
  assert said == [
      'split: GPU:0, GPU:1 cut into 2 logical GPUs each, of 8192 MiB'
  ]


@pytest.mark.parametrize('value, parts', [(4, 4), ('auto', 2)])
def test_parts(value, parts):
  assert _start(_runtime(1), value) == {'0': [20 // parts << 10] * parts}


def test_a_plan_changes_nothing():
  context = _runtime()
  planned = splitting.plan(context, 2)
  assert planned.parts == 2 and not context.cut
  assert planned.limits == {
      '/physical_device:GPU:0': 10 << 10, '/physical_device:GPU:1': 8 << 10
  }
  assert splitting.plan(_runtime(0), 2).parts == 1


def test_auto_leaves_a_small_card_whole(memory, said):
  memory['0'] = 7 * _GIB
  assert not _start(_runtime(1), 'auto')
  assert "'split': 2" in said[0]


def test_without_a_gpu(said):
  assert not _start(_runtime(0), 2)
  assert said == ['split has nothing to do: TensorFlow sees no GPU']


def test_one_part_is_nothing(said):
  assert not _start(_runtime(), 1)
  assert not said


def test_too_late(said):
  context = _runtime(started=True)
  stock = type(context).ensure_initialized
  splitting.arm_of(context, 2)
  assert type(context).ensure_initialized is stock
  assert 'has started already' in said[0] and 'GDP_SPLIT=2' in said[0]


def test_what_is_cut_already_is_not_late(said):
  context = _runtime()
  _start(context, 2)
  del said[:]
  splitting.arm_of(context, 2)
  assert not said
  splitting.arm_of(context, 3)
  assert 'has started already' in said[0]


def test_the_last_word_before_the_start_holds():
  context = _runtime(1)
  splitting.arm_of(context, 4)
  splitting.arm_of(context, 2)
  context.ensure_initialized()
  assert len(context.cut['0']) == 2


@pytest.mark.parametrize('before, parts', [(None, 0), (4, 4)])
def test_an_option_that_was_switched_off_splits_nothing(before, parts):
  """Once cards were split although the option was off at the start."""
  context = _runtime(1)
  splitting.arm_of(context, before)
  splitting.arm_of(context, 2, by_option=True)
  splitting.arm_of(context, None, by_option=True)
  context.ensure_initialized()
  assert len(context.cut.get('0', ())) == parts


def test_a_later_call_of_split_is_not_taken_back():
  context = _runtime(1)
  splitting.arm_of(context, 2, by_option=True)
  splitting.arm_of(context, 4)
  splitting.arm_of(context, None, by_option=True)
  context.ensure_initialized()
  assert len(context.cut['0']) == 4


@pytest.mark.parametrize('own,why', [({'growth': True}, 'memory growth'),
                                     ({'configured': ['own']}, 'configured')])
def test_what_the_program_has_configured_stays(said, own, why):
  assert not _start(_runtime(**own), 2)
  assert len(said) == 1 and why in said[0]


def test_memory_that_nobody_knows(memory, said):
  memory.clear()
  assert not _start(_runtime(), 2)
  assert 'is unknown (no NVML)' in said[0]


def test_memory_that_is_in_use(memory, said):
  memory['0'] = 0
  assert not _start(_runtime(), 2)
  assert 'in use' in said[0]


def test_an_error_never_stops_a_program(monkeypatch, said):

  def fail(names):
    raise RuntimeError(f'no {len(names)} cards\nat all')

  monkeypatch.setattr(splitting, '_free_bytes', fail)
  assert not _start(_runtime(), 2)
  assert said == ['GPUs are not split: no 2 cards at all']


def test_a_timeout_of_the_program_stops_it(monkeypatch, said):
  """Once a line said that GPUs are not split, and the program went on."""
  with alarms.alarm() as ring:
    monkeypatch.setattr(splitting, '_free_bytes', ring)
    with pytest.raises(alarms.TooLongError):
      _start(_runtime(), 2)
  assert not said


@pytest.mark.parametrize('value', [0, 5, 2.0, True, 'two', '2', [2]])
def test_bad_values(value):
  with pytest.raises(ValueError, match='2 to 4'):
    splitting.checked(value)


def test_threads(monkeypatch):
  context = _runtime(1)
  monkeypatch.setattr(splitting, '_context', lambda: context)
  monkeypatch.setenv('TF_GPU_THREAD_MODE', 'global')
  splitting.split(2)
  assert os.environ['TF_GPU_THREAD_MODE'] == 'global'
  splitting.split(2, private_threads=True)
  assert os.environ['TF_GPU_THREAD_MODE'] == 'gpu_private'


@pytest.mark.parametrize('text,value', [('', None), ('3', 3), ('Auto', 'auto'),
                                        ('9', None), ('x', None)])
def test_the_environment(monkeypatch, said, text, value):
  monkeypatch.setenv('GDP_SPLIT', text)
  assert splitting.from_environment() == value
  assert len(said) == (text in ('9', 'x'))
