import io
import logging
import sys

import pytest

from gdp_grappler.plugin import notices


@pytest.fixture(autouse=True)
def fresh_logger():
  logger = logging.getLogger('gdp_grappler')
  saved = logger.handlers[:], logger.level, logger.propagate
  logger.handlers, logger.propagate = [], True
  logger.setLevel(logging.NOTSET)
  notices._logger.cache_clear()
  notices.warn_once.cache_clear()
  yield logger
  logger.handlers, logger.level, logger.propagate = saved
  notices._logger.cache_clear()


def test_one_prefixed_line_on_stderr(capsys):
  notices.say('a\nb')
  notices.say('')
  assert capsys.readouterr() == ('', '[gdp] a b\n')


def test_warning_is_said_once(capsys):
  for text in ('x', 'y', 'x'):
    notices.warn_once(text)
  assert capsys.readouterr().err == '[gdp] Warning: x\n[gdp] Warning: y\n'


def test_a_topic_has_one_line(capsys, monkeypatch):
  monkeypatch.setattr(notices, '_topics', set())
  for topic, text in (('t', ''), ('t', 'a'), ('t', 'b'), ('', 'c'), ('', 'd')):
    notices.say_of(topic, text)
  assert capsys.readouterr().err == '[gdp] a\n[gdp] c\n[gdp] d\n'


def test_percent_signs_are_text(capsys):
  notices.say('100 %s')
  assert capsys.readouterr().err == '[gdp] 100 %s\n'


def test_users_can_silence_it(capsys, fresh_logger):
  fresh_logger.setLevel(logging.ERROR)
  notices.say('a')
  notices.warn_once('b')
  assert capsys.readouterr().err == ''


def _closed():
  stream = io.StringIO()
  stream.close()
  return stream


class _Tee:
  """Copies standard error to a file, which the program has closed."""

  def write(self, text):
    raise ValueError(f'{text} comes too late.')

  def flush(self):
    pass


def test_a_standard_error_that_fails_does_not_end_the_program(monkeypatch):
  """Once `fit` ended with the error of such a stream."""
  monkeypatch.setattr(sys, 'stderr', _Tee())
  notices.say('a')
  notices.warn_once('b')


@pytest.mark.parametrize('stream', [None, _closed()])
def test_without_standard_error_lines_are_dropped(monkeypatch, stream):
  """Once `fit` raised an error, and the pass silently placed nothing."""
  monkeypatch.setattr(sys, 'stderr', stream)
  notices.say('a')
  notices.warn_once('b')


def test_users_own_handler_replaces_ours(capsys, fresh_logger):
  records = []
  handler = logging.Handler()
  handler.emit = records.append
  fresh_logger.addHandler(handler)
  notices.say('a')
  assert [r.getMessage() for r in records] == ['a']
  assert capsys.readouterr().err == ''
