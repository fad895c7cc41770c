"""Errors about plans for other graphs."""

from __future__ import annotations

from gdp_grappler import errors


class DoesNotFitError(errors.PlanError):
  """A plan is for another graph."""


class NoLayerError(DoesNotFitError):
  """A graph has no layer of a map.

  Attributes:
    is_near: Whether the graph has a name that is similar to one in the map.
  """

  def __init__(self, message: str, is_near: bool) -> None:
    """Makes an error.

    Args:
      message: Text for the user.
      is_near: Whether the graph has a name that is similar to one in the map.
    """
    super().__init__(message)
    self.is_near = is_near
