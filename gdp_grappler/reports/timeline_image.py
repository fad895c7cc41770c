"""Draws the lanes of a simulated step as a PNG picture."""

from __future__ import annotations

import io
import math

import numpy as np
from PIL import Image
from PIL import ImageDraw
from PIL import ImageFont

from gdp_grappler.reports import lanes as lanes_lib
from gdp_grappler.reports import units

COLUMNS = 1200  # Width of the chart in pixels.
# Height of a lane in pixels.
_LANE = 26
_GAP = 2  # Pixels between two lanes.
_SPACE = 12  # Pixels around the chart and around texts.
_TEXT = 13  # Height of text in pixels.
_TICKS = 6  # Largest number of labels on the axis of time.
_ROOM = .08  # Share of the axis for the label of its end, the step time.
_Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def png(lanes: lanes_lib.Lanes, step_time_s: float) -> bytes:
  """Draws lanes of `COLUMNS` columns, with names, an axis and a legend.

  Args:
    lanes: Lanes of a step.
    step_time_s: Step time, in seconds.
  """
  font = ImageFont.load_default(_TEXT)
  left = _SPACE + max(int(font.getlength(lane.label)) for lane in lanes.rows)
  left += _SPACE
  height = len(lanes.rows) * (_LANE + _GAP)
  # The last tick needs room for half of its text.
  image = Image.new('RGB', (left + COLUMNS + 4 * _SPACE, height + 6 * _SPACE),
                    'white')
  draw = ImageDraw.Draw(image)
  for row, lane in enumerate(lanes.rows):
    top = row * (_LANE + _GAP)
    draw.text((left - _SPACE, top + _LANE // 2), lane.label, 'black', font,
              'rm')
    pixels = np.repeat(lanes.pixels(row)[None], _LANE, axis=0)
    image.paste(Image.fromarray(pixels), (left, top))
  _draw_axis(draw, font, left, height, step_time_s)
  _draw_legend(draw, font, lanes, left, height + 4 * _SPACE)
  file = io.BytesIO()
  image.save(file, 'PNG')
  return file.getvalue()


def _draw_axis(draw: ImageDraw.ImageDraw, font: _Font, left: int, top: int,
               step_time_s: float) -> None:
  for moment_s in (*_round_moments(step_time_s), step_time_s):
    share = moment_s / step_time_s if step_time_s else 0.
    x = left + int(share * (COLUMNS - 1))
    draw.line((x, top, x, top + 5), 'black')
    draw.text((x, top + 8), units.ms(moment_s), 'black', font, 'mt')


def _round_moments(step_time_s: float) -> list[float]:
  """Returns up to `_TICKS` round times from 0 on, with room for the end."""
  if not step_time_s > 0:
    return []
  power = 10.**math.floor(math.log10(step_time_s / _TICKS))
  apart_s = next(power * factor for factor in (1, 2, 5, 10, 20)
                 if power * factor * _TICKS >= step_time_s)
  count = math.ceil((1 - _ROOM) * step_time_s / apart_s)
  return [number * apart_s for number in range(count)]


def _draw_legend(draw: ImageDraw.ImageDraw, font: _Font, lanes: lanes_lib.Lanes,
                 left: int, top: int) -> None:
  x = left
  for name, color in zip(lanes.names, lanes.palette):
    draw.rectangle((x, top, x + _SPACE, top + _SPACE), color)
    x += _SPACE + 6
    draw.text((x, top + _SPACE // 2), name, 'black', font, 'lm')
    x += int(font.getlength(name)) + 2 * _SPACE
