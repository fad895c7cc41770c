import dataclasses
import json
import subprocess
import sys

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan
from gdp_grappler.cluster import presets
from helpers import fresh
from helpers import graphs


@pytest.mark.parametrize('name', ['c.json', 'c.pbtxt', 'c', 'c.txt'])
@pytest.mark.parametrize('content', [
    b'', b' \n', b'null', b'3', b'{', b'\xff\xfe\x00', b'\x00\x01\x02', b'what',
    b'[1]', b'{"name": "x"}', b'PK\x03\x04'
])
def test_files_that_are_no_clusters(tmp_path, name, content):
  file = tmp_path / name
  file.write_bytes(content)
  with pytest.raises(errors.ClusterError) as error:
    cluster_file.read(str(file))
  assert str(error.value).startswith(str(file))
  assert '\n' not in str(error.value)


def test_a_list_without_devices(tmp_path):
  """The message said that links are missing."""
  (tmp_path / 'c.json').write_text('[]')
  with pytest.raises(errors.ClusterError, match='it lists no devices'):
    cluster_file.read(str(tmp_path / 'c.json'))


def test_no_file(tmp_path):
  for path in (tmp_path, tmp_path / 'none.json'):
    with pytest.raises(errors.ClusterError, match='Cannot read cluster file'):
      cluster_file.read(str(path))


def test_a_field_that_appears_twice(tmp_path):
  """The last one counted, and the others did not, without a word."""
  path = tmp_path / 'twice.json'
  text = presets.preset('2xP100').to_json()
  path.write_text(text.replace('{', '{"name": "other", ', 1))
  with pytest.raises(errors.ClusterError, match='"name" appears twice'):
    cluster_file.read(str(path))


def test_a_file_without_a_suffix(tmp_path):
  cluster = presets.preset('2xP100')
  for source in ('c.json', 'c.pbtxt'):
    cluster_file.write(str(tmp_path / source), cluster)
    plain = tmp_path / 'plain'
    plain.write_bytes((tmp_path / source).read_bytes())
    assert cluster_file.read(str(plain)) == cluster


@pytest.mark.parametrize('name', ['c.txt', 'c.pbtxt', 'c.json'])
@pytest.mark.parametrize('mark', ['', '\ufeff'])
def test_json_is_known_by_its_content(tmp_path, name, mark):
  """JSON in a .txt file, or behind a byte order mark, was refused."""
  cluster = presets.preset('2xP100')
  path = tmp_path / name
  path.write_text(mark + cluster.to_json())
  assert cluster_file.read(str(path)) == cluster


def test_our_json_needs_no_tensorflow(tmp_path):
  path = tmp_path / 'c.json'
  path.write_text(presets.preset('2xP100').to_json())
  code = ('import sys; from gdp_grappler.cluster import cluster_file; '
          f'print(cluster_file.read({str(path)!r}).name); '
          'assert "tensorflow" not in sys.modules')
  result = subprocess.run([sys.executable, '-c', code], capture_output=True,
                          text=True, env=fresh.environment())
  assert result.stdout == '2xP100\n', result.stderr


def test_the_file_is_named_with_the_field(tmp_path):
  fields = json.loads(presets.preset('2xP100').to_json())
  fields['links'][3]['bandwidth_bytes_per_s'] = -5
  path = tmp_path / 'cluster.json'
  path.write_text(json.dumps(fields))
  with pytest.raises(errors.ClusterError) as error:
    cluster_file.read(str(path))
  assert f'{path}: ' in str(error.value)
  assert 'links[3].bandwidth_bytes_per_s' in str(error.value)


@pytest.mark.parametrize('name', ['2xP100', 'lab'])
def test_a_plan_stands_for_its_cluster(tmp_path, name):
  """A cluster that came from a file has no name that can be typed."""
  cluster = dataclasses.replace(presets.preset('2xP100'), name=name)
  path = str(tmp_path / 'plan.json')
  graph = graphs.make_graph([(0, 1, 8)])
  plan.save(path, graph, placement_lib.Placement([0, 1], cluster))
  assert cluster_file.read(path) == cluster


def test_a_plan_may_be_larger_than_a_cluster_file(tmp_path):
  path = tmp_path / 'plan.json'
  graph = graphs.make_graph(num_ops=2, names=['a', 'b' * (17 << 20)])
  cluster = presets.preset('2xP100')
  plan.save(str(path), graph, placement_lib.Placement([0, 1], cluster))
  assert cluster_file.read(str(path)) == cluster
  path.write_text(json.dumps([path.read_text()]))
  with pytest.raises(errors.ClusterError, match='it has more than 16777216'):
    cluster_file.read(str(path))
