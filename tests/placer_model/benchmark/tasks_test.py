"""What users write, and which tasks it means."""

import pathlib

import pytest

from gdp_grappler import errors
from placer_model.benchmark import tasks as tasks_lib

_WORKLOADS = {task.source: 2 for task in tasks_lib.PAPER_TASKS}
_WORKLOADS |= {f'{name}@tiny': 2 for name in _WORKLOADS} | {'wavenet-5': 4}


def _names(text, **options):
  return [
      task.name
      for task in tasks_lib.parse(text, _WORKLOADS, _WORKLOADS.get, **options)
  ]


def test_all_are_those_of_the_two_papers():
  tasks = tasks_lib.parse('all', _WORKLOADS, _WORKLOADS.get)
  assert len({t.name for t in tasks}) == 20
  names = {t.name for t in tasks}
  assert {
      'rnnlm-8@8xP100', 'amoebanet@4xP100', 'wavenet-4x36@4xP100',
      'nmt-8@8xK40', 'inception-v3-b32@2xP100'
  } <= names


@pytest.mark.parametrize(
    'text, names',
    [('rnnlm-4', ['rnnlm-4@4xP100']),
     ('rnnlm-2', ['rnnlm-2@2xP100', 'rnnlm-2@2xK40']),
     ('rnnlm-2@2xV100', ['rnnlm-2@2xV100']),
     ('rnnlm-2@tiny@2xP100', ['rnnlm-2@tiny@2xP100']),
     ('rnnlm-4@tiny', ['rnnlm-4@tiny@4xP100']),
     ('wavenet-5', ['wavenet-5@4xP100']),
     ('gnmt-8, gnmt-4 ,gnmt-8@8xP100', ['gnmt-8@8xP100', 'gnmt-4@4xP100']),
     ('keras_applications:ResNet50@cpu', ['keras_applications:ResNet50@cpu']),
     ('models.net:make@2xP100', ['models.net:make@2xP100'])])
def test_names(text, names):
  assert _names(text) == names


def test_a_file_goes_by_its_name(tmp_path):
  path = tmp_path / 'my@graph.pb'
  path.write_bytes(b'')
  [task] = tasks_lib.parse(f'{path}@2xP100', _WORKLOADS, _WORKLOADS.get)
  assert task.name == 'my@graph@2xP100'
  assert (task.source, task.cluster, task.expert) == (str(path), '2xP100', '')
  with pytest.raises(errors.GdpError, match='has no cluster'):
    _names(str(path))


def test_two_files_of_one_name(tmp_path):
  paths = [tmp_path / folder / 'net.pb' for folder in 'ab']
  for path in paths:
    path.parent.mkdir()
    path.write_bytes(b'')
  with pytest.raises(errors.GdpError, match='Rename a file'):
    _names(','.join(f'{path}@2xP100' for path in paths))


@pytest.mark.parametrize('text, said',
                         [('rnnlm-3', 'Did you mean "rnnlm-'),
                          ('rnnlm3@2xP100', 'Unknown task "rnnlm3@2xP100"'),
                          ('net.pb@2xP100', 'neither a workload nor a file'),
                          (' , ', 'names no task')])
def test_unknown_names(text, said):
  with pytest.raises(errors.GdpError, match=said):
    _names(text)


def test_quick_takes_small_variants(tmp_path):
  path = tmp_path / 'net.pb'
  path.write_bytes(b'')
  assert _names(f'rnnlm-4,gnmt-2@tiny,{path}@cpu', quick=True) == [
      'rnnlm-4@tiny@4xP100', 'gnmt-2@tiny@2xP100', 'net@cpu'
  ]
  assert len(_names('all', quick=True)) == 20
  with pytest.raises(errors.GdpError, match='no small variant'):
    _names('wavenet-5', quick=True)


def test_inception_has_two_experts():
  experts = {
      t.name: t.expert
      for t in tasks_lib.parse('inception-v3-b32', _WORKLOADS, _WORKLOADS.get)
  }
  assert experts == {
      'inception-v3-b32@2xP100': 'workload', 'inception-v3-b32@2xK40': 'one_gpu'
  }


def test_a_default_cluster_replaces_the_papers():
  names = _names('all,rnnlm-2,gnmt-2@2xV100', default_cluster='local')
  assert names[0] == 'rnnlm-2@local'
  assert [n for n in names if not n.endswith('@local')] == ['gnmt-2@2xV100']


def test_file_names_hold_no_slash():
  task = tasks_lib.Task('keras_applications:Net', 'grpc://host:1')
  assert pathlib.Path(task.file_name).name == task.file_name
