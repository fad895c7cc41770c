"""Headless Chromium, driven by the WebDriver protocol alone."""

from __future__ import annotations

import base64
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
from typing import Any, Iterator
import urllib.error
import urllib.request

from helpers import processes

_ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
_FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
          '--no-first-run', '--disable-background-networking',
          '--disable-component-update', '--disable-sync',
          '--window-size=1400,1600')


def is_there() -> bool:
  """Whether Debian's chromium and chromium-driver are installed."""
  return bool(shutil.which('chromium') and shutil.which('chromedriver'))


class Browser:
  """A window of the browser."""

  def __init__(self, address: str, session: str) -> None:
    self._at = f'{address}/session/{session}'

  def open(self, path: pathlib.Path) -> None:
    """Loads a file."""
    self.visit(path.resolve().as_uri())

  def visit(self, url: str) -> None:
    """Loads a page."""
    self._ask('url', {'url': url})

  def resize(self, width: int, height: int) -> None:
    """Sets the size of the window, in pixels."""
    self._ask('window/rect', {'width': width, 'height': height})

  def run(self, script: str, *arguments: Any) -> Any:
    """Runs the body of a JavaScript function, and returns its result."""
    return self._ask('execute/sync', {'script': script, 'args': arguments})

  def click(self, selector: str) -> None:
    """Clicks on the first element of a CSS selector."""
    self._ask(f'element/{self._find(selector)}/click', {})

  def type(self, selector: str, text: str) -> None:
    """Types into an element."""
    self._ask(f'element/{self._find(selector)}/value', {'text': text})

  def click_at(self, x: float, y: float) -> None:
    """Clicks on a point of the window."""
    move = {'type': 'pointerMove', 'x': int(x), 'y': int(y)}
    self._ask(
        'actions', {
            'actions': [{
                'type':
                    'pointer', 'id':
                        'mouse', 'actions': [
                            move, {'type': 'pause', 'duration': 100}, {
                                'type': 'pointerDown', 'button': 0
                            }, {'type': 'pointerUp', 'button': 0}
                        ]
            }]
        })

  def errors(self) -> list[str]:
    """Returns the errors in the console since the last call."""
    entries = self._ask('se/log', {'type': 'browser'})
    return [e['message'] for e in entries if e['level'] == 'SEVERE']

  def wait_until(self, script: str) -> None:
    """Waits until the body of a JavaScript function returns a true value."""
    processes.wait_until(lambda: self.run(script))

  def screenshot(self, path: pathlib.Path) -> None:
    """Writes the visible part of the page as PNG."""
    path.write_bytes(base64.b64decode(_get(f'{self._at}/screenshot')))

  def picture(self, selector: str, path: pathlib.Path) -> None:
    """Writes an element as PNG, even if it is not visible."""
    shot = _get(f'{self._at}/element/{self._find(selector)}/screenshot')
    path.write_bytes(base64.b64decode(shot))

  def _find(self, selector: str) -> str:
    return self._ask('element',
                     {'using': 'css selector', 'value': selector})[_ELEMENT]

  def _ask(self, what: str, body: Any) -> Any:
    return _post(f'{self._at}/{what}', body)


@contextlib.contextmanager
def started(profile: pathlib.Path) -> Iterator[Browser]:
  """Yields a browser with an empty profile in a folder."""
  with socket.socket() as free:
    free.bind(('localhost', 0))
    port = free.getsockname()[1]
  address = f'http://localhost:{port}'
  driver = subprocess.Popen(['chromedriver', f'--port={port}'],
                            stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
  try:
    processes.wait_until(lambda: _answers(address))
    options = {'args': [*_FLAGS, f'--user-data-dir={profile}']}
    session = _post(
        f'{address}/session', {
            'capabilities': {
                'alwaysMatch': {
                    'browserName': 'chrome', 'goog:chromeOptions': options,
                    'goog:loggingPrefs': {'browser': 'ALL'}
                }
            }
        })['sessionId']
    try:
      yield Browser(address, session)
    finally:
      _send(f'{address}/session/{session}', None, 'DELETE')
  finally:
    driver.terminate()
    driver.wait()


def _answers(address: str) -> bool:
  try:
    return _get(f'{address}/status')['ready']
  except urllib.error.URLError:
    return False


def _get(url: str) -> Any:
  return _send(url, None, 'GET')


def _post(url: str, body: Any) -> Any:
  return _send(url, json.dumps(body).encode(), 'POST')


def _send(url: str, body: bytes | None, method: str) -> Any:
  request = urllib.request.Request(url, body, method=method)
  try:
    with urllib.request.urlopen(request) as answer:
      return json.load(answer)['value']
  except urllib.error.HTTPError as error:
    raise AssertionError(error.read().decode()) from error
