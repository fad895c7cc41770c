import io

import numpy as np
import pytest

from gdp_grappler.processes import messages


def test_messages_arrive_one_by_one():
  stream = io.BytesIO()
  sent = [None, {'a': (1, 'ü')}, messages.Failure('no', fatal=True)]
  for message in sent:
    messages.send(stream, message)
  messages.send(stream, np.arange(3))
  stream.seek(0)
  assert [messages.receive(stream.read) for _ in sent] == sent
  np.testing.assert_array_equal(messages.receive(stream.read), [0, 1, 2])
  with pytest.raises(EOFError):
    messages.receive(stream.read)


@pytest.mark.parametrize('missing', [1, 5, 100])
def test_half_a_message_is_none(missing):
  stream = io.BytesIO()
  messages.send(stream, 'x' * 99)
  data = stream.getvalue()[:-missing]
  with pytest.raises(EOFError):
    messages.receive(io.BytesIO(data).read)


def test_a_cause_is_one_short_line_without_where_python_was():
  error = ValueError(
      'ValueError: no\n  such thing\nTraceback (most recent call '
      'last):\n\n  File "x.py", line 3, in f\n')
  assert messages.cause(error) == 'ValueError: no such thing'
  assert len(messages.cause(ValueError('x' * 5000))) <= 300
