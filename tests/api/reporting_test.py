"""Tests of `report` and `gdp report`: the file, and the page in a browser."""

import base64
import gzip
import json
import pathlib
import re
import sys

import keras
import numpy as np
import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.api import placed_step
from gdp_grappler.bin import gdp
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import step as step_lib
from helpers import browser as browser_lib
from helpers import clusters
from helpers import graphs

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'
_HOSTILE = ('<script>window.hacked = 1</script>', '</script><b>bold',
            '@@DATA@@', '<img src=x onerror="window.hacked = 1">',
            '&amp;"\'`${1}')


def _placed(graph, devices, name='made'):
  cluster = clusters.make_cluster(2)
  step = step_lib.Step(graph, cluster, None, clusters.FixedCosts(1e-3))
  return placed_step.PlacedStep(
      None, step, placement_lib.Placement(np.array(devices), cluster), name)


def _data(path):
  """Returns the data that a page contains."""
  packed = re.search('id="data">([A-Za-z0-9+/=]*)</script>',
                     path.read_text())[1]
  return json.loads(gzip.decompress(base64.b64decode(packed)))


@pytest.fixture(scope='module')
def plans():
  """Two plans of a real graph."""
  return [
      gdp_grappler.place(_GRAPH, '2xP100', placer=placer)
      for placer in ('random', 'metis')
  ]


def test_a_single_plan_stands_beside_one_device(plans, tmp_path):
  gdp_grappler.report(plans[1], tmp_path / 'page.html')
  data = _data(tmp_path / 'page.html')
  assert [run['name'] for run in data['runs']] == ['one device', 'metis']
  run = data['runs'][1]
  assert run['stepUs'] == pytest.approx(plans[1].step_time_s * 1e6)
  assert run['device'] == plans[1].placement.devices.tolist()
  graph = plans[1].graph
  assert data['ops']['names'] == [
      graph.label(op) for op in range(graph.num_ops)
  ]
  assert {row[0] for row in run['layers']
         } == {row.name for row in plans[1].layers}
  assert data['verdict'].startswith('A step by metis takes ')


@pytest.mark.parametrize('number', [1, 2])
def test_layers_are_in_the_order_of_the_model(number, tmp_path):
  """Once the page had the layers in the sorted order of the graph."""
  inputs = keras.Input((8,))
  ends = []
  for name in ('first', 'second', 'third', 'fourth'):
    ends.append(keras.layers.Dense(8, name=name)(inputs))
  model = keras.Model(inputs, keras.layers.Add(name='sum')(ends))
  model.compile('sgd', 'mse')
  plan = gdp_grappler.place(model, '2xP100', placer='round_robin')
  gdp_grappler.report([plan] * number, tmp_path / 'page.html')
  for run in _data(tmp_path / 'page.html')['runs']:
    names = [row[0] for row in run['layers']]
    assert names == [row.name for row in plan.layers]
    assert names[:4] == ['first', 'second', 'third', 'fourth']


def test_of_several_the_last_is_judged(plans, tmp_path):
  gdp_grappler.report(plans, tmp_path / 'page.html')
  verdict = _data(tmp_path / 'page.html')['verdict']
  assert re.fullmatch(
      r'A step by metis takes [\d.]+ ms \(simulated\), [\d.]+x as fast as '
      r'random \([\d.]+ ms\)\.', verdict)
  gdp_grappler.report(plans[::-1], tmp_path / 'page.html')
  assert ', no faster than metis (' in _data(tmp_path / 'page.html')['verdict']


def test_the_file_loads_nothing(plans, tmp_path):
  gdp_grappler.report(plans[1], tmp_path / 'page.html')
  page = (tmp_path / 'page.html').read_text()
  assert "default-src 'none'" in page
  own = re.sub('<script>.*?</script>', '', page, flags=re.DOTALL)
  assert not re.search(r'(src|href)\s*=|url\(|@import', own)


def test_names_are_no_markup_of_the_file(tmp_path):
  graph = graphs.chain(len(_HOSTILE), names=_HOSTILE, name=_HOSTILE[0])
  gdp_grappler.report(_placed(graph, [1, 2, 1, 2, 1], _HOSTILE[1]),
                      tmp_path / 'page.html')
  page = (tmp_path / 'page.html').read_text()
  assert _HOSTILE[0] not in page and _HOSTILE[3] not in page
  assert '<b>bold' not in page
  assert _data(tmp_path / 'page.html')['ops']['names'] == list(_HOSTILE)


