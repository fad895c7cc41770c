"""The search of the pages works where they are opened as files, too."""

import re
import shutil
import subprocess

import pytest

from gdp_grappler.cluster import device_figures
from helpers import pages

_SHIM = pages.TOP / 'docs/assets/iframe-worker.js'
# A page, the iframe in it and a script that echoes, as far as the shim looks.
_PAGE = """
class Element extends EventTarget {
  append(child) { child.added(); }
  remove() { this.gone = true; }
}
const inside = Object.assign(new EventTarget(), { MessageEvent });
inside.document = {
  head: new Element(),
  createElement: () => Object.assign(new Element(), {
    added() {
      if (this.src !== 'file:///site/workers/search.js') throw Error(this.src);
      inside.addEventListener('message',
                              event => inside.postMessage(event.data + 1));
      this.dispatchEvent(new Event('load'));
    } })
};
globalThis.window = globalThis;
globalThis.location = { protocol: 'file:', href: 'file:///site/index.html' };
globalThis.document = {
  documentElement: new Element(),
  createElement: () => Object.assign(new Element(), {
    contentWindow: inside,
    added() { setTimeout(() => this.dispatchEvent(new Event('load'))); } })
};
"""
_ASKS = """
const worker = new Worker('workers/search.js');
worker.addEventListener('message', event => {
  console.log(event.data);
  if (event.data < 3) worker.postMessage(event.data);
});
worker.postMessage(1);
"""


def test_pages_carry_their_index_and_start_no_worker_from_a_file():
  config = (pages.TOP / 'mkdocs.yml').read_text(encoding='utf-8')
  assert re.search(r'^  - offline$', config, re.MULTILINE)
  assert f'polyfills: [assets/{_SHIM.name}]' in config
  assert _SHIM.is_file()


def test_a_name_is_found_where_it_is_called():
  """`PlacementCallback` did not find gdp_grappler.PlacementCallback('logs')."""
  config = (pages.TOP / 'mkdocs.yml').read_text(encoding='utf-8')
  separator = re.search("^      separator: '(.*)'$", config, re.MULTILINE)[1]
  words = re.split(
      separator.replace("''", "'"),
      "gdp_grappler.PlacementCallback('logs'), TensorFlow 2.21 {'GPU:1'}")
  assert [word for word in words if word] == [
      'gdp_grappler', 'PlacementCallback', 'logs', 'TensorFlow', '2.21', 'GPU',
      '1'
  ]


@pytest.mark.skipif(not shutil.which('node'), reason='node is not installed')
def test_an_iframe_answers_in_place_of_a_worker():
  text = _PAGE + _SHIM.read_text(encoding='utf-8').replace("'use strict';",
                                                           '') + _ASKS
  done = subprocess.run(['node', '-e', text], capture_output=True, text=True,
                        timeout=60, check=True)
  assert done.stdout.split() == ['2', '3']


def test_the_docs_list_all_cards():
  """A search of the docs for H200 or RTX5090 found the changelog alone."""
  page = (pages.TOP / 'docs/clusters.md').read_text(encoding='utf-8')
  listed = page.split('The cards are', 1)[1].split('`gdp cluster --help`', 1)[0]
  words = set(re.findall(r'\w+', listed))
  assert set(device_figures.CARDS) <= words
  assert all(
      word in device_figures.CARDS for word in words if re.search(r'\d', word))
