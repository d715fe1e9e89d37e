"""The worker: takes jobs, runs them, extends their leases and settles them."""

from .loop import Worker

__all__ = ["Worker"]