def test_the_command_writes_a_page(plans, tmp_path, capsys):
  for plan in plans:
    plan.save(tmp_path / f'{plan.placed_by}.json')
  page = tmp_path / 'page.html'
  assert gdp.run([
      'report',
      str(_GRAPH), '--cluster=2xP100', f'--plan={tmp_path}/random.json',
      f'--plan={tmp_path}/metis.json', f'--output={page}'
  ]) == 0
  assert f'Wrote {page}' in capsys.readouterr().out
  assert [run['name'] for run in _data(page)['runs']
         ] == ['random.json', 'metis.json']


@pytest.mark.parametrize('arguments, said', [
    (['--plan=none.json', '--output=p.html'], 'Cannot read plan none.json'),
    (['--plan=none.json', '--output=no/p.html'], 'folder does not exist'),
])
def test_bad_input_gets_one_line(arguments, said, capsys):
  assert gdp.run(['report', str(_GRAPH), '--quiet', *arguments]) == 2
  error = capsys.readouterr().err
  assert said in error and error.count('\n') == 1


def test_without_plotly_it_says_what_to_install(plans, tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, 'plotly', None)
  with pytest.raises(errors.GdpError, match=r'gdp-grappler\[report\]'):
    gdp_grappler.report(plans[0], tmp_path / 'page.html')


def test_plans_of_several_graphs_are_refused(plans, tmp_path):
  with pytest.raises(errors.PlanError, match='Write a report for each'):
    gdp_grappler.report([plans[0], _placed(graphs.chain(1), [0])],
                        tmp_path / 'page.html')
  with pytest.raises(errors.PlanError, match='no plan to report'):
    gdp_grappler.report([], tmp_path / 'page.html')


# The tests below use a browser.


@pytest.fixture(scope='module', name='browser')
def _browser(tmp_path_factory):
  if not browser_lib.is_there():
    pytest.skip('chromium and chromium-driver are not installed')
  with browser_lib.started(tmp_path_factory.mktemp('profile')) as browser:
    yield browser


def _shown(browser, path):
  browser.open(path)
  browser.wait_until('return document.body.dataset.drawn === "yes" || '
                     '!document.getElementById("problem").hidden')
  assert browser.run('return document.getElementById("problem").hidden')


@pytest.mark.e2e
def test_axes_are_in_the_unit_of_the_texts(browser, plans, tmp_path):
  gdp_grappler.report(plans, tmp_path / 'page.html')
  _shown(browser, tmp_path / 'page.html')
  for chart in ('timeline', 'memory', 'work'):
    title, last = browser.run(f'''
      const axis = document.getElementById('{chart}').layout.xaxis;
      return [axis.title.text, axis.range[1]];
    ''')
    assert title == 'milliseconds'
    longest_ms = max(plan.step_time_s for plan in plans) * 1e3
    assert longest_ms <= last < 1.1 * longest_ms


def test_the_page_says_whose_memory_it_shows(plans, tmp_path):
  # Once nothing explained a curve that falls early in the step.
  gdp_grappler.report(plans, tmp_path / 'page.html')
  page = (tmp_path / 'page.html').read_text()
  assert 'gives memory back, when the host sends' in page


def test_the_page_says_what_gaps_of_the_chain_are(plans, tmp_path):
  """Once a row with 2.9 ms of launches said 'waits before for nothing'."""
  gdp_grappler.report(plans, tmp_path / 'page.html')
  page = (tmp_path / 'page.html').read_text()
  assert 'Gaps are the times before and between them' in page
  assert 'waits before' not in page


@pytest.mark.e2e
def test_curves_of_three_plans_have_three_dashes(browser, plans, tmp_path):
  """Once the curves of the second and the third plan looked alike."""
  gdp_grappler.report([*plans, plans[0]], tmp_path / 'page.html')
  _shown(browser, tmp_path / 'page.html')
  lines = browser.run('return document.getElementById("memory").data.map('
                      'trace => [trace.name.split(",")[1], trace.line.dash])')
  gpu = [dash for name, dash in lines if name.startswith(' GPU:0')]
  assert len(gpu) == len(set(gpu)) == 3


