"""Makes pages of the site from notebooks, with text, code and output."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

from mkdocs.structure import files as files_lib

_SUFFIX = '.ipynb'


class _Notebook(files_lib.File):
  """A notebook that becomes a page, although it is not Markdown."""

  def is_documentation_page(self) -> bool:
    return True


def on_files(files: Any, config: Any) -> Any:
  """Makes each notebook a page, to which other pages may link."""
  for file in list(files):
    if file.src_uri.endswith(_SUFFIX):
      files.remove(file)
      files.append(
          _Notebook(file.src_uri, config.docs_dir, config.site_dir,
                    config.use_directory_urls))
  return files


def on_page_read_source(page: Any, config: Any) -> str | None:
  """Returns the Markdown of a notebook; None for other pages."""
  del config
  if not isinstance(page.file, _Notebook):
    return None
  path = pathlib.Path(page.file.abs_src_path)
  return markdown(json.loads(path.read_text(encoding='utf-8')))


def markdown(notebook: dict[str, Any]) -> str:
  """Returns a notebook of nbformat 4 as Markdown."""
  return '\n\n'.join(part for cell in notebook['cells'] for part in _cell(cell))


def _cell(cell: dict[str, Any]) -> list[str]:
  source = ''.join(cell['source'])
  if cell['cell_type'] == 'markdown':
    return [source]
  return [_fenced(source, 'python'), *map(_output, cell['outputs'])]


def _output(output: dict[str, Any]) -> str:
  if output['output_type'] == 'stream':
    return _fenced(''.join(output['text']), 'text')
  data = output['data']
  if 'text/html' in data:
    # In Markdown an empty line would end the HTML.
    html = re.sub(r'\n\s*\n', '\n', ''.join(data['text/html']))
    return f'<div class="notebook-output">{html}</div>'
  return _fenced(''.join(data['text/plain']), 'text')


def _fenced(text: str, language: str) -> str:
  return f'```{language}\n{text.rstrip()}\n```'
