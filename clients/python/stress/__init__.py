"""A stress of the worker: everything is killed, and what the handlers wrote down is judged."""
