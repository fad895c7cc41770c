"""Ctrl-C while a run learns, and while it ends."""

import os
import signal

import pytest

from placer_model.training import interrupts


def test_the_first_is_remembered_and_the_second_ends_it():
  before = signal.getsignal(signal.SIGINT)
  with interrupts.Interrupt() as interrupt:
    assert not interrupt.pending
    os.kill(os.getpid(), signal.SIGINT)
    assert interrupt.pending
    with pytest.raises(KeyboardInterrupt):
      os.kill(os.getpid(), signal.SIGINT)
  assert signal.getsignal(signal.SIGINT) is before


def test_without_a_checkpoint_there_is_nothing_to_tell(tmp_path):
  with pytest.raises(KeyboardInterrupt):
    with interrupts.naming_checkpoint(tmp_path):
      raise KeyboardInterrupt


def test_what_is_there_is_told(tmp_path):
  folder = tmp_path / 'checkpoints'
  folder.mkdir()
  for name in ('ckpt-7.index', 'ckpt-7.data-00000-of-00001'):
    (folder / name).write_bytes(b'x')
  with pytest.raises(interrupts.Interrupted,
                     match=r'ckpt-7 is there.*\(without --restart\)'):
    with interrupts.naming_checkpoint(tmp_path):
      raise KeyboardInterrupt