@pytest.mark.e2e
def test_only_heads_that_sort_have_the_pointer_of_a_link(
    browser, plans, tmp_path):
  gdp_grappler.report(plans, tmp_path / 'page.html')
  _shown(browser, tmp_path / 'page.html')
  assert browser.run('''
    return ['layers', 'chain', 'cuts', 'ops'].map(table => getComputedStyle(
        document.querySelector(`#${table} th`)).cursor === 'pointer');
  ''') == [False, False, False, True]


@pytest.mark.e2e
def test_a_click_on_a_bar_shows_the_reason(browser, plans, tmp_path):
  gdp_grappler.report(plans, tmp_path / 'page.html')
  _shown(browser, tmp_path / 'page.html')
  point = browser.run('''
    const bars = [...document.querySelectorAll('#timeline .bars path')];
    const boxes = bars.map(b => b.getBoundingClientRect());
    const largest = boxes.sort((a, b) => b.width - a.width)[0];
    return [largest.x + largest.width / 2, largest.y + largest.height / 2];
  ''')
  browser.click_at(*point)
  browser.wait_until('return !document.getElementById("details").hidden')
  text = browser.run('return document.getElementById("op").innerText')
  assert 'why' in text and ' the critical chain' in text
  assert any(name in text for name in plans[0].graph.names)
  assert not browser.errors()


@pytest.mark.e2e
def test_the_table_is_searched_and_a_row_shows_its_op(browser, plans, tmp_path):
  gdp_grappler.report(plans, tmp_path / 'page.html')
  _shown(browser, tmp_path / 'page.html')
  browser.type('#search', 'matmul')
  browser.wait_until('return !document.getElementById("found").textContent'
                     f'.endsWith("of {plans[0].graph.num_ops}")')
  # The word is in the name, the type or the reason of each row.
  rows = browser.run('return [...document.querySelectorAll("#ops tbody tr")]'
                     '.map(row => row.innerText.toLowerCase())')
  assert rows and all('matmul' in row for row in rows)
  browser.click('#ops tbody tr')
  text = browser.run('return document.getElementById("op").innerText')
  assert 'matmul' in text.lower()
  assert not browser.errors()


@pytest.mark.e2e
def test_hostile_names_do_nothing_in_a_browser(browser, tmp_path):
  graph = graphs.chain(len(_HOSTILE), names=_HOSTILE, name=_HOSTILE[0],
                       op_types=_HOSTILE)
  gdp_grappler.report(_placed(graph, [1, 2, 1, 2, 1], _HOSTILE[3]),
                      tmp_path / 'page.html')
  _shown(browser, tmp_path / 'page.html')
  for row in range(1, len(_HOSTILE) + 1):
    browser.click(f'#ops tbody tr:nth-child({row})')
  assert browser.run('return window.hacked') is None
  assert browser.run('return document.querySelectorAll("img, b").length') == 0
  assert _HOSTILE[3] in browser.run('return document.body.innerText')
  assert not browser.errors()


@pytest.mark.e2e
def test_a_large_graph_is_drawn_with_few_bars(browser, tmp_path):
  count = 20_000
  rng = np.random.default_rng(0)
  edges = [(i - 1, i, int(rng.integers(1, 1000))) for i in range(1, count)]
  graph = graphs.make_graph(edges, count)
  gdp_grappler.report(_placed(graph, np.sort(rng.integers(1, 3, count))),
                      tmp_path / 'page.html')
  assert (tmp_path / 'page.html').stat().st_size < 11 << 19
  _shown(browser, tmp_path / 'page.html')
  bars = browser.run(
      'return document.querySelectorAll("#timeline .bars path").length')
  assert 0 < bars < 5000
  assert not browser.errors()


def test_a_name_that_is_no_page_is_refused(plans, tmp_path, capsys):
  """Once `--output=x.pdf` wrote an HTML page."""
  with pytest.raises(errors.GdpError, match='End the name in .html'):
    gdp_grappler.report(plans[0], tmp_path / 'x.pdf')
  assert gdp.run(
      ['report',
       str(_GRAPH), '--plan=none.json', f'--output={tmp_path}/x.pdf']) == 2
  assert 'End the name in .html' in capsys.readouterr().err
