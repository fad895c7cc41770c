"""Builds and packages gdp-grappler.

The native libraries are compiled against the TensorFlow that is installed
where this runs:

  pip install 'tensorflow>=2.21,<2.22'
  pip install --no-build-isolation .

`python setup.py build_native` leaves them in gdp_grappler/lib/ for work in the
source tree.
"""

import concurrent.futures
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess

import setuptools
from setuptools.command import build
from setuptools.command import sdist

try:
  from setuptools.command import bdist_wheel
except ImportError:  # setuptools < 70.1
  from wheel import bdist_wheel

os.chdir(pathlib.Path(__file__).parent)
_NATIVE_LIST = 'bazel/native_sources.bzl'
_NATIVE = runpy.run_path(_NATIVE_LIST)
_MINOR = _NATIVE['TENSORFLOW_MINOR']
_NEXT_MINOR = '2.' + str(int(_MINOR.split('.')[1]) + 1)
_TENSORFLOW = f'tensorflow>={_MINOR},<{_NEXT_MINOR}'
_LIB_DIR = pathlib.Path('gdp_grappler/lib')
_OBJECT_DIR = pathlib.Path('build/native')
_VERSION = re.search(r"^__version__ = '(.+)'$",
                     pathlib.Path('gdp_grappler/__init__.py').read_text(),
                     re.MULTILINE).group(1)

_METIS = ['pymetis==2025.2.2']
# HiGHS 1.16 prints a banner before an option can switch the banner off.
_BASELINES = [
    *_METIS, 'scotchpy64==1.0.2', 'mtkahypar==1.7.post1', 'highspy>=1.15,<1.16'
]
# Draws the pictures in the events for TensorBoard.
_PICTURES = ['pillow>=11,<13']
# The core of Ray, without its extras.
_RAY = ['ray>=2.60,<2.61']
_EXTRAS = {
    'metis':
        _METIS,
    'train': [
        'tf-agents==0.19.0',
        'tensorflow-gnn==1.0.3',
        f'tf-keras>={_MINOR},<{_NEXT_MINOR}',
        f'tensorboard>={_MINOR},<{_NEXT_MINOR}',
        *_METIS,
        *_PICTURES,
    ],
    'baselines':
        _BASELINES,
    'report': ['plotly>=7,<8', *_PICTURES],
    'completion': ['shtab>=1.7,<2'],
    'ray':
        _RAY,
    'bench': ['matplotlib>=3.11,<4', 'scipy>=1.17,<2', *_BASELINES],
    'dev': [
        'hypothesis>=6,<7',
        'import-linter>=2.16,<3',
        'pytest>=8.3,<10',
        'pytest-timeout>=2.3,<3',
        'pytest-xdist>=3.8,<4',
        *_RAY,
    ],
}


class _BuildError(SystemExit):
  """An error that ends the build with one line."""

  def __init__(self, message: str):
    super().__init__(f'gdp-grappler: {message}')


def _tensorflow() -> tuple[str, pathlib.Path]:
  """Returns version and folder of TensorFlow, without importing it."""
  remedy = (f"Run: pip install '{_TENSORFLOW}', then: "
            'pip install --no-build-isolation .')
  try:
    version = importlib.metadata.version('tensorflow')
    spec = importlib.util.find_spec('tensorflow')
  except importlib.metadata.PackageNotFoundError:
    version, spec = '', None
  if spec is None:
    raise _BuildError('the native libraries are compiled against the '
                      f'installed TensorFlow, and there is none. {remedy}')
  if not version.startswith(_MINOR + '.'):
    raise _BuildError(f'TensorFlow {version} is installed, but this release '
                      f'needs {_MINOR}. {remedy}')
  return version, pathlib.Path(spec.origin).parent


def _compiler(source: str) -> list[str]:
  variable, default = ('CC', 'gcc') if source.endswith('.c') else ('CXX', 'g++')
  return shlex.split(os.environ.get(variable, default))


def _run(command: list[str]) -> None:
  try:
    subprocess.run(command, check=True)
  except FileNotFoundError:
    raise _BuildError(f'{command[0]} is missing. Run: apt-get install g++ '
                      '(or name compilers in CC and CXX)') from None
  except subprocess.CalledProcessError:
    raise _BuildError(f'failed: {shlex.join(command)}') from None


def _is_older(path: pathlib.Path, inputs) -> bool:
  if not path.exists():
    return True
  return path.stat().st_mtime < max(os.path.getmtime(p) for p in inputs)


