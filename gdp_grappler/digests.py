"""Digests inside of what is written, so that a flipped bit shows."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Mapping

FIELD = 'digest'


def sealed(fields: Mapping[str, Any]) -> dict[str, Any]:
  """The fields of a JSON object, and a digest of all the others at the end."""
  return {**fields, FIELD: of(fields)}


def differs(fields: Mapping[str, Any]) -> bool:
  """Whether an object has a digest, but of another one.

  How it is laid out does not count, nor the order of its fields.
  """
  return FIELD in fields and fields[FIELD] != of(fields)


def of(fields: Mapping[str, Any]) -> str:
  """16 hex digits of all fields but the digest, in whatever order."""
  text = json.dumps({k: v for k, v in fields.items() if k != FIELD},
                    sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:16]
