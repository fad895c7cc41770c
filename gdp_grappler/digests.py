"""Digests in JSON objects, which reveal objects that were damaged or edited."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Mapping

FIELD = 'digest'


def sealed(fields: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the fields of a JSON object, followed by their digest."""
  return {**fields, FIELD: of(fields)}


def differs(fields: Mapping[str, Any]) -> bool:
  """Whether an object has a digest that is not the digest of its fields.

  The layout of the JSON text and the order of fields do not matter.
  """
  return FIELD in fields and fields[FIELD] != of(fields)


def of(fields: Mapping[str, Any]) -> str:
  """Returns the digest, in hex digits, of all fields except the digest field.

  The order of the fields does not matter.
  """
  text = json.dumps({k: v for k, v in fields.items() if k != FIELD},
                    sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:16]