class _Library:
  """One native library of the list, and the commands that build it."""

  def __init__(self, name: str, spec: dict, tensorflow: pathlib.Path):
    self.path = _LIB_DIR / name
    self.sources = spec['srcs']
    self._fixed = [*spec['hdrs'], _NATIVE_LIST, __file__]
    self._spec = spec
    self._tensorflow = tensorflow

  def object_of(self, source: str) -> pathlib.Path:
    return _OBJECT_DIR / (source.replace('/', '_') + '.o')

  def compile(self, source: str) -> None:
    """Compiles one source, unless its object is newer than the inputs."""
    target = self.object_of(source)
    if not _is_older(target, [source, *self._fixed]):
      return
    defines, includes = list(self._spec['defines']), []
    if self._spec['tensorflow']:
      defines += _NATIVE['TENSORFLOW_DEFINES']
      includes = ['-isystem', str(self._tensorflow / 'include')]
    _run([
        *_compiler(source), *self._spec['copts'], *_NATIVE['WARNINGS'], '-fPIC',
        '-I.', *includes, *('-D' + define for define in defines), '-c', source,
        '-o',
        str(target)
    ])

  def link(self) -> None:
    """Links the library, unless it is newer than its objects."""
    objects = [self.object_of(source) for source in self.sources]
    if not _is_older(self.path, objects):
      return
    libraries = list(self._spec['linkopts'])
    if self._spec['tensorflow']:
      libraries += [
          f'-L{self._tensorflow}', '-l:libtensorflow_cc.so.2',
          '-l:libtensorflow_framework.so.2'
      ]
    # The old file is replaced, not overwritten: a process may have loaded it.
    self.path.unlink(missing_ok=True)
    _run([
        *_compiler(self.sources[0]), '-shared', '-Wl,-z,defs',
        *map(str, objects), *libraries, '-o',
        str(self.path)
    ])


def _build_native() -> None:
  version, folder = _tensorflow()
  _LIB_DIR.mkdir(exist_ok=True)
  info_path = _LIB_DIR / 'build_info.json'
  info = json.dumps({'tensorflow': version}) + '\n'
  if not info_path.exists() or info_path.read_text() != info:
    shutil.rmtree(_OBJECT_DIR, ignore_errors=True)
  _OBJECT_DIR.mkdir(parents=True, exist_ok=True)
  libraries = [
      _Library(name, spec, folder)
      for name, spec in _NATIVE['NATIVE_LIBRARIES'].items()
  ]
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    jobs = [
        pool.submit(library.compile, source) for library in libraries
        for source in library.sources
    ]
    for job in jobs:
      job.result()
  for library in libraries:
    library.link()
  info_path.write_text(info)


class BuildNative(setuptools.Command):
  """Compiles the native libraries into gdp_grappler/lib/."""

  description = __doc__
  user_options = []

  def initialize_options(self):
    """Sets no options."""

  def finalize_options(self):
    """Checks no options."""

  def run(self):
    """Compiles the native libraries."""
    _build_native()


class Build(build.build):
  """The usual build, after the build of the native libraries."""

  def run(self):
    """Compiles the native libraries, and copies the files of the wheel."""
    _build_native()
    # The wheel must not contain modules that have been removed.
    shutil.rmtree(self.build_lib, ignore_errors=True)
    super().run()
    # TensorFlow loads every library in site-packages/tensorflow-plugins/.
    plugins = pathlib.Path(self.build_lib) / 'tensorflow-plugins'
    plugins.mkdir()
    shutil.copy2(_LIB_DIR / 'libgdp_loader.so', plugins)


class BdistWheel(bdist_wheel.bdist_wheel):
  """A wheel for any Python 3 on this platform: ctypes, no extension module.

  The tag names the oldest glibc with which the native libraries load.
  """

  def get_tag(self):
    """Returns Python version, ABI and platform for the name of the wheel."""
    platform = super().get_tag()[2]
    machine = platform.removeprefix('linux_')
    if machine != platform:
      platform = runpy.run_path('bazel/manylinux.py')['platform'](sorted(
          _LIB_DIR.glob('*.so')), machine) or platform
    return 'py3', 'none', platform


class Sdist(sdist.sdist):
  """A source distribution without libraries compiled for this machine."""

  def make_release_tree(self, base_dir, files):
    """Leaves out the compiled libraries."""
    super().make_release_tree(
        base_dir, [f for f in files if not f.startswith(f'{_LIB_DIR}/')])


class Distribution(setuptools.Distribution):
  """Tells setuptools that the package is bound to a platform."""

  def has_ext_modules(self):
    """Returns True, because the package has native libraries."""
    return True


setuptools.setup(
    name='gdp-grappler',
    version=_VERSION,
    description='Learned device placement of TensorFlow graphs in Grappler',
    long_description=pathlib.Path('README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    python_requires='>=3.11',
    packages=setuptools.find_packages(include=[
        'gdp_grappler', 'gdp_grappler.*', 'placer_model', 'placer_model.*'
    ]),
    package_data={
        'gdp_grappler': [
            'lib/*', 'placers/placers.toml',
            'placers/search/moves/shipped_moves.npz', 'py.typed',
            'reports/assets/*'
        ],
        'placer_model': ['*/placers.toml', 'pretrained/**/*', 'py.typed'],
    },
    install_requires=[_TENSORFLOW, 'numpy', 'absl-py', 'rich'],
    extras_require=_EXTRAS,
    entry_points={
        'console_scripts': [
            'gdp = gdp_grappler.bin.starting:gdp',
            'gdp_bench = placer_model.bin.starting:gdp_bench',
            'gdp_pretrain = placer_model.bin.starting:gdp_pretrain',
            'gdp_train = placer_model.bin.starting:gdp_train',
        ]
    },
    cmdclass={
        'build': Build,
        'build_native': BuildNative,
        'bdist_wheel': BdistWheel,
        'sdist': Sdist,
    },
    distclass=Distribution,
    zip_safe=False,
)
