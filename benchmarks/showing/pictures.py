"""Takes pictures of the sessions' files in a browser."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator
import urllib.error
import urllib.request

import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import files
from helpers import browser as browser_lib
from helpers import processes

# Finds elements inside the shadow roots of TensorBoard's elements.
_DEEP = '''
const all = (selector) => {
  const found = [];
  const visit = (root) => {
    found.push(...root.querySelectorAll(selector));
    for (const element of root.querySelectorAll('*'))
      if (element.shadowRoot) visit(element.shadowRoot);
  };
  visit(document);
  return found;
};
'''
# Boxes of the graph to open: the step, and the model in the step.
_BOXES = 'StatefulPartitionedCall', 'StatefulPartitionedCall/functional_1'
# Seconds that the graph moves after a click on "Fit to screen".
_ZOOM_S = 3.
_WIDE = 1600, 900  # Size in pixels of a picture of a whole graph.


def report(folder: pathlib.Path, target: pathlib.Path) -> None:
  """Draws the report: its top, the layers, the memory, an op with its reason.

  Args:
    folder: Folder in which the sessions ran.
    target: Folder of the pictures.

  Raises:
    GdpError: there is no browser, or no page.
  """
  page = _existing(folder / 'report.html')
  with _browser() as browser:
    browser.open(page)
    browser.wait_until('return document.body.dataset.drawn === "yes"')
    browser.screenshot(target / 'report.png')
    browser.picture('#layers', target / 'layers.png')
    browser.picture('#memory', target / 'memory.png')
    browser.type('#search', 'deep_2')
    browser.wait_until('return [...document.querySelectorAll("#ops tbody tr")]'
                       '.every(row => row.innerText.includes("deep_2"))')
    browser.run('document.querySelector("#ops tbody tr:last-child").click()')
    browser.wait_until('return !document.getElementById("details").hidden')
    browser.picture('#details', target / 'why.png')


def tensorboard(folder: pathlib.Path, target: pathlib.Path) -> None:
  """Draws the timeline, and TensorBoard's graph in the colours of devices.

  Args:
    folder: Folder in which the sessions ran.
    target: Folder of the pictures.

  Raises:
    GdpError: there is no browser, no TensorBoard, or no events.
  """
  extras.require('The picture of TensorBoard', 'tensorboard')
  logs = _existing(folder / 'logs')
  files.write_atomically(target / 'timeline.png', _timeline(logs))
  with _server(logs) as address, _browser() as browser:
    browser.resize(*_WIDE)
    browser.visit(f'{address}/#graphs&run=.')
    browser.wait_until(_DEEP + 'return all("g.node").length > 3')
    browser.run(_DEEP + """
      const radio = all('paper-radio-button, input[type=radio], option')
          .find(e => /device/i.test(e.textContent + e.value + e.name));
      radio && radio.click();
    """)
    for box in _BOXES:
      browser.run(_DEEP + f"""
        all('g.node').find(e => e.dataset.name === '{box}')
            .querySelector('.nodeshape')
            .dispatchEvent(new MouseEvent('dblclick', {{bubbles: true}}));
      """)
      browser.wait_until(_DEEP + f"""
        return all('g.node').some(e => e.dataset.name.startsWith('{box}/'));
      """)
    browser.run(_DEEP + """
      all('#svg').forEach(e => e.dispatchEvent(new MouseEvent('click')));
      all('[alt="Fit to screen"]').forEach(e => e.click());
    """)
    time.sleep(_ZOOM_S)
    browser.screenshot(target / 'tensorboard.png')


def _existing(path: pathlib.Path) -> pathlib.Path:
  if not path.exists():
    raise errors.GdpError(f'{path} is missing. Record the sessions first.')
  return path


def _timeline(logs: pathlib.Path) -> bytes:
  """Returns the last timeline among the events."""
  found: Any = None
  for path in sorted(logs.glob('events.*')):
    for record in tf.data.TFRecordDataset(str(path)):
      event = tf.compat.v1.Event.FromString(record.numpy())
      for value in event.summary.value:
        if value.tag == 'placement/timeline':
          found = tf.make_ndarray(value.tensor)[2]
  if found is None:
    raise errors.GdpError(f'There is no timeline in {logs}.')
  return bytes(found)


@contextlib.contextmanager
def _browser() -> Iterator[browser_lib.Browser]:
  if not browser_lib.is_there():
    raise errors.GdpError(
        'Chromium takes the pictures, and it is missing. Run: apt-get install '
        'chromium chromium-driver')
  with tempfile.TemporaryDirectory() as profile:
    with browser_lib.started(pathlib.Path(profile)) as browser:
      yield browser


@contextlib.contextmanager
def _server(logs: pathlib.Path) -> Iterator[str]:
  """Yields the address of a TensorBoard."""
  with socket.socket() as free:
    free.bind(('localhost', 0))
    port = free.getsockname()[1]
  process = subprocess.Popen([
      sys.executable, '-m', 'tensorboard.main', f'--logdir={logs}',
      f'--port={port}', '--load_fast=false'
  ], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
  address = f'http://localhost:{port}'
  try:
    processes.wait_until(lambda: _answers(f'{address}/data/runs'), process)
    yield address
  finally:
    process.terminate()
    process.wait()


def _answers(url: str) -> bool:
  try:
    with urllib.request.urlopen(url) as answer:
      return '"."' in answer.read().decode()
  except (urllib.error.URLError, ConnectionError):
    return False
