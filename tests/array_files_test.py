import io
import pickle
import zipfile

import numpy as np
import pytest

from gdp_grappler import array_files


def _zip(entries):
  """Bytes of an archive."""
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
    for name, data in entries.items():
      archive.writestr(name, data)
  return buffer.getvalue()


@pytest.mark.parametrize('data', [
    b'', b'PK\x03\x04',
    pickle.dumps([1]),
    _zip({'a.npy': b'\x93NUMPY\x01'}),
    _zip({'a.npy': bytes(2000)}),
    _zip({'a': pickle.dumps(1)}),
    _zip({'a.npy': pickle.dumps(1)})
])
def test_what_is_no_archive_of_arrays_is_refused(tmp_path, data):
  path = tmp_path / 'arrays.npz'
  path.write_bytes(data)
  with pytest.raises(ValueError):
    array_files.read(path, 1000)


def test_arrays_come_back(tmp_path):
  np.savez(tmp_path / 'arrays.npz', a=np.arange(3), b=np.array(['x']))
  found = array_files.read(tmp_path / 'arrays.npz')
  assert found['a'].tolist() == [0, 1, 2] and found['b'].tolist() == ['x']
  with pytest.raises(OSError, match='no regular file'):
    array_files.read('/dev/null')
